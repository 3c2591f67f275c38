//! The sandbox: what commands run in, which kind works on this machine, and why not the others.
//!
//! Every command runs under a guard (this binary, re-executed), so that nothing it starts outlives
//! it or us. Bubblewrap is preferred; Landlock with seccomp is next. What each does not cover is
//! said in `bubblewrap` and `confine`.

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod family;
mod git_dirs;
#[cfg(target_os = "linux")]
mod guard;
mod harden;
#[cfg(target_os = "linux")]
mod keep;
mod order;
mod policy;
mod probe;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod server_guard;
#[cfg(target_os = "linux")]
mod sockets;
mod wrap;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_policy::Shelter;
use parking_lot::Mutex;

use crate::{Context, egress::Egress};
use probe::Probes;

#[cfg(target_os = "linux")]
pub use guard::child_main;
pub use harden::harden_self;
pub use order::{CHILD_COMMAND, SERVER_COMMAND};
pub(crate) use order::{GuardedEnd, Report};
pub use policy::{Network, SandboxPolicy};
#[cfg(target_os = "linux")]
pub use server_guard::server_main;
pub(crate) use wrap::{Leash, Wrapped};

/// What commands are held in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxKind {
    /// Namespaces, by `bwrap`.
    Bubblewrap,
    /// Landlock and seccomp.
    Landlock,
    /// macOS's `sandbox-exec`.
    Seatbelt,
    /// Nothing.
    None,
}

/// Which kind a person asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxChoice {
    /// The best that works.
    #[default]
    Auto,
    /// Bubblewrap or nothing.
    Bubblewrap,
    /// Landlock or nothing.
    Landlock,
    /// None, on purpose.
    Off,
}

