//! Bubblewrap: namespaces of processes, network and IPC, and a view of the disk made for the
//! command.

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

/// Fixed places: a `bwrap` that a project puts on the search path is no sandbox.
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

/// Which privileges stay inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Privileges {
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

impl Bubblewrap {
    /// Its arguments before the command. Its process 1 is bubblewrap's own; the guard outside sees
    /// to its end.
    pub(super) fn arguments(
        &self,
        policy: &SandboxPolicy,
        layout: &Layout,
        line: &CommandLine,
        cwd: &Path,
    ) -> Vec<OsString> {
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
        for (path, mount) in &layout.mounts {
            match mount {
                Mount::Empty => words.scratch(policy, path),
                Mount::ReadOnly => words.mount("--ro-bind", path, path),
                Mount::Writable => words.mount("--bind", path, path),
                Mount::Nothing => words.mount("--ro-bind", Path::new("/dev/null"), path),
            }
        }
        words.add(["--clearenv"]);
        for (name, value) in &line.env {
            words.push("--setenv");
            words.push(name);
            words.push(value);
        }
        words.push("--chdir");
        words.push(cwd);
        words.0
    }
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
