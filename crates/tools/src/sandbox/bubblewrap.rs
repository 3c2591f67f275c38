//! Bubblewrap: namespaces of processes, network and IPC, and a view of the disk made for the
//! command.
//!
//! Used where the system lets only chosen programs make user namespaces. The view of the disk is
//! the same as in `namespaces`, as both mount the same [`Layout`]; this module only turns it into
//! arguments. They go through a file in memory, not through the command line, where every user
//! could read them and their number would be limited.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    Network, SandboxPolicy,
    layout::{Layout, Mount},
    namespaces::ProcView,
    order::CommandLine,
};

/// Fixed places: a `bwrap` that a project puts on the search path is no sandbox. Nothing of the
/// environment is used to find it.
const PLACES: [&str; 5] = [
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

/// What root keeps inside, as in `namespaces`.
const ROOT_CAPABILITIES: [&str; 6] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_SETGID",
    "CAP_SETUID",
];

/// Which privileges stay inside. All capabilities are dropped first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Privileges {
    None,
    /// Root's over files. Where they cannot be kept, commands of root have none.
    Files,
}

/// A bubblewrap that was seen to work, and how. Found out once by `probe`, and part of every order.
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

/// The ways to try, best first: a `/proc` of its own matters more than root's privileges.
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

impl Bubblewrap {
    /// Its arguments before the command. Its process 1 is bubblewrap's own; the guard outside sees
    /// to its end. Mounts follow in the order of paths: bubblewrap carries them out one after the
    /// other, and a child comes after its parent. Environment variables are set by bubblewrap and
    /// never in its own environment, so `LD_PRELOAD` of a command has no effect on it.
    pub(super) fn arguments(
        &self,
        policy: &SandboxPolicy,
        layout: &Layout,
        line: &CommandLine,
        cwd: &Path,
    ) -> Vec<OsString> {
        let mut arguments = Arguments::default();
        arguments.add(["--ro-bind", "/", "/", "--dev", "/dev"]);
        arguments.scratch(policy, Path::new("/dev/shm"));
        match self.proc_view {
            // Root could write to `/proc/sys`.
            ProcView::Own => arguments.add(["--proc", "/proc", "--remount-ro", "/proc"]),
            ProcView::Shared => {}
        }
        arguments.add(["--unshare-pid", "--unshare-ipc"]);
        if policy.network != Network::Allowed {
            arguments.add(["--unshare-net"]);
        }
        arguments.add(["--cap-drop", "ALL"]);
        if self.privileges == Privileges::Files {
            for capability in ROOT_CAPABILITIES {
                arguments.add(["--cap-add", capability]);
            }
        }
        for (path, mount) in &layout.mounts {
            match mount {
                Mount::Empty => arguments.scratch(policy, path),
                Mount::ReadOnly => arguments.mount("--ro-bind", path, path),
                Mount::Writable => arguments.mount("--bind", path, path),
                Mount::Nothing => arguments.mount("--ro-bind", Path::new("/dev/null"), path),
            }
        }
        arguments.add(["--clearenv"]);
        for (name, value) in &line.env {
            arguments.push("--setenv");
            arguments.push(name);
            arguments.push(value);
        }
        arguments.push("--chdir");
        arguments.push(cwd);
        arguments.0
    }
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn push(&mut self, word: impl AsRef<OsStr>) {
        self.0.push(word.as_ref().to_owned());
    }

    fn add<const N: usize>(&mut self, arguments: [&str; N]) {
        self.0.extend(arguments.map(OsString::from));
    }

    /// `how` is one of bubblewrap's options with a source and a target.
    fn mount(&mut self, how: &str, source: &Path, target: &Path) {
        self.0.extend([how.into(), source.into(), target.into()]);
    }

    /// An empty directory in memory, limited in size. `--size` and `--perms` apply to the next
    /// `--tmpfs` only.
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
