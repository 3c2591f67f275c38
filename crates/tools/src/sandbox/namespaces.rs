//! Namespaces that we set up ourselves: of processes, mounts, IPC and network, and of users where
//! we are not root.
//!
//! This does what bubblewrap does for us, with the same view of the disk and the same filters, in a
//! third of the time: no program has to be started for it, and mounting needs no look at all other
//! mounts. Where the system lets only chosen programs make user namespaces, bubblewrap still works.
//!
//! The first process inside is a fork of the watcher, made before its command is known where it can
//! be (see `spare`). It lays out the disk, starts the command, tells how it ended, and stays until
//! the last of its processes has gone. It keeps its privileges, which is why the command cannot
//! look into it: it is not dumpable, and besides the standard streams it has one descriptor, the
//! pipe it tells the end by.
//!
//! ```text
//! watcher                        first process inside
//! Prepared::make                 user map, loopback device, own mounts, /dev, /proc
//! Prepared::start  -- order -->  proxy's port, layout of the disk, fork and execution
//!                  <-- Told ---  exit code or signal; ends with its last process
//! ```

use std::{
    convert::Infallible,
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags},
    process::{
        DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit,
        set_dumpable_behavior, setrlimit,
    },
    thread::{CapabilitySet, CapabilitySets},
};
use serde::{Deserialize, Serialize};

use crate::egress::{bring_loopback_up, hand_out_port};

use super::{
    Network, ResourceLimits, SandboxPolicy, descriptors,
    layout::Layout,
    mounts,
    order::{self, CommandLine, FAILED},
    seccomp::{self, Sockets, Truncation},
    status::is_ready,
    watch::plain,
};

/// What the first process inside is called.
pub(super) const INIT: &str = "sandbox-init";

/// How `/proc` is seen inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ProcView {
    /// Its own: only the sandbox's processes.
    Own,
    /// The machine's; containers often forbid mounting another.
    Shared,
}

/// What root keeps inside: to work on files of other owners and to become somebody else. Others
/// would let it mount, read the environment of any process, make a device file of the disk, or load
/// code into the kernel.
pub(super) const ROOT_KEEPS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Namespaces that were seen to work, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Namespaces {
    pub(super) proc_view: ProcView,
}

/// The ways to try, best first.
pub(super) const VARIANTS: [Namespaces; 2] = [
    Namespaces {
        proc_view: ProcView::Own,
    },
    Namespaces {
        proc_view: ProcView::Shared,
    },
];

/// The first process inside, and where it tells how the command ended. The watcher follows `init`
/// like any other child; when it is killed, the kernel kills everything in its namespace of
/// processes.
pub(super) struct Started {
    pub(super) init: Pid,
    pub(super) told: File,
}

/// What the first process has to say. Only the first message counts: a command that cannot be
/// executed is told as `Failed` by its own process, and then as exited with 125.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// The command exited. What it has left in the background may still run.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It was not started.
    Failed(String),
}

impl Told {
    /// Reads the one message; `None` if there is none.
    pub(super) fn read(told: File) -> Option<Self> {
        let mut text = Vec::new();
        told.take(64 << 10).read_to_end(&mut text).ok()?;
        let mut documents = serde_json::Deserializer::from_slice(&text).into_iter();
        documents.next()?.ok()
    }

    fn send(&self, mut to: &File) {
        if let Ok(text) = serde_json::to_vec(self) {
            // Whoever does not hear it takes the sandbox for killed.
            let _ = to.write_all(&text);
        }
    }
}

/// What namespaces are made for, as far as it has to be known before the command. Namespaces that
/// are ready fit a command exactly if their purpose is the same as its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Purpose {
    namespaces: Namespaces,
    /// Also with a proxy, which is reached through the loopback device.
    has_own_network: bool,
    /// Size of the file systems that are mounted before the command is known.
    scratch: Option<u64>,
}

impl Purpose {
    pub(super) fn of(namespaces: Namespaces, policy: &SandboxPolicy) -> Self {
        Self {
            namespaces,
            has_own_network: policy.network != Network::Allowed,
            scratch: policy.limits.scratch,
        }
    }

    /// Root needs no namespace of users, and is limited by its capabilities instead.
    fn flags(&self, owner: &Owner) -> libc::c_int {
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
        if self.has_own_network {
            flags |= libc::CLONE_NEWNET;
        }
        if !owner.user.is_root() {
            flags |= libc::CLONE_NEWUSER;
        }
        flags
    }
}

/// What the first process is told of the command, with the descriptor for its output.
#[derive(Serialize, Deserialize)]
struct InitOrder {
    layout: Layout,
    network: Network,
    limits: ResourceLimits,
    cwd: PathBuf,
}

