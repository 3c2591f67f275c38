//! What an outcome is worth: white space at line ends and one final newline do not count.
//!
//! A text that equals the original counts as a refusal, whatever the program said: nothing was
//! changed.

use std::fmt;

use super::case::{Case, Outcome};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Score {
    Ok,
    /// It should have been applied. Costs a retry.
    Refused,
    /// Another text than expected, or a text where a refusal was due. Costs trust.
    Wrong,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Wrong => "wrong",
        })
    }
}

/// A case that wants a refusal is right if the file is unchanged. With `contains` the comparison
/// ignores white space, and every replacement must be there.
pub(super) fn score(case: &Case, outcome: &Outcome) -> Score {
    let text = match outcome {
        Outcome::Refused(_) if case.wants_refusal() || case.allows_refusal() => return Score::Ok,
        Outcome::Refused(_) => return Score::Refused,
        Outcome::Text(text) => text,
    };
    let same = |other: &str| plain(text) == plain(other);
    if case.wants_refusal() {
        return if same(&case.original) {
            Score::Ok
        } else {
            Score::Wrong
        };
    }
    let expected = case.expected.as_deref().unwrap_or_default();
    let has_all = || {
        let text = packed(text);
        let mut blocks = case.edit_blocks.iter();
        blocks.all(|block| text.contains(&packed(&block.replace))) && text == packed(expected)
    };
    if same(expected) || (case.is_loose() && has_all()) {
        Score::Ok
    } else if same(&case.original) {
        Score::Refused
    } else {
        Score::Wrong
    }
}

/// Line ends themselves count: a file that loses its carriage returns is wrong.
fn plain(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| match line.strip_suffix('\r') {
            Some(line) => line.trim_end_matches([' ', '\t']).to_owned() + "\r",
            None => line.trim_end_matches([' ', '\t']).to_owned(),
        })
        .collect();
    let text = lines.join("\n");
    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
}

/// Without any blanks, for cases in which indentation is not the point.
fn packed(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace([' ', '\t'], "");
    text.trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::case::example, *};

    fn scored(more: &serde_json::Value, text: Option<&str>) -> Score {
        let mut case = json!({
            "id": "x", "unit": "lines", "original": "a\nb\n", "expected": "a\nc\n",
            "edit_blocks": [{"search": "b", "replace": "c"}],
        });
        for (key, value) in more.as_object().unwrap() {
            case[key] = value.clone();
        }
        let outcome = match text {
            Some(text) => Outcome::Text(text.to_owned()),
            None => Outcome::Refused("no".to_owned()),
        };
        score(&example(case), &outcome)
    }

    #[test]
    fn an_outcome_is_right_refused_or_wrong() {
        let none = json!({});
        assert_eq!(scored(&none, Some("a\nc  ")), Score::Ok);
        assert_eq!(scored(&none, Some("a\nb\n")), Score::Refused);
        assert_eq!(scored(&none, None), Score::Refused);
        assert_eq!(scored(&none, Some("a\n c\n")), Score::Wrong);
        assert_eq!(
            scored(&json!({"check": "contains"}), Some("a\n c\n")),
            Score::Ok
        );
        assert_eq!(
            scored(&json!({"expect_error": "ambiguous"}), None),
            Score::Ok
        );
        assert_eq!(
            scored(&json!({"expect_error": true}), Some("a\nc\n")),
            Score::Wrong
        );
        assert_eq!(
            scored(&json!({"accept": "apply_or_refuse"}), None),
            Score::Ok
        );
    }
}
