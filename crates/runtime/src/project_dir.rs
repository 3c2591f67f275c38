//! A directory to work in: the project around it and whether its files are trusted.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use crate::{Environment, RuntimeError, trust::ProjectTrust};

/// Where work happens. Reading it loads no settings and opens nothing.
#[derive(Debug, Clone)]
pub struct ProjectDir {
    /// The values of the process.
    pub environment: Arc<Environment>,
    /// The project root: the git work tree around the working directory, else that directory.
    pub root: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// The project's files that could grant something, and whether they may.
    pub trust: Arc<ProjectTrust>,
}

impl ProjectDir {
    /// The project around a directory.
    ///
    /// Links in `cwd` are resolved first, so that one project has one root and one record of trust.
    /// `.git` may be a directory or the file of a worktree.
    pub fn find(environment: Arc<Environment>, cwd: &Path) -> Result<Self, RuntimeError> {
        let real = cwd.canonicalize().map_err(|error| {
            RuntimeError::Usage(format!("cannot work in {}: {error}", cwd.display()))
        })?;
        if !real.is_dir() {
            return Err(RuntimeError::Usage(format!(
                "{} is not a directory",
                real.display()
            )));
        }
        let root = real
            .ancestors()
            .find(|dir| dir.join(".git").exists())
            .unwrap_or(&real);
        let trust = ProjectTrust::read(&environment.person(), root, &real);
        Ok(Self {
            environment,
            root: root.to_path_buf(),
            cwd: real.clone(),
            trust: Arc::new(trust),
        })
    }

    /// The project with this root, whatever is around it.
    pub fn at(environment: Arc<Environment>, root: &Path) -> Result<Self, RuntimeError> {
        if !root.is_dir() {
            return Err(RuntimeError::Failed(format!(
                "{} is not a directory",
                root.display()
            )));
        }
        let trust = ProjectTrust::read(&environment.person(), root, root);
        Ok(Self {
            environment,
            root: root.to_path_buf(),
            cwd: root.to_path_buf(),
            trust: Arc::new(trust),
        })
    }

    /// The same directory as its files are now.
    pub fn reread(&self) -> Self {
        let trust = self.trust.reread(&self.environment.person(), &self.cwd);
        Self {
            trust: Arc::new(trust),
            ..self.clone()
        }
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.environment.state
    }

    /// The home directory of the user.
    pub fn home(&self) -> Option<&Path> {
        self.environment.home.as_deref()
    }

    /// An environment variable, if it is set to something.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.environment.var(name)
    }

    /// The proxy for reaching the outside, if the environment names one. What lies on this machine
    /// is for the caller to know.
    pub fn proxy<T>(&self) -> Result<Option<T>, RuntimeError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let named = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
            .into_iter()
            .find_map(|name| Some((name, self.var(name)?)));
        let parsed = named.map(|(name, text)| {
            let address = text.parse();
            address.map_err(|error| RuntimeError::Usage(format!("{name}: {error}")))
        });
        parsed.transpose()
    }

    /// The trust of another project, or of this one.
    pub fn trust_of(&self, root: &Path) -> Arc<ProjectTrust> {
        if root == self.root {
            return self.trust.clone();
        }
        let person = self.environment.person();
        Arc::new(ProjectTrust::read(&person, root, root))
    }

    /// Directories of the project and the user that may hold `sub` (`agents`, `skills`), nearest
    /// first. The second part of each pair is `project` or `user`; files of the former need trust.
    pub(crate) fn config_dirs(&self, sub: &str) -> Vec<(PathBuf, &'static str)> {
        let around = self.cwd.ancestors();
        let inside = around.take_while(|dir| dir.starts_with(&self.root));
        let of_project = inside.flat_map(|dir| {
            [".codespar", ".claude"].map(|name| (dir.join(name).join(sub), "project"))
        });
        let of_user = self.environment.config_dirs(sub).into_iter();
        of_project.chain(of_user.map(|dir| (dir, "user"))).collect()
    }

    /// A path as people would write it.
    pub fn shown(&self, path: &Path) -> String {
        if let Ok(rest) = path.strip_prefix(&self.root) {
            return rest.display().to_string();
        }
        match self.home().and_then(|home| path.strip_prefix(home).ok()) {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }
}
