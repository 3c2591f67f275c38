//! A tool call as an editor shows it: its kind, the places it touches, and edits as diffs.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Diff, TextContent, ToolCallContent, ToolCallLocation, ToolKind,
};
use codespar_policy::Redactor;
use serde_json::Value;

use crate::printer;

/// In characters.
const TITLE: usize = 200;
/// How much of a result is shown; the model has all of it.
const RESULT: usize = 16_000;
/// A longer file is shown as written anew.
const MAX_OLD_TEXT: u64 = 1 << 20;

/// What files a call names are relative to, and what is taken out of their text.
pub(super) struct Workplace<'a> {
    pub(super) cwd: &'a Path,
    pub(super) redactor: &'a Redactor,
}

pub(super) fn kind(tool: &str) -> ToolKind {
    match tool {
        "Read" | "NotebookRead" => ToolKind::Read,
        "Glob" | "Grep" | "LS" => ToolKind::Search,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Bash" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "Task" | "TodoWrite" => ToolKind::Think,
        "ExitPlanMode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// One line, without anything that a terminal would obey.
pub(super) fn title(tool: &str, summary: &str) -> String {
    let line = summary.lines().next().unwrap_or_default().trim();
    let title = match line.is_empty() {
        true => tool.to_owned(),
        false => format!("{tool}: {line}"),
    };
    let title = printer::plain(&title).into_owned();
    match title.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title,
    }
}

impl Workplace<'_> {
    fn path(&self, input: &Value) -> Option<PathBuf> {
        let named = ["file_path", "notebook_path", "path"];
        let path = named.iter().find_map(|key| input.get(key)?.as_str())?;
        Some(self.cwd.join(path))
    }

    pub(super) fn locations(&self, input: &Value) -> Vec<ToolCallLocation> {
        let line = input.get("offset").and_then(Value::as_u64);
        let line = line.and_then(|line| u32::try_from(line).ok());
        let path = self.path(input).into_iter();
        path.map(|path| ToolCallLocation::new(path).line(line))
            .collect()
    }

    /// What an edit would change, or changes.
    pub(super) fn diff(&self, tool: &str, input: &Value) -> Option<ToolCallContent> {
        let path = self.path(input)?;
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let diff = match tool {
            "Edit" => {
                Diff::new(path, text("new_string")?).old_text(text("old_string").map(str::to_owned))
            }
            "Write" => {
                let old = codespar_files::read_text(&path, MAX_OLD_TEXT).ok();
                let old = old.map(|old| self.redactor.redact(&old).into_owned());
                Diff::new(path, text("content")?).old_text(old)
            }
            _ => return None,
        };
        Some(ToolCallContent::Diff(diff))
    }
}

pub(super) fn text(text: impl Into<String>) -> ToolCallContent {
    let text = ContentBlock::Text(TextContent::new(text));
    ToolCallContent::Content(Content::new(text))
}

/// What a program printed, or a tool found: fixed width, cut, without control sequences.
pub(super) fn output(printed: &str) -> ToolCallContent {
    let plain = printer::visible(&printer::without_styles(printed));
    let shown = match plain.char_indices().nth(RESULT) {
        Some((end, _)) => format!("{}\n…", &plain[..end]),
        None => plain,
    };
    text(fenced(shown.trim_end()))
}

/// The fence is longer than any in the text.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_edit_is_a_diff_and_a_new_text_has_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "old").unwrap();
        let redactor = Redactor::by_shape();
        let workplace = Workplace {
            cwd: dir.path(),
            redactor: &redactor,
        };
        let diff = |tool: &str, input: Value| match workplace.diff(tool, &input) {
            Some(ToolCallContent::Diff(diff)) => Some((diff.path, diff.old_text, diff.new_text)),
            _ => None,
        };
        let path = dir.path().join("a.txt");
        let edit = json!({"file_path": "a.txt", "old_string": "o", "new_string": "n"});
        assert_eq!(
            diff("Edit", edit),
            Some((path.clone(), Some("o".into()), "n".into()))
        );
        let write = json!({"file_path": "a.txt", "content": "new"});
        assert_eq!(
            diff("Write", write.clone()),
            Some((path, Some("old".into()), "new".into()))
        );
        assert_eq!(diff("Read", write), None);
    }

    #[test]
    fn output_obeys_nothing_and_stays_in_its_fence() {
        let ToolCallContent::Content(content) = output("\u{1b}]0;t\u{7}```\nx\u{1b}[31m") else {
            panic!("not text");
        };
        let ContentBlock::Text(text) = content.content else {
            panic!("not text");
        };
        assert!(text.text.starts_with("````\n"), "{}", text.text);
        assert!(!text.text.contains('\u{1b}'), "{}", text.text);
    }
}
