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

use crate::{
    error::RuntimeError,
    project_dir::ProjectDir,
    trust::{MAX_SETTINGS_BYTES, record_own_text},
};

const NAME: &str = ".codespar/settings.local.json";

/// The user's own settings for this project, where "always" is kept.
pub fn local_file(project_dir: &ProjectDir) -> PathBuf {
    project_dir.root.join(NAME)
}

/// Adds allow rules to the local settings file, keeping what is there, and records that the user
/// wrote them; gives its new text. A file that came with the repository and is not trusted is left
/// alone: adding to it would trust all of it. The file is read without following links out of the
/// project, and replaced as a whole.
pub fn remember_rules(project_dir: &ProjectDir, rules: &[String]) -> Result<String, RuntimeError> {
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
    write(&path, &text).map_err(|error| bad(error.to_string()))?;
    // Where it cannot be written, git shows the file, and nothing worse.
    let _ = hide_from_git(&path);
    Ok(text)
}

/// Keeps a person's own settings out of commits, unless the repository has its say about it. An
/// existing `.gitignore` is left as it is; the error is not reported.
fn hide_from_git(path: &Path) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let mut file = std::fs::File::create_new(dir.join(".gitignore"))?;
    writeln!(file, "{}\n.gitignore", name.display())
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
    use super::*;

    #[test]
    fn settings_of_the_user_are_hidden_from_git_and_a_file_of_the_repository_stays() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(".codespar/settings.local.json");
        write(&path, "{}").unwrap();
        hide_from_git(&path).unwrap();
        let ignored = temp.path().join(".codespar/.gitignore");
        let text = std::fs::read_to_string(&ignored).unwrap();
        assert_eq!(text, "settings.local.json\n.gitignore\n");
        std::fs::write(&ignored, "theirs\n").unwrap();
        hide_from_git(&path).unwrap_err();
        assert_eq!(std::fs::read_to_string(&ignored).unwrap(), "theirs\n");
    }
}
