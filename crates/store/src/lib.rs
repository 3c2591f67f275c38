//! What outlives a process: sessions with their transcripts and usage (`Store`), tasks
//! (`TaskStore`) with their leases (`LeaseStore`), limits (`LimitStore`), working trees (`TreeStore`)
//! and offers to an engine (`DispatchStore`), pull requests of local repositories (`PullStore`), chat
//! channels (`ChannelStore`), tokens of the HTTP API (`TokenStore`); outputs of tasks for other hosts
//! (`OutputStore`); sums and pages of all of it (`ReportStore`); SQLite or PostgreSQL behind them
//! all.
//!
//! The traits are the contract that the rest of the workspace sees. `SqliteStore` and
//! `PostgresStore` keep it, by the same statements and the same code (`shared/`), and the same tests
//! run on both. Any number of processes may share one database server, or one state directory:
//!
//! ```text
//! codespar.db      the database, with its -wal and -shm files
//! codespar.db.new  a database that is being made; renamed when it is whole
//! setup.lock       held while the schema is made or changed
//! locks/ID.lock    held by the process that works on session ID; contains its process id
//! ```
//!
//! A write that fails is not repeated here, beyond the wait for another process's lock on the
//! database: the error means that nothing was written, and what to do about it is for the caller to
//! decide.

mod changes;
mod channel_records;
mod channel_sql;
mod channel_store;
mod channel_timers;
mod dispatch_sql;
mod dispatch_store;
mod engine;
mod error;
mod feed;
mod fleet_report;
mod fleet_sql;
mod lease_store;
mod limit_store;
mod locks;
mod objects;
mod output_sql;
mod output_store;
mod postgres;
mod pull_sql;
mod pull_store;
mod question_sql;
mod questions;
mod records;
mod report_store;
mod server_sql;
mod shared;
mod sql;
mod sqlite;
mod task_sql;
mod task_store;
mod title;
mod token_store;
mod transfer;
mod tree_sql;
mod tree_store;

pub use changes::{ChangeCursor, ChangeKind, StoreChange};
pub use channel_records::{
    AuditEntry, ChannelMessage, ChannelPerson, Delivery, MessageChange, MessageStanding,
    MessageState, NewAudit, NewMessage, NewOutbound, OutboundPriority, OutboxRow, Receipt,
    RepositoryLink, StartedMessage, ThreadBinding, ThreadRef,
};
pub use channel_store::ChannelStore;
pub use channel_timers::{ChannelTimer, TimerChange, TimerKind, TimerState};
pub use dispatch_store::{Begun, DispatchStore, TaskClass, TaskOffer};
pub use error::StoreError;
pub use feed::{ChangeFeed, ChangeFollower};
pub use fleet_report::{FleetReport, FleetRunner, FleetTask, LimitUse, QueueDepth, RunnerState};
pub use lease_store::{
    Afterwards, Beat, Capacity, ClaimScope, Claimed, EngineState, HeldTask, LEASES, LeaseStore,
    MAX_TAKE_OVERS, Projects, RunnerAbout, RunnerId, RunnerSeen, TaskEnding, WorkElsewhere,
};
pub use limit_store::{Limit, LimitScope, LimitStore, ParseScopeError};
pub use objects::{ObjectStore, check_object_store, open_object_store};
pub use output_store::{
    OutputPiece, OutputPlace, OutputRange, OutputRemainder, OutputState, OutputStore, PieceContent,
};
pub use postgres::PostgresStore;
pub use pull_store::{NewPull, NewPullReview, PullChange, PullStore, RecordedCheck};
pub use questions::{NewQuestion, QuestionFilter};
pub use records::{NewSession, Removed, SessionFilter, SessionRecord, TaskLease};
pub use report_store::{DailyUsage, ReportStore, SessionPage, TaskCount};
pub use sqlite::SqliteStore;
pub use task_store::{
    Mail, NewTask, Notification, Notify, Outstanding, OwnerRule, TaskChange, TaskFilter, TaskStore,
    Team,
};
pub use token_store::{AccessToken, NewBrowserSession, NewToken, SecretHash, TokenStore};
pub use transfer::{TableCount, copy_to_postgres};
pub use tree_store::{KeptTree, TreeContent, TreeStore};

use std::fmt;

use async_trait::async_trait;
use codespar_protocol::{Answer, Entry, EntryBody, Question, QuestionId, SessionId, SessionMode};
use jiff::Timestamp;

/// Everything that one database keeps.
#[async_trait]
pub trait Database:
    Store
    + TaskStore
    + DispatchStore
    + LimitStore
    + OutputStore
    + TreeStore
    + PullStore
    + ChannelStore
    + TokenStore
    + ReportStore
{
    /// Lets go of the database in good order. Fails when what was recorded is lost.
    async fn close(&self) -> Result<(), StoreError>;

    /// Processes on other hosts may use it too. What is only on this host is then not there for all
    /// that read its records.
    fn is_shared_by_hosts(&self) -> bool;

    /// Which database it is, for people; without a password.
    fn describe(&self) -> String;

    /// Whether processes of other machines may use it, which do not have our files.
    fn is_shared_between_hosts(&self) -> bool;
}

