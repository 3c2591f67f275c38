//! What can be completed: commands, paths of the project, agents.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use codespar_runtime::{Project, ProjectCommands};
use codespar_tui::{CompletionSource, Suggestion};
use parking_lot::Mutex;

use crate::slash::COMMANDS;

/// More paths than this are not offered.
const MOST: usize = 100_000;

/// Paths are listed by a thread when the first one is asked for; until it is done there are none.
pub(super) struct Completions {
    commands: Vec<Suggestion>,
    agents: Vec<Suggestion>,
    cwd: PathBuf,
    paths: Arc<Mutex<Arc<[String]>>>,
    started: OnceLock<()>,
}

impl Completions {
    pub(super) fn new(project: &Arc<Project>, commands: &Arc<ProjectCommands>) -> Self {
        let builtin = COMMANDS.iter().map(|one| Suggestion {
            text: one.name.to_owned(),
            help: one.help.to_owned(),
        });
        let own = commands.iter().map(|(name, one)| Suggestion {
            text: name.to_owned(),
            help: codespar_policy::printable(&one.description).into_owned(),
        });
        let agents = project.agents.agents.values().map(|agent| Suggestion {
            text: codespar_policy::printable(&agent.name).into_owned(),
            help: codespar_policy::printable(&agent.description).into_owned(),
        });
        Self {
            commands: builtin.chain(own).collect(),
            agents: agents.collect(),
            cwd: project.dir.cwd.clone(),
            paths: Arc::new(Mutex::new(Arc::from([]))),
            started: OnceLock::new(),
        }
    }

    fn list_paths(&self) {
        let (cwd, paths) = (self.cwd.clone(), self.paths.clone());
        std::thread::spawn(move || *paths.lock() = paths_below(&cwd));
    }
}

impl CompletionSource for Completions {
    fn commands(&self) -> Vec<Suggestion> {
        self.commands.clone()
    }

    fn paths(&self) -> Arc<[String]> {
        self.started.get_or_init(|| self.list_paths());
        self.paths.lock().clone()
    }

    fn agents(&self) -> Vec<Suggestion> {
        self.agents.clone()
    }
}

/// Files and directories that git does not ignore, directories with a slash at their end.
fn paths_below(cwd: &std::path::Path) -> Arc<[String]> {
    let walk = ignore::WalkBuilder::new(cwd)
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let paths = walk.flatten().filter_map(|entry| {
        let relative = entry.path().strip_prefix(cwd).ok()?.to_str()?;
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        if relative.is_empty() || relative.contains(char::is_control) {
            return None;
        }
        Some(match is_dir {
            true => format!("{relative}/"),
            false => relative.to_owned(),
        })
    });
    paths.take(MOST).collect()
}
