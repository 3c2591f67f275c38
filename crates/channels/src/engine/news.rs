//! What has changed since the open messages of a channel were last looked at.
//!
//! A look costs as much as there is news: changes that wait are taken together, and a change of a task
//! leads to its own message alone. Without that, a thousand open messages would be read and drawn
//! again at each step of each of their tasks.

use std::collections::HashSet;

use codespar_protocol::TaskId;
use codespar_store::{ChangeFollower, ChangeKind, StoreChange};
use futures::FutureExt;

/// What is to be looked at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// At the beginning, and where changes were missed.
    Everything,
    Of {
        /// Messages came or have another state, or something beside the loop has ended.
        messages: bool,
        tasks: HashSet<TaskId>,
        /// Tasks with a question that was asked, answered or withdrawn; it may be one of the run
        /// above.
        asking: HashSet<TaskId>,
    },
}

impl News {
    /// That messages are to be looked at, and no task that is known already.
    pub(crate) fn of_messages() -> Self {
        Self::Of {
            messages: true,
            tasks: HashSet::new(),
            asking: HashSet::new(),
        }
    }

    /// Also that messages are to be looked at.
    pub(crate) fn include_messages(&mut self) {
        if let Self::Of { messages, .. } = self {
            *messages = true;
        }
    }

    /// Waits for a change that matters to a channel, and takes those that have come with it. Safe to
    /// cancel: nothing is awaited once a change was taken.
    pub(crate) async fn next(changes: &mut ChangeFollower, channel: &str) -> Self {
        let mut news = Self::Of {
            messages: false,
            tasks: HashSet::new(),
            asking: HashSet::new(),
        };
        while news.is_empty() {
            let change = changes.next().await;
            news.add(change, channel);
        }
        while let Some(change) = changes.next().now_or_never() {
            news.add(change, channel);
        }
        news
    }

    /// Without a change, some were missed.
    fn add(&mut self, change: Option<StoreChange>, channel: &str) {
        let Some(change) = change else {
            *self = Self::Everything;
            return;
        };
        let Self::Of {
            messages,
            tasks,
            asking,
        } = self
        else {
            return;
        };
        match change.kind {
            ChangeKind::Inbound { channel: of } => *messages |= of == channel,
            ChangeKind::Task { .. } | ChangeKind::Step { .. } => tasks.extend(change.task_id),
            ChangeKind::Question { .. } => asking.extend(change.task_id),
            ChangeKind::Entry { .. }
            | ChangeKind::Mail
            | ChangeKind::Notification
            | ChangeKind::Outbox { .. } => {}
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Everything => false,
            Self::Of {
                messages,
                tasks,
                asking,
            } => !messages && tasks.is_empty() && asking.is_empty(),
        }
    }

    /// Whether a task that was looked at before is to be looked at again.
    pub(crate) fn is_of(&self, task: &TaskId) -> bool {
        match self {
            Self::Everything => true,
            Self::Of { tasks, .. } => tasks.contains(task),
        }
    }
}

/// Whether the task of a message exists yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskPresence {
    There,
    /// It is being started, or waits for the one that it builds on.
    Missing,
}

/// The tasks of open messages that were looked at once; from then on changes tell of them.
#[derive(Debug, Default)]
pub(crate) struct FollowedTasks {
    tasks: HashSet<TaskId>,
    /// Some message has a task that was not there: any change may be what it waits for.
    is_waited_for: bool,
}

impl FollowedTasks {
    pub(crate) fn note(&mut self, task: &TaskId, presence: TaskPresence) {
        match presence {
            TaskPresence::There => {
                self.tasks.insert(task.clone());
            }
            TaskPresence::Missing => self.is_waited_for = true,
        }
    }

    pub(crate) fn contains(&self, task: &TaskId) -> bool {
        self.tasks.contains(task)
    }

    /// Whether changes tell of the task of each open message.
    pub(crate) fn is_complete(&self) -> bool {
        !self.is_waited_for
    }
}
