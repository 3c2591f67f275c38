//! Where we are: the environment, home, state directory and project, read once and handed down.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use etcetera::BaseStrategy;

use crate::{
    error::CommandError,
    trust::{Person, ProjectTrust},
};

/// Everything the process was given.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The person's home, if there is one.
    pub(crate) home: Option<PathBuf>,
    /// Where sessions and outputs live.
    pub(crate) state: PathBuf,
    /// The project root: the git work tree around the working directory, else that directory.
    pub(crate) root: PathBuf,
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// The environment as it came.
    pub(crate) vars: Vec<(OsString, OsString)>,
    /// The project's files that could grant something, and whether they may.
    pub(crate) project: Arc<ProjectTrust>,
}

impl Place {
    /// Looks around. `cwd` replaces the working directory.
    pub(crate) fn find(cwd: Option<&Path>) -> Result<Self, CommandError> {
        let named = cwd.unwrap_or(Path::new("."));
        let cwd = named.canonicalize().map_err(|error| {
            CommandError::Usage(format!("cannot work in {}: {error}", named.display()))
        })?;
        if !cwd.is_dir() {
            return Err(CommandError::Usage(format!(
                "{} is not a directory",
                cwd.display()
            )));
        }
        let home = etcetera::choose_base_strategy()
            .ok()
            .map(|base| base.home_dir().to_path_buf());
        let state = match (
            std::env::var_os("CODESPAR_HOME").filter(|dir| !dir.is_empty()),
            &home,
        ) {
            (Some(dir), _) => std::path::absolute(dir)?,
            (None, Some(home)) => home.join(".codespar"),
            (None, None) => {
                return Err(CommandError::Usage(
                    "there is no home directory; set CODESPAR_HOME to a directory for sessions"
                        .to_owned(),
                ));
            }
        };
        let root = cwd
            .ancestors()
            .find(|dir| dir.join(".git").exists())
            .unwrap_or(&cwd)
            .to_path_buf();
        let person = Person {
            state: state.clone(),
            home: home.clone(),
        };
        let project = Arc::new(ProjectTrust::read(&person, &root, &cwd));
        Ok(Self {
            home,
            state,
            root,
            cwd,
            vars: std::env::vars_os().collect(),
            project,
        })
    }

    /// Whose directories are not a project's.
    pub(crate) fn person(&self) -> Person {
        Person {
            state: self.state.clone(),
            home: self.home.clone(),
        }
    }

    /// The trust of another project, or of this one.
    pub(crate) fn project_at(&self, root: &Path) -> Arc<ProjectTrust> {
        if root == self.root {
            return self.project.clone();
        }
        Arc::new(ProjectTrust::read(&self.person(), root, root))
    }

    /// A variable, if it is set to something.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.vars
            .iter()
            .find(|(key, _)| key == name)
            .and_then(|(_, value)| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// Directories of the project and the person that may hold `sub` (`agents`, `skills`),
    /// nearest first.
    pub(crate) fn config_dirs(&self, sub: &str) -> Vec<(PathBuf, &'static str)> {
        let mut dirs = Vec::new();
        for dir in self
            .cwd
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.root))
        {
            dirs.push((dir.join(".codespar").join(sub), "project"));
            dirs.push((dir.join(".claude").join(sub), "project"));
        }
        dirs.push((self.state.join(sub), "user"));
        if let Some(home) = &self.home {
            if self.state != home.join(".codespar") {
                dirs.push((home.join(".codespar").join(sub), "user"));
            }
            dirs.push((home.join(".claude").join(sub), "user"));
        }
        dirs
    }

    /// A path as people would write it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        if let Ok(rest) = path.strip_prefix(&self.root) {
            return rest.display().to_string();
        }
        match self
            .home
            .as_ref()
            .and_then(|home| path.strip_prefix(home).ok())
        {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }
}
