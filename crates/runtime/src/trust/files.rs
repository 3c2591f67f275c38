//! The files of a project that could grant something: found and read once. What is decided about
//! a file and what is used of it is the same text.
//!
//! Files are opened below the root without following links out of it. What cannot be read is kept
//! with its error, for whoever needs the file to report.

use std::{
    io,
    path::{Path, PathBuf},
};

use codespar_agent::MAX_DEFINITION_BYTES;
use codespar_files::{LeftOut, OpenError};
use codespar_mcp::MAX_CONFIG_BYTES;
use codespar_tasks::MAX_WORKFLOW_BYTES;
use codespar_tools::sandbox::is_placeholder;

use crate::command_files::{COMMAND_DIRS, MAX_COMMAND_BYTES};

/// A settings file is small; anything larger is something else.
pub const MAX_SETTINGS_BYTES: u64 = 1 << 20;
/// More files than this are not looked at; nobody could judge them.
const MAX_FILES: usize = 1_000;
/// All texts together: they are kept to show differences.
const MAX_TOTAL_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectFileKind {
    /// Settings of ours.
    Settings,
    /// Settings of another tool, of which the permissions are read.
    Foreign,
    /// MCP servers.
    Servers,
    /// A custom agent.
    Agent,
    Workflow,
    /// A prompt of its own; it may bring permission rules.
    Command,
}

/// A file as it was read.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Relative to the root.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) kind: ProjectFileKind,
    /// The text, or why there is none.
    pub(super) text: Result<String, String>,
}

/// Later files win over earlier ones where settings are merged.
const AT_ROOT: [(&str, ProjectFileKind, u64); 5] = [
    (
        ".claude/settings.json",
        ProjectFileKind::Foreign,
        MAX_SETTINGS_BYTES,
    ),
    (
        ".claude/settings.local.json",
        ProjectFileKind::Foreign,
        MAX_SETTINGS_BYTES,
    ),
    (
        ".codespar/settings.json",
        ProjectFileKind::Settings,
        MAX_SETTINGS_BYTES,
    ),
    (
        ".codespar/settings.local.json",
        ProjectFileKind::Settings,
        MAX_SETTINGS_BYTES,
    ),
    (".mcp.json", ProjectFileKind::Servers, MAX_CONFIG_BYTES),
];

/// In the root and each directory from there down to the working directory. Agents are in
/// directories below these, too.
const AGENT_DIRS: [&str; 2] = [".codespar/agents", ".claude/agents"];
const WORKFLOW_DIR: &str = ".codespar/workflows";

/// What is read as the user's own, so that it is not the project's even if the project is around
/// it.
pub(super) struct Own {
    pub(super) files: Vec<PathBuf>,
    pub(super) agent_dirs: Vec<PathBuf>,
    pub(super) command_dirs: Vec<PathBuf>,
}

impl Own {
    fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file == path)
            || self.agent_dirs.iter().any(|dir| path.starts_with(dir))
            || self.command_dirs.iter().any(|dir| path.starts_with(dir))
    }
}

/// Reads the files of a project.
pub(super) fn find(root: &Path, cwd: &Path, own: &Own) -> Vec<Found> {
    let mut reader = Reader {
        root,
        own,
        total: 0,
        found: Vec::new(),
    };
    for (name, kind, max) in AT_ROOT {
        reader.add(&root.join(name), kind, max);
    }
    let dirs = cwd.ancestors().take_while(|dir| dir.starts_with(root));
    for dir in dirs {
        for sub in AGENT_DIRS {
            reader.add_agents(&dir.join(sub));
        }
        for path in names(&dir.join(WORKFLOW_DIR), "toml") {
            reader.add(&path, ProjectFileKind::Workflow, MAX_WORKFLOW_BYTES);
        }
    }
    for dir in COMMAND_DIRS {
        for path in nested_files(&root.join(dir), "md") {
            reader.add(&path, ProjectFileKind::Command, MAX_COMMAND_BYTES);
        }
    }
    reader.found
}

/// Files with this ending in a directory and those below it, in order of name. Links are not
/// followed: a repository must not bring files from elsewhere.
pub(crate) fn nested_files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let is_file = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|it| it.is_file());
    let files = codespar_files::nested(dir, extension).files.into_iter();
    files.filter(is_file).collect()
}

struct Reader<'a> {
    root: &'a Path,
    own: &'a Own,
    total: usize,
    found: Vec<Found>,
}

impl Reader<'_> {
    /// Files in a directory and those below it. What is not looked at stays in the list with the
    /// reason, and grants nothing.
    fn add_agents(&mut self, dir: &Path) {
        let nested = codespar_files::nested(dir, "md");
        for path in nested.files {
            self.add(&path, ProjectFileKind::Agent, MAX_DEFINITION_BYTES);
        }
        // What the sandbox put where the directory must not be made is none.
        let is_none = |why: &LeftOut| {
            let LeftOut::Unreadable(error) = why else {
                return false;
            };
            error.kind() == io::ErrorKind::NotADirectory
        };
        for (path, why) in nested.left_out {
            if !is_none(&why) && !self.own.has(&path) {
                self.push(&path, ProjectFileKind::Agent, Err(why.to_string()));
            }
        }
    }

    /// Absent files are left out. Files beyond the limits stay in the list with an error and grant
    /// nothing.
    fn add(&mut self, path: &Path, kind: ProjectFileKind, max: u64) {
        // A working directory among the agents has directories of agents of its own.
        let is_known = |found: &Found| found.path.as_os_str() == path.as_os_str();
        if self.own.has(path) || self.found.iter().any(is_known) {
            return;
        }
        let text = if self.found.len() >= MAX_FILES || self.total > MAX_TOTAL_BYTES {
            Err("the project has too many such files".to_owned())
        } else {
            let name = path.strip_prefix(self.root).unwrap_or(path);
            match codespar_files::read_inside(self.root, name, max) {
                Ok(bytes) => String::from_utf8(bytes).map_err(|_| OpenError::NotText.to_string()),
                Err(error) if is_absent(path, &error) => return,
                Err(error) => Err(error.to_string()),
            }
        };
        self.total += text.as_ref().map_or(0, String::len);
        self.push(path, kind, text);
    }

    fn push(&mut self, path: &Path, kind: ProjectFileKind, text: Result<String, String>) {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        self.found.push(Found {
            name: name.to_string_lossy().into_owned(),
            path: path.to_path_buf(),
            kind,
            text,
        });
    }
}

/// The sandbox puts empty placeholders where files must not be created; one that is left counts as
/// absent.
fn is_absent(path: &Path, error: &OpenError) -> bool {
    match error {
        OpenError::Missing => true,
        OpenError::NotRegular => is_placeholder(path),
        OpenError::Io(error) => error.kind() == io::ErrorKind::NotADirectory,
        _ => false,
    }
}

/// Files with this ending, in order of name, so that messages stay the same. At most `MAX_FILES` of
/// them.
fn names(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == extension))
        .take(MAX_FILES)
        .collect();
    paths.sort();
    paths
}
