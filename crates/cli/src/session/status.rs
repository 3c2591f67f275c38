//! Keeps the status line up to date.
//!
//! The branch is read once, when the session begins. Everything else follows from events and from
//! what the driver tells. The user's own command gets each new state as input and may be slow: its
//! last line stays meanwhile.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use codespar_agent::ContextUsage;
use codespar_policy::Mode;
use codespar_protocol::{Cost, Event, NoticeLevel, SessionId, TaskId};
use codespar_runtime::Project;
use codespar_tui::Status;
use parking_lot::Mutex;

use super::view::SessionView;
use crate::status_command::{StatusCommand, StatusFeed, StatusInput, StatusLine};

/// Shared with the sink of the agent's events.
#[derive(Clone)]
pub(super) struct StatusKeeper {
    view: Arc<dyn SessionView>,
    state: Arc<Mutex<State>>,
    /// The user's own line, if there is a command for it.
    custom: Option<Arc<StatusFeed>>,
    cwd: PathBuf,
}

struct State {
    status: Status,
    session: Option<SessionId>,
    running: HashSet<TaskId>,
    window: u64,
}

impl StatusKeeper {
    pub(super) fn new(view: Arc<dyn SessionView>, project: &Project) -> Self {
        let state = Arc::new(Mutex::new(State {
            status: Status {
                model: project.provider.choice.id.clone(),
                mode: project.mode.get().to_string(),
                branch: branch(project),
                ..Status::default()
            },
            session: None,
            running: HashSet::new(),
            window: project.provider.choice.context_window,
        }));
        let command = StatusCommand::of(project).filter(|_| view.has_status_line());
        let custom = command.map(|command| {
            let (view, state) = (view.clone(), state.clone());
            Arc::new(command.follow(move |line| show(&*view, &state, line)))
        });
        let keeper = Self {
            view,
            state,
            custom,
            cwd: project.dir.cwd.clone(),
        };
        keeper.tell(&keeper.state.lock());
        keeper
    }

    fn tell(&self, state: &State) {
        self.view.status(state.status.clone());
        if let Some(custom) = &self.custom {
            let session = state.session.map(|session| session.to_string());
            custom.send(StatusInput::new(&state.status, &self.cwd, session));
        }
    }

    pub(super) fn session(&self, session: Option<SessionId>) {
        let mut state = self.state.lock();
        state.session = session;
        self.tell(&state);
    }

    /// Nothing is sent if nothing that is shown has changed: events come by the hundred.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        let before = state.status.clone();
        change(&mut state);
        state.status.running_tasks = state.running.len();
        if state.status != before {
            self.tell(&state);
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

/// The line stays until the next one, while the command works on a newer state.
fn show(view: &dyn SessionView, state: &Mutex<State>, line: StatusLine) {
    let mut state = state.lock();
    state.status.custom = match line {
        StatusLine::Custom(line) => Some(line),
        StatusLine::Usual => None,
        StatusLine::Failed(why) => {
            view.notice(NoticeLevel::Warning, why);
            None
        }
    };
    view.status(state.status.clone());
}

/// Read from the file rather than asked of git: start-up time is a feature.
///
/// Nothing where HEAD is detached.
fn branch(project: &Project) -> Option<String> {
    let head = std::fs::read_to_string(project.dir.root.join(".git/HEAD")).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    Some(codespar_policy::printable(branch).into_owned())
}
