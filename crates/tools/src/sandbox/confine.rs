//! Landlock and seccomp: what a command is confined by where there are no namespaces.
//!
//! Landlock does not govern `chmod`, `chown`, times and extended attributes: a confined command can
//! still change those outside of the workspace. Bubblewrap does not have this gap.

use std::{collections::BTreeMap, io, path::Path, path::PathBuf};

use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use rustix::thread::{
    CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set,
};

use super::order::{Order, Sockets};

/// Newest rights we know how to give; older kernels enforce what they have.
const NEWEST: ABI = ABI::V7;

/// Devices every program may write to, and shared memory, which is a temporary file.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// What root keeps, as in bubblewrap. Others would let it read the environment of any process, make
/// a device file of the disk, or load code into the kernel.
const ROOT_KEEPS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Restrictions made ready before the fork, so that little is left to do after it.
pub(super) struct Confinement {
    landlock: Option<RulesetCreated>,
    seccomp: Option<BpfProgram>,
}

impl Confinement {
    pub(super) fn prepare(order: &Order) -> io::Result<Self> {
        let landlock = order.confine.as_deref().map(ruleset).transpose()?;
        // Without Landlock's right for it, truncation by name would reach any file.
        let truncation = match order.confine {
            Some(_) if abi() < 3 => Truncation::Forbidden,
            _ => Truncation::Allowed,
        };
        Ok(Self {
            landlock,
            seccomp: filter(order.sockets, truncation)?,
        })
    }

    /// Confines the calling thread and all it will start, for good.
    pub(super) fn enforce(&mut self) -> io::Result<()> {
        if let Some(ruleset) = self.landlock.take() {
            limit_root()?;
            let status = ruleset.restrict_self().map_err(io::Error::other)?;
            if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
                return Err(io::Error::other("the kernel does not enforce Landlock"));
            }
        }
        if let Some(filter) = &self.seccomp {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// Root gets its capabilities anew from this set when the command is executed.
fn limit_root() -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for capability in CapabilitySet::all().difference(ROOT_KEEPS).iter() {
        if capability_is_in_bounding_set(capability).unwrap_or(false) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
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

fn ruleset(writable: &[PathBuf]) -> io::Result<RulesetCreated> {
    let all = AccessFs::from_all(NEWEST);
    let mut ruleset = Ruleset::default()
        .handle_access(all)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    ruleset = allow(ruleset, Path::new("/"), Rights::Reading)?;
    for device in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
        ruleset = allow(ruleset, device, Rights::Everything)?;
    }
    for tree in writable {
        ruleset = allow(ruleset, tree, Rights::Everything)?;
    }
    Ok(ruleset)
}

#[derive(Clone, Copy)]
enum Rights {
    Reading,
    Everything,
}

fn allow(ruleset: RulesetCreated, path: &Path, rights: Rights) -> io::Result<RulesetCreated> {
    let named = |error: &dyn std::fmt::Display| {
        io::Error::other(format!("Landlock rule for {}: {error}", path.display()))
    };
    let rights = match rights {
        Rights::Reading => AccessFs::from_read(NEWEST),
        Rights::Everything if path.is_dir() => {
            AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
        }
        Rights::Everything => AccessFs::from_file(NEWEST),
    };
    let fd = PathFd::new(path).map_err(|error| named(&error))?;
    ruleset
        .add_rule(PathBeneath::new(fd, rights))
        .map_err(|error| named(&error))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Truncation {
    Allowed,
    Forbidden,
}

fn filter(sockets: Sockets, truncation: Truncation) -> io::Result<Option<BpfProgram>> {
    if sockets == Sockets::Any && truncation == Truncation::Allowed {
        return Ok(None);
    }
    let mut rules = BTreeMap::new();
    let mut refuse = |call: i64, conditions: Vec<SeccompRule>| {
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | X32, conditions.clone());
        rules.insert(call, conditions);
    };
    if truncation == Truncation::Forbidden {
        refuse(libc::SYS_truncate, Vec::new());
    }
    let family = match sockets {
        Sockets::Any => None,
        Sockets::NotToHost => Some((SeccompCmpOp::Eq, libc::AF_VSOCK)),
        Sockets::Local => Some((SeccompCmpOp::Ne, libc::AF_UNIX)),
    };
    if let Some((comparison, family)) = family {
        let condition = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            comparison,
            family.unsigned_abs().into(),
        );
        let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
        refuse(libc::SYS_socket, vec![rule.map_err(io::Error::other)?]);
        // A ring could open sockets behind the filter's back.
        refuse(libc::SYS_io_uring_setup, Vec::new());
    }
    let architecture = std::env::consts::ARCH
        .try_into()
        .map_err(io::Error::other)?;
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture);
    filter
        .and_then(BpfProgram::try_from)
        .map(Some)
        .map_err(io::Error::other)
}

/// The x32 flavour of each call has this bit; a filter that forgets it can be walked around.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
