//! Text that no marker ends: whether all of it can be content of a file.
//!
//! A model that leaves `===END===` out may go on with a remark, and a remark in a file is a wrong
//! edit. So the text is accepted only if no line of it could be one: no prose, no fence, nothing
//! like a marker, no path of another file. The test errs on the side of doubt, which costs a
//! repair.

use super::{
    bare::is_path_like,
    fence::{edges, is_markdown, opening},
};

/// Files, beside Markdown, whose content is prose: a remark cannot be told from it.
const PROSE: &[&str] = &[".txt", ".rst", ".adoc", ".tex", ".org"];

/// What comments start with.
const COMMENTS: &[&str] = &["#", "//", "/*", "--", ";", "%"];

/// The first line that might not belong to the file, and what it looks like.
pub(super) fn doubt(path: &str, lines: &[&str]) -> Option<(usize, &'static str)> {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let is_text = is_markdown(name) || PROSE.iter().any(|ending| name.ends_with(ending));
    if is_text || !name.contains('.') {
        return edges(lines).map(|(first, _)| (first, "text that could be a remark"));
    }
    let found = |(at, line): (usize, &&str)| looks_like(line).map(|what| (at, what));
    lines.iter().enumerate().find_map(found)
}

/// For the model, with what was seen.
pub(super) fn refusal(what: &str) -> String {
    format!(
        "no `===END===` ends the block, and this line looks like {what}: send the block whole, with \
         `===END===` on a line of its own"
    )
}

/// Only lines at the left edge are suspicious: a remark after code is not indented.
fn looks_like(line: &str) -> Option<&'static str> {
    let line = line.trim_end();
    if line.is_empty() || line.starts_with([' ', '\t']) {
        return None;
    }
    let is_rule = line.len() >= 3 && line.chars().all(|c| matches!(c, '-' | '*' | '_' | '='));
    let is_tag = line.eq_ignore_ascii_case("</file>") || line.eq_ignore_ascii_case("</answer>");
    if is_rule
        || is_tag
        || ["===", "<<<", ">>>"]
            .iter()
            .any(|start| line.starts_with(start))
    {
        Some("a marker")
    } else if opening(line).is_some() {
        Some("a code fence")
    } else if is_prose(line) {
        Some("a remark")
    } else if is_path_like(line.trim_matches(['`', '*', ':', '#', ' '])) {
        Some("the name of a file")
    } else {
        None
    }
}

/// Words rather than code, in the first column: plain words are most of the line, two of them after
/// a capital letter or five, or the line has nothing else and starts with a capital letter.
fn is_prose(line: &str) -> bool {
    if line.starts_with("##") || line.starts_with("**") {
        return true;
    }
    if COMMENTS.iter().any(|start| line.starts_with(start)) {
        return false;
    }
    let text = ["- ", "* ", "+ ", "> "]
        .iter()
        .find_map(|bullet| line.strip_prefix(bullet))
        .unwrap_or(line);
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = words.iter().filter(|word| is_plain_word(word)).count();
    let starts_like_a_sentence = text
        .chars()
        .next()
        .is_some_and(|c| c.is_uppercase() || (c.is_alphabetic() && !c.is_ascii()) || !c.is_ascii());
    let enough = if starts_like_a_sentence { 2 } else { 5 };
    let all_plain = plain == words.len();
    (plain >= enough && plain * 2 > words.len()) || (all_plain && starts_like_a_sentence)
}

fn is_plain_word(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '"', '\'']);
    let word = word.trim_end_matches(['.', ',', ':', ';', '!', '?', ')', '"', '\'']);
    !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-') || !c.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_content() {
        for line in [
            "}",
            "end",
            "});",
            "pub fn main() {",
            "#include <a.h>",
            "import os",
            "# a comment of Python",
            "// Licensed under the terms of it",
            "def add(a, b):",
            "x = 1",
            "    a remark, indented",
            "from a import b",
            "module.exports = main;",
            "if __name__ == \"__main__\":",
        ] {
            assert_eq!(doubt("a.py", &[line]), None, "{line}");
        }
    }

    #[test]
    fn whatever_could_be_a_remark_is_not() {
        for line in [
            "This raises the timeout.",
            "Done.",
            "Hope it helps!",
            "I have not run the tests",
            "Isto aumenta o tempo limite.",
            "これで完了です。",
            "✅ Done",
            "- Raises the timeout",
            "### Notes",
            "**Note:** untested",
            "```",
            "=== END ===",
            "===END==",
            "<<<END",
            ">>>END",
            "---",
            "</file>",
            "src/other.rs",
            "`src/other.rs`:",
        ] {
            assert!(doubt("a.py", &["x = 1", line]).is_some(), "{line}");
        }
        for path in ["a.md", "notes.txt", "LICENSE", "docs/README"] {
            assert!(doubt(path, &["x = 1"]).is_some(), "{path}");
        }
    }
}
