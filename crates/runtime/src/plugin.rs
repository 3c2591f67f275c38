//! Plugins: directories with agents, commands, skills, hooks and MCP servers in the layout of Claude
//! Code, which the user names with `--plugin-dir`. They are read, never written.
//!
//! ```text
//! .claude-plugin/plugin.json    {"name": …}; without it the name is that of the directory
//! agents/*.md                   agents `NAME:agent`
//! commands/**/*.md              commands `/NAME:command`
//! skills/*/SKILL.md             skills `NAME:skill`
//! hooks/hooks.json              {"hooks": …}, with CLAUDE_PLUGIN_ROOT in their environment
//! .mcp.json                     servers, with ${CLAUDE_PLUGIN_ROOT}
//! ```
//!
//! Whoever names a plugin trusts it: its hooks run like those of the user.

use std::path::{Path, PathBuf};

use codespar_policy::hooks::{HookOrigin, HookSource};
use codespar_tools::{
    SkillDir,
    files::{OpenError, read_text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{error::RuntimeError, settings::HookSettings, trust::MAX_SETTINGS_BYTES};

/// Where a manifest may be.
const MANIFESTS: [&str; 2] = [".claude-plugin/plugin.json", ".codespar-plugin/plugin.json"];

/// A plugin that the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// Before a colon in the names of what it brings.
    pub name: String,
    pub root: PathBuf,
    /// Whether its MCP servers are used.
    brings_servers: bool,
}

#[derive(Default, Deserialize)]
struct Manifest {
    name: Option<String>,
}

#[derive(Deserialize)]
struct HookFile<'a> {
    #[serde(borrow)]
    hooks: &'a RawValue,
}

impl Plugin {
    /// A directory that is not there, or a manifest that cannot be read, is the caller's mistake.
    pub fn read(dir: &Path) -> Result<Self, RuntimeError> {
        let usage = |path: &Path, error: &dyn std::fmt::Display| {
            RuntimeError::Usage(format!("--plugin-dir {}: {error}", path.display()))
        };
        let root = dir.canonicalize().map_err(|error| usage(dir, &error))?;
        if !root.is_dir() {
            return Err(usage(dir, &"not a directory"));
        }
        let mut manifest = Manifest::default();
        for path in MANIFESTS.map(|name| root.join(name)) {
            match read_text(&path, MAX_SETTINGS_BYTES) {
                Ok(text) => {
                    let read = serde_json::from_str(&text);
                    manifest = read.map_err(|error| usage(&path, &error))?;
                    break;
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(usage(&path, &error)),
            }
        }
        let own = || {
            root.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let name = manifest.name.unwrap_or_else(own);
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(usage(dir, &format!("`{name}` is not a name of a plugin")));
        }
        Ok(Self {
            name,
            root,
            brings_servers: true,
        })
    }

    /// The same with none of its MCP servers.
    #[must_use]
    pub(crate) fn without_servers(self) -> Self {
        Self {
            brings_servers: false,
            ..self
        }
    }

    /// Its directory of this name.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn skills(&self) -> SkillDir {
        SkillDir {
            path: self.dir("skills"),
            origin: "user",
        }
    }

    /// Its file of MCP servers, if it has one that is used.
    pub(crate) fn servers(&self) -> Option<PathBuf> {
        let file = self.dir(".mcp.json");
        (self.brings_servers && file.is_file()).then_some(file)
    }

    /// Those of its `hooks/hooks.json`, as if the settings of whoever named it had them.
    pub(crate) fn add_hooks(
        &self,
        settings: &mut HookSettings,
        warnings: &mut Vec<String>,
    ) -> Result<(), RuntimeError> {
        let path = self.dir("hooks/hooks.json");
        let wrong = |error: &dyn std::fmt::Display| {
            RuntimeError::Usage(format!("{}: {error}", path.display()))
        };
        let text = match read_text(&path, MAX_SETTINGS_BYTES) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(wrong(&error)),
        };
        let file: HookFile<'_> = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let source = HookSource {
            file: path.display().to_string(),
            origin: HookOrigin::User,
            plugin: Some(self.root.clone()),
        };
        settings.add(file.hooks, &source, warnings)
    }
}

/// Also where what should be a directory is a file.
fn is_missing(error: &OpenError) -> bool {
    match error {
        OpenError::Missing => true,
        OpenError::Io(error) => error.kind() == std::io::ErrorKind::NotADirectory,
        _ => false,
    }
}
