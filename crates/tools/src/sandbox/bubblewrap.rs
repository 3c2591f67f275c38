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
    Network, SandboxPolicy, WithoutOverlay,
    late::Late,
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
            arguments.show(policy, mount, path, path);
        }
        arguments.late(policy, layout);
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

    /// What a layout has at `path`, at `at`.
    fn show(&mut self, policy: &SandboxPolicy, mount: &Mount, path: &Path, at: &Path) {
        match mount {
            Mount::Empty => self.scratch(policy, at),
            Mount::ReadOnly => self.mount("--ro-bind", path, at),
            Mount::Writable => self.mount("--bind", path, at),
            Mount::Nothing => self.mount("--ro-bind", Path::new("/dev/null"), at),
        }
    }

    /// Layers are read-only: versions of bubblewrap that know overlays are not common yet. A bind
    /// mount is made of what is there outside, so what is mounted in the tree is mounted at its
    /// second path again.
    fn late(&mut self, policy: &SandboxPolicy, layout: &Layout) {
        for (at, what) in &layout.late {
            self.show_late(what, at);
            let Late::Again(tree) = what else {
                continue;
            };
            let moved = |path: &Path| Some(at.join(path.strip_prefix(tree).ok()?));
            for (path, mount) in layout.mounts.range(tree.clone()..) {
                if let Some(at) = moved(path).filter(|_| path != tree) {
                    self.show(policy, mount, path, &at);
                }
            }
            for (path, what) in &layout.late {
                if let Some(at) = moved(path) {
                    self.show_late(what, &at);
                }
            }
        }
    }

    fn show_late(&mut self, what: &Late, at: &Path) {
        match what {
            Late::Overlay {
                lower,
                otherwise: WithoutOverlay::ReadOnly,
                ..
            }
            | Late::ReadOnly(lower) => self.mount("--ro-bind", lower, at),
            Late::Overlay {
                otherwise: WithoutOverlay::Nothing,
                ..
            } => {}
            Late::Writable(source) | Late::Again(source) => self.mount("--bind", source, at),
            Late::Nothing => self.mount("--ro-bind", Path::new("/dev/null"), at),
            Late::Empty => {
                self.push("--tmpfs");
                self.push(at);
            }
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_mounted_in_a_tree_is_mounted_at_its_second_path_too() {
        let (tree, alias) = (Path::new("/s/tree"), PathBuf::from("/w"));
        let overlay = |otherwise| Late::Overlay {
            lower: "/w/node_modules".into(),
            private: "/s/tree.layers/0".into(),
            otherwise,
        };
        let layout = Layout {
            mounts: BTreeMap::from([
                (tree.to_path_buf(), Mount::Writable),
                (tree.join(".env"), Mount::Nothing),
                (tree.join(".git/config"), Mount::ReadOnly),
                ("/t".into(), Mount::Writable),
            ]),
            uncovered: Vec::new(),
            late: vec![
                (tree.join("node_modules"), overlay(WithoutOverlay::ReadOnly)),
                (tree.join("target"), overlay(WithoutOverlay::Nothing)),
                (tree.join("node_modules/key"), Late::Nothing),
                (alias, Late::Again(tree.to_path_buf())),
            ],
        };
        let mut arguments = Arguments::default();
        arguments.late(&SandboxPolicy::default(), &layout);
        let said: Vec<String> = arguments
            .0
            .chunks(3)
            .map(|words| words.join(OsStr::new(" ")).to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            said,
            [
                "--ro-bind /w/node_modules /s/tree/node_modules",
                "--ro-bind /dev/null /s/tree/node_modules/key",
                "--bind /s/tree /w",
                "--ro-bind /dev/null /w/.env",
                "--ro-bind /s/tree/.git/config /w/.git/config",
                "--ro-bind /w/node_modules /w/node_modules",
                "--ro-bind /dev/null /w/node_modules/key",
            ]
        );
    }
}
