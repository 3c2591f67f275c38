//! Bubblewrap: namespaces of processes, network and IPC, and a view of the disk made for the
//! command.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    Network, SandboxPolicy,
    order::CommandLine,
    policy::{Absent, View},
    sockets,
};

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

/// Directories of the system that are empty inside: sockets and other people's files are in them.
const FRESH: [&str; 3] = ["/run", "/tmp", "/var/run"];

/// What programs need in those.
const NEEDED: [&str; 4] = [
    "/etc/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
    "/run/wrappers",
];

/// How `/proc` is seen inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ProcView {
    /// Its own: only the sandbox's processes.
    Own,
    /// The machine's; containers often forbid mounting another.
    Shared,
}

/// Which privileges stay inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Privileges {
    /// None.
    None,
    /// Root's over files.
    Files,
}

/// A bubblewrap that was seen to work, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Lays out the sandbox. Its process 1 is bubblewrap's own; the guard outside sees to its end.
    pub(super) fn plan(&self, policy: &SandboxPolicy, line: &CommandLine, cwd: &Path) -> Plan {
        let mut words = Words::default();
        words.add(["--ro-bind", "/", "/", "--dev", "/dev"]);
        words.scratch(policy, Path::new("/dev/shm"));
        match self.proc_view {
            // Root could write to `/proc/sys`.
            ProcView::Own => words.add(["--proc", "/proc", "--remount-ro", "/proc"]),
            ProcView::Shared => {}
        }
        words.add(["--unshare-pid", "--unshare-ipc"]);
        if policy.network != Network::Allowed {
            words.add(["--unshare-net"]);
        }
        words.add(["--cap-drop", "ALL"]);
        if self.privileges == Privileges::Files {
            for capability in ROOT_CAPABILITIES {
                words.add(["--cap-add", capability]);
            }
        }
        let uncovered = mount(&mut words, policy);
        words.add(["--clearenv"]);
        for (name, value) in &line.env {
            words.push("--setenv");
            words.push(name);
            words.push(value);
        }
        words.push("--chdir");
        words.push(cwd);
        Plan {
            arguments: words.0,
            uncovered,
        }
    }
}

/// Mounts everything, parents before what is in them.
fn mount(words: &mut Words, policy: &SandboxPolicy) -> Vec<PathBuf> {
    let fresh: Vec<PathBuf> = FRESH
        .iter()
        .map(PathBuf::from)
        .filter(|path| fs::symlink_metadata(path).is_ok_and(|kind| kind.is_dir()))
        .collect();
    let mut shown = policy.clone();
    let needed = NEEDED.iter().filter_map(|path| fs::canonicalize(path).ok());
    shown
        .visible
        .extend(needed.filter(|path| fresh.iter().any(|fresh| path.starts_with(fresh))));
    if let Network::Proxy(socket) = &policy.network {
        shown.visible.push(socket.clone());
    }
    let (covered, uncovered) = coverable(policy);
    let views = shown.views(&fresh);
    for (path, view) in &views {
        match view {
            View::Hidden => words.scratch(policy, path),
            View::Secret if path.is_dir() => words.scratch(policy, path),
            View::Secret => words.mount("--ro-bind", Path::new("/dev/null"), path),
            View::Readable => words.mount("--ro-bind", path, path),
            View::Writable => words.mount("--bind", path, path),
        }
    }
    for socket in sockets::to_cover(policy, |path| is_seen(&views, path)) {
        words.mount("--ro-bind", Path::new("/dev/null"), &socket);
    }
    for parent in parents(&covered) {
        // A mount point cannot be renamed: `mv .git away` would take what is in it along.
        if policy.covers(parent) && !policy.writable.iter().any(|tree| tree == parent) {
            words.mount("--bind", parent, parent);
        }
    }
    for path in &covered {
        words.mount("--ro-bind", path, path);
    }
    uncovered
}

/// Whether a path of the machine is there inside.
fn is_seen(views: &std::collections::BTreeMap<PathBuf, View>, path: &Path) -> bool {
    let nearest = path.ancestors().find_map(|around| views.get(around));
    !matches!(nearest, Some(View::Hidden | View::Secret))
}

/// Protected paths that a mount can cover, and those that have to be checked.
fn coverable(policy: &SandboxPolicy) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let inside = policy.protected.iter().filter(|protected| {
        policy.covers(&protected.path) && !policy.writable.contains(&protected.path)
    });
    let (mut covered, mut uncovered) = (Vec::new(), Vec::new());
    for protected in inside {
        match fs::symlink_metadata(&protected.path) {
            Ok(kind)
                if !kind.is_symlink()
                    && protected
                        .path
                        .canonicalize()
                        .is_ok_and(|real| real == protected.path) =>
            {
                covered.push(protected.path.clone());
            }
            // Below something that has a placeholder or is read-only.
            Err(_)
                if protected.absent != Absent::Checked && is_below(&covered, &protected.path) => {}
            _ => uncovered.push(protected.path.clone()),
        }
    }
    covered.sort();
    covered.dedup();
    // What is read-only as a whole needs no second mount.
    let all = covered.clone();
    covered.retain(|path| {
        !path
            .ancestors()
            .skip(1)
            .any(|around| all.iter().any(|one| one == around))
    });
    uncovered.retain(|path| !is_below(&covered, path));
    (covered, uncovered)
}

fn is_below(trees: &[PathBuf], path: &Path) -> bool {
    trees.iter().any(|tree| path.starts_with(tree))
}

fn parents(paths: &[PathBuf]) -> Vec<&Path> {
    let mut parents: Vec<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
    parents.sort();
    parents.dedup();
    parents
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn push(&mut self, word: impl AsRef<OsStr>) {
        self.0.push(word.as_ref().to_owned());
    }

    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn mount(&mut self, how: &str, source: &Path, target: &Path) {
        self.0.extend([how.into(), source.into(), target.into()]);
    }

    /// An empty directory in memory, limited in size.
    fn scratch(&mut self, policy: &SandboxPolicy, target: &Path) {
        if let Some(bytes) = policy.limits.scratch {
            self.push("--size");
            self.push(bytes.to_string());
        }
        if target == Path::new("/tmp") || target == Path::new("/dev/shm") {
            self.add(["--perms", "1777"]);
        }
        self.push("--tmpfs");
        self.push(target);
    }
}
