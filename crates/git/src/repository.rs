//! A repository that was found, and how much it is trusted.

use std::{
    env,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{Git, GitError, GitSettings, Location, settings, view::View};

/// Whether programs that a repository's configuration names may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// None.
    #[default]
    Untrusted,
    /// The filter of Git LFS, by its name, where files are written to or read from a work tree.
    /// Still no hooks, other filters, merge drivers or monitors.
    Trusted,
}

/// A repository at a place that was looked up once. Clones share what was read and made; a change
/// of the configuration on disk is seen by a new `Repository` only, one of `HEAD` and references by
/// every call.
#[derive(Debug, Clone)]
pub struct Repository {
    location: Location,
    trust: Trust,
    cached: Arc<Cached>,
}

/// Made when first needed. Two threads that need one at the same time may both make it; one is
/// kept, the other is dropped.
#[derive(Debug, Default)]
struct Cached {
    settings: OnceLock<GitSettings>,
    plain: OnceLock<Arc<View>>,
    with_settings: OnceLock<Arc<View>>,
}

impl Repository {
    /// The repository that a directory is in. No process is started.
    pub fn find(dir: &Path, trust: Trust) -> Result<Self, GitError> {
        Ok(Self::at(Location::find(dir)?, trust))
    }

    /// At a place that is known.
    pub fn at(location: Location, trust: Trust) -> Self {
        Self {
            location,
            trust,
            cached: Arc::default(),
        }
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    /// How much it is trusted.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Effective settings, read once.
    pub fn settings(&self) -> Result<&GitSettings, GitError> {
        if let Some(known) = self.cached.settings.get() {
            return Ok(known);
        }
        let settings = GitSettings::read(&self.location, self.trust)?;
        Ok(self.cached.settings.get_or_init(|| settings))
    }

    /// One effective setting as it is now, whatever its name: not for anything that is run. The
    /// repository can set it to anything, so it may be shown or compared.
    pub fn setting(&self, key: &str) -> Result<Option<String>, GitError> {
        settings::one(&self.location, key)
    }

    /// The address of a remote, rewritten as git's settings say (`url.<base>.insteadOf`). Like
    /// [`Repository::setting`], it may be shown or compared.
    pub fn remote_url(&self, remote: &str) -> Result<Option<String>, GitError> {
        settings::remote_url(&self.location, remote)
    }

    /// Where git would look for hooks: `core.hooksPath`, or its usual place. No hook is ever run by
    /// this crate.
    pub fn hooks_dir(&self) -> Result<PathBuf, GitError> {
        let usual = || self.location.common_dir.join("hooks");
        let Some(path) = self.setting("core.hooksPath")? else {
            return Ok(usual());
        };
        let root = self.location.work_tree.as_ref();
        Ok(match settings::expanded(&path) {
            Some(path) => path,
            None => root.map_or_else(usual, |root| root.join(path)),
        })
    }

    /// Git on references and objects alone. No file of the work tree is looked at.
    pub fn git(&self) -> Result<Git, GitError> {
        let view = match self.cached.plain.get() {
            Some(view) => view,
            None => {
                let view = Arc::new(View::new(&self.location, None)?);
                self.cached.plain.get_or_init(|| view)
            }
        };
        Ok(Git {
            work_tree: None,
            ..self.git_in(view)
        })
    }

    /// Git on the files of the work tree too. An error for a bare repository. A trusted one gets
    /// `HOME`, where `git-lfs` finds the user's credentials.
    pub fn git_with_files(&self) -> Result<Git, GitError> {
        if self.location.work_tree.is_none() {
            return Err(GitError::Unsupported {
                path: self.location.git_dir.clone(),
                reason: "it has no work tree".to_owned(),
            });
        }
        let view = match self.cached.with_settings.get() {
            Some(view) => view,
            None => {
                let view = Arc::new(View::new(&self.location, Some(self.settings()?))?);
                self.cached.with_settings.get_or_init(|| view)
            }
        };
        let home = match self.trust {
            Trust::Trusted => env::var_os("HOME"),
            Trust::Untrusted => None,
        };
        Ok(Git {
            home,
            ..self.git_in(view)
        })
    }

    fn git_in(&self, view: &Arc<View>) -> Git {
        let Location {
            git_dir,
            common_dir,
            work_tree,
        } = &self.location;
        Git {
            git_dir: view.path().to_owned(),
            work_tree: work_tree.clone(),
            index: git_dir.join("index"),
            objects: common_dir.join("objects"),
            alternate: None,
            root: self.location.root().to_owned(),
            home: None,
            view: Some(view.clone()),
        }
    }
}