/// A sandbox cannot be set up as asked.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// `/` would be writable.
    #[error(
        "the whole disk (`/`) cannot be made writable in the sandbox; name a directory below it, \
         or switch the sandbox off"
    )]
    WholeDisk,
    /// The home directory would be writable.
    #[error(
        "{path} contains the home directory and cannot be made writable in the sandbox; name \
         directories inside it"
    )]
    WholeHome {
        /// The directory named.
        path: PathBuf,
    },
    /// A directory is not there.
    #[error("{path} cannot be resolved for the sandbox: {error}")]
    Unresolvable {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path cannot be told to the guard.
    #[error("the sandbox cannot be described to its guard (is a path not UTF-8?): {0}")]
    Unspeakable(#[from] serde_json::Error),
}

/// How commands are run. Which kind works is found out at first use, once.
pub struct Sandbox {
    choice: SandboxChoice,
    guard: Option<PathBuf>,
    probes: Probes,
    network: Network,
    egress: Option<Arc<Egress>>,
    extra_writable: Vec<PathBuf>,
    own_writes: Mutex<HashMap<PathBuf, Vec<u8>>>,
}

impl Sandbox {
    /// A sandbox as chosen. `self_exe` is this binary, which answers to [`CHILD_COMMAND`] with
    /// [`child_main`]. Nothing is tried yet: the first question about the kind does.
    pub fn probe(choice: SandboxChoice, self_exe: PathBuf) -> Self {
        Self::new(choice, Some(self_exe))
    }

    /// No sandbox and no guard: for tests. What a command leaves behind in sessions of its own is
    /// then not found.
    pub fn unsandboxed() -> Self {
        Self::new(SandboxChoice::Off, None)
    }

    fn new(choice: SandboxChoice, guard: Option<PathBuf>) -> Self {
        Self {
            choice,
            guard,
            probes: Probes::default(),
            network: Network::Denied,
            egress: None,
            extra_writable: Vec::new(),
            own_writes: Mutex::default(),
        }
    }

    /// Lets commands reach the network, or not.
    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Lets commands reach these hosts, through a proxy.
    #[must_use]
    pub fn with_egress(mut self, egress: Egress) -> Self {
        self.egress = Some(Arc::new(egress));
        self
    }

    /// The hosts that commands may reach, where the network as a whole is closed to them and the
    /// sandbox has a network namespace for each.
    pub fn egress(&self) -> Option<&Arc<Egress>> {
        let applies = self.network == Network::Denied && self.kind() == SandboxKind::Bubblewrap;
        self.egress.as_ref().filter(|_| applies)
    }

    /// Makes a directory outside of the workspace writable (a build cache). `home` is the person's
    /// home, which as a whole is refused.
    pub fn with_extra_writable(
        mut self,
        path: &Path,
        home: Option<&Path>,
    ) -> Result<Self, SandboxError> {
        self.extra_writable
            .push(policy::extra_writable(path, home)?);
        Ok(self)
    }

    /// Finds out which kind works on a thread of its own, so that nobody waits for it later.
    pub fn warm_up(self: &Arc<Self>) {
        let sandbox = Arc::clone(self);
        // Without a thread the first question finds it out.
        let _ = std::thread::Builder::new()
            .name("sandbox-probe".to_owned())
            .spawn(move || sandbox.kind());
    }

    /// Which kind is in force. The first call tries them, for some ten milliseconds.
    pub fn kind(&self) -> SandboxKind {
        self.candidates()
            .iter()
            .copied()
            .find(|kind| self.works(*kind).is_ok())
            .unwrap_or(SandboxKind::None)
    }

    /// What permission decisions need to know.
    pub fn shelter(&self) -> Shelter {
        match (self.choice, self.kind()) {
            (SandboxChoice::Off, _) => Shelter::SwitchedOff,
            (_, SandboxKind::None) => Shelter::Unavailable,
            _ => Shelter::Sandboxed,
        }
    }

    /// Every kind this system could have, and whether it works or why not.
    pub fn report(&self) -> Vec<(SandboxKind, Result<(), String>)> {
        probe::KINDS
            .iter()
            .map(|kind| (*kind, self.works(*kind)))
            .collect()
    }

    /// The kind in force, in words.
    pub fn describe(&self) -> String {
        match self.kind() {
            SandboxKind::Bubblewrap => self.probes.bubblewrap_words(),
            SandboxKind::Landlock => "Landlock and seccomp".to_owned(),
            SandboxKind::Seatbelt => "Seatbelt".to_owned(),
            SandboxKind::None if self.choice == SandboxChoice::Off => {
                "none: switched off in the settings".to_owned()
            }
            SandboxKind::None => "none works here: commands run unsandboxed".to_owned(),
        }
    }

    /// Whether commands may reach the network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What a command of this agent may touch.
    pub fn policy(&self, context: &Context) -> Result<SandboxPolicy, SandboxError> {
        let mut policy = SandboxPolicy::for_workspace(
            context.workspace(),
            context.temp_dir(),
            self.network.clone(),
        )?;
        for path in &self.extra_writable {
            policy.add_writable(path.clone());
        }
        Ok(policy)
    }

    /// We wrote this protected file ourselves (a person's answer went into the settings): should a
    /// running command's end put an older version back, ours is written again.
    pub fn vouch_for(&self, path: PathBuf, content: Vec<u8>) {
        self.own_writes.lock().insert(path, content);
    }

    /// Writes again what we had vouched for; the rest was changed by the command.
    pub(crate) fn sort_out(&self, restored: Vec<PathBuf>) -> Vec<PathBuf> {
        let own = self.own_writes.lock();
        restored
            .into_iter()
            .filter(|path| match own.get(path) {
                Some(content) => std::fs::write(path, content).is_err(),
                None => true,
            })
            .collect()
    }

    fn candidates(&self) -> &'static [SandboxKind] {
        match self.choice {
            SandboxChoice::Auto => probe::KINDS,
            SandboxChoice::Bubblewrap => &[SandboxKind::Bubblewrap],
            SandboxChoice::Landlock => &[SandboxKind::Landlock],
            SandboxChoice::Off => &[],
        }
    }

    fn works(&self, kind: SandboxKind) -> Result<(), String> {
        self.probes.works(kind, self.guard.as_deref())
    }
}

/// Guards exist on Linux only; the binary says so.
#[cfg(not(target_os = "linux"))]
pub fn child_main(_args: impl Iterator<Item = std::ffi::OsString>) -> i32 {
    order::FAILED
}

/// Guards exist on Linux only; the binary says so.
#[cfg(not(target_os = "linux"))]
pub fn server_main(_args: impl Iterator<Item = std::ffi::OsString>) -> i32 {
    order::FAILED
}
