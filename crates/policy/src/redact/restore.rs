//! Edits by an author who was shown a text without its secrets: the marks in them are turned back
//! into what they stand for, or the edit is refused. A mark is never written in place of a secret.
//!
//! The model sees `key = "[redacted]"` and edits around it. Writing its text as it is would destroy
//! the key. The edit's search text is located in the file as it was shown; the marks at that place
//! tell which secrets are meant. The replacement may keep those marks or drop them; a mark for a
//! secret that is not in the search text is refused.

use super::{Redactor, replace};

/// How every mark begins.
const MARK: &str = "[redacted";

/// Why the marks of an edit cannot be turned back. The messages are addressed to the author of the
/// edit and say how to write it instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The text to be found does not occur in what was shown.
    #[error(
        "the lines with `[redacted]` are not in the file as it was shown; copy them exactly, or \
         leave them out"
    )]
    NotFound,
    /// It occurs where the marks stand for different secrets.
    #[error(
        "the lines with `[redacted]` are in the file more than once, with different secrets; add \
         lines around them"
    )]
    Ambiguous,
    /// The new text has a mark that the text to be found has not.
    #[error(
        "the new text has `[redacted]`, which stands for a secret that was not shown; it can only \
         stay where it is: have the same marks in the old text and in the new one, or leave it out"
    )]
    NewMark,
}

impl Redactor {
    /// The edit of `text` that is meant by one made on its redacted form: `None` when no mark in it
    /// stands for a secret.
    ///
    /// On success the search text and the replacement, in which each mark is the secret again.
    /// Nothing is written; the caller applies the pair to the file like any other edit.
    pub fn restore(
        &self,
        text: &str,
        search: &str,
        replacement: &str,
    ) -> Result<Option<(String, String)>, RestoreError> {
        let (wanted, new) = (marks(search), marks(replacement));
        if wanted.is_empty() && new.is_empty() {
            return Ok(None);
        }
        let Some(lines) = self.shown_lines(text)? else {
            return Ok(None);
        };
        let secrets = match wanted.is_empty() {
            true => Vec::new(),
            false => secrets_at(&lines, search)?,
        };
        let mut with = Vec::with_capacity(new.len());
        for (at, mark) in new.iter().enumerate() {
            with.push(if wanted == new {
                secrets[at].clone()
            } else {
                meant(mark, &wanted, &secrets, &lines)?
            });
        }
        Ok(Some((
            substituted(search, &secrets),
            substituted(replacement, &with),
        )))
    }

    /// The first mark that a whole new text has more often than the text it replaces, if that has
    /// secrets which the author was not shown. For writing a whole file, where no position tells
    /// which secret a mark stands for. `None` also when `before` has no secrets: a mark is ordinary
    /// text then.
    pub fn added_mark<'a>(&self, before: &str, after: &'a str) -> Option<&'a str> {
        let new = first_new_mark(before, after)?;
        (!self.spots(before).is_empty()).then_some(new)
    }

    /// The lines of a text as they are shown, each with what its marks stand for. `None` when all
    /// of it is shown.
    fn shown_lines(&self, text: &str) -> Result<Option<Vec<Line>>, RestoreError> {
        let spots = self.spots(text);
        if spots.is_empty() {
            return Ok(None);
        }
        let shown = replace(text, &spots);
        if !self.spots(&shown).is_empty() {
            // What is shown then has marks for marks.
            return Err(RestoreError::NotFound);
        }
        // Where each secret's mark begins in the shown text.
        let mut starts = Vec::with_capacity(spots.len());
        let (mut removed, mut added) = (0, 0);
        for (range, mark) in &spots {
            starts.push((range.start - removed + added, &text[range.clone()]));
            removed += range.len();
            added += mark.len();
        }
        let mut lines = Vec::new();
        let mut begin = 0;
        for line in shown.split_inclusive('\n') {
            let original = |(at, mark): (usize, &str)| {
                let secret = starts.iter().find(|(start, _)| *start == begin + at);
                let secret = secret.map_or(mark, |(_, secret)| *secret);
                (at, secret.replace("\r\n", "\n"))
            };
            lines.push(Line {
                text: line.to_owned(),
                secrets: placed_marks(line).into_iter().map(original).collect(),
            });
            begin += line.len();
        }
        Ok(Some(lines))
    }
}

/// The first mark that a text has more often than another one.
pub fn first_new_mark<'a>(before: &str, after: &'a str) -> Option<&'a str> {
    let count = |text: &str, mark: &str| text.matches(mark).count();
    marks(after)
        .into_iter()
        .find(|mark| count(after, mark) > count(before, mark))
}

