//! Keeps rules that the user answered "always" to.
//!
//! The file is in the project, but belongs to the user: it is recorded as trusted with its new
//! text, and kept out of commits. The record of trust is written before the file. A crash in
//! between leaves a record about a text that is not there, which trusts nothing.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use codespar_files::OpenError;
use codespar_git::{GitError, Location};

use crate::{
    error::RuntimeError,
    project_dir::ProjectDir,
    trust::{MAX_SETTINGS_BYTES, record_own_text},
};

const NAME: &str = ".codespar/settings.local.json";
/// In whichever directory of the repository the project is.
const PATTERN: &str = "**/.codespar/settings.local.json";

/// The user's own settings for this project, where "always" is kept.
pub fn local_file(project_dir: &ProjectDir) -> PathBuf {
    project_dir.root.join(NAME)
}

/// What came of rules that were to be kept.
#[derive(Debug)]
pub struct RememberedRules {
    /// The new text of the file.
    pub text: String,
    /// Why git may show the file. The rules are kept all the same.
    pub warning: Option<String>,
}

/// Adds allow rules to the local settings file, keeping what is there, and records that the user
/// wrote them. A file that came with the repository and is not trusted is left alone: adding to it
/// would trust all of it. The file is read without following links out of the project, and replaced
/// as a whole. It is hidden from git first, so that no commit can catch it in between.
pub fn remember_rules(
    project_dir: &ProjectDir,
    rules: &[String],
) -> Result<RememberedRules, RuntimeError> {
    let path = local_file(project_dir);
    let bad = |error: String| RuntimeError::Failed(format!("{}: {error}", path.display()));
    let before =
        match codespar_files::read_inside(&project_dir.root, Path::new(NAME), MAX_SETTINGS_BYTES) {
            Ok(bytes) => Some(String::from_utf8(bytes).map_err(|error| bad(error.to_string()))?),
            Err(OpenError::Missing) => None,
            Err(error) => return Err(bad(error.to_string())),
        };
    let text = with_rules(before.as_deref().unwrap_or("{}"), rules).map_err(bad)?;
    record_own_text(
        project_dir.state(),
        &project_dir.root,
        NAME,
        (before.as_deref(), &text),
    )
    .map_err(bad)?;
    let hidden = hide_from_git(&project_dir.root);
    write(&path, &text).map_err(|error| bad(error.to_string()))?;
    let warning = hidden.err().map(|error| {
        format!("{NAME} may be committed: it cannot be added to git's info/exclude: {error}")
    });
    Ok(RememberedRules { text, warning })
}

/// Keeps the user's own settings out of commits, by the user's own list of what git leaves out: the
/// files of the repository are not changed. Outside of a repository there is nothing to do.
fn hide_from_git(root: &Path) -> Result<(), GitError> {
    match Location::find(root) {
        Ok(location) => location.exclude(PATTERN),
        Err(GitError::NoRepository(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The text of the file with the rules added to `permissions.allow`. A rule that is there already
/// is not added again. Keys that we do not know stay.
fn with_rules(text: &str, rules: &[String]) -> Result<String, String> {
    let mut json: serde_json::Value =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let allow = json
        .as_object_mut()
        .map(|top| {
            top.entry("permissions")
                .or_insert_with(|| serde_json::json!({}))
        })
        .and_then(serde_json::Value::as_object_mut)
        .map(|permissions| {
            permissions
                .entry("allow")
                .or_insert_with(|| serde_json::json!([]))
        })
        .and_then(serde_json::Value::as_array_mut)
        .ok_or("`permissions.allow` is not a list")?;
    for rule in rules {
        if !allow.iter().any(|known| known == rule) {
            allow.push(rule.clone().into());
        }
    }
    let text = serde_json::to_string_pretty(&json).map_err(|error| error.to_string())?;
    Ok(format!("{text}\n"))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(dir: &Path, args: &[&str]) -> Option<i32> {
        let mut git = Command::new("git");
        git.arg("-C").arg(dir);
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"]);
        git.args(args).output().unwrap().status.code()
    }

    /// Whether git itself leaves out the settings of the project in this directory.
    fn is_ignored(root: &Path) -> bool {
        write(&root.join(NAME), "{}").unwrap();
        match git(root, &["check-ignore", "--quiet", NAME]) {
            Some(0) => true,
            Some(1) => false,
            other => panic!("git check-ignore: {other:?}"),
        }
    }

    #[test]
    fn settings_of_the_user_are_hidden_from_git_and_files_of_the_repository_stay() {
        let temp = tempfile::tempdir().unwrap();
        let (main, linked) = (temp.path().join("main"), temp.path().join("linked"));
        let below = main.join("crates/one");
        std::fs::create_dir_all(main.join(".codespar")).unwrap();
        std::fs::create_dir_all(&below).unwrap();
        let ignored = main.join(".codespar/.gitignore");
        std::fs::write(&ignored, "theirs\n").unwrap();
        for args in [
            &["init", "--quiet", "-b", "main"][..],
            &["add", "."],
            &["commit", "--quiet", "-m", "Begin"],
            &["worktree", "add", "--quiet", "../linked"],
        ] {
            assert_eq!(git(&main, args), Some(0), "{args:?}");
        }
        for root in [&main, &linked, &below] {
            assert!(!is_ignored(root), "{}", root.display());
        }
        // What is added in one work tree holds in all.
        hide_from_git(&linked).unwrap();
        for root in [&main, &linked, &below] {
            assert!(is_ignored(root), "{}", root.display());
        }
        assert_eq!(std::fs::read_to_string(&ignored).unwrap(), "theirs\n");
        let clean = git(&main, &["diff", "--quiet", "HEAD"]);
        assert_eq!(clean, Some(0));
    }

    #[test]
    fn a_directory_without_a_repository_needs_nothing_and_a_link_is_named() {
        let temp = tempfile::tempdir().unwrap();
        hide_from_git(temp.path()).unwrap();
        assert_eq!(git(temp.path(), &["init", "--quiet"]), Some(0));
        let file = temp.path().join(".git/info/exclude");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&file);
        std::os::unix::fs::symlink(temp.path().join("elsewhere"), &file).unwrap();
        let error = hide_from_git(temp.path()).unwrap_err().to_string();
        assert!(error.contains("info/exclude"), "{error}");
    }
}
