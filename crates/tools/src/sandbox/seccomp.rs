//! System calls that no sandboxed command may make.
//!
//! They lead out of a sandbox (other processes' memory, mounts, namespaces, keyrings), go behind a
//! filter's back (`io_uring`), or reach parts of the kernel that a build never needs.
//!
//! A refused call fails with `EPERM` in the command that makes it; nothing is killed for it. Only a
//! call through the interface of another architecture kills the process: its numbers mean something
//! else there. A filter sees numbers and not what they point to, so paths and names are not its
//! business.

use std::{collections::BTreeMap, io, sync::OnceLock};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use serde::{Deserialize, Serialize};

/// The x32 flavour of each call has this bit; a filter that forgets it can be walked around.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Refused whatever their arguments are. Each is refused to root too, whatever capabilities it has.
const REFUSED: &[i64] = &[
    // Into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Behind the filter's back.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys of the user's session.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Files by handle, past every path.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Newer than the table of the C library.
const OPEN_TREE_ATTR: i64 = 467;

/// Each makes `clone` enter a new namespace. `unshare` and `setns` are refused altogether; `clone`
/// starts every process, so it is refused only with one of these.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `TIOCSTI` and `TIOCLINUX`, which type into somebody's terminal.
const TERMINAL: [u64; 2] = [0x5412, 0x541c];

/// Which sockets a command can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sockets {
    /// Namespaces and mounts keep the others in; they do not know sockets to a virtual machine's
    /// host. Local sockets can be used: those of other programs are covered by mounts, and names
    /// without a file belong to the namespace of the network.
    Namespaced,
    /// The network, but nothing local: sockets of other programs are in reach.
    NetworkOnly,
    /// None. Pairs can still be made.
    None,
}

/// Calls that could change a file by name where Landlock has no right for it. Landlock has it from
/// its third version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truncation {
    Allowed,
    Forbidden,
}

/// The filters for a command; all of them are to be applied. Each set is made once: the guard asks
/// for all of them before it forks, so that its children inherit them.
pub(super) fn filters(sockets: Sockets, truncation: Truncation) -> io::Result<&'static Filters> {
    static MADE: [OnceLock<Filters>; 6] = [const { OnceLock::new() }; 6];
    let index = match sockets {
        Sockets::Namespaced => 0,
        Sockets::NetworkOnly => 1,
        Sockets::None => 2,
    };
    let index = match truncation {
        Truncation::Allowed => index,
        Truncation::Forbidden => index + 3,
    };
    if let Some(made) = MADE[index].get() {
        return Ok(made);
    }
    let made = make(sockets, truncation)?;
    Ok(MADE[index].get_or_init(|| made))
}

/// A set of filters. Two, as a filter has one error for all it refuses: `EPERM`, and `ENOSYS` for
/// `clone3`.
pub(super) type Filters = [BpfProgram; 2];

fn make(sockets: Sockets, truncation: Truncation) -> io::Result<Filters> {
    let mut rules = Rules::default();
    for call in REFUSED {
        rules.refuse(*call, Vec::new());
    }
    if truncation == Truncation::Forbidden {
        rules.refuse(libc::SYS_truncate, Vec::new());
    }
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        namespaces.push(rule(
            0,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(flag),
            flag,
        )?);
    }
    rules.refuse(libc::SYS_clone, namespaces);
    let mut typing = Vec::new();
    for request in TERMINAL {
        typing.push(rule(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?);
    }
    rules.refuse(libc::SYS_ioctl, typing);
    rules.refuse(libc::SYS_socket, families(sockets)?);

    // Its arguments are out of a filter's sight; told that it is not there, callers use `clone`.
    let mut unknown = Rules::default();
    unknown.refuse(libc::SYS_clone3, Vec::new());
    Ok([rules.compile(libc::EPERM)?, unknown.compile(libc::ENOSYS)?])
}

/// Rules that match the families to be refused.
fn families(sockets: Sockets) -> io::Result<Vec<SeccompRule>> {
    let refused: &[i32] = match sockets {
        Sockets::Namespaced => &[libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET],
        Sockets::NetworkOnly => &[libc::AF_UNIX, libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET],
        // Without a condition every call matches.
        Sockets::None => &[],
    };
    refused
        .iter()
        .map(|family| {
            let family = u64::from(family.unsigned_abs());
            rule(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family)
        })
        .collect()
}

fn rule(
    argument: u8,
    length: SeccompCmpArgLen,
    comparison: SeccompCmpOp,
    value: u64,
) -> io::Result<SeccompRule> {
    SeccompCondition::new(argument, length, comparison, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(io::Error::other)
}

/// Refused calls; a call without conditions matches whatever its arguments are.
#[derive(Default)]
struct Rules(BTreeMap<i64, Vec<SeccompRule>>);

impl Rules {
    fn refuse(&mut self, call: i64, conditions: Vec<SeccompRule>) {
        #[cfg(target_arch = "x86_64")]
        self.0.insert(call | X32, conditions.clone());
        self.0.insert(call, conditions);
    }

    /// Everything that no rule matches is allowed.
    fn compile(self, error: i32) -> io::Result<BpfProgram> {
        let architecture = std::env::consts::ARCH
            .try_into()
            .map_err(io::Error::other)?;
        let refused = SeccompAction::Errno(error.unsigned_abs());
        SeccompFilter::new(self.0, SeccompAction::Allow, refused, architecture)
            .and_then(BpfProgram::try_from)
            .map_err(io::Error::other)
    }
}

/// A filter as the kernel and bubblewrap read it.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in program {
        bytes.extend_from_slice(&step.code.to_ne_bytes());
        bytes.extend_from_slice(&[step.jt, step.jf]);
        bytes.extend_from_slice(&step.k.to_ne_bytes());
    }
    bytes
}
