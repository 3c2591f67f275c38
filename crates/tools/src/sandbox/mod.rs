//! The sandbox: what commands run in, which kind works on this machine, and why not the others.
//!
//! Every command runs under a guard (this binary, re-executed once), so that nothing it starts
//! outlives it or us. Namespaces that we make ourselves are preferred, those of bubblewrap are
//! next, Landlock with seccomp is last. What it does not cover is said in `landlock`.
//!
//! [`Sandbox::policy`] computes what a command may touch, `wrap` decides whether it may run at all
//! and sends the order to the guard (`client`, `guard`). A watcher (`spare`, `watch`) confines it,
//! follows it and reports once nothing of it runs any more and protected paths are as they were.

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod child_events;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod family;
mod git_config;
mod git_dirs;
#[cfg(target_os = "linux")]
mod guard;
mod harden;
#[cfg(target_os = "linux")]
mod keep;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod late;
mod layers;
#[cfg(target_os = "linux")]
mod layout;
mod limits;
mod listing;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod nested;
mod order;
#[cfg(target_os = "linux")]
mod overuse;
#[cfg(target_os = "linux")]
mod placeholders;
mod policy;
mod probe;
mod protected;
mod reads;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod server_guard;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod spare;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod watch;
mod wrap;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use codespar_policy::SandboxState;
use parking_lot::Mutex;

use crate::{Context, egress::Egress};
use probe::Probes;
use reads::Reads;

#[cfg(target_os = "linux")]
pub(crate) use client::Guarded;
#[cfg(target_os = "linux")]
pub use guard::guard_main;
pub use harden::harden_self;
pub use layers::{Layer, LayerWrites, Layers, WithoutOverlay};
pub use limits::ResourceLimits;
pub(crate) use order::{CommandLine, GuardedEnd, Report};
pub use order::{GUARD_COMMAND, Restored, SERVER_COMMAND};
pub use policy::{Absent, Network, Neutral, Protected, SandboxPolicy};
#[cfg(target_os = "linux")]
pub use server_guard::server_main;
#[cfg(target_os = "linux")]
pub(crate) use server_guard::server_order;
pub(crate) use wrap::Wrapped;

/// What commands are held in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxKind {
    /// Namespaces of our own making.
    Namespaces,
    /// Namespaces, by `bwrap`.
    Bubblewrap,
    /// Landlock and seccomp.
    Landlock,
    /// macOS's `sandbox-exec`.
    Seatbelt,
    /// Nothing.
    None,
}

impl SandboxKind {
    fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "Landlock",
            Self::Seatbelt => "Seatbelt",
            Self::None => "none",
        }
    }
}

/// Who has said that a command may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Approval {
    /// Rules and modes: nobody has looked at this one, so it needs a sandbox.
    #[default]
    Rules,
    /// A person, about this very command, told whether there is a sandbox.
    Person,
}

/// Which kind a person asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxChoice {
    /// The best that works.
    #[default]
    Auto,
    /// Namespaces of our own making or nothing.
    Namespaces,
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
        error: io::Error,
    },
    /// No kind works, and nobody has agreed to go without.
    #[error(
        "no sandbox works here, so the command was not run ({reasons}). Install the package \
         `bubblewrap`, or set `sandbox.mode` to \"off\" in your own settings to run commands \
         without a sandbox"
    )]
    NoSandbox {
        /// What is wrong with each kind.
        reasons: String,
    },
    /// The guard process cannot be had.
    #[error("the guard process {program} could not be started: {error}")]
    Guard { program: PathBuf, error: io::Error },
    /// A path cannot be told to the guard.
    #[error("the sandbox cannot be described to its guard (is a path not UTF-8?): {0}")]
    NotText(#[from] serde_json::Error),
    /// No program can be given such a word.
    #[error("an argument or variable contains a NUL byte: {word:?}")]
    NulByte { word: String },
    /// No program can be given so much.
    #[error("the command line is too long")]
    TooLong,
}

#[cfg(target_os = "linux")]
type Guard = client::GuardClient;
/// Guards exist on Linux only.
#[cfg(not(target_os = "linux"))]
type Guard = PathBuf;

