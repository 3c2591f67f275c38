//! What is remembered about a project: the notes in `.codespar/memory`.
//!
//! Each note is a file that a background agent or the user has written, with names that begin with
//! a date. They lie in the repository, so they are read with the same care as instruction files:
//! only regular files that really are in the project, and no more than fits 16 KiB in all, because
//! they are part of every request.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::ContextFile;

const DIR: &str = ".codespar/memory";
/// Of all notes together.
const MAX_BYTES: usize = 16 * 1024;

/// The notes of a project, newest first, as many as there is room for. What is left out is said at
/// the end of the last one. The note that does not fit is cut after a whole line; older ones are
/// only counted. Files that cannot be read are skipped.
pub(crate) fn gather(root: &Path) -> Vec<ContextFile> {
    let mut notes: Vec<ContextFile> = Vec::new();
    let mut room = MAX_BYTES;
    let mut left_out = 0;
    for path in newest_first(root) {
        if room == 0 {
            left_out += 1;
            continue;
        }
        // One byte more than there is room for tells whether something is missing.
        let Some(bytes) = beginning(&path, room + 1) else {
            continue;
        };
        let is_cut = bytes.len() > room;
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(room)]);
        let text = if is_cut { whole_lines(&text) } else { &text };
        room = if is_cut { 0 } else { room - bytes.len() };
        if is_cut {
            let text = format!("{text}[… the rest of this note was left out]\n");
            notes.push(ContextFile { path, text });
        } else if !text.trim().is_empty() {
            let text = text.to_owned();
            notes.push(ContextFile { path, text });
        }
    }
    if let (Some(last), 1..) = (notes.last_mut(), left_out) {
        last.text = format!(
            "{}\n[… {left_out} older notes in {DIR} were left out]\n",
            last.text.trim_end()
        );
    }
    notes
}

/// Files of the directory that really lie in the project. By time of change, then by name; `*.md`
/// only.
fn newest_first(root: &Path) -> Vec<PathBuf> {
    let (Ok(entries), Ok(real_root)) = (fs::read_dir(root.join(DIR)), root.canonicalize()) else {
        return Vec::new();
    };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let real = path.canonicalize().ok()?;
            let meta = fs::metadata(&real).ok()?;
            let is_note = path.extension().is_some_and(|end| end == "md")
                && meta.is_file()
                && real.starts_with(&real_root);
            is_note.then(|| Some((meta.modified().ok()?, path)))?
        })
        .collect();
    // The names begin with a date: they decide where a checkout made all files at once.
    files.sort_by(|a, b| b.cmp(a));
    files.into_iter().map(|(_, path)| path).collect()
}

/// At most `limit` bytes. `None` for anything but a regular file.
fn beginning(path: &Path, limit: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = codespar_files::open(&path.canonicalize().ok()?).ok()?;
    opened
        .file
        .take(limit as u64)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

fn whole_lines(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |at| at + 1)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Briefing, ContextFiles};

    /// A note that was written so many seconds after the beginning of time.
    fn note(root: &Path, name: &str, seconds: u64, text: &str) -> PathBuf {
        let path = root.join(DIR).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(at)
            .unwrap();
        path
    }

    fn texts(notes: &[ContextFile]) -> Vec<&str> {
        notes.iter().map(|note| note.text.as_str()).collect()
    }

    #[test]
    fn notes_come_newest_first_and_only_from_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        note(&root, "2026-01-02-d-1.md", 10, "middle\n");
        note(&root, "2026-01-01-d-2.md", 20, "newest\n");
        note(&root, "2026-01-03-d-3.md", 5, "oldest\n");
        note(&root, "a.md", 5, "oldest by name\n");
        note(&root, "b.txt", 30, "not a note\n");
        note(&root, "empty.md", 30, "\n");
        fs::write(dir.path().join("secret"), "key\n").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), root.join(DIR).join("x.md")).unwrap();
        assert_eq!(
            texts(&gather(&root)),
            ["newest\n", "middle\n", "oldest by name\n", "oldest\n"]
        );
    }

    #[test]
    fn notes_beyond_sixteen_kilobytes_are_cut_and_it_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("{}\n", "x".repeat(99));
        note(dir.path(), "new.md", 30, &line.repeat(100));
        note(dir.path(), "old.md", 20, &line.repeat(100));
        note(dir.path(), "older.md", 10, "older\n");
        note(dir.path(), "oldest.md", 5, "oldest\n");
        let notes = gather(dir.path());
        let cut = format!(
            "{}[… the rest of this note was left out]\n\
             [… 2 older notes in .codespar/memory were left out]\n",
            line.repeat(63)
        );
        assert_eq!(texts(&notes), [line.repeat(100), cut]);
    }

    #[test]
    fn the_system_prompt_has_the_notes_after_the_instructions() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("AGENTS.md"), "use tabs\n").unwrap();
        let path = note(&root, "n.md", 1, "the tests are slow\n");
        let briefing = Briefing {
            role: Some("You.".into()),
            root: root.clone(),
            cwd: root.clone(),
            ..Briefing::default()
        };
        let expected = format!(
            "You.\n<instructions from=\"{}\">\nuse tabs\n</instructions>\n\n\
             <memory from=\"{}\">\nthe tests are slow\n</memory>\n",
            root.join("AGENTS.md").display(),
            path.display()
        );
        assert_eq!(briefing.render(), (expected, Vec::new()));
        assert_eq!(
            ContextFiles::gather(
                &root,
                &root,
                &[],
                crate::ProjectInstructions::default(),
                &codespar_tools::Hidden::default()
            )
            .memory
            .len(),
            1
        );
    }
}
