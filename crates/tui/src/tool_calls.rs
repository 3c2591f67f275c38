//! Finished calls as output: a line that names what was done, and what came of it.
//!
//! Edits show the changed lines; other calls the first lines of their result. The model has all of
//! it, and the transcript too.

use std::{collections::HashMap, fs, io::Read, path::Path};

use codespar_protocol::ToolUseId;
use codespar_terminal::wrap::OutputLine;
use codespar_terminal::{
    Line, Span,
    diff::{DiffOptions, changed_lines},
    highlight::language_of,
    theme::Theme,
};
use serde_json::Value;

use crate::text::Cleaner;

/// Lines of a result that are shown.
const RESULT_LINES: usize = 4;
/// The same of a command that the user typed, who wants to see it.
const USER_RESULT_LINES: usize = 100;
/// How the ids of the user's own calls begin.
const BY_USER: &str = "user-";
/// In characters; longer lines of results are cut.
const LINE_WIDTH: usize = 200;
/// Changed lines of an edit that are shown.
const DIFF_LINES: usize = 200;
/// Files above this size are not looked at for the number of a line.
const LARGEST_FILE: u64 = 4 * 1024 * 1024;

/// A change that an edit makes, as far as its input tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) old: String,
    pub(crate) new: String,
    /// Of the first line of the texts, from 1.
    pub(crate) first_line: usize,
}

/// Calls that have begun, with what has to be known from before they changed anything.
#[derive(Default)]
pub(crate) struct ToolCalls {
    begun: HashMap<ToolUseId, Begun>,
    /// Calls that were asked about, with the input whose changes the question has shown.
    asked: HashMap<ToolUseId, Value>,
}

struct Begun {
    summary: String,
    changes: Vec<Change>,
}

/// What is known of a call that ended.
pub(crate) struct Finished<'a> {
    pub(crate) id: &'a ToolUseId,
    pub(crate) tool: &'a str,
    pub(crate) is_error: bool,
    pub(crate) duration_ms: u64,
    pub(crate) result: &'a str,
}

impl ToolCalls {
    /// The file is read now, before the call changes it.
    pub(crate) fn begin(&mut self, id: ToolUseId, summary: String, input: &Value) {
        // The user has changed it: what runs was not shown yet.
        if self.asked.get(&id).is_some_and(|asked| asked != input) {
            self.asked.remove(&id);
        }
        let changes = changes(input);
        self.begun.insert(id, Begun { summary, changes });
    }

    pub(crate) fn asked(&mut self, id: ToolUseId, input: Value) {
        self.asked.insert(id, input);
    }

    /// Calls that a cancelled turn left.
    pub(crate) fn clear(&mut self) {
        self.asked.clear();
        self.begun.clear();
    }

    /// A call whose changes a question has shown does not show them again.
    pub(crate) fn finish(
        &mut self,
        call: &Finished<'_>,
        columns: u16,
        theme: Theme,
        cleaner: &Cleaner,
    ) -> Vec<OutputLine> {
        let Begun { summary, changes } = self.begun.remove(call.id).unwrap_or(Begun {
            summary: String::new(),
            changes: Vec::new(),
        });
        let mut lines = vec![heading(call, &summary, theme)];
        let was_shown = self.asked.remove(call.id).is_some();
        if !call.is_error && !changes.is_empty() {
            for change in changes.iter().filter(|_| !was_shown) {
                lines.extend(diff(change, columns, theme, cleaner));
            }
            return lines;
        }
        lines.extend(result_lines(call, theme, cleaner));
        lines
    }
}

/// The command or path is one logical line: a copy of it is what was run.
fn heading(call: &Finished<'_>, summary: &str, theme: Theme) -> OutputLine {
    let mark = match call.is_error {
        true => Span::styled("✗ ", theme.error()),
        false => Span::styled("● ", theme.good()),
    };
    let mut spans = vec![
        mark,
        Span::styled(call.tool.to_owned(), theme.strong()),
        Span::raw(format!(" {summary}")),
    ];
    if call.duration_ms >= 1_000 {
        let seconds = call.duration_ms as f64 / 1_000.0;
        spans.push(Span::styled(format!(" {seconds:.1} s"), theme.faint()));
    }
    OutputLine::whole(spans)
}

fn result_lines(call: &Finished<'_>, theme: Theme, cleaner: &Cleaner) -> Vec<OutputLine> {
    let style = match call.is_error {
        true => theme.warning(),
        false => theme.faint(),
    };
    let most = match call.id.0.starts_with(BY_USER) {
        true => USER_RESULT_LINES,
        false => RESULT_LINES,
    };
    let all = call.result.lines().count();
    let shown = call.result.lines().take(most);
    let mut lines: Vec<OutputLine> = shown
        .map(|line| {
            let text = cleaner.line(line, LINE_WIDTH);
            OutputLine::whole(Line::styled(format!("  {text}"), style))
        })
        .collect();
    if all > most {
        let text = format!("  … {} more lines", all - most);
        lines.push(OutputLine::whole(Line::styled(text, style)));
    }
    lines
}

/// The changed lines with their numbers.
pub(crate) fn diff(
    change: &Change,
    columns: u16,
    theme: Theme,
    cleaner: &Cleaner,
) -> Vec<OutputLine> {
    let options = DiffOptions {
        theme,
        columns,
        context: 3,
        first_line: change.first_line,
        language: language_of(&change.path),
        max_lines: DIFF_LINES,
    };
    changed_lines(
        &cleaner.clean(&change.old),
        &cleaner.clean(&change.new),
        &options,
    )
}

/// The changes of an edit: by the names of the fields that tools which edit files use. Empty for
/// other calls. A display only: what a call does is decided by its tool. The path may be anything a
/// model wrote, so only regular files of bounded size are read, and nothing of them leaves the
/// screen.
pub(crate) fn changes(input: &Value) -> Vec<Change> {
    let text = |value: &Value, name: &str| {
        let text = value.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let Some(path) = text(input, "file_path") else {
        return Vec::new();
    };
    if let Some(new) = text(input, "content") {
        let old = read(Path::new(&path)).unwrap_or_default();
        return vec![Change {
            path,
            old,
            new,
            first_line: 1,
        }];
    }
    let edits = match input.get("edits").and_then(Value::as_array) {
        Some(edits) => edits.iter().collect(),
        None => vec![input],
    };
    let before = read(Path::new(&path)).unwrap_or_default();
    let edits = edits.into_iter().filter_map(|edit| {
        let old = text(edit, "old_string")?;
        let new = text(edit, "new_string")?;
        let at = if old.is_empty() {
            None
        } else {
            before.find(&old)
        };
        let first_line = at.map_or(1, |at| before[..at].matches('\n').count() + 1);
        Some(Change {
            path: path.clone(),
            old,
            new,
            first_line,
        })
    });
    edits.collect()
}

/// `None` for files that are large, not regular, or not text.
fn read(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > LARGEST_FILE {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(LARGEST_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_edit_knows_where_in_the_file_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.rs");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let input = json!({"file_path": path, "old_string": "two", "new_string": "2"});
        let found = changes(&input);
        assert_eq!(found[0].first_line, 2);
        let input = json!({"file_path": path, "content": "new"});
        assert_eq!(changes(&input)[0].old, "one\ntwo\nthree\n");
        assert!(changes(&json!({"command": "ls"})).is_empty());
    }
}
