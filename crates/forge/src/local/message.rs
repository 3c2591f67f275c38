//! Messages of commits and the lines at their end.
//!
//! The lines are ordinary git trailers. They are the only record that is written in the same step
//! as the change itself, which is why a repeated call looks for them and not in the store.

use codespar_protocol::CommitId;

/// The line that a commit is found again by.
pub(super) fn key_line(key: &str) -> String {
    format!("CodeSpar-Key: {key}")
}

/// How the line begins that a merge is found again by.
pub(super) const MERGE_LINE: &str = "CodeSpar-Merge: #";

/// The line that a merge is found again by.
pub(super) fn merge_line(number: u64, head: &CommitId) -> String {
    format!("{MERGE_LINE}{number} {head}")
}

/// Whether a message has this line.
pub(super) fn has_line(message: &str, line: &str) -> bool {
    message.lines().any(|found| found.trim_end() == line)
}

/// The message with the line among its trailers, and a newline at its end.
pub(super) fn with_line(message: &str, line: &str) -> String {
    let message = message.trim_end();
    if has_line(message, line) {
        return format!("{message}\n");
    }
    let between = if ends_in_trailers(message) {
        "\n"
    } else {
        "\n\n"
    };
    format!("{message}{between}{line}\n")
}

/// The first paragraph is the subject, whatever it looks like.
fn ends_in_trailers(message: &str) -> bool {
    let Some((_, last)) = message.rsplit_once("\n\n") else {
        return false;
    };
    last.lines().all(is_trailer)
}

fn is_trailer(line: &str) -> bool {
    let word = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    line.split_once(": ").is_some_and(|(name, _)| word(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_joins_the_trailers_or_begins_them() {
        for (message, expected) in [
            ("fix", "fix\n\nK: 1\n"),
            ("fix: it", "fix: it\n\nK: 1\n"),
            ("fix\n\nwords here\n", "fix\n\nwords here\n\nK: 1\n"),
            (
                "fix\n\nwords\n\nA-b: c\nD: e\n",
                "fix\n\nwords\n\nA-b: c\nD: e\nK: 1\n",
            ),
            ("fix\n\nA-b: c\nwords\n", "fix\n\nA-b: c\nwords\n\nK: 1\n"),
            ("fix\n\nK: 1\nL: 2", "fix\n\nK: 1\nL: 2\n"),
        ] {
            assert_eq!(with_line(message, "K: 1"), expected, "{message:?}");
        }
        assert!(!has_line("fix\n\nK: 12", "K: 1"));
    }
}