/// A line as it is shown.
struct Line {
    text: String,
    /// Where each mark is, and what it stands for: a secret, or itself.
    secrets: Vec<(usize, String)>,
}

/// What the marks of `search` stand for, in order. Like the matching of edits, this does not mind
/// space at the ends of lines; the first and the last may be parts of lines. The same lines may
/// occur several times if the secrets in them are equal.
fn secrets_at(lines: &[Line], search: &str) -> Result<Vec<String>, RestoreError> {
    let wanted: Vec<&str> = search.trim().lines().map(str::trim).collect();
    let mut found: Option<Vec<String>> = None;
    for window in lines.windows(wanted.len()) {
        let mut candidates = match (window, wanted.as_slice()) {
            ([line], [part]) => parts_of(line, part),
            _ => whole(window, &wanted).into_iter().collect(),
        };
        candidates.dedup();
        for candidate in candidates {
            match &found {
                Some(known) if *known != candidate => return Err(RestoreError::Ambiguous),
                _ => found = Some(candidate),
            }
        }
    }
    found.ok_or(RestoreError::NotFound)
}

/// Every place of a part in its line.
fn parts_of(line: &Line, part: &str) -> Vec<Vec<String>> {
    let places = line.text.match_indices(part).map(|(at, _)| at);
    places
        .map(|at| secrets_in(line, at, at + part.len()))
        .collect()
}

/// Several lines, the first from somewhere in it, the last up to somewhere in it.
fn whole(window: &[Line], wanted: &[&str]) -> Option<Vec<String>> {
    let mut secrets = Vec::new();
    for (at, (line, part)) in window.iter().zip(wanted).enumerate() {
        let end = line.text.trim_end().len();
        let begin = line.text.len() - line.text.trim_start().len();
        let (from, to) = match at {
            0 => (end.checked_sub(part.len())?, end),
            _ if at + 1 == wanted.len() => (begin, begin + part.len()),
            _ => (begin.min(end), end),
        };
        if line.text.get(from..to)? != *part {
            return None;
        }
        secrets.extend(secrets_in(line, from, to));
    }
    Some(secrets)
}

fn secrets_in(line: &Line, from: usize, to: usize) -> Vec<String> {
    let within = line
        .secrets
        .iter()
        .filter(|(at, _)| (from..to).contains(at));
    within.map(|(_, secret)| secret.clone()).collect()
}

/// What a mark of the new text stands for, where the marks are not those of the old one. A mark is
/// identified by its name among the marks of the search text. If it stands for different secrets
/// there, or for one that only occurs elsewhere in the file, the edit is refused.
fn meant(
    mark: &str,
    wanted: &[&str],
    secrets: &[String],
    lines: &[Line],
) -> Result<String, RestoreError> {
    let mut known: Vec<&String> = wanted
        .iter()
        .zip(secrets)
        .filter(|(other, _)| **other == mark)
        .map(|(_, secret)| secret)
        .collect();
    known.dedup();
    let hides = |line: &Line| {
        line.secrets
            .iter()
            .any(|(at, secret)| line.text[*at..].starts_with(mark) && secret != mark)
    };
    match known.as_slice() {
        [secret] => Ok((*secret).clone()),
        // A text of the author's own that looks like a mark.
        [] if !lines.iter().any(hides) => Ok(mark.to_owned()),
        _ => Err(RestoreError::NewMark),
    }
}

/// The text with its marks replaced one by one.
fn substituted(text: &str, with: &[String]) -> String {
    let spots: Vec<_> = placed_marks(text)
        .into_iter()
        .zip(with)
        .map(|((at, mark), secret)| (at..at + mark.len(), secret.clone()))
        .collect();
    replace(text, &spots)
}

fn marks(text: &str) -> Vec<&str> {
    placed_marks(text)
        .into_iter()
        .map(|(_, mark)| mark)
        .collect()
}

