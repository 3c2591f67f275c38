//! What a command asks for, as a value.

use codespar_protocol::MergeStrategy;

use super::{PullRef, RequestOptions, Verb};

/// A command with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRequest {
    pub command: ChatCommand,
    pub options: RequestOptions,
}

/// One variant per thing that can be asked for. `fix`, `implement`, `refactor`, `add` and
/// `instruct` are one: an instruction for the dev agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatCommand {
    Dev {
        instruction: String,
    },
    Ask {
        question: String,
    },
    Plan {
        feature: String,
    },
    /// No steps means all of them.
    Approve {
        steps: Vec<u32>,
    },
    Review {
        pull: PullRef,
    },
    Merge {
        pull: PullRef,
        strategy: Option<MergeStrategy>,
    },
    Watch {
        pull: PullRef,
    },
    Unwatch {
        pull: PullRef,
    },
    Resolve {
        pull: PullRef,
    },
    /// `when` is not interpreted here.
    Schedule {
        when: String,
        request: Box<ChatRequest>,
        /// The command as it was written, to be read again at each run.
        line: String,
    },
    Schedules,
    Unschedule {
        id: String,
    },
    /// No state means open ones.
    PullRequests {
        state: Option<StateFilter>,
    },
    Status {
        id: Option<String>,
    },
    Logs {
        id: String,
    },
    Cost {
        id: Option<String>,
    },
    /// No id means the task of the thread.
    Stop {
        id: Option<String>,
    },
    Retry {
        id: String,
    },
    Link {
        repository: String,
    },
    Unlink,
    Whoami,
    Help {
        about: Option<Verb>,
    },
}

/// Which pull requests to list. Merged ones count as closed, as on the forges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFilter {
    Open,
    Closed,
    All,
}

impl StateFilter {
    pub(super) fn find(word: &str) -> Option<Self> {
        match word {
            "open" => Some(Self::Open),
            "closed" => Some(Self::Closed),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}