/// Namespaces with their first process, which waits for a command. Dropped, it closes `orders`,
/// upon which the first process exits; [`Prepared::discard`] waits for that.
pub(super) struct Prepared {
    purpose: Purpose,
    init: Pid,
    orders: UnixStream,
    told: File,
    /// Tells when something is mounted or unmounted outside: these namespaces know nothing of it.
    mount_table: File,
}

impl Prepared {
    /// Makes them. The calling process must have one thread. The error is the kernel's refusal to
    /// make namespaces. What fails inside later is told by the first process, see [`Told::Failed`].
    #[allow(unsafe_code)]
    pub(super) fn make(purpose: Purpose) -> io::Result<Self> {
        let mount_table = File::open("/proc/self/mountinfo")?;
        let (told, tell) = io::pipe()?;
        let (told, tell) = (
            File::from(OwnedFd::from(told)),
            File::from(OwnedFd::from(tell)),
        );
        let (orders, theirs) = UnixStream::pair()?;
        let owner = Owner::current();
        // SAFETY: without a stack of its own the call behaves like `fork`, and this process has one
        // thread, so the child finds every lock free.
        let pid = unsafe {
            libc::syscall(
                libc::SYS_clone,
                libc::c_long::from(purpose.flags(&owner) | libc::SIGCHLD),
                0,
                0,
                0,
                0,
            )
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            if let Err(error) = init(&purpose, &owner, &theirs, &tell) {
                Told::Failed(error.to_string()).send(&tell);
            }
            // SAFETY: ends the process without running what the guard has registered.
            unsafe { libc::_exit(0) }
        }
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Ok(Self {
            purpose,
            init: pid.ok_or_else(|| io::Error::other("a child without an id"))?,
            orders,
            told,
            mount_table,
        })
    }

    /// These namespaces if they are as needed; if not, they go.
    pub(super) fn for_purpose(self, purpose: Option<Purpose>) -> Option<Self> {
        if purpose == Some(self.purpose) && !self.is_outdated() {
            return Some(self);
        }
        self.discard();
        None
    }

    /// Becomes ready when something is mounted or unmounted outside.
    pub(super) fn mount_table(&self) -> PollFd<'_> {
        PollFd::new(&self.mount_table, PollFlags::PRI)
    }

    /// Whether the command would see an older disk than there is, or nobody waits for it any more.
    fn is_outdated(&self) -> bool {
        let told = PollFd::new(&self.told, PollFlags::IN);
        is_ready([self.mount_table(), told])
    }

    /// Sends the command to the first process, and does not wait for it to be executed.
    pub(super) fn start(
        mut self,
        policy: &SandboxPolicy,
        layout: Layout,
        (line, cwd): (&CommandLine, &Path),
        output: &OwnedFd,
    ) -> io::Result<Started> {
        let order = InitOrder {
            layout,
            network: policy.network.clone(),
            limits: policy.limits.clone(),
            cwd: cwd.to_path_buf(),
        };
        let frame = order::encode(&order, line).map_err(io::Error::other)?;
        descriptors::send(&self.orders, &[output.as_fd()])?;
        self.orders.write_all(&frame)?;
        Ok(Started {
            init: self.init,
            told: self.told,
        })
    }

    /// Ends the first process, and with it the namespaces.
    pub(super) fn discard(self) {
        let _ = rustix::process::kill_process(self.init, Signal::KILL);
        let _ = rustix::process::waitpid(Some(self.init), WaitOptions::empty());
    }
}

/// The first process inside. Everything up to the receipt of the output is done ahead of the
/// command.
///
/// The order of the rest matters: the proxy's port is handed out while the whole disk is in sight,
/// as the socket for it lies in our state directory, which the layout hides; the limit on open
/// files is the usual one again before the command is forked. Returns without a command when nobody
/// sends one.
fn init(purpose: &Purpose, owner: &Owner, orders: &UnixStream, tell: &File) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::setsid()?;
    rustix::thread::set_name(c"sandbox-init")?;
    // What the watcher has open is none of this process's business; the command could try to get
    // at it here.
    close_all_but([orders.as_raw_fd(), tell.as_raw_fd()])?;
    owner.map()?;
    if purpose.has_own_network {
        bring_loopback_up()?;
    }
    let usual = with_many_files()?;
    let base = mounts::Base::make(purpose.namespaces.proc_view, purpose.scratch)?;
    let Some([output]) = descriptors::receive(orders)? else {
        return Ok(());
    };
    let (order, line): (InitOrder, CommandLine) = order::decode(orders)?;
    if let Network::Proxy(socket) = &order.network {
        hand_out_port(socket)?;
    }
    base.lay_out(&order.layout, order.limits.scratch)?;
    setrlimit(Resource::Nofile, usual)?;
    let mut command = plain(&line, &order.cwd);
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let main = start(&order, command, tell)?;
    close_all_but([tell.as_raw_fd(), tell.as_raw_fd()])?;
    reap(main, tell)
}

