//! The manifest of a plugin: its name, and what it has besides the files in the usual places.
//!
//! ```text
//! agents, commands, skills   a path or a list of paths, in the plugin
//! hooks, mcpServers          the same, or what such a file would hold
//! ```
//!
//! What is named is added to what is in the usual places. Whatever else would have an effect in
//! Claude Code is left out with a warning.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

/// Keys that only describe a plugin.
const DESCRIBING: [&str; 12] = [
    "$schema",
    "version",
    "description",
    "displayName",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "category",
    "tags",
    "strict",
];
/// Before a path, it says no more than the path itself.
const ROOT_VARIABLE: &str = "${CLAUDE_PLUGIN_ROOT}/";

#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub(super) name: Option<String>,
    pub(super) agents: Vec<PathBuf>,
    pub(super) commands: Vec<PathBuf>,
    pub(super) skills: Vec<PathBuf>,
    pub(super) hooks: Vec<Part>,
    pub(super) servers: Vec<Part>,
    /// What is left out, and why.
    pub(super) warnings: Vec<String>,
}

/// Hooks or servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    File(PathBuf),
    /// JSON in the manifest.
    Inline(String),
}

#[derive(Deserialize)]
struct Written {
    name: Option<String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Manifest {
    /// `root` is the directory of the plugin, without links.
    pub(super) fn parse(text: &str, root: &Path) -> Result<Self, serde_json::Error> {
        let written: Written = serde_json::from_str(text)?;
        let mut manifest = Self {
            name: written.name,
            ..Self::default()
        };
        for (key, value) in &written.other {
            match key.as_str() {
                "agents" => manifest.agents = manifest.paths(root, key, value),
                "commands" => manifest.commands = manifest.paths(root, key, value),
                "skills" => manifest.skills = manifest.paths(root, key, value),
                "hooks" => manifest.hooks = manifest.parts(root, key, value),
                "mcpServers" => manifest.servers = manifest.parts(root, key, value),
                other if DESCRIBING.contains(&other) => {}
                other => manifest.left_out(other, "it has no meaning here"),
            }
        }
        Ok(manifest)
    }

    fn left_out(&mut self, what: &str, why: &str) {
        self.warnings.push(format!("`{what}` is left out: {why}"));
    }

    fn paths(&mut self, root: &Path, key: &str, value: &Value) -> Vec<PathBuf> {
        let parts = self.parts(root, key, value).into_iter();
        let mut paths = Vec::new();
        for part in parts {
            match part {
                Part::File(path) => paths.push(path),
                Part::Inline(_) => self.left_out(key, "only paths are read"),
            }
        }
        paths
    }

    fn parts(&mut self, root: &Path, key: &str, value: &Value) -> Vec<Part> {
        let single = std::slice::from_ref(value);
        let values = value.as_array().map_or(single, Vec::as_slice);
        let mut parts = Vec::new();
        for value in values {
            match value {
                Value::String(text) => parts.extend(self.path(root, key, text).map(Part::File)),
                Value::Object(_) => parts.push(Part::Inline(value.to_string())),
                _ => self.left_out(key, "it is neither a path nor an object"),
            }
        }
        parts
    }

    /// Where it really is: in the plugin.
    fn path(&mut self, root: &Path, key: &str, text: &str) -> Option<PathBuf> {
        let relative = text.strip_prefix(ROOT_VARIABLE).unwrap_or(text);
        let why = match root.join(relative).canonicalize() {
            Ok(path) if path.starts_with(root) => return Some(path),
            Ok(_) => "it leads out of the plugin".to_owned(),
            Err(error) => error.to_string(),
        };
        self.left_out(&format!("{key}: {text}"), &why);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn paths_in_the_plugin_and_objects_are_taken_and_the_rest_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("kit");
        fs::create_dir_all(root.join("more")).unwrap();
        fs::write(root.join("more/a.md"), "").unwrap();
        let text = r#"{"name": "kit", "version": "1.0.0", "agents": ["./more/a.md", "../../etc"],
            "commands": "${CLAUDE_PLUGIN_ROOT}/more", "skills": {"a": {}}, "hooks": {"Stop": []},
            "mcpServers": ["./none.json", {"a": {"command": "x"}}, 5], "lspServers": "./lsp.json"}"#;
        let manifest = Manifest::parse(text, &root).unwrap();
        assert_eq!(manifest.name.as_deref(), Some("kit"));
        assert_eq!(manifest.agents, [root.join("more/a.md")]);
        assert_eq!(manifest.commands, [root.join("more")]);
        assert_eq!(manifest.hooks, [Part::Inline(r#"{"Stop":[]}"#.to_owned())]);
        let servers = Part::Inline(r#"{"a":{"command":"x"}}"#.to_owned());
        assert_eq!(manifest.servers, [servers]);
        let told: Vec<&str> = manifest
            .warnings
            .iter()
            .map(|told| told.split(':').next().unwrap())
            .collect();
        let expected = [
            "`agents",
            "`lspServers` is left out",
            "`mcpServers",
            "`mcpServers` is left out",
            "`skills` is left out",
        ];
        let mut told = told;
        told.sort_unstable();
        assert_eq!(told, expected);
    }
}