/// The contract every back end keeps. All methods are safe to call from several processes at
/// once; a write either happened whole when the call returns, or not at all.
#[async_trait]
pub trait Store: Send + Sync {
    /// Records an empty session under the id that the caller made. Fails if that is taken.
    async fn create_session(&self, new: NewSession) -> Result<SessionRecord, StoreError>;

    /// One session with its sums.
    async fn session(&self, id: SessionId) -> Result<SessionRecord, StoreError>;

    /// Sessions, most recently used first.
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionRecord>, StoreError>;

    /// Takes the session for this process until the hold is dropped; the process's death releases
    /// it too. Refused with `StoreError::SessionInUse` while another process has it. The process
    /// that asks may be the holder itself: a session is held once, not once per process.
    async fn hold_session(&self, id: SessionId) -> Result<SessionHold, StoreError>;

    /// The same for the agent of a task. Where the session is still held under an earlier lease of
    /// the same task, by a process on another host that is frozen or cut off, that hold is ended:
    /// its process cannot append any more. A hold by anyone else is respected.
    async fn hold_session_for(
        &self,
        id: SessionId,
        lease: &TaskLease,
    ) -> Result<SessionHold, StoreError>;

    /// Adds entries in order, in one transaction, and gives them ids, places and times. `after`
    /// is the last place the caller knows (0 for an empty session): when the session has moved
    /// on, nothing is written and the error says so. Sums of the session (usage, cost), its time of
    /// last use (that of the newest `User` entry or a later one, to the second) and its title
    /// (the first line of the first `User` entry that is not synthetic) follow in the same
    /// transaction. Costs the same however long the session is.
    ///
    /// If the future is dropped while it runs, the append may or may not take place. The next
    /// append with the same `after` tells: it fails with `StoreError::MovedOn` if it did.
    async fn append(
        &self,
        id: SessionId,
        after: u64,
        bodies: Vec<EntryBody>,
    ) -> Result<Vec<Entry>, StoreError>;

    /// All entries from place `from` on. `from` 0 and 1 both mean the whole transcript; a place
    /// after the last gives an empty list. A hole in the sequence is `StoreError::Damaged`, never a
    /// shorter list.
    async fn entries(&self, id: SessionId, from: u64) -> Result<Vec<Entry>, StoreError>;

    /// Changes how a session works.
    async fn set_session_mode(&self, id: SessionId, mode: SessionMode) -> Result<(), StoreError>;

    /// Records a question, or gives the one that the session has under the same key. The recorded
    /// question is given as it stands, also when it was answered or withdrawn meanwhile: that is
    /// how an agent that asks again after a crash gets the answer it missed.
    async fn ask_question(&self, new: NewQuestion) -> Result<Question, StoreError>;

    async fn question(&self, id: &QuestionId) -> Result<Question, StoreError>;

    async fn questions(&self, filter: QuestionFilter) -> Result<Vec<Question>, StoreError>;

    /// Answers a question once and for all. Refused when it is not open any more, or when the
    /// answer does not fit it.
    async fn answer_question(
        &self,
        id: &QuestionId,
        answer: &Answer,
        by: &str,
    ) -> Result<Question, StoreError>;

    /// Whoever asked does not need to know any more. One that is not open stays as it is.
    async fn withdraw_question(&self, id: &QuestionId) -> Result<(), StoreError>;

    /// The place of the newest change.
    async fn newest_change(&self) -> Result<ChangeCursor, StoreError>;

    /// What was committed after a cursor, by any process, in that order; some of it where it is
    /// much. Waits until there is something. Refused with `StoreError::ChangesForgotten` for a
    /// cursor that is too old. A cursor of 0 is never too old: it asks for whatever is kept. Safe
    /// to cancel.
    async fn changes(&self, after: ChangeCursor) -> Result<Vec<StoreChange>, StoreError>;

    /// Forgets a session and all that hangs on it. Refused while a process holds it. Its entries,
    /// usage, notifications, teams and questions go with it. Tasks that it made stay, and are
    /// removed by age with `TaskStore::remove_tasks_before`.
    async fn remove_session(&self, id: SessionId) -> Result<(), StoreError>;

    /// Forgets sessions last used before `before` that no process holds, and gives the room back to
    /// the disk. Each session is removed in a transaction of its own, so an error part of the way
    /// leaves those before it removed.
    async fn remove_sessions_before(&self, before: Timestamp) -> Result<Removed, StoreError>;
}

/// A session taken for this process. Dropping it lets go.
pub struct SessionHold {
    _guard: Box<dyn Send + Sync>,
}

impl SessionHold {
    /// Whatever lets go of the session when it is dropped.
    pub(crate) fn new(guard: impl Send + Sync + 'static) -> Self {
        Self {
            _guard: Box::new(guard),
        }
    }
}

impl fmt::Debug for SessionHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHold").finish_non_exhaustive()
    }
}
