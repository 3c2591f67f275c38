//! The view of the disk that a command gets where it has mounts of its own.
//!
//! It is computed by the watcher from the policy, once for each command, and mounted by `mounts` or
//! by bubblewrap: both give the same view. What is protected and cannot be covered by a mount is
//! handed on to `keep`, which compares it afterwards.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{
    SandboxPolicy,
    late::{self, Late},
    policy::{Absent, View},
    sockets,
};

/// Directories of the system that are empty inside: sockets and other people's files are in them.
const FRESH: [&str; 3] = ["/run", "/tmp", "/var/run"];

/// What programs need in those.
const NEEDED: [&str; 4] = [
    "/etc/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
    "/run/wrappers",
];

/// What is mounted at a path. The rest of the disk is read-only. All of them ignore setuid bits and
/// device files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mount {
    /// An empty directory in memory.
    Empty,
    /// What is there, read-only.
    ReadOnly,
    /// What is there.
    Writable,
    /// Nothing that can be read: `/dev/null` over a secret file or a socket, on a mount on which
    /// devices cannot be opened.
    Nothing,
}

/// Mounts by path, so that parents come before what is in them, and the protected paths that no
/// mount can cover. Paths are absolute, and existed when it was computed; mounting fails if one has
/// gone since.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Layout {
    pub(super) mounts: BTreeMap<PathBuf, Mount>,
    pub(super) uncovered: Vec<PathBuf>,
    /// Mounted when all else is, in this order.
    pub(super) late: Vec<(PathBuf, Late)>,
}

impl Layout {
    /// Placeholders must have been made before: only what exists can be covered.
    ///
    /// Where several reasons meet at one path, the first of these counts: the view of the policy
    /// (so a secret stays hidden even where it is protected), sockets, directories that must not be
    /// renamed, protected paths.
    pub(super) fn of(policy: &SandboxPolicy) -> Self {
        let fresh: Vec<PathBuf> = FRESH
            .iter()
            .map(PathBuf::from)
            .filter(|path| fs::symlink_metadata(path).is_ok_and(|kind| kind.is_dir()))
            .collect();
        let mut shown = policy.clone();
        let needed = NEEDED.iter().filter_map(|path| fs::canonicalize(path).ok());
        shown
            .visible
            .extend(needed.filter(|path| is_below(&fresh, path)));
        let (covered, uncovered) = coverable(policy);
        let mut views = shown.views(&fresh);
        // Nothing has to be hidden where nothing is.
        views.retain(|path, view| {
            !matches!(view, View::Hidden | View::Secret) || path.symlink_metadata().is_ok()
        });
        let mut mounts: BTreeMap<PathBuf, Mount> = views
            .iter()
            .map(|(path, view)| (path.clone(), mount_for(path, *view)))
            .collect();
        let seen = |path: &Path| is_seen(&views, path);
        for socket in sockets::to_cover(policy, seen) {
            mounts.entry(socket).or_insert(Mount::Nothing);
        }
        for parent in covered.iter().filter_map(|path| path.parent()) {
            // A mount point cannot be renamed: `mv .git away` would take what is in it along.
            if policy.covers(parent) && seen(parent) {
                mounts
                    .entry(parent.to_path_buf())
                    .or_insert(Mount::Writable);
            }
        }
        for path in covered.into_iter().filter(|path| seen(path)) {
            mounts.entry(path).or_insert(Mount::ReadOnly);
        }
        let late = late::of(policy, |path| is_seen(&views, path));
        Self {
            mounts,
            uncovered,
            late,
        }
    }

    /// Whether what is at a path on the disk is covered by an empty directory around it.
    pub(super) fn is_hidden(&self, path: &Path) -> bool {
        self.around(path) == Some(&Mount::Empty)
    }

    /// Whether a path lies in a tree that is writable.
    pub(super) fn is_in_writable(&self, path: &Path) -> bool {
        self.around(path) == Some(&Mount::Writable)
    }

    /// The nearest mount around a path, not counting one at the path itself.
    fn around(&self, path: &Path) -> Option<&Mount> {
        let mut around = path.ancestors().skip(1);
        around.find_map(|around| self.mounts.get(around))
    }
}

/// A directory is hidden by an empty one, a file by something that cannot be opened.
fn mount_for(path: &Path, view: View) -> Mount {
    match view {
        View::Hidden => Mount::Empty,
        View::Secret if path.is_dir() => Mount::Empty,
        View::Secret => Mount::Nothing,
        View::Readable => Mount::ReadOnly,
        View::Writable => Mount::Writable,
    }
}

/// Whether a path of the machine is there inside.
fn is_seen(views: &BTreeMap<PathBuf, View>, path: &Path) -> bool {
    let nearest = path.ancestors().find_map(|around| views.get(around));
    !matches!(nearest, Some(View::Hidden | View::Secret))
}

/// Protected paths that a mount can cover, and those that have to be checked.
///
/// A mount covers what exists, is no symlink and is reached through none: the command could
/// exchange a link on the way and so get past the mount. What does not exist and lies in something
/// covered cannot appear. Everything else is checked.
fn coverable(policy: &SandboxPolicy) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let inside = policy.protected.iter().filter(|protected| {
        policy.covers(&protected.path) && !policy.writable.contains(&protected.path)
    });
    let (mut covered, mut uncovered) = (Vec::new(), Vec::new());
    // Most of them are in a few directories.
    let mut without_links: HashMap<&Path, bool> = HashMap::new();
    for protected in inside.clone() {
        if let Some(parent) = protected.path.parent() {
            without_links
                .entry(parent)
                .or_insert_with(|| is_without_links(parent));
        }
    }
    let is_reached_directly =
        |parent: &Path| without_links.get(parent).is_some_and(|direct| *direct);
    for protected in inside {
        let path = protected.path.as_path();
        match (fs::symlink_metadata(path), path.parent()) {
            (Ok(kind), Some(parent)) if !kind.is_symlink() && is_reached_directly(parent) => {
                covered.push(protected.path.clone());
            }
            // Below something that has a placeholder or is read-only.
            (Err(_), _)
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

/// Whether a directory is there and reached through no symlink. Kernels without `openat2` get the
/// same answer in two steps.
fn is_without_links(directory: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    match openat2(CWD, directory, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => directory.canonicalize().is_ok_and(|real| real == directory),
        opened => opened.is_ok(),
    }
}

fn is_below(trees: &[PathBuf], path: &Path) -> bool {
    trees.iter().any(|tree| path.starts_with(tree))
}

#[cfg(test)]
mod tests {
    use super::{super::policy::Protected, *};

    #[test]
    fn a_secret_stays_hidden_below_a_directory_that_is_kept_from_being_renamed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let sub = root.join("sub");
        fs::create_dir_all(&sub).unwrap();
        for name in [".git", ".env"] {
            fs::write(sub.join(name), "").unwrap();
        }
        let policy = SandboxPolicy {
            writable: vec![root.clone()],
            secret: vec![sub.join(".env"), sub.join("gone")],
            protected: vec![Protected {
                path: sub.join(".git"),
                absent: Absent::Checked,
            }],
            ..SandboxPolicy::default()
        };
        let layout = Layout::of(&policy);
        let below: Vec<_> = layout.mounts.range(root.clone()..).collect();
        assert_eq!(
            below,
            [
                (&root, &Mount::Writable),
                (&sub, &Mount::Writable),
                (&sub.join(".env"), &Mount::Nothing),
                (&sub.join(".git"), &Mount::ReadOnly),
            ]
        );
        assert!(layout.is_in_writable(&sub));
    }
}