/// Every complete mark with its byte offset. `[redacted` followed by anything but `]` or `:NAME]`
/// is ordinary text.
fn placed_marks(text: &str) -> Vec<(usize, &str)> {
    text.match_indices(MARK)
        .filter_map(|(at, _)| {
            let rest = &text[at + MARK.len()..];
            let end = rest.find(']')?;
            let is_mark = match rest[..end].strip_prefix(':') {
                None => end == 0,
                Some(name) => name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            };
            is_mark.then(|| (at, &text[at..at + MARK.len() + end + 1]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ONE: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const TWO: &str = "ghp_abcdefghijABCDEFGHIJ0123456789012345";

    fn redactor() -> Redactor {
        Redactor::new([("KEY", "hunter22hunter22")])
    }

    fn file() -> String {
        format!(
            "import os\nurl = 'u'\n\ta('{ONE}', 'hunter22hunter22')\r\nb('{TWO}')\nc('{TWO}')\nend\n"
        )
    }

    fn restored(search: &str, with: &str) -> Result<Option<(String, String)>, RestoreError> {
        redactor().restore(&file(), search, with)
    }

    fn pair(search: String, with: String) -> Result<Option<(String, String)>, RestoreError> {
        Ok(Some((search, with)))
    }

    #[test]
    fn a_mark_around_a_change_becomes_its_secret_again() {
        assert_eq!(
            restored(
                "url = 'u'\n    a('[redacted]', '[redacted:KEY]')\n",
                "url = 'v'\n    a('[redacted]', '[redacted:KEY]')\n"
            ),
            pair(
                format!("url = 'u'\n    a('{ONE}', 'hunter22hunter22')\n"),
                format!("url = 'v'\n    a('{ONE}', 'hunter22hunter22')\n")
            )
        );
    }

    #[test]
    fn a_secret_can_be_taken_out_and_one_of_two_be_kept() {
        assert_eq!(
            restored(
                "a('[redacted]', '[redacted:KEY]')",
                "a(os.env['K'], '[redacted:KEY]')"
            ),
            pair(
                format!("a('{ONE}', 'hunter22hunter22')"),
                "a(os.env['K'], 'hunter22hunter22')".to_owned()
            )
        );
    }

    #[test]
    fn lines_around_it_tell_which_secret_is_meant() {
        assert_eq!(
            restored("('[redacted]", "('x"),
            Err(RestoreError::Ambiguous)
        );
        assert_eq!(
            restored("b('[redacted]')\nc('[redacted]')\nend", "end"),
            pair(format!("b('{TWO}')\nc('{TWO}')\nend"), "end".to_owned())
        );
    }

    #[rstest]
    #[case("end", "end [redacted]", RestoreError::NewMark)]
    #[case("end", "end [redacted:KEY]", RestoreError::NewMark)]
    #[case("b('[redacted]')", "b('[redacted:KEY]')", RestoreError::NewMark)]
    #[case("z('[redacted]')", "z()", RestoreError::NotFound)]
    fn a_mark_that_is_in_no_such_place_is_refused(
        #[case] search: &str,
        #[case] with: &str,
        #[case] error: RestoreError,
    ) {
        assert_eq!(restored(search, with), Err(error));
    }

    #[test]
    fn in_a_text_without_secrets_a_mark_is_only_text() {
        let redactor = redactor();
        assert_eq!(
            redactor.restore("a\n", "a", "print('[redacted]')"),
            Ok(None)
        );
        assert_eq!(
            redactor.restore("a [redacted]\n", "[redacted]", "b"),
            Ok(None)
        );
        assert_eq!(redactor.added_mark("a\n", "[redacted]\n"), None);
        assert_eq!(restored("url", "uri"), Ok(None));
    }

    #[test]
    fn a_literal_mark_beside_a_secret_stays_itself() {
        let text = format!("say('[redacted]')\nkey = '{ONE}'\n");
        assert_eq!(
            redactor().restore(&text, "say('[redacted]')", "tell('[redacted]')"),
            pair(
                "say('[redacted]')".to_owned(),
                "tell('[redacted]')".to_owned()
            )
        );
    }

    #[test]
    fn a_key_of_many_lines_is_one_mark() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\r\nMIIEowIBAAKCAQEAxxxxxxxxxxxxxxxx\r\n-----END RSA PRIVATE KEY-----";
        let text = format!("before\r\n{key}\r\nafter\r\n");
        let (search, with) = redactor()
            .restore(&text, "before\n[redacted]\nafter", "[redacted]")
            .unwrap()
            .unwrap();
        let plain = key.replace("\r\n", "\n");
        assert_eq!((search, with), (format!("before\n{plain}\nafter"), plain));
    }

    #[test]
    fn a_whole_text_with_a_mark_for_a_secret_is_found() {
        let before = format!("key = '{ONE}'\nlog('[redacted]')\n");
        let redactor = redactor();
        let same = "key = get()\nlog('[redacted]')\n";
        assert_eq!(redactor.added_mark(&before, same), None);
        let marked = "key = '[redacted]'\nlog('[redacted]')\n";
        assert_eq!(redactor.added_mark(&before, marked), Some("[redacted]"));
    }
}
