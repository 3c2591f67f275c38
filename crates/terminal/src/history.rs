//! What was typed before, kept for each project.
//!
//! A file of JSON lines, `{"text":"…"}`, oldest first, readable by its owner only. Several sessions
//! may append at the same time: each entry is one write to a file opened for appending. What they
//! wrote is seen by those that open it later.
//!
//! Nothing here fails a session: what is wrong with the file is told once ([`History::warning`]),
//! and the history goes on in memory.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::editor::EditorDraft;

/// Entries that are kept.
const MOST_ENTRIES: usize = 1000;
/// A file with more lines is rewritten when it is opened.
const MOST_LINES: usize = 2000;

#[derive(Serialize, Deserialize)]
struct Entry {
    text: String,
}

/// Entries and, while one walks through them, the place.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    /// Oldest first.
    entries: Vec<String>,
    walk: Option<Walk>,
    warning: Option<String>,
    is_told: bool,
}

/// From the first key up until the text is submitted or changed.
#[derive(Debug)]
struct Walk {
    /// What was being typed.
    draft: EditorDraft,
    /// Entries that begin with it, oldest first.
    offered: Vec<usize>,
    /// Into `offered`; its length stands for the draft.
    at: usize,
}

impl History {
    /// Reads what there is. A missing file is an empty history.
    pub fn open(path: &Path) -> Self {
        let mut history = Self {
            path: path.to_owned(),
            entries: Vec::new(),
            walk: None,
            warning: None,
            is_told: false,
        };
        match read(path) {
            Ok((entries, lines)) => {
                let older = entries.len().saturating_sub(MOST_ENTRIES);
                history.entries = entries[older..].to_vec();
                if lines > MOST_LINES
                    && let Err(error) = rewrite(path, &history.entries)
                {
                    history.warn("shorten", &error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => history.warn("read", &error),
        }
        history
    }

    /// What was wrong with the file, once.
    pub fn warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// Adds a text that was submitted, unless it is blank or the same as the newest.
    pub fn push(&mut self, text: &str) {
        self.walk = None;
        if text.trim().is_empty() || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        if let Err(error) = append(&self.path, text) {
            self.warn("append to", &error);
        }
        self.entries.push(text.to_owned());
        if self.entries.len() > MOST_ENTRIES {
            self.entries.remove(0);
        }
    }

    /// The entry before. With text typed, as in fish and zsh: only entries that begin with it.
    pub fn previous(&mut self, current: &EditorDraft) -> Option<EditorDraft> {
        let walk = self
            .walk
            .get_or_insert_with(|| Walk::new(&self.entries, current));
        walk.at = walk.at.checked_sub(1)?;
        let entry = self.entries.get(*walk.offered.get(walk.at)?)?;
        Some(EditorDraft::from(entry.as_str()))
    }

    /// The entry after; after the newest what was being typed, as it was.
    #[expect(clippy::should_implement_trait, reason = "the pair of `previous`")]
    pub fn next(&mut self) -> Option<EditorDraft> {
        let walk = self.walk.as_mut()?;
        walk.at += 1;
        match walk.offered.get(walk.at) {
            Some(entry) => Some(EditorDraft::from(self.entries.get(*entry)?.as_str())),
            None => self.walk.take().map(|walk| walk.draft),
        }
    }

    /// The text was changed: what it is now is what is being typed. The next key up begins with the
    /// text as it is then.
    pub fn stop_walking(&mut self) {
        self.walk = None;
    }

    /// Entries that contain the query, newest first, each once. Capitals in the query make the
    /// search distinguish them.
    pub fn search(&self, query: &str) -> impl Iterator<Item = &str> {
        let exact = query.chars().any(char::is_uppercase);
        let query = query.to_owned();
        let mut seen = std::collections::HashSet::new();
        self.entries
            .iter()
            .rev()
            .map(String::as_str)
            .filter(move |entry| match exact {
                true => entry.contains(&query),
                false => entry.to_lowercase().contains(&query),
            })
            .filter(move |entry| seen.insert(*entry))
    }

    fn warn(&mut self, what: &str, error: &io::Error) {
        if !std::mem::replace(&mut self.is_told, true) {
            let path = self.path.display();
            self.warning = Some(format!(
                "can't {what} the history {path}: {error}; what you type is remembered in this session only"
            ));
        }
    }
}

impl Walk {
    /// The same entry twice in a walk helps nobody: the newest of equal ones is offered.
    fn new(entries: &[String], draft: &EditorDraft) -> Self {
        let typed = draft.text();
        let mut seen = std::collections::HashSet::new();
        let newest_first = entries.iter().enumerate().rev();
        let mut offered: Vec<usize> = newest_first
            .filter(|(_, entry)| entry.starts_with(&typed) && **entry != typed)
            .filter(|(_, entry)| seen.insert(entry.as_str()))
            .map(|(at, _)| at)
            .collect();
        offered.reverse();
        Self {
            draft: draft.clone(),
            at: offered.len(),
            offered,
        }
    }
}

/// Entries that can be read, and how many lines there are. Lines that cannot be read are skipped
/// and counted, so a file full of them is rewritten.
fn read(path: &Path) -> io::Result<(Vec<String>, usize)> {
    let mut reader = BufReader::new(File::open(path)?);
    let (mut entries, mut lines) = (Vec::new(), 0);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        lines += 1;
        if let Ok(entry) = serde_json::from_slice::<Entry>(&line) {
            entries.push(entry.text);
        }
        line.clear();
    }
    Ok((entries, lines))
}

fn line_of(text: &str) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Entry {
        text: text.to_owned(),
    })?;
    line.push(b'\n');
    Ok(line)
}

