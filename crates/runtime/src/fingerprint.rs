//! Whether the files that a project was made from have changed since.
//!
//! A process looks before it starts a task, so what counts is the content, not the time of a
//! change: the same text is the same configuration. Definitions and skills of the user, which are
//! many, are compared by size and time.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
};

use codespar_files::read_text;

use crate::{
    ProjectDir, ProjectOptions, ServerText, installed_plugins::PLUGIN_LIST,
    trust::MAX_SETTINGS_BYTES,
};

/// What the configuration of a project was read from, as one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// The files of the project as `dir` has read them, the decisions about them, and the files of
    /// the user as they are now.
    pub(crate) fn of(dir: &ProjectDir, options: &ProjectOptions) -> Self {
        let mut hasher = DefaultHasher::new();
        for file in dir.trust.files() {
            (&file.name, &file.text).hash(&mut hasher);
        }
        dir.trust.decisions(dir.state()).hash(&mut hasher);
        let of_state = ["settings.json", "models.toml", "mcp-approvals.json"];
        let mut files: Vec<PathBuf> = of_state.map(|name| dir.state().join(name)).to_vec();
        for name in [".claude/settings.json", PLUGIN_LIST] {
            files.extend(dir.home().map(|home| home.join(name)));
        }
        let named = options.mcp_config.iter().filter_map(|text| match text {
            ServerText::File(file) => Some(file.clone()),
            ServerText::Json(_) | ServerText::Passed(_) | ServerText::OfPlugin(_) => None,
        });
        files.extend(named);
        for file in files {
            // One that cannot be read is reported by whoever wants to use it.
            (&file, read_text(&file, MAX_SETTINGS_BYTES).ok()).hash(&mut hasher);
        }
        for (folder, _) in dir.config_dirs("agents") {
            let files = codespar_files::nested(&folder, "md").files;
            files.iter().for_each(|file| of_file(file, &mut hasher));
        }
        for (folder, _) in dir.config_dirs("skills") {
            of_skills(&folder, &mut hasher);
        }
        Self(hasher.finish())
    }
}

/// The texts of the skills in a folder, each in a folder of its own.
fn of_skills(folder: &Path, hasher: &mut DefaultHasher) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        of_file(&path.join("SKILL.md"), hasher);
    }
}

/// Its name, size and time.
fn of_file(file: &Path, hasher: &mut DefaultHasher) {
    if let Ok(found) = std::fs::metadata(file) {
        (file, found.len(), found.modified().ok()).hash(hasher);
    }
}
