//! Keeps the status line up to date.

use std::{collections::HashSet, sync::Arc};

use codespar_agent::ContextUsage;
use codespar_policy::Mode;
use codespar_protocol::{Cost, Event, TaskId};
use codespar_runtime::Project;
use codespar_tui::Status;
use parking_lot::Mutex;

use super::view::SessionView;

/// Shared with the sink of the agent's events.
#[derive(Clone)]
pub(super) struct StatusKeeper {
    view: Arc<dyn SessionView>,
    state: Arc<Mutex<State>>,
}

struct State {
    status: Status,
    running: HashSet<TaskId>,
    window: u64,
}

impl StatusKeeper {
    pub(super) fn new(view: Arc<dyn SessionView>, project: &Project) -> Self {
        let keeper = Self {
            view,
            state: Arc::new(Mutex::new(State {
                status: Status {
                    model: project.provider.choice.id.clone(),
                    mode: project.mode.get().to_string(),
                    branch: branch(project),
                    ..Status::default()
                },
                running: HashSet::new(),
                window: project.provider.choice.context_window,
            })),
        };
        keeper.view.status(keeper.state.lock().status.clone());
        keeper
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        let before = state.status.clone();
        change(&mut state);
        state.status.running_tasks = state.running.len();
        if state.status != before {
            self.view.status(state.status.clone());
        }
    }

    pub(super) fn mode(&self, mode: Mode) {
        self.change(|state| state.status.mode = mode.to_string());
    }

    pub(super) fn model(&self, id: &str, window: u64) {
        self.change(|state| {
            state.status.model = id.to_owned();
            state.window = window;
        });
    }

    pub(super) fn context(&self, usage: &ContextUsage) {
        self.change(|state| state.status.context = Some((usage.total, usage.window)));
    }

    pub(super) fn cost(&self, cost: &Cost) {
        self.change(|state| state.status.cost = cost.to_string());
    }

    /// Called for every event of the session, from the threads of agents.
    pub(super) fn event(&self, event: &Event) {
        match event {
            Event::Assistant { usage, .. } => {
                let used = usage.total_tokens();
                self.change(|state| state.status.context = Some((used, state.window)));
            }
            Event::TaskStarted { task_id, .. } => self.change(|state| {
                state.running.insert(task_id.clone());
            }),
            Event::TaskEnded { task_id, .. } => self.change(|state| {
                state.running.remove(task_id);
            }),
            _ => {}
        }
    }
}

/// Read from the file rather than asked of git: start-up time is a feature.
fn branch(project: &Project) -> Option<String> {
    let head = std::fs::read_to_string(project.dir.root.join(".git/HEAD")).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    Some(codespar_policy::printable(branch).into_owned())
}
