//! Trust of projects. The files of a repository were written by others: what they grant (allow
//! rules, modes, variables, MCP servers, agents, workflows) counts only after the user has seen
//! and trusted this content at this path.
//!
//! A decision is about a path and the hash of each file. `read` finds the files once; what is
//! decided about and what is used later is the text that was read then. A file that changes asks
//! again, with the difference shown. What makes us stricter (deny and ask rules, plan mode, lower
//! limits) always counts.

mod describe;
mod files;
mod grants;
mod record;
mod standing;
mod worktree;

use std::{
    io,
    path::{Path, PathBuf},
};

use codespar_agent::DefinitionFile;

pub(crate) use self::files::nested_files;
use self::{
    files::Own,
    record::Decided,
    standing::{decided, decisions},
};
pub use self::{
    files::{MAX_SETTINGS_BYTES, ProjectFileKind},
    record::{TrustRecord, all, forget, record_own_text},
    standing::Standing,
};

/// Where the user's own files are.
#[derive(Debug, Clone)]
pub struct UserDirs {
    /// The state directory.
    pub state: PathBuf,
    pub home: Option<PathBuf>,
}

/// A file of a project, with what it would grant.
#[derive(Debug, Clone)]
pub struct ProjectFile {
    /// Relative to the root.
    pub name: String,
    pub path: PathBuf,
    /// What it is used for.
    pub kind: ProjectFileKind,
    /// The text, or why there is none.
    pub text: Result<String, String>,
    /// In words; empty if it needs no trust.
    pub grants: Vec<String>,
    /// What was decided about it.
    pub standing: Standing,
    /// `--trust` covered this text before the project was read again.
    pub for_this_run: bool,
}

/// Where trust may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The decisions on record.
    Recorded,
    /// `--trust`: the files as they are now, for this run.
    ThisRun,
}

/// The files of a project and what was decided about them.
#[derive(Debug, Clone)]
pub struct ProjectTrust {
    root: PathBuf,
    files: Vec<ProjectFile>,
    /// The root is the home directory or around it.
    is_home: bool,
    /// The project as a whole was trusted.
    is_trusted: bool,
    /// Where copies of the project are made for agents.
    worktrees: PathBuf,
    reach: Reach,
}

impl ProjectTrust {
    /// Reads the files of a project and the decisions about them.
    pub fn read(person: &UserDirs, root: &Path, cwd: &Path) -> Self {
        let mut own = Own {
            files: vec![person.state.join("settings.json")],
            agent_dirs: vec![person.state.join("agents")],
            command_dirs: vec![person.state.join("commands")],
        };
        if let Some(home) = &person.home {
            own.files.push(home.join(".claude/settings.json"));
            let dirs = [".codespar/agents", ".claude/agents"].map(|dir| home.join(dir));
            own.agent_dirs.extend(dirs);
            own.command_dirs.push(home.join(".claude/commands"));
        }
        let records = decisions(&person.state, root);
        let is_trusted = records.iter().any(|record| record.project);
        let files = files::find(root, cwd, &own)
            .into_iter()
            .map(|found| decided(found, &records))
            .collect();
        let home = person.home.as_deref();
        Self {
            root: root.to_path_buf(),
            files,
            is_home: home.is_some_and(|home| real(home).starts_with(root)),
            is_trusted,
            worktrees: real(&person.state).join("worktrees"),
            reach: Reach::Recorded,
        }
    }

    /// The same with all of its files trusted for this run, as they are now.
    pub fn for_this_run(&self) -> Result<Self, String> {
        if self.is_home {
            return Err(format!(
                "--trust: {} is your home directory or contains it, and holds files of many \
                 origins; start in a project, or name it with `codespar trust add`",
                self.root.display()
            ));
        }
        Ok(Self {
            reach: Reach::ThisRun,
            ..self.clone()
        })
    }

    /// The same project as its files and the decisions about them are now. What `--trust` covered
    /// stays trusted as it was; a file that changed since is not covered.
    pub(crate) fn reread(&self, person: &UserDirs, cwd: &Path) -> Self {
        let mut now = Self::read(person, &self.root, cwd);
        now.is_trusted |= self.reach == Reach::ThisRun;
        for file in &mut now.files {
            let before = self.files.iter().find(|before| before.name == file.name);
            let is_same = before.is_some_and(|before| before.text == file.text);
            let was_for_this_run = before.is_some_and(|before| self.covers_this_run(before));
            file.for_this_run = is_same && was_for_this_run;
        }
        now
    }

    fn covers_this_run(&self, file: &ProjectFile) -> bool {
        self.reach == Reach::ThisRun || file.for_this_run
    }

    /// The decisions on record, as one text to compare.
    pub(crate) fn decisions(&self, state: &Path) -> String {
        format!("{:?}", decisions(state, &self.root))
    }