/// How commands are run. Which kind works is found out at first use, once.
pub struct Sandbox {
    choice: SandboxChoice,
    /// `None`: nothing can be confined, and what a command leaves behind may not be found.
    guard: Option<Guard>,
    probes: Probes,
    kind: OnceLock<SandboxKind>,
    network: Network,
    egress: Option<Arc<Egress>>,
    limits: ResourceLimits,
    reads: Reads,
    extra_writable: Vec<PathBuf>,
    /// Protected files that we wrote ourselves, with what we wrote: see [`Sandbox::vouch_for`].
    own_writes: Mutex<HashMap<PathBuf, Vec<u8>>>,
    /// The other repositories in each tree, and when they were looked for.
    nested: Mutex<HashMap<PathBuf, (Instant, Vec<PathBuf>)>>,
}

/// How long it is remembered which repositories are in a tree.
#[cfg(target_os = "linux")]
const NESTED_KNOWN: Duration = Duration::from_secs(5);

impl Sandbox {
    /// A sandbox as chosen. `self_exe` is this binary, which answers to [`GUARD_COMMAND`] with
    /// [`guard_main`]. Nothing is tried yet: the first question about the kind does.
    pub fn probe(choice: SandboxChoice, self_exe: PathBuf) -> Self {
        #[cfg(target_os = "linux")]
        let guard = client::GuardClient::new(self_exe);
        #[cfg(not(target_os = "linux"))]
        let guard = self_exe;
        Self::new(choice, Some(guard))
    }

    /// No sandbox and no guard: for tests. What a command leaves behind in sessions of its own is
    /// then not found.
    pub fn unsandboxed() -> Self {
        Self::new(SandboxChoice::Off, None)
    }

    fn new(choice: SandboxChoice, guard: Option<Guard>) -> Self {
        Self {
            choice,
            guard,
            probes: Probes::default(),
            kind: OnceLock::new(),
            network: Network::Denied,
            egress: None,
            limits: ResourceLimits::default(),
            reads: Reads::default(),
            extra_writable: Vec::new(),
            own_writes: Mutex::default(),
            nested: Mutex::default(),
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
    /// sandbox knows network namespaces.
    pub fn egress(&self) -> Option<&Arc<Egress>> {
        let egress = self.egress.as_ref()?;
        let has_namespaces = || !matches!(self.kind(), SandboxKind::Seatbelt | SandboxKind::None);
        (self.network == Network::Denied && has_namespaces()).then_some(egress)
    }

    /// Whether there could be such hosts; nothing is tried for this answer.
    pub(crate) fn has_egress(&self) -> bool {
        self.egress.is_some() && self.network == Network::Denied
    }

    /// Whose home commands cannot see but for tools in it, and our own directory, which they
    /// cannot see at all.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>, state: PathBuf) -> Self {
        self.reads.home = home;
        self.reads.state = Some(state);
        self
    }

    /// Shows commands something in the home directory.
    #[must_use]
    pub fn with_readable(mut self, path: PathBuf) -> Self {
        self.reads.allowed.push(path);
        self
    }

    /// Limits what commands may use.
    #[must_use]
    pub fn with_limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes a directory outside of the workspace writable (a build cache). `home` is the user's
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
        *self.kind.get_or_init(|| {
            self.candidates()
                .iter()
                .copied()
                .find(|kind| self.works(*kind).is_ok())
                .unwrap_or(SandboxKind::None)
        })
    }

    /// Whether the kinds were tried already.
    pub(crate) fn is_tried(&self) -> bool {
        self.kind.get().is_some()
    }

    /// What permission decisions need to know.
    pub fn sandbox_state(&self) -> SandboxState {
        match (self.choice, self.kind()) {
            (SandboxChoice::Off, _) => SandboxState::SwitchedOff,
            (_, SandboxKind::None) => SandboxState::Unavailable,
            _ => SandboxState::Sandboxed,
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
            SandboxKind::Namespaces => self.probes.describe_namespaces(),
            SandboxKind::Bubblewrap => self.probes.describe_bubblewrap(),
            SandboxKind::Landlock => "Landlock and seccomp".to_owned(),
            SandboxKind::Seatbelt => "Seatbelt".to_owned(),
            SandboxKind::None if self.choice == SandboxChoice::Off => {
                "none: switched off in the settings".to_owned()
            }
            SandboxKind::None => "none works here: unattended commands are refused".to_owned(),
        }
    }

