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

use std::collections::BTreeMap;

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

/// Whether a text begins with a head, complete or not.
pub fn has_head(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().next().is_some_and(is_rule)
}

fn is_rule(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Takes a text apart. A byte order mark and CRLF are fine; a head there must be.
pub fn split(text: &str) -> Result<Split<'_>, FrontmatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    // Some editors make a heading of the last field: the line below it gets as long as the field.
    let is_end = |line: &str| {
        let line = line.trim_end();
        line.len() >= 3 && line.chars().all(|c| c == '-')
    };
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
        if is_end(line) {
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

/// Reads the head as fields by name, as the tools do that most such files were written for: a value
/// that YAML would not take, because there is a `: ` in it or a bracket that is not closed, is the
/// text of its line. True if the head had to be read that way.
///
/// A field that comes a second time is text of the one before it: descriptions have conversations in
/// them (`user: …`). Those that `known` names have a meaning and may not come twice.
pub fn parse_loosely<'a>(
    text: &'a str,
    known: &[&str],
) -> Result<(Fields, &'a str, bool), FrontmatterError> {
    match parse::<Fields>(text) {
        Ok((fields, body)) => Ok((fields, body, false)),
        Err(error) => {
            let Split { yaml, body, .. } = split(text)?;
            let fields = serde_saphyr::from_str(&quoted(yaml, known)).map_err(|_| error)?;
            Ok((fields, body, true))
        }
    }
}

/// The fields of a head, by name.
pub type Fields = BTreeMap<String, serde_json::Value>;

/// The names of a field: a list, or a line with commas between them. Commas in parentheses belong to
/// a rule: `Bash(git log, git diff)` is one name.
pub fn names(value: &serde_json::Value) -> Vec<String> {
    let texts: Vec<&str> = match value {
        serde_json::Value::String(line) => split_names(line),
        serde_json::Value::Array(list) => list.iter().filter_map(|name| name.as_str()).collect(),
        _ => Vec::new(),
    };
    let names = texts.into_iter().map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn split_names(line: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = line.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.collect()
}

/// The head with the value of every plain `key: value` line in quotes. Lines that belong to such a
/// value are joined to it; lists below a key stay as they are.
fn quoted(yaml: &str, known: &[&str]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut open: Option<OpenValue<'_>> = None;
    for line in yaml.lines() {
        let field = key_of(line);
        let is_text = |key: &str| open.is_some() && seen.contains(&key) && !known.contains(&key);
        let field = field.filter(|(key, _)| !is_text(key));
        seen.extend(field.map(|(key, _)| key));
        match (field, &mut open) {
            (None, Some(value)) => value.more.push(line.trim()),
            (None, None) => out.push(line.to_owned()),
            (Some((key, value)), _) => {
                out.extend(open.take().map(OpenValue::written));
                match is_plain(value) || is_in_quotes(value) {
                    true => {
                        open = Some(OpenValue {
                            line,
                            key,
                            value,
                            more: Vec::new(),
                        });
                    }
                    false => out.push(line.to_owned()),
                }
            }
        }
    }
    out.extend(open.map(OpenValue::written));
    out.join("\n")
}

/// A value that further lines may belong to.
struct OpenValue<'a> {
    line: &'a str,
    key: &'a str,
    value: &'a str,
    more: Vec<&'a str>,
}

impl OpenValue<'_> {
    /// One in quotes keeps them if nothing follows it.
    fn written(self) -> String {
        if self.more.is_empty() && is_in_quotes(self.value) {
            return self.line.to_owned();
        }
        let lines: Vec<&str> = std::iter::once(self.value).chain(self.more).collect();
        // JSON strings are YAML strings.
        format!(
            "{}: {}",
            self.key,
            serde_json::Value::String(lines.join("\n"))
        )
    }
}

fn is_in_quotes(value: &str) -> bool {
    let is_whole =
        |quote: char| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    is_whole('"') || is_whole('\'')
}

/// A key at the beginning of a line, and what stands after it.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_key = !key.is_empty() && key.chars().all(is_word);
    let is_apart = value.is_empty() || value.starts_with([' ', '\t']);
    (is_key && is_apart).then(|| (key, value.trim()))
}

/// Whether a value is text without a meaning of its own: not quoted, no list, no block below it.
fn is_plain(value: &str) -> bool {
    let is_whole = |open: char, close: char| value.starts_with(open) && value.ends_with(close);
    let has_form = is_in_quotes(value)
        || is_whole('[', ']')
        || is_whole('{', '}')
        || value.starts_with(['|', '>']);
    !value.is_empty() && !has_form
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

    #[test]
    fn a_conversation_in_a_description_is_text_and_a_known_field_comes_once() {
        let text = "---\nname: a\ndescription: Use it: <x>\nuser: \"one\"\nassistant: \"two\"\n<y>\nthree: four\n</x> <x>\nuser: \"four\"\nassistant: five\n</x>\ntools: Read\n---\nBody";
        let (fields, _, is_loose) = parse_loosely(text, &["tools"]).unwrap();
        assert!(is_loose);
        assert_eq!(fields["tools"], "Read");
        assert_eq!(
            fields["three"],
            "four\n</x> <x>\nuser: \"four\"\nassistant: five\n</x>"
        );
        let twice = "---\nname: a\ndescription: b: c\ntools: Read\ntools: Bash\n---\nBody";
        assert!(parse_loosely(twice, &["tools"]).is_err());
    }

    #[test]
    fn a_longer_line_of_dashes_ends_the_head_too() {
        let found = split("---\n\nname: a\ntools: Read\n-----------\nBody").unwrap();
        assert_eq!(
            (found.yaml, found.body),
            ("\nname: a\ntools: Read\n", "Body")
        );
    }

    #[test]
    fn a_value_that_is_no_yaml_is_the_text_of_its_line() {
        let text = "---\nname: a\ndescription: Use this: when asked. Examples: <x>user: 'hi'</x>\n  more of it\ntools: Read, Bash\nlist:\n  - one\n---\nBody";
        let (fields, body, is_loose) = parse_loosely(text, &[]).unwrap();
        assert!(is_loose);
        assert_eq!(body, "Body");
        assert_eq!(
            fields["description"],
            "Use this: when asked. Examples: <x>user: 'hi'</x>\nmore of it"
        );
        assert_eq!(fields["tools"], "Read, Bash");
        assert_eq!(fields["list"], serde_json::json!(["one"]));
        let (fields, _, is_loose) = parse_loosely("---\nname: a\nturns: 3\n---\n", &[]).unwrap();
        assert_eq!((fields["turns"].as_u64(), is_loose), (Some(3), false));
        assert_eq!(
            parse_loosely("---\n- x\ny: [\n---\n", &[])
                .unwrap_err()
                .line,
            2
        );
    }

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
            let _ = parse_loosely(&text, &[]);
        }
    }
}