/// Raises the limit on open files, each tree that is mounted being one; returns the usual one.
fn with_many_files() -> io::Result<Rlimit> {
    let usual = getrlimit(Resource::Nofile);
    let many = Rlimit {
        current: usual.maximum,
        ..usual
    };
    // With fewer it works too, in most places.
    let _ = setrlimit(Resource::Nofile, many);
    Ok(usual)
}

/// Who starts the command. The command keeps these ids, so its files belong to the user.
struct Owner {
    user: rustix::process::Uid,
    group: rustix::process::Gid,
}

impl Owner {
    fn current() -> Self {
        Self {
            user: rustix::process::geteuid(),
            group: rustix::process::getegid(),
        }
    }

    /// In a new user namespace, everybody stays who they are and nobody else exists.
    fn map(&self) -> io::Result<()> {
        if self.user.is_root() {
            return Ok(());
        }
        // Who cannot be dumped does not own these files.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        let (user, group) = (self.user.as_raw(), self.group.as_raw());
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(())
    }
}

/// Starts the command itself. Its filters differ with the network: without a namespace for it,
/// local sockets of the machine would be in reach.
#[allow(unsafe_code)]
fn start(order: &InitOrder, command: Command, tell: &File) -> io::Result<Pid> {
    let sockets = match order.network {
        // The machine's own network namespace has local sockets without a file.
        Network::Allowed => Sockets::NetworkOnly,
        Network::Denied | Network::Proxy(_) => Sockets::Namespaced,
    };
    let filters = seccomp::filters(sockets, Truncation::Allowed)?;
    // SAFETY: this process has one thread, so the child finds every lock free.
    match unsafe { libc::fork() } {
        0 => {
            let Err(error) = execute(&order.limits, filters, command);
            Told::Failed(error.to_string()).send(tell);
            // SAFETY: ends the process without running what the guard has registered.
            unsafe { libc::_exit(FAILED) }
        }
        // `from_raw` would take it for a process.
        ..0 => Err(io::Error::last_os_error()),
        pid => Pid::from_raw(pid).ok_or_else(io::Error::last_os_error),
    }
}

/// Becomes the command; returns only if that fails. The filters come last: they need
/// `no_new_privs`, without which only a privileged process may set any.
#[allow(unsafe_code)]
fn execute(
    limits: &ResourceLimits,
    filters: &'static seccomp::Filters,
    mut command: Command,
) -> io::Result<Infallible> {
    let limits = limits.clone();
    let program = command.get_program().to_string_lossy().into_owned();
    // SAFETY: this process has one thread, so whatever the code needs is free.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            limits.enforce()?;
            drop_privileges()?;
            rustix::thread::set_no_new_privs(true)?;
            for filter in filters {
                seccompiler::apply_filter(filter).map_err(io::Error::other)?;
            }
            Ok(())
        });
    }
    let error = command.exec();
    Err(io::Error::new(error.kind(), format!("{program}: {error}")))
}

/// Only root keeps any; it gets them anew from the bounding set when the command is executed. The
/// bounding set is limited first, which itself takes a privilege.
fn drop_privileges() -> io::Result<()> {
    let kept = if rustix::process::geteuid().is_root() {
        ROOT_KEEPS
    } else {
        CapabilitySet::empty()
    };
    limit_to(kept)?;
    rustix::thread::clear_ambient_capability_set()?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Takes all other capabilities out of the bounding set.
pub(super) fn limit_to(kept: CapabilitySet) -> io::Result<()> {
    for capability in CapabilitySet::all().difference(kept).iter() {
        if rustix::thread::capability_is_in_bounding_set(capability).unwrap_or(false) {
            rustix::thread::remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}

/// Closes all descriptors but the standard ones and these.
fn close_all_but(kept: [RawFd; 2]) -> io::Result<()> {
    let mut kept = kept.map(i32::cast_unsigned);
    kept.sort_unstable();
    let [low, high] = kept;
    close_descriptors(3, low.saturating_sub(1))?;
    close_descriptors(low.saturating_add(1), high.saturating_sub(1))?;
    close_descriptors(high.saturating_add(1), u32::MAX)
}

/// Closes what nobody in this process uses from here on.
#[allow(unsafe_code)]
pub(super) fn close_descriptors(first: u32, last: u32) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: the caller has no owner of these descriptors that would use or close them again.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Collects every process of the sandbox until none is left. Then the first process exits, and the
/// namespaces end with it.
fn reap(main: Pid, tell: &File) -> io::Result<()> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                let told = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Told::Exited(code),
                    (None, signal) => Told::Signalled(signal.unwrap_or(9)),
                };
                told.send(tell);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
