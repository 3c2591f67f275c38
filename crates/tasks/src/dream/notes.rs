//! The note of a dream in the project's memory.
//!
//! The file is named by the day the task was made and its id, so one task has one file over all its
//! attempts. It is written to a temporary file beside it and renamed.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use codespar_protocol::TaskRecord;

const DIR: &str = ".codespar/memory";

/// Writes the note, whole or not at all. A later attempt of the same dream replaces it.
pub(super) fn write(root: &Path, task: &TaskRecord, text: &str) -> Result<PathBuf, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the dream ended without a note".to_owned());
    }
    let dir = directory(root)?;
    let date = task.created_at.strftime("%Y-%m-%d");
    let path = dir.join(format!("{date}-{}.md", task.task_id));
    let refused = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = tempfile::NamedTempFile::new_in(&dir).map_err(refused)?;
    writeln!(file, "{text}").map_err(refused)?;
    file.as_file().sync_all().map_err(refused)?;
    file.persist(&path).map_err(|error| refused(error.error))?;
    Ok(path)
}

/// A repository could come with a link in place of the directory; nothing is written outside.
/// Checked are `.codespar` and `memory` as far as they exist.
fn directory(root: &Path) -> Result<PathBuf, String> {
    let dir = root.join(DIR);
    let refused = |error: std::io::Error| format!("{}: {error}", dir.display());
    let root = root.canonicalize().map_err(refused)?;
    for part in dir.ancestors().take(2) {
        if let Ok(real) = part.canonicalize()
            && !real.starts_with(&root)
        {
            return Err(format!(
                "{} leads to {}, outside of the project; the note was not written",
                part.display(),
                real.display()
            ));
        }
    }
    std::fs::create_dir_all(&dir).map_err(refused)?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use codespar_protocol::{
        Cost, Labels, OnDependencyFailure, TaskId, TaskStatus, TaskType, Usage,
    };

    use super::*;

    fn task() -> TaskRecord {
        let at = "2026-03-04T05:06:07Z".parse().unwrap();
        TaskRecord {
            task_id: "d-0123abcd".parse::<TaskId>().unwrap(),
            task_type: TaskType::Dream,
            status: TaskStatus::Running,
            subject: "s".into(),
            description: String::new(),
            active_form: None,
            owner: None,
            spec: None,
            authority: None,
            reserved_for: None,
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::Fail,
            metadata: serde_json::Map::new(),
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            output_file: None,
            created_at: at,
            updated_at: at,
            started_at: None,
            ended_at: None,
            error: None,
            exit_code: None,
            attempt: 1,
            usage: Usage::default(),
            cost_usd: Cost::default(),
            session_id: None,
            parent_task_id: None,
        }
    }

    #[test]
    fn a_note_is_named_by_date_and_task_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &task(), "first").unwrap();
        let path = write(dir.path(), &task(), "\n# Note\nsecond\n\n").unwrap();
        assert_eq!(
            path,
            dir.path().join(".codespar/memory/2026-03-04-d-0123abcd.md")
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# Note\nsecond\n");
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );
        let empty = write(dir.path(), &task(), " \n").unwrap_err();
        assert_eq!(empty, "the dream ended without a note");
    }

    #[test]
    fn a_link_out_of_the_project_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("repo"), dir.path().join("outside"));
        std::fs::create_dir_all(root.join(".codespar")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, root.join(DIR)).unwrap();
        let error = write(&root, &task(), "x").unwrap_err();
        assert!(error.contains("outside of the project"), "{error}");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}