    /// Whether commands may reach the network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What a command of this agent may touch.
    pub fn policy(&self, context: &Context) -> Result<SandboxPolicy, SandboxError> {
        if self.is_switched_off() {
            return Ok(SandboxPolicy::default());
        }
        let home = self.reads.home.as_deref();
        let mut policy =
            SandboxPolicy::for_workspace(context.workspace(), context.temp_dir(), home)?;
        for path in &self.extra_writable {
            policy.add_writable(path.clone());
        }
        policy.network = self.network.clone();
        policy.limits = self.limits.clone();
        policy.registry = self.registry();
        policy.secret = context.hidden().found_in(context.workspace());
        policy.visible.extend(context.output_dir().canonicalize());
        self.reads.apply(&mut policy, context.child_env());
        if let Some(layers) = self.layers_of(context) {
            policy.layers = layers;
        }
        Ok(policy)
    }

    /// Other repositories in a tree, looked for again after a while: each of them adds mounts.
    #[cfg(target_os = "linux")]
    fn nested_in(&self, tree: &Path) -> Vec<PathBuf> {
        let mut known = self.nested.lock();
        if let Some((when, found)) = known.get(tree)
            && when.elapsed() < NESTED_KNOWN
        {
            return found.clone();
        }
        let found = nested::find(tree, nested::Search::Usual);
        known.insert(tree.to_path_buf(), (Instant::now(), found.clone()));
        found
    }

    /// Where placeholders are on record; without a state directory none are made.
    fn registry(&self) -> Option<PathBuf> {
        let state = self.reads.state.as_deref()?;
        Some(state.join("sandbox"))
    }

    #[cfg(target_os = "linux")]
    fn setup(&self) -> guard::Setup {
        guard::Setup {
            limits: self.limits.clone(),
            registry: self.registry(),
        }
    }

    /// We wrote this protected file ourselves (a person's answer went into the settings): should a
    /// running command's end put an older version back, ours is written again.
    pub fn vouch_for(&self, path: PathBuf, content: Vec<u8>) {
        self.own_writes.lock().insert(path, content);
    }

    /// Writes again what we had vouched for; the rest was changed by the command. What could not be
    /// written again stays in the list.
    pub(crate) fn sort_out(&self, restored: Vec<Restored>) -> Vec<Restored> {
        let own = self.own_writes.lock();
        restored
            .into_iter()
            .filter(|restored| match own.get(&restored.path) {
                Some(content) => std::fs::write(&restored.path, content).is_err(),
                None => true,
            })
            .collect()
    }

    pub(crate) fn is_switched_off(&self) -> bool {
        self.choice == SandboxChoice::Off
    }

    fn is_candidate(&self, kind: SandboxKind) -> bool {
        self.candidates().contains(&kind)
    }

    fn candidates(&self) -> &'static [SandboxKind] {
        match self.choice {
            SandboxChoice::Auto => probe::KINDS,
            SandboxChoice::Namespaces => &[SandboxKind::Namespaces],
            SandboxChoice::Bubblewrap => &[SandboxKind::Bubblewrap],
            SandboxChoice::Landlock => &[SandboxKind::Landlock],
            SandboxChoice::Off => &[],
        }
    }

    fn works(&self, kind: SandboxKind) -> Result<(), String> {
        #[cfg(target_os = "linux")]
        return self.probes.works(kind, self.guard.as_ref(), &self.setup());
        #[cfg(not(target_os = "linux"))]
        self.probes.works(kind)
    }
}

/// Whether a path is only kept free while a command runs: to readers there is no such file.
pub fn is_placeholder(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|kind| kind.file_type().is_socket())
}

/// Guards exist on Linux only; the binary says so.
#[cfg(not(target_os = "linux"))]
pub fn guard_main(_args: impl Iterator<Item = std::ffi::OsString>) -> i32 {
    order::FAILED
}

/// Guards exist on Linux only; the binary says so.
#[cfg(not(target_os = "linux"))]
pub fn server_main(_args: impl Iterator<Item = std::ffi::OsString>) -> i32 {
    order::FAILED
}
