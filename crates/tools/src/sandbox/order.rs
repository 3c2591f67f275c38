//! What is said between the agent and the guard it starts for a command.
//!
//! The order goes in as an argument. The guard's standard input is a lifeline: a byte asks for the
//! command's end, its closing (also by our own death) kills everything at once. The guard's
//! standard error carries the report; the command itself never gets hold of either.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The hidden subcommand under which the binary calls `child_main`.
pub const CHILD_COMMAND: &str = "__sandbox-child";

/// The hidden subcommand under which the binary calls `server_main`.
pub const SERVER_COMMAND: &str = "__server-child";

/// Exit code of a guard that could not start the command.
pub(super) const FAILED: i32 = 125;

/// How the guard runs the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// With Landlock: the only trees that can be written to.
    pub(super) confine: Option<Vec<PathBuf>>,
    /// Which sockets can be opened.
    pub(super) sockets: Sockets,
    /// Paths put back as they were once the command and all it started are gone.
    pub(super) keep: Vec<PathBuf>,
    /// Where the changed versions of those go.
    pub(super) aside: PathBuf,
}

/// Which sockets a command can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sockets {
    /// Any.
    Any,
    /// A network namespace keeps the others in; it does not know sockets to a virtual machine's
    /// host.
    NotToHost,
    /// Only those between processes of this machine.
    Local,
}

/// What the guard says at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The command ran.
    Ended(GuardedEnd),
    /// It could not be started.
    Failed {
        /// Why.
        reason: String,
    },
    /// It was started, and something went wrong then.
    Broken {
        /// What.
        reason: String,
    },
}

/// How a guarded command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardedEnd {
    /// Its exit code, if it exited.
    pub(crate) code: Option<i32>,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    /// Names of processes it had left running.
    pub(crate) leftovers: Vec<String>,
    /// Protected paths it had changed.
    pub(crate) restored: Vec<PathBuf>,
}
