//! What can go wrong with the store, with the file and what to do.

use std::{
    io,
    path::{Path, PathBuf},
};

use codespar_protocol::{
    QuestionId, QuestionStatus, SessionId, TaskId, TaskStatus, TaskType, TokenId,
};

use crate::LimitScope;

/// A store operation that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The state directory or the database in it cannot be opened or written.
    #[error("cannot use the state directory {}: {message}", path.display())]
    Unusable {
        path: PathBuf,
        /// Why, and what to do.
        message: String,
    },
    /// The database server cannot be reached, or cannot be used.
    #[error("cannot use the database {place}: {message}")]
    Unreachable {
        /// Which, without its password.
        place: String,
        /// Why, and what to do.
        message: String,
    },
    /// The object store cannot be reached, or cannot be used.
    #[error("cannot use the object store {place}: {message}")]
    Objects {
        place: String,
        /// Why, and what to do.
        message: String,
    },
    /// The connection that held the session was lost, and another process has it since.
    #[error(
        "session {0} was taken by another process after the connection to the database was lost; nothing was written"
    )]
    HoldLost(SessionId),
    #[error("there is no session {0}; `codespar session list` shows those there are")]
    NoSuchSession(SessionId),
    /// Another process has it.
    #[error("session {id} is in use by another process{}", pid.map(|p| format!(" (pid {p})")).unwrap_or_default())]
    SessionInUse {
        id: SessionId,
        /// Who, when known.
        pid: Option<u32>,
    },
    /// The session has entries the caller does not know.
    #[error("session {id} has moved on: expected its last entry to be {expected}, it is {found}")]
    MovedOn {
        id: SessionId,
        /// What the caller knew.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A row cannot be read.
    #[error("session {id}, entry {seq} is damaged: {message}")]
    Damaged {
        id: SessionId,
        /// Which entry.
        seq: u64,
        message: String,
    },
    /// Written by a later version.
    #[error("{} was written by a newer version of codespar; use that one, or another state directory", path.display())]
    TooNew {
        /// The database.
        path: PathBuf,
    },
    #[error("no room left on the disk that holds {}; free some, nothing was lost", path.display())]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// Another process kept the database locked for too long.
    #[error("{} is locked by another process; nothing was written, try again", path.display())]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// A path that cannot be kept.
    #[error("{} is not valid UTF-8; the store keeps paths as text, so rename it", path.display())]
    NotText { path: PathBuf },
    #[error("there is no task {0}; `codespar task list` shows those there are")]
    NoSuchTask(TaskId),
    #[error("there is no question {0}; `codespar task questions` shows those that are open")]
    NoSuchQuestion(String),
    #[error("there is no token {0}; `codespar token list` shows those there are")]
    NoSuchToken(TokenId),
    /// It was answered before, or nobody needs an answer.
    #[error("question {id} is {}{}", status.as_str(), by.as_ref().map(|by| format!(" (by {by})")).unwrap_or_default())]
    QuestionNotOpen {
        id: QuestionId,
        status: QuestionStatus,
        /// Who answered.
        by: Option<String>,
    },
    #[error("that does not answer question {id}: {reason}")]
    WrongAnswer { id: QuestionId, reason: String },
    /// Whoever follows the changes was away for too long and must look at everything anew.
    #[error("the changes after {cursor} are not kept any more; the oldest is {oldest}")]
    ChangesForgotten { cursor: u64, oldest: u64 },
    /// Only runners write these.
    #[error("`{key}` in the metadata of {id} is what its runner reports; choose another name")]
    ResultKey { id: TaskId, key: &'static str },
    #[error("there can be no such limit of scope {scope}: {message}")]
    BadLimit {
        scope: LimitScope,
        /// Why, and what to do.
        message: String,
    },
    /// What a task runs cannot be written down.
    #[error("task {id} cannot be recorded: {message}")]
    NotRecordable { id: TaskId, message: String },
    /// The id is taken.
    #[error("there already is a task {0}")]
    TaskExists(TaskId),
    /// The letter of an id stands for another type.
    #[error("{id} cannot be the id of a {task_type} task; those begin with `{}-`", task_type.prefix())]
    WrongLetter {
        id: TaskId,
        /// What it was to run.
        task_type: TaskType,
    },
    /// The lifecycle has no such step.
    #[error("task {id} is {from}; it cannot become {to}")]
    NoSuchStep {
        id: TaskId,
        from: TaskStatus,
        /// What was wanted.
        to: TaskStatus,
    },
    /// What was asked for does not go with how far the task is.
    #[error("task {id} is {status}; {rule}")]
    WrongState {
        id: TaskId,
        status: TaskStatus,
        /// Why that is in the way.
        rule: &'static str,
    },
    /// Only its runner may end it.
    #[error("a runner has task {0}; it can only be stopped: `codespar task stop {0}`")]
    HeldByRunner(TaskId),
    /// The caller's lease is no longer the latest.
    #[error("another runner has task {0}; this one lost its lease, and nothing was written")]
    LeaseLost(TaskId),
    /// It cannot begin yet.
    #[error("task {id} waits for {}", listed(blockers, ", "))]
    StillWaiting { id: TaskId, blockers: Vec<TaskId> },
    /// Tasks would wait for each other for ever.
    #[error("tasks would wait for each other: {}", listed(.0, " → "))]
    Cycle(Vec<TaskId>),
    /// Someone has it already.
    #[error("task {id} is taken by {owner}")]
    OwnerTaken {
        id: TaskId,
        /// Who has it.
        owner: String,
    },
    /// Another writer is at work there.
    #[error("{} cannot be claimed: task {holder} holds {}", path.display(), held.display())]
    PathClaimed {
        /// What was wanted.
        path: PathBuf,
        /// Who is in the way.
        holder: TaskId,
        /// With which path.
        held: PathBuf,
    },
    /// A claim that would mean another place in another directory.
    #[error("{} cannot be claimed: it is not an absolute path", path.display())]
    RelativePath { path: PathBuf },
    /// The session has one of that name.
    #[error("there already is a team `{name}` in this session")]
    TeamExists { name: String },
    /// The session has none of that name.
    #[error("there is no team `{name}` in this session; {}", known_teams(known))]
    NoSuchTeam {
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// It is in a conversation already, or was never for this one.
    #[error("{kind} {seq} no longer waits to be delivered; nothing was written")]
    NotWaiting { kind: &'static str, seq: u64 },
    /// The row of a task cannot be read.
    #[error("task {id} is damaged: {message}")]
    DamagedTask {
        /// Which, as the row has it.
        id: String,
        message: String,
    },
    /// The repository has no pull request of that number.
    #[error("there is no pull request #{number}; `codespar pr list` shows those there are")]
    NoSuchPull { number: u64 },
    /// What is in stays in.
    #[error("pull request #{number} is merged; its state cannot change")]
    PullMerged { number: u64 },
    /// A branch has one open pull request at a time.
    #[error("branch {head} has an open pull request already, #{number}")]
    HeadHasPull {
        /// The branch.
        head: String,
        /// The open one.
        number: u64,
    },
    #[error("there is no message {0} of a channel")]
    NoSuchMessage(String),
    /// Anything else the database says.
    #[error("the database says: {0}")]
    Database(String),
}

impl StoreError {
    /// Nothing is wrong with what was asked for: the database was away, or somebody used it. It may
    /// be asked for again later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unreachable { .. })
    }

    /// What the file system said about a path of the state directory.
    pub(crate) fn unusable(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        if error.kind() == io::ErrorKind::StorageFull {
            return Self::DiskFull { path };
        }
        Self::Unusable {
            path,
            message: format!("{error}; set CODESPAR_HOME to a directory you can write to"),
        }
    }
}

fn listed(ids: &[TaskId], between: &str) -> String {
    let ids: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
    ids.join(between)
}

fn known_teams(names: &[String]) -> String {
    match names {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    }
}
