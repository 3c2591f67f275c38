//! Bubblewrap: namespaces of processes, network and IPC, and a read-only view of the disk.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{Network, SandboxPolicy, sockets};

/// Fixed places: a `bwrap` that a project puts on the search path is no sandbox.
const PLACES: [&str; 5] = [
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

/// What root keeps inside: to work on files of other owners and to become somebody else. Nothing
/// that mounts, so the read-only view stays one.
const ROOT_CAPABILITIES: [&str; 6] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_SETGID",
    "CAP_SETUID",
];

/// How `/proc` is seen inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcView {
    /// Its own: only the sandbox's processes.
    Own,
    /// The machine's; containers often forbid mounting another.
    Shared,
}

/// Which privileges stay inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Privileges {
    /// None.
    None,
    /// Root's over files.
    Files,
}

/// A bubblewrap that was seen to work, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bubblewrap {
    pub(super) program: PathBuf,
    pub(super) proc_view: ProcView,
    pub(super) privileges: Privileges,
}

/// Where it is installed.
pub(super) fn find() -> Option<PathBuf> {
    PLACES
        .iter()
        .map(PathBuf::from)
        .find(|place| place.is_file())
}

/// The ways to try, best first.
pub(super) fn variants(program: &Path) -> Vec<Bubblewrap> {
    let privileges: &[Privileges] = if rustix::process::geteuid().is_root() {
        &[Privileges::Files, Privileges::None]
    } else {
        &[Privileges::None]
    };
    let mut variants = Vec::new();
    for proc_view in [ProcView::Own, ProcView::Shared] {
        for &privileges in privileges {
            variants.push(Bubblewrap {
                program: program.to_path_buf(),
                proc_view,
                privileges,
            });
        }
    }
    variants
}

/// Arguments before the command, and the protected paths no mount could cover.
pub(super) struct Plan {
    pub(super) arguments: Vec<OsString>,
    pub(super) uncovered: Vec<PathBuf>,
}

impl Bubblewrap {
    /// Lays out the sandbox. The guard becomes its process 1: when the guard ends, the kernel ends
    /// everything else in it. `--die-with-parent` is left out on purpose: it would follow the
    /// *thread* that starts the command, and runtime threads come and go.
    pub(super) fn plan(&self, policy: &SandboxPolicy, cwd: &Path) -> Plan {
        let mut words = Words::default();
        words.add(["--ro-bind", "/", "/", "--dev", "/dev"]);
        if self.proc_view == ProcView::Own {
            words.add(["--proc", "/proc"]);
        }
        words.add(["--unshare-pid", "--unshare-ipc", "--as-pid-1"]);
        if policy.network != Network::Allowed {
            words.add(["--unshare-net"]);
        }
        words.add(["--cap-drop", "ALL"]);
        if self.privileges == Privileges::Files {
            for capability in ROOT_CAPABILITIES {
                words.add(["--cap-add", capability]);
            }
        }
        // Covered before the writable trees are laid over them.
        for socket in sockets::to_cover(policy) {
            words.mount("--ro-bind", Path::new("/dev/null"), &socket);
        }
        for tree in &policy.writable {
            words.mount("--bind", tree, tree);
        }
        if let Network::Proxy(socket) = &policy.network {
            words.mount("--ro-bind", socket, socket);
        }
        let (covered, uncovered): (Vec<_>, Vec<_>) = policy
            .read_only
            .iter()
            .cloned()
            .partition(|hole| can_be_covered(hole));
        for parent in parents(&covered) {
            // A mount point cannot be renamed: `mv .git away` would take the holes along.
            if policy.covers(parent) && !policy.writable.iter().any(|tree| tree == parent) {
                words.mount("--bind", parent, parent);
            }
        }
        for hole in &covered {
            words.mount("--ro-bind", hole, hole);
        }
        words.0.push("--chdir".into());
        words.0.push(cwd.into());
        words.add(["--"]);
        Plan {
            arguments: words.0,
            uncovered,
        }
    }
}

/// It exists, and no symlink leads to it.
fn can_be_covered(hole: &Path) -> bool {
    let plain = fs::symlink_metadata(hole).is_ok_and(|kind| kind.is_file() || kind.is_dir());
    plain && hole.canonicalize().is_ok_and(|real| real == hole)
}

fn parents(holes: &[PathBuf]) -> Vec<&Path> {
    let mut parents: Vec<&Path> = holes.iter().filter_map(|hole| hole.parent()).collect();
    parents.sort();
    parents.dedup();
    parents
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn mount(&mut self, how: &str, source: &Path, target: &Path) {
        self.0.extend([how.into(), source.into(), target.into()]);
    }
}
