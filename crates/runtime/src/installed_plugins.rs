//! Plugins that the user has installed in another tool and enabled there.
//!
//! ```text
//! ~/.claude/plugins/installed_plugins.json   where each plugin is, by `NAME@MARKETPLACE`
//! enabledPlugins of settings                 which of them are used
//! ```
//!
//! They are used like those that are named with `--plugin-dir`. A mistake in a file of another tool
//! is told and what it is about is left out.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use codespar_tools::files::{OpenError, read_text};
use serde::Deserialize;

use crate::{Plugin, project_dir::ProjectDir, trust::MAX_SETTINGS_BYTES};

/// Below the home directory.
pub(crate) const PLUGIN_LIST: &str = ".claude/plugins/installed_plugins.json";

#[derive(Default, Deserialize)]
#[serde(default)]
struct InstalledList {
    plugins: BTreeMap<String, Installations>,
}

/// Version 1 of the file has one installation of each plugin, version 2 a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Installations {
    Several(Vec<Installation>),
    One(Installation),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Installation {
    install_path: PathBuf,
    /// Installed for this project alone.
    #[serde(default)]
    project_path: Option<PathBuf>,
}

impl Installations {
    /// The one that was made for the project, or else the one for all.
    fn for_project(self, root: &Path) -> Option<PathBuf> {
        let mut all = match self {
            Self::Several(all) => all,
            Self::One(one) => vec![one],
        };
        all.retain(|one| one.project_path.as_deref().is_none_or(|path| path == root));
        all.sort_by_key(|one| one.project_path.is_none());
        all.into_iter().next().map(|one| one.install_path)
    }
}

/// The plugins that `enabled` names, and what is wrong with the others. Where nothing is enabled no
/// file is looked at.
pub(crate) fn installed(
    dir: &ProjectDir,
    enabled: &BTreeMap<String, bool>,
) -> (Vec<Plugin>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut names = enabled.iter().filter(|(_, is_enabled)| **is_enabled);
    let Some(home) = dir.home().filter(|_| names.clone().next().is_some()) else {
        return (Vec::new(), warnings);
    };
    let path = home.join(PLUGIN_LIST);
    let list = match read(&path) {
        Ok(list) => list,
        Err(problem) => {
            warnings.push(format!("{}: {problem}; no plugin is used", path.display()));
            return (Vec::new(), warnings);
        }
    };
    let mut places = list.plugins;
    let plugins = names.by_ref().filter_map(|(name, _)| {
        let found = places.remove(name).and_then(|it| it.for_project(&dir.root));
        match found.ok_or("it is not installed".to_owned()) {
            Ok(place) => usable(dir, &place),
            Err(problem) => Err(problem),
        }
        .map_err(|problem| warnings.push(format!("plugin {name} is not used: {problem}")))
        .ok()
    });
    (plugins.collect(), warnings)
}

fn read(path: &Path) -> Result<InstalledList, String> {
    match read_text(path, MAX_SETTINGS_BYTES) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        Err(OpenError::Missing) => Ok(InstalledList::default()),
        Err(error) => Err(error.to_string()),
    }
}

/// What an agent can write must not become hooks that run as the user.
fn usable(dir: &ProjectDir, place: &Path) -> Result<Plugin, String> {
    if !place.is_absolute() {
        return Err(format!("{} is not an absolute path", place.display()));
    }
    let plugin = Plugin::read(place).map_err(|error| error.to_string())?;
    match plugin.root.starts_with(&dir.root) {
        true => Err(format!("{} is in the project", place.display())),
        false => Ok(plugin),
    }
}
