//! Markdown with a YAML head between `---` lines; errors carry the line of the file.
//!
//! ```text
//! ---
//! name: pdf
//! description: Fills in forms
//! ---
//! The body.
//! ```
//!
//! Used for skills and agent definitions. The YAML is foreign text: whatever it is, the result is a
//! value or an error with a line.

use serde::de::DeserializeOwned;

/// What is wrong with a head, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FrontmatterError {
    /// The line of the file, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// A text taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split<'a> {
    /// Between the two `---` lines.
    pub yaml: &'a str,
    /// After the second.
    pub body: &'a str,
    /// The line of the file on which the body starts, from 1.
    pub body_first_line: usize,
}

/// Takes a text apart. A byte order mark and CRLF are fine; a head there must be.
pub fn split(text: &str) -> Result<Split<'_>, FrontmatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_rule = |line: &str| line.trim_end() == "---";
    let opening = lines.next().unwrap_or_default();
    if !is_rule(opening) {
        return Err(FrontmatterError {
            line: 1,
            message: "the file must start with a line `---` and the fields below it".to_owned(),
        });
    }
    let start = opening.len();
    let mut end = start;
    for (index, line) in lines.enumerate() {
        if is_rule(line) {
            return Ok(Split {
                yaml: &text[start..end],
                body: &text[end + line.len()..],
                body_first_line: index + 3,
            });
        }
        end += line.len();
    }
    Err(FrontmatterError {
        line: 1,
        message: "the fields that start here are not closed by a line `---`".to_owned(),
    })
}

/// Reads the head as `T`; the body comes with it.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<(T, &str), FrontmatterError> {
    let Split { yaml, body, .. } = split(text)?;
    if yaml.trim().is_empty() {
        // An empty document is null; the fields that are missing say more.
        let fields = serde_saphyr::from_str("{}").map_err(|error| located(&error))?;
        return Ok((fields, body));
    }
    let fields = serde_saphyr::from_str(yaml).map_err(|error| located(&error))?;
    Ok((fields, body))
}

/// The line counts from the head's first, which is the file's second.
fn located(error: &serde_saphyr::Error) -> FrontmatterError {
    let line = error
        .location()
        .and_then(|at| usize::try_from(at.line()).ok());
    let error_text = error.without_snippet().to_string();
    let first = error_text.lines().next().unwrap_or_default();
    let message = match first.find(" at line ") {
        Some(at) => first[..at].to_owned(),
        None => first.to_owned(),
    };
    FrontmatterError {
        line: line.map_or(1, |line| line.max(1) + 1),
        message,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        name: String,
        turns: Option<u32>,
    }

    #[test]
    fn head_and_body_come_apart_with_crlf_and_a_byte_order_mark() {
        let text = "\u{feff}---\r\nname: a\r\nturns: 3\r\n---\r\nBody\r\n---\r\nmore";
        assert_eq!(
            split(text),
            Ok(Split {
                yaml: "name: a\r\nturns: 3\r\n",
                body: "Body\r\n---\r\nmore",
                body_first_line: 5,
            })
        );
        let fields = Fields {
            name: "a".into(),
            turns: Some(3),
        };
        assert_eq!(parse(text), Ok((fields, "Body\r\n---\r\nmore")));
    }

    #[test]
    fn a_file_may_end_with_its_head() {
        assert_eq!(split("---\n---").map(|split| split.body), Ok(""));
    }

    #[test]
    fn errors_name_the_line_of_the_file() {
        let line = |text: &str| parse::<Fields>(text).unwrap_err().line;
        assert_eq!(line("name: a\n"), 1);
        assert_eq!(line("---\nname: a\n"), 1);
        assert_eq!(line("---\nname: a\nturns: many\n---\n"), 3);
        assert_eq!(line("---\nname: [a\nturns: 1\n---\n"), 2);
        let unknown = parse::<Fields>("---\nname: a\n\ncolour: red\n---\n").unwrap_err();
        assert_eq!(unknown.line, 4);
        assert!(unknown.message.contains("colour"), "{unknown}");
        let missing = parse::<Fields>("---\n---\n").unwrap_err();
        assert!(missing.message.contains("name"), "{missing}");
        assert!(!missing.message.contains(" at line "), "{missing}");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "(---\n)?[a-z:\\[\\]{}&*!|>'\"%@ \r\n-]{0,80}(\n---\n)?.*") {
            let _ = parse::<Fields>(&text);
        }
    }
}
