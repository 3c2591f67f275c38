//! Plugins: directories with agents, commands, skills, hooks and MCP servers in the layout of Claude
//! Code, which the user names with `--plugin-dir`. They are read, never written.
//!
//! ```text
//! .claude-plugin/plugin.json    {"name": …}; without it the name is that of the directory
//! agents/**/*.md                agents `NAME:agent`, `NAME:directory:agent`
//! commands/**/*.md              commands `/NAME:command`
//! skills/*/SKILL.md             skills `NAME:skill`
//! hooks/hooks.json              {"hooks": …}, with CLAUDE_PLUGIN_ROOT in their environment
//! .mcp.json                     servers, with ${CLAUDE_PLUGIN_ROOT}
//! ```
//!
//! The manifest can name further files, or have hooks and servers in it (`plugin/manifest.rs`).
//! Whoever names a plugin trusts it: its hooks run like those of the user.

mod manifest;

use std::path::{Path, PathBuf};

use codespar_agent::{DefinitionFile, DefinitionSource};
use codespar_policy::hooks::{HookOrigin, HookSource};
use codespar_tools::{
    Skills,
    files::{OpenError, read_text},
};
use serde_json::value::RawValue;

use self::manifest::{Manifest, Part};
use crate::{
    error::RuntimeError,
    options::{PluginServers, ServerText},
    settings::HookSettings,
    trust::MAX_SETTINGS_BYTES,
};

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
    /// What of its manifest is left out.
    pub(crate) warnings: Vec<String>,
    /// Where the manifest is; a file that need not be there.
    manifest: PathBuf,
    /// Besides those in `agents`: directories and files.
    agents: Vec<PathBuf>,
    /// Besides those in `commands`.
    commands: Vec<PathBuf>,
    /// Besides those in `skills`.
    skills: Vec<PathBuf>,
    /// Besides `hooks/hooks.json`.
    hooks: Vec<Part>,
    /// Besides `.mcp.json`.
    servers: Vec<Part>,
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
        let mut place = root.join(MANIFESTS[0]);
        for path in MANIFESTS.map(|name| root.join(name)) {
            match read_text(&path, MAX_SETTINGS_BYTES) {
                Ok(text) => {
                    let read = Manifest::parse(&text, &root);
                    manifest = read.map_err(|error| usage(&path, &error))?;
                    place = path;
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
        let told = manifest.warnings.iter();
        let told = told.map(|told| format!("plugin {name}: {}: {told}", place.display()));
        Ok(Self {
            warnings: told.collect(),
            agents: besides(manifest.agents, &root.join("agents")),
            commands: besides(manifest.commands, &root.join("commands")),
            skills: manifest.skills,
            hooks: manifest.hooks,
            servers: manifest.servers,
            brings_servers: true,
            manifest: place,
            name,
            root,
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

    /// Its agents, from files that are named one by one as from a directory of their own.
    pub(crate) fn agents(&self) -> Vec<DefinitionSource> {
        let usual = self.root.join("agents");
        let places = std::iter::once(&usual).chain(&self.agents);
        let source = |place: &PathBuf| {
            let is_file = place.is_file();
            let dir = place.parent().filter(|_| is_file).unwrap_or(place);
            DefinitionSource {
                dir: dir.to_path_buf(),
                origin: "plugin",
                files: is_file.then(|| vec![DefinitionFile::read(place.clone())]),
                plugin: Some(self.name.clone()),
            }
        };
        places.map(source).collect()
    }

    /// Directories and files with its commands.
    pub(crate) fn command_places(&self) -> Vec<PathBuf> {
        let usual = self.root.join("commands");
        std::iter::once(usual)
            .chain(self.commands.iter().cloned())
            .collect()
    }

    /// The directories of its skills. A path of the manifest is one, or has some in it.
    pub(crate) fn skill_places(&self) -> Vec<PathBuf> {
        let mut places = Skills::places(&self.root.join("skills"));
        for path in &self.skills {
            let found = match Skills::is_place(path) {
                true => vec![path.clone()],
                false => Skills::places(path),
            };
            let new = found.into_iter().filter(|place| !places.contains(place));
            places.extend(new.collect::<Vec<_>>());
        }
        places
    }

    /// Its MCP servers, if they are used.
    pub(crate) fn servers(&self) -> Vec<ServerText> {
        if !self.brings_servers {
            return Vec::new();
        }
        let usual = self.root.join(".mcp.json");
        let usual = usual.is_file().then(|| Part::File(usual.clone()));
        let named = self
            .servers
            .iter()
            .filter(|part| Some(*part) != usual.as_ref());
        let parts = usual.iter().chain(named);
        let text = |part: &Part| {
            let (file, text) = match part {
                Part::File(file) => (file, None),
                Part::Inline(text) => (&self.manifest, Some(text.clone())),
            };
            ServerText::OfPlugin(PluginServers {
                root: self.root.clone(),
                file: file.clone(),
                text,
            })
        };
        parts.map(text).collect()
    }

    /// Its hooks, as if the settings of whoever named it had them.
    pub(crate) fn add_hooks(
        &self,
        settings: &mut HookSettings,
        warnings: &mut Vec<String>,
    ) -> Result<(), RuntimeError> {
        let usual = Part::File(self.root.join("hooks/hooks.json"));
        let named = self.hooks.iter().filter(|part| **part != usual);
        for part in std::iter::once(&usual).chain(named) {
            let (path, text) = match part {
                Part::Inline(text) => (&self.manifest, text.clone()),
                Part::File(path) => match read_text(path, MAX_SETTINGS_BYTES) {
                    Ok(text) => (path, text),
                    Err(error) if is_missing(&error) => continue,
                    Err(error) => return Err(wrong(path, &error)),
                },
            };
            let hooks = hooks_in(&text).map_err(|error| wrong(path, &error))?;
            let source = HookSource {
                file: path.display().to_string(),
                origin: HookOrigin::User,
                plugin: Some(self.root.clone()),
            };
            settings.add(&hooks, &source, warnings)?;
        }
        Ok(())
    }
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> RuntimeError {
    RuntimeError::Usage(format!("{}: {error}", path.display()))
}

/// The hooks by event: of a file they are below `hooks`, in a manifest they may stand as they are.
fn hooks_in(text: &str) -> Result<Box<RawValue>, serde_json::Error> {
    let mut written: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)?;
    let hooks = written.remove("hooks");
    let hooks = hooks.unwrap_or(serde_json::Value::Object(written));
    serde_json::value::to_raw_value(&hooks)
}

/// Those that are not in the usual place.
fn besides(mut places: Vec<PathBuf>, usual: &Path) -> Vec<PathBuf> {
    places.retain(|place| !place.starts_with(usual));
    places
}

/// Also where what should be a directory is a file.
fn is_missing(error: &OpenError) -> bool {
    match error {
        OpenError::Missing => true,
        OpenError::Io(error) => error.kind() == std::io::ErrorKind::NotADirectory,
        _ => false,
    }
}
