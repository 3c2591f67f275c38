//! Which settings files a caller wants: the user's, the project's, or the user's own in a project;
//! and settings that the caller gives.

use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::{Author, Grants, Settings, read};
use crate::{error::RuntimeError, options::ProjectOptions, project_dir::ProjectDir};

/// A group of settings files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSource {
    /// In the home and state directories.
    User,
    /// Those that a repository shares.
    Project,
    /// Those of a repository that are not shared.
    Local,
}

impl SettingSource {
    /// Names with commas between them. An empty text is none of them.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let names = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names
            .map(|name| match name {
                "user" => Ok(Self::User),
                "project" => Ok(Self::Project),
                "local" => Ok(Self::Local),
                other => Err(format!(
                    "`{other}` is not a source of settings: choose among user, project, local"
                )),
            })
            .collect()
    }

    /// The group of a file of a project.
    pub(super) fn of_file(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        match name {
            Some("settings.local.json") => Self::Local,
            _ => Self::Project,
        }
    }
}

impl Settings {
    /// The same as far as a caller wants them, and what the caller adds. A file that does not count
    /// still makes us stricter, as one of a project that is not trusted does.
    pub(crate) fn load_for(
        project_dir: &ProjectDir,
        options: &ProjectOptions,
    ) -> Result<Self, RuntimeError> {
        let counts = |source| options.wants(source);
        let of_user = counts(SettingSource::User);
        let mut settings = Self::default();
        if let Some(home) = project_dir.home() {
            let path = home.join(".claude/settings.json");
            if let Some(text) = read(&path)? {
                let grants = if of_user {
                    Grants::Taken
                } else {
                    Grants::Ignored
                };
                settings.add_foreign(&path, &text, grants, project_dir)?;
            }
        }
        let own = project_dir.state().join("settings.json");
        if let Some(text) = read(&own)? {
            let author = if of_user {
                Author::UserDirs
            } else {
                Author::Project
            };
            settings.add(&own, &text, author, project_dir)?;
        }
        for file in project_dir.trust.files() {
            let is_wanted = counts(SettingSource::of_file(&file.path));
            settings.add_project_file(file, is_wanted, project_dir)?;
        }
        if let Some(given) = &options.settings {
            settings.add_given(given, project_dir)?;
        }
        settings.effort = options.effort.or(settings.effort);
        settings.thinking = options.thinking;
        Ok(settings)
    }

    /// Settings that the caller names or writes: the user's own, for this run.
    fn add_given(&mut self, given: &str, project_dir: &ProjectDir) -> Result<(), RuntimeError> {
        let (path, text) = match given.trim_start().starts_with('{') {
            true => (PathBuf::from("--settings"), given.to_owned()),
            false => {
                let path = project_dir.cwd.join(given.trim());
                let text = read(&path)?.ok_or_else(|| {
                    RuntimeError::Usage(format!("--settings: {} is not there", path.display()))
                })?;
                (path, text)
            }
        };
        // In our own form if it is that; programs for Claude Code write theirs.
        match self.add(&path, &text, Author::UserDirs, project_dir) {
            Ok(()) => Ok(()),
            Err(error) if serde_json::from_str::<IgnoredAny>(&text).is_ok() => {
                let told = format!("{error}; --settings is read as settings of Claude Code");
                self.add_foreign(&path, &text, Grants::Taken, project_dir)?;
                self.warnings.push(told);
                Ok(())
            }
            error => error,
        }
    }
}
