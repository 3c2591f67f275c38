//! The core of all channels: from a stored message to its work, and from work to messages.
//!
//! ```text
//! adapter ─receive─▶ message on record (received)          acknowledged only now
//!                    │ decide: for us? whose? which command? allowed?
//!                    ├▶ ignored
//!                    ├▶ handled      reply, audit, thread: one transaction
//!                    ├▶ queued       its thread is at work; delivered with the others at the end
//!                    └▶ working      task id, what to do, progress, audit: one transaction
//!                         │ start the task under that id, or find it
//!                         │ draw its recorded steps into one message; put its questions
//!                         └▶ handled result, cost, pull request of the thread: one transaction
//! outbox ─sender─▶ adapter           paced, finals first; the platform's id is kept
//! timer ─due─▶ message on record     of whoever made a schedule or a watch; with the next time
//! ```
//!
//! One process serves a channel at a time: it holds a lock that ends with it. Whatever it was doing
//! is done again by the next one, from the record; each step finds what was done before by the
//! identity of the message, the id of the task or the key of the outgoing message.

mod agent;
mod answers;
mod brief;
mod commands;
mod decide;
mod drafts;
mod hold;
mod intake;
mod limits;
mod linking;
mod news;
mod origin;
mod ours;
mod pictures;
mod plans;
mod pulls;
mod refusals;
mod reply;
mod schedules;
mod sender;
mod serve;
mod signs;
mod stops;
mod threads;
mod timers;
mod watches;
mod work;
mod workplace;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use codespar_runtime::{ChannelSettings, Project, Runtime};
use codespar_store::{Database, ThreadRef};
use parking_lot::Mutex;
use tokio::sync::{RwLock, watch};

pub use self::answers::numbered_options;
pub use self::linking::{ClaimedAccount, LinkOwner, PendingLink};
pub(crate) use self::pictures::keep_picture;
pub(crate) use self::stops::is_stop_sign;
pub use self::stops::{StopReaction, ThreadStop};
pub(crate) use self::threads::{ChainedMessage, chained_identity};
use crate::{ChannelAdapter, PageProject};

/// Called with the name of each point at which a crash must do no harm. Tests end the process there.
pub type CrashPoint = Arc<dyn Fn(&str) + Send + Sync>;

/// What the core works with.
pub struct ChannelSetup {
    pub runtime: Arc<Runtime>,
    /// Its settings count, and it is the repository where none is linked.
    pub home: Arc<Project>,
    /// Whether messages of conversations without a linked repository mean the home project.
    pub unlinked: Unlinked,
    /// The projects of the server that this process is; none elsewhere.
    pub pages: Vec<PageProject>,
    /// Who owns the state directory, by the id that the terminal channel knows.
    pub owner: Option<String>,
    pub crash_point: Option<CrashPoint>,
}

/// What a conversation without linked repositories is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlinked {
    /// The repository that the process was started in.
    Home,
    /// Nothing: an admin links one first.
    Nothing,
}

/// Handles the messages of all channels of a process.
pub struct ChannelCore {
    setup: ChannelSetup,
    /// Threads for which something runs beside the loop.
    in_flight: Mutex<HashSet<ThreadRef>>,
    /// Roots of projects that were opened for linked repositories.
    opened: Mutex<HashSet<PathBuf>>,
    /// The repositories at GitHub that directories are clones of, by root.
    origins: Mutex<HashMap<PathBuf, Option<String>>>,
    /// Of the channels that are served here, by name.
    adapters: Mutex<HashMap<String, Arc<dyn ChannelAdapter>>>,
    /// Accounts that are being linked with those of the forge.
    links: linking::Links,
    /// Answers that models are writing, by thread.
    answers: Mutex<HashMap<ThreadRef, drafts::AnswerUnderWay>>,
    /// Presses of the platform's stop button that are not on record as messages.
    presses: Mutex<VecDeque<String>>,
    /// What is under way in threads, as their platforms were told.
    activity: Arc<signs::Activity>,
    /// Counts what may have to be looked at again.
    wakes: watch::Sender<u64>,
    /// Read from the call that posts a message until its id is on record.
    on_the_way: RwLock<()>,
}

impl ChannelCore {
    pub fn new(setup: ChannelSetup) -> Arc<Self> {
        Arc::new(Self {
            setup,
            in_flight: Mutex::default(),
            opened: Mutex::default(),
            origins: Mutex::default(),
            adapters: Mutex::default(),
            links: linking::Links::default(),
            answers: Mutex::default(),
            presses: Mutex::default(),
            activity: Arc::new(signs::Activity::new()),
            wakes: watch::Sender::new(0),
            on_the_way: RwLock::default(),
        })
    }

    /// Has the open messages looked at again.
    fn wake(&self) {
        self.wakes.send_modify(|count| *count += 1);
    }

    pub(crate) fn store(&self) -> &Arc<dyn Database> {
        self.setup.runtime.store()
    }

    /// The home project as its files are now: a change of the roles counts for the next message.
    fn home(&self) -> Arc<Project> {
        let root = &self.setup.home.dir.root;
        let current = self.setup.runtime.project_at(root);
        current.unwrap_or_else(|error| {
            tracing::warn!("the settings cannot be read again: {error}");
            self.setup.home.clone()
        })
    }

    fn settings(&self) -> ChannelSettings {
        self.home().settings.channels.clone()
    }

    pub(crate) fn reach(&self, point: &str) {
        if let Some(crash) = &self.setup.crash_point {
            crash(point);
        }
    }
}
