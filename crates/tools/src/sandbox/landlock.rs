//! Landlock and seccomp: what a command is confined by where there are no namespaces.
//!
//! A Landlock rule gives rights to a path and everything below it, and no rule takes any away. So a
//! hidden file in a readable directory is left out by naming all that is beside it, on every level
//! down to it ([`Rules::show`]), and a protected path in a writable tree cannot be expressed at
//! all: it is compared and put back afterwards (`keep`). The rules name files by descriptor; what
//! is created later in a directory that is itself not named cannot be read.
//!
//! Landlock does not govern `chmod`, `chown`, times and extended attributes: a confined command can
//! still change those outside of the workspace. Namespaces do not have this gap.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::egress::hand_out_port;

use super::{
    Network, SandboxPolicy,
    namespaces::{ROOT_KEEPS, limit_to},
    policy::View,
    seccomp::{self, Filters, Sockets, Truncation},
};

/// Newest rights we know how to give; older kernels enforce what they have. Rights that a kernel
/// does not know are left out of the rules, not refused.
const NEWEST: ABI = ABI::V7;

/// Devices every program may use, and shared memory, which is a temporary file. No other device:
/// root could read the disk past every rule.
const DEVICES: [&str; 13] = [
    "/dev/fd",
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/shm",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Restrictions made ready before the fork, so that little is left to do after it: reading
/// directories and making rules need memory and time.
pub(super) struct Confinement {
    /// Taken by the first [`Confinement::enforce`]; a second one is an error.
    ruleset: Option<RulesetCreated>,
    filters: &'static Filters,
    proxy: Option<PathBuf>,
}

impl Confinement {
    /// Without the network a command gets no sockets at all, since there is no namespace to keep
    /// those of other programs away from it.
    pub(super) fn prepare(policy: &SandboxPolicy) -> io::Result<Self> {
        let sockets = match policy.network {
            Network::Allowed | Network::Proxy(_) => Sockets::NetworkOnly,
            Network::Denied => Sockets::None,
        };
        Ok(Self {
            ruleset: Some(ruleset(policy)?),
            filters: seccomp::filters(sockets, truncation())?,
            proxy: match &policy.network {
                Network::Proxy(socket) => Some(socket.clone()),
                Network::Denied | Network::Allowed => None,
            },
        })
    }

    /// Confines the calling thread and all it will start, for good. Called in the new process
    /// before it is executed. The filters come last: they would refuse what opening the proxy's
    /// port takes (`unshare`, a local socket). A kernel that enforces nothing is an error; one that
    /// knows only part of the rights is not.
    pub(super) fn enforce(&mut self) -> io::Result<()> {
        let Some(ruleset) = self.ruleset.take() else {
            return Err(io::Error::other("the restrictions were used before"));
        };
        let filters = match &self.proxy {
            Some(socket) => self.connect(socket)?,
            None => self.filters,
        };
        limit_root()?;
        let status = ruleset.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(io::Error::other("the kernel does not enforce Landlock"));
        }
        for filter in filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Leads the network to the proxy; where that cannot be done, there is none. The message for
    /// that goes to the command's output, and filters without any sockets are returned: the command
    /// runs, but reaches no host.
    fn connect(&self, socket: &Path) -> io::Result<&'static Filters> {
        match leave_network() {
            Ok(()) => hand_out_port(socket).map(|()| self.filters),
            Err(error) => {
                // This is the command's output.
                eprintln!(
                    "no network: sandbox.allowedDomains needs a network namespace, and none can be \
                     made here ({error}); install the package `bubblewrap`"
                );
                seccomp::filters(Sockets::None, truncation())
            }
        }
    }
}