/// One write, so that entries of several processes do not mix. After a write that was cut off the
/// entry begins a new line: only the broken one is lost. The check for the newline and the write
/// are not one step: at worst another process's entry gets an empty line before it, which is
/// skipped when it is read.
fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new()
        .append(true)
        .read(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let mut line = line_of(text)?;
    if !ends_with_newline(&file)? {
        line.insert(0, b'\n');
    }
    file.write_all(&line)
}

fn ends_with_newline(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let Some(last) = file.metadata()?.len().checked_sub(1) else {
        return Ok(true);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}

/// Under another name first: a crash leaves the old file or the new one. What another process
/// appends to the old one at this moment is lost, which a history can bear.
fn rewrite(path: &Path, entries: &[String]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = write_all(&temporary, entries).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_all(path: &Path, entries: &[String]) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    let mut writer = io::BufWriter::new(file);
    for entry in entries {
        writer.write_all(&line_of(entry)?)?;
    }
    writer
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("project/history.jsonl");
        (dir, path)
    }

    fn up(history: &mut History, typed: &str) -> Option<String> {
        history
            .previous(&EditorDraft::from(typed))
            .map(|draft| draft.text())
    }

    fn down(history: &mut History) -> Option<String> {
        history.next().map(|draft| draft.text())
    }

    #[test]
    fn what_was_typed_is_there_in_the_next_session_for_its_owner_only() {
        let (_dir, path) = file();
        let mut history = History::open(&path);
        for text in ["first", "two\nlines", "two\nlines", "  \n", "émoji 👍"] {
            history.push(text);
        }
        assert_eq!(history.warning(), None);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let history = History::open(&path);
        assert_eq!(history.entries, ["first", "two\nlines", "émoji 👍"]);
    }

    #[test]
    fn going_up_and_down_brings_back_what_was_being_typed() {
        let (_dir, path) = file();
        let mut history = History::open(&path);
        for text in ["one", "two", "one"] {
            history.push(text);
        }
        assert_eq!(down(&mut history), None);
        let steps = [
            up(&mut history, ""),
            up(&mut history, "one"),
            up(&mut history, "two"),
            up(&mut history, "two"),
        ];
        let expected = [Some("one"), Some("two"), None, None];
        assert_eq!(steps.each_ref().map(Option::as_deref), expected);
        assert_eq!(down(&mut history).as_deref(), Some("one"));
        assert_eq!(down(&mut history).as_deref(), Some(""));
        assert_eq!(down(&mut history), None);
    }

    #[test]
    fn typed_text_offers_only_entries_that_begin_with_it() {
        let (_dir, path) = file();
        let mut history = History::open(&path);
        for text in ["fix the parser", "run tests", "fix the editor"] {
            history.push(text);
        }
        assert_eq!(up(&mut history, "fix").as_deref(), Some("fix the editor"));
        assert_eq!(up(&mut history, "").as_deref(), Some("fix the parser"));
        assert_eq!(up(&mut history, ""), None);
        assert_eq!(down(&mut history).as_deref(), Some("fix the editor"));
        assert_eq!(down(&mut history).as_deref(), Some("fix"));
        assert_eq!(up(&mut history, "nothing like it"), None);
        history.stop_walking();
        assert_eq!(up(&mut history, "run").as_deref(), Some("run tests"));
    }

    #[test]
    fn a_draft_comes_back_with_its_chips() {
        let (_dir, path) = file();
        let mut history = History::open(&path);
        history.push("see the log");
        let mut editor = crate::editor::Editor::new();
        editor.insert("see ");
        editor.paste(&"x\n".repeat(50));
        assert_eq!(history.previous(&editor.draft()), None);
        assert_eq!(history.next(), Some(editor.draft()));
    }

    #[test]
    fn search_finds_the_newest_first_and_minds_capitals_only_if_there_are_any() {
        let (_dir, path) = file();
        let mut history = History::open(&path);
        for text in [
            "Fix README",
            "other",
            "fix readme",
            "other",
            "fix readme again",
        ] {
            history.push(text);
        }
        let found: Vec<&str> = history.search("readme").collect();
        assert_eq!(found, ["fix readme again", "fix readme", "Fix README"]);
        assert_eq!(history.search("README").collect::<Vec<_>>(), ["Fix README"]);
        assert_eq!(history.search("other").count(), 1);
    }

    #[test]
    fn two_writers_lose_nothing() {
        let (_dir, path) = file();
        let long = "x".repeat(10_000);
        std::thread::scope(|scope| {
            for writer in ["a", "b"] {
                let (path, long) = (&path, &long);
                scope.spawn(move || {
                    let mut history = History::open(path);
                    for number in 0..200 {
                        history.push(&format!("{writer}{number} {long}"));
                    }
                    assert_eq!(history.warning(), None);
                });
            }
        });
        let history = History::open(&path);
        for writer in ["a", "b"] {
            let own = history.entries.iter().filter(|one| one.starts_with(writer));
            let expected: Vec<String> = (0..200)
                .map(|number| format!("{writer}{number} {long}"))
                .collect();
            assert_eq!(own.cloned().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn broken_lines_are_skipped_and_a_cut_off_one_does_not_take_the_next_with_it() {
        let (_dir, path) = file();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            &path,
            b"{\"text\":\"good\"}\nnot json\n\xff\xfe\n{\"text\":\"cut",
        )
        .unwrap();
        let mut history = History::open(&path);
        assert_eq!(history.entries, ["good"]);
        history.push("new");
        assert_eq!(History::open(&path).entries, ["good", "new"]);
    }

    #[test]
    fn a_long_file_is_shortened_to_the_newest_entries() {
        let (dir, path) = file();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let lines = |range: std::ops::Range<usize>| {
            range
                .map(|n| format!("{{\"text\":\"{n}\"}}\n"))
                .collect::<String>()
        };
        fs::write(&path, lines(0..2001)).unwrap();
        let history = History::open(&path);
        assert_eq!(history.entries.len(), 1000);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(1001..2001));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(dir.path().join("project")).unwrap().count(), 1);
        fs::write(&path, lines(0..2000)).unwrap();
        History::open(&path);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(0..2000));
    }

    #[test]
    fn a_file_that_cant_be_used_is_told_once_and_the_session_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(dir.path());
        let warning = history.warning().unwrap();
        assert!(warning.starts_with("can't read the history"), "{warning}");
        history.push("one");
        assert_eq!(history.warning(), None);
        assert_eq!(up(&mut history, "").as_deref(), Some("one"));
    }
}