    /// All files there are.
    pub fn files(&self) -> &[ProjectFile] {
        &self.files
    }

    /// Of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file of this name, relative to the root.
    pub fn file(&self, name: &str) -> Option<&ProjectFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Whether what the file grants counts. A file that seems to grant nothing is not trusted with
    /// more.
    pub fn trusts(&self, file: &ProjectFile) -> bool {
        self.covers_this_run(file) || file.standing == Standing::Trusted
    }

    /// How far its git configuration counts: in a project that was trusted as a whole, with nothing
    /// in it that is not, the filter of Git LFS runs.
    pub fn git(&self) -> codespar_git::Trust {
        let is_trusted = self.is_trusted && self.ignored().is_empty();
        match self.reach == Reach::ThisRun || is_trusted {
            true => codespar_git::Trust::Trusted,
            false => codespar_git::Trust::Untrusted,
        }
    }

    /// Whether the servers of `.mcp.json` may be spoken of to the user.
    ///
    /// True if there are none of that kind.
    pub fn trusts_kind(&self, kind: ProjectFileKind) -> bool {
        let mut files = self.files.iter().filter(|file| file.kind == kind);
        files.all(|file| self.trusts(file))
    }

    /// Files that would grant something and do not.
    pub fn ignored(&self) -> Vec<&ProjectFile> {
        let files = self.files.iter();
        let granting = files.filter(|file| !file.grants.is_empty());
        granting.filter(|file| !self.trusts(file)).collect()
    }

    /// Definitions of agents in a directory and those below it; without trust those that nobody
    /// trusts are left out.
    pub fn agents(&self, dir: &Path, trust: TrustFilter) -> Vec<DefinitionFile> {
        let files = self.files.iter().filter(|file| {
            let is_here = file.kind == ProjectFileKind::Agent && file.path.starts_with(dir);
            // One that could not be read is passed on with its error.
            is_here && (trust == TrustFilter::Any || file.text.is_err() || self.trusts(file))
        });
        let read = files.map(|file| DefinitionFile {
            path: file.path.clone(),
            text: file.text.clone(),
        });
        read.collect()
    }

    /// Whether this text of a workflow may be used. A file outside of the project was not brought
    /// by it: whoever names it is to know it. In a worktree of an agent the file is compared by
    /// name and text with that of the project, because its path is another one.
    pub fn may_use_workflow(&self, path: &Path, text: &str) -> Result<(), String> {
        let is_copy = path.starts_with(&self.worktrees);
        if !is_copy && !path.starts_with(&self.root) {
            return Ok(());
        }
        let known = self.files.iter().find(|file| match is_copy {
            true => {
                file.kind == ProjectFileKind::Workflow && file.path.file_name() == path.file_name()
            }
            false => real(&file.path) == path,
        });
        let is_same = known.is_some_and(|file| file.text.as_deref() == Ok(text));
        match known {
            Some(file) if is_same && self.trusts(file) => Ok(()),
            None if self.reach == Reach::ThisRun => Ok(()),
            Some(file) if self.trusts(file) => Err(format!(
                "the workflow has changed since it was trusted; look at it and run `codespar trust \
                 add {}`",
                self.root.display()
            )),
            Some(_) => Err(format!(
                "the workflow comes with a repository that is not trusted; look at it and run \
                 `codespar trust add {}`, or give --trust for this run",
                self.root.display()
            )),
            None => Err(format!(
                "workflows of a project are used from .codespar/workflows, where `codespar trust \
                 add {}` covers them; give --trust to use this one in this run",
                self.root.display()
            )),
        }
    }

    /// Whether the user has not been asked about something here yet.
    pub fn is_unasked(&self) -> bool {
        let mut ignored = self.ignored().into_iter();
        !self.is_home && ignored.any(|file| file.standing != Standing::Declined)
    }

    /// Puts on record that the files as they were read are trusted, or that those which are not
    /// yet are declined.
    pub fn decide(&self, state: &Path, trusted: bool) -> io::Result<()> {
        let mut record = TrustRecord::load(state, &self.root);
        record.project = trusted;
        let dirs: Vec<&Path> = self
            .files
            .iter()
            .filter_map(|file| file.path.parent())
            .collect();
        // What is gone from a directory that was looked at is forgotten.
        record
            .files
            .retain(|name, _| !dirs.contains(&self.root.join(name).parent().unwrap_or(&self.root)));
        for file in self.files.iter().filter(|file| !file.grants.is_empty()) {
            if let Ok(text) = &file.text {
                let decided = Decided::new(text, trusted || self.trusts(file));
                record.files.insert(file.name.clone(), decided);
            }
        }
        record.save(state, &self.root)
    }
}

/// Which definitions are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustFilter {
    /// Only trusted ones: to use them.
    Needed,
    /// All: to look for mistakes.
    Any,
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests;