/// A network namespace of its own, in which there is no way out but the proxy's port. An ordinary
/// user needs a user namespace for it, and stays who they are in it.
#[allow(unsafe_code)]
fn leave_network() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let flags = if user.is_root() {
        libc::CLONE_NEWNET
    } else {
        libc::CLONE_NEWNET | libc::CLONE_NEWUSER
    };
    // SAFETY: changes the namespaces of this process, touches no memory.
    if unsafe { libc::unshare(flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if !user.is_root() {
        // Who cannot be dumped does not own these files. The command will be dumpable anyway.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        let (user, group) = (user.as_raw(), group.as_raw());
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    Ok(())
}

/// Without Landlock's right for it, truncation by name would reach any file.
pub(super) fn truncation() -> Truncation {
    if abi() < 3 {
        Truncation::Forbidden
    } else {
        Truncation::Allowed
    }
}

/// Root gets its capabilities anew from this set when the command is executed.
fn limit_root() -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    limit_to(ROOT_KEEPS)
}

/// The kernel's Landlock version; 0 when it has none or has it switched off.
#[allow(unsafe_code)]
pub(super) fn abi() -> i64 {
    // SAFETY: with a null attribute, zero size and the version flag the call only reads a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            1_u32,
        )
    };
    version.max(0)
}

/// The rules for a policy. `/dev` counts as hidden, and single devices are allowed again.
fn ruleset(policy: &SandboxPolicy) -> io::Result<RulesetCreated> {
    let mut rules = Rules {
        ruleset: Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?,
        views: policy.views(&[PathBuf::from("/dev")]),
    };
    rules.show(Path::new("/"))?;
    for device in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
        rules.allow(device, everything())?;
    }
    let views: Vec<(PathBuf, View)> = rules.views.clone().into_iter().collect();
    for (path, view) in views {
        match view {
            View::Hidden | View::Secret => {}
            View::Readable => rules.show(&path)?,
            View::Writable => {
                // Something in it is hidden: reading is allowed for the rest, part by part.
                if rules.has_hidden_below(&path) {
                    rules.allow(&path, everything() & !AccessFs::from_read(NEWEST))?;
                    rules.show(&path)?;
                } else {
                    rules.allow(&path, everything())?;
                }
            }
        }
    }
    Ok(rules.ruleset)
}

/// All but making devices.
fn everything() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

struct Rules {
    ruleset: RulesetCreated,
    /// What the policy says of each path at which the view changes.
    views: BTreeMap<PathBuf, View>,
}

impl Rules {
    /// Allows reading below a path, around what is hidden there. Without anything hidden below,
    /// this is one rule. Otherwise each child gets its own, and symlinks get none: what they lead
    /// to has its own place in the tree.
    fn show(&mut self, path: &Path) -> io::Result<()> {
        if !self.has_hidden_below(path) {
            return self.allow(path, AccessFs::from_read(NEWEST));
        }
        let children = match fs::read_dir(path) {
            Ok(children) => children,
            // What we cannot list the command cannot either.
            Err(_) => return Ok(()),
        };
        for child in children {
            let child = child?;
            let is_link = child.file_type().is_ok_and(|kind| kind.is_symlink());
            if !is_link && !self.views.contains_key(&child.path()) {
                self.show(&child.path())?;
            }
        }
        Ok(())
    }

    /// `views` is in the order of paths, so everything below a path follows it directly.
    fn has_hidden_below(&self, path: &Path) -> bool {
        let below = self.views.range(path.to_path_buf()..);
        below
            .take_while(|(found, _)| found.starts_with(path))
            .any(|(found, view)| found != path && matches!(view, View::Hidden | View::Secret))
    }

    /// Adds one rule. Rights that only directories have are taken out for files, as the kernel
    /// refuses them there. A path of the policy that cannot be opened is an error; one that was
    /// merely found while listing is passed over.
    fn allow(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let named = |error: &dyn std::fmt::Display| {
            io::Error::other(format!("Landlock rule for {}: {error}", path.display()))
        };
        let rights = if path.is_dir() {
            rights
        } else {
            rights & AccessFs::from_file(NEWEST)
        };
        let fd = match PathFd::new(path) {
            Ok(fd) => fd,
            // Gone since it was listed, or not ours to open.
            Err(_) if !self.views.contains_key(path) => return Ok(()),
            Err(error) => return Err(named(&error)),
        };
        (&mut self.ruleset)
            .add_rule(PathBeneath::new(fd, rights))
            .map_err(|error| named(&error))?;
        Ok(())
    }
}
