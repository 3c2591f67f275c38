//! Which repository a command is about, and the project that works on it.
//!
//! It is never guessed from the text of an instruction. A repository that is named must be linked to
//! the conversation, or be known to the settings: a link in a chat does not choose where our tokens
//! are sent.

use std::{path::Path, sync::Arc};

use codespar_dev::RepositoryRef;
use codespar_runtime::{Project, ProjectConfig, ProjectDir, RuntimeError, which};
use codespar_store::{ThreadBinding, ThreadRef};
use codespar_tasks::Attendance;

use super::{ChannelCore, Unlinked};
use crate::{PageProject, WEB, github::GITHUB};

/// A repository and the project whose settings and trust count for it.
#[derive(Clone)]
pub(crate) struct Workplace {
    pub(crate) project: Arc<Project>,
    pub(crate) repository: RepositoryRef,
    /// As people know it.
    pub(crate) name: String,
}

impl ChannelCore {
    /// The repository that is named, else that of the thread, else the default of the conversation.
    pub(crate) async fn workplace(
        &self,
        at: &ThreadRef,
        named: Option<&str>,
        binding: &ThreadBinding,
    ) -> Result<Workplace, RuntimeError> {
        if at.channel == GITHUB {
            return self.repository_of_comments(at, named);
        }
        let links = self
            .store()
            .linked_repositories(&at.channel, &at.conversation)
            .await?;
        let is_linked = |name: &str| links.iter().any(|link| link.repository == name);
        if let Some(name) = named {
            if !is_linked(name) && !self.is_known(at, name) {
                return Err(RuntimeError::Usage(format!(
                    "{name} is not linked here; an admin can write: link {name}"
                )));
            }
            return self.open(name);
        }
        if let Some(name) = &binding.repository
            && (is_linked(name) || self.is_known(at, name))
        {
            return self.open(name);
        }
        if let Some(link) = links.first() {
            return self.open(&link.repository);
        }
        if let Some(page) = self.page(at) {
            return self.open(&page.name);
        }
        match self.setup.unlinked {
            Unlinked::Home => self.open(&self.home_name()),
            Unlinked::Nothing => Err(RuntimeError::Usage(
                "no repository is linked here; an admin can write: link owner/repo".to_owned(),
            )),
        }
    }

    /// Whether a repository needs no link here.
    fn is_known(&self, at: &ThreadRef, name: &str) -> bool {
        self.is_home(name) || self.page(at).is_some_and(|page| page.name == name)
    }

    fn is_home(&self, name: &str) -> bool {
        self.setup.unlinked == Unlinked::Home && name == self.home_name()
    }

    /// The project that a conversation of the page is about; other channels have none.
    pub(crate) fn page(&self, at: &ThreadRef) -> Option<&PageProject> {
        let mut pages = self.setup.pages.iter();
        pages.find(|page| at.channel == WEB && page.conversation == at.conversation)
    }

    fn home_name(&self) -> String {
        let root = &self.setup.home.dir.root;
        let name = root.file_name().and_then(|name| name.to_str());
        name.unwrap_or("repository").to_owned()
    }

    /// The project of a directory. Questions of its agents are put in the channel.
    pub(crate) fn project(&self, root: &Path) -> Result<Arc<Project>, RuntimeError> {
        let runtime = &self.setup.runtime;
        let is_new = self.opened.lock().insert(root.to_owned());
        if !is_new || root == self.setup.home.dir.root {
            return runtime.project_at(root);
        }
        let home = &self.setup.home;
        let dir = ProjectDir::at(home.dir.environment.clone(), root)?;
        let config = ProjectConfig::load(dir, home.options.clone())?;
        Ok(runtime.open_project(config, Attendance::Elsewhere))
    }

    /// Opens the repository that work of a thread is on record for.
    pub(crate) fn open_for(&self, at: &ThreadRef, name: &str) -> Result<Workplace, RuntimeError> {
        match at.channel.as_str() {
            GITHUB => self.repository_of_comments(at, Some(name)),
            _ => self.open(name),
        }
    }

    /// Opens a repository by its name. The settings say where it is; otherwise it is on GitHub.
    pub(crate) fn open(&self, name: &str) -> Result<Workplace, RuntimeError> {
        let home = self.home();
        if self.is_home(name) {
            let repository = which(&home.dir, &home.settings, None)?;
            return Ok(Workplace {
                project: home,
                repository,
                name: name.to_owned(),
            });
        }
        if let Some(page) = self.setup.pages.iter().find(|page| page.name == name) {
            let project = self.setup.runtime.project_at(&page.root)?;
            let repository = which(&project.dir, &project.settings, None)?;
            return Ok(Workplace {
                project,
                repository,
                name: name.to_owned(),
            });
        }
        let directory = home.settings.channels.repositories.get(name);
        let (project, repository) = match directory {
            Some(dir) => {
                let project = self.project(&dir.canonicalize()?)?;
                let repository = which(&project.dir, &project.settings, None)?;
                (project, repository)
            }
            None => {
                // As a URL, so that a directory of the same name is not meant.
                let server = codespar_runtime::github_server(&home.dir);
                let url = format!("{server}/{name}");
                let repository = which(&home.dir, &home.settings, Some(&url))?;
                (home, repository)
            }
        };
        Ok(Workplace {
            project,
            repository,
            name: name.to_owned(),
        })
    }
}
