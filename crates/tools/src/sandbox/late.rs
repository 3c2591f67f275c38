//! Mounts on top of a layout: directories from elsewhere, and the tree at a second path.
//!
//! What they show is opened before anything is hidden (`prepare`) and mounted when everything else
//! is in place (`attach`), in the order of the list: the tree is shown a second time with all that
//! was mounted in it before.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use serde::{Deserialize, Serialize};

use super::{
    SandboxPolicy,
    layers::{LayerWrites, WithoutOverlay},
    layout::Layout,
    mounts::{TAME, attach_at, copy, make_mount_point, open, set_attributes},
};

/// What is mounted last at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Late {
    /// `lower`, with changes going to `private`.
    Overlay {
        lower: PathBuf,
        private: PathBuf,
        otherwise: WithoutOverlay,
    },
    /// What is there, writable.
    Writable(PathBuf),
    /// What is there, read-only.
    ReadOnly(PathBuf),
    /// Nothing that can be read, over a file.
    Nothing,
    /// An empty directory.
    Empty,
    /// A tree that is mounted already, with all that is mounted in it.
    Again(PathBuf),
}

/// The mounts of a policy's layers. `is_seen` says whether a path of the machine is visible.
pub(super) fn of(policy: &SandboxPolicy, is_seen: impl Fn(&Path) -> bool) -> Vec<(PathBuf, Late)> {
    let layers = &policy.layers;
    let mut late: Vec<(PathBuf, Late)> = layers
        .layers
        .iter()
        .map(|layer| {
            let what = match &layer.writes {
                LayerWrites::Aside { private, otherwise } => Late::Overlay {
                    lower: layer.source.clone(),
                    private: private.clone(),
                    otherwise: *otherwise,
                },
                LayerWrites::Through => Late::Writable(layer.source.clone()),
            };
            (layer.at.clone(), what)
        })
        .collect();
    let hidden = layers.hidden.iter();
    late.extend(hidden.map(|path| match layers.is_dir(path) {
        true => (path.clone(), Late::Empty),
        false => (path.clone(), Late::Nothing),
    }));
    let Some(alias) = &layers.alias else {
        return late;
    };
    // What lies below it and is needed would be covered.
    let needed = policy.writable.iter().chain(&policy.visible);
    if alias.parent().is_none() || needed.clone().any(|path| path.starts_with(alias)) {
        return late;
    }
    late.push((alias.clone(), Late::Again(layers.tree.clone())));
    if let Some(objects) = layers.objects.as_ref().filter(|path| is_seen(path)) {
        late.push((objects.clone(), Late::ReadOnly(objects.clone())));
    }
    late
}

/// Something to mount, opened while all of the disk was in sight.
pub(super) enum Ready {
    Tree(OwnedFd),
    Again(PathBuf),
    /// The kernel refused, and nothing takes its place.
    Left,
}

/// Opens everything. A source that is gone or is reached through a symlink is an error: it was
/// there when the layers were put together.
pub(super) fn prepare(late: &[(PathBuf, Late)]) -> io::Result<Vec<(PathBuf, Ready)>> {
    let prepared = late.iter().map(|(path, what)| {
        let ready = ready(what).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok((path.clone(), ready))
    });
    prepared.collect()
}

fn ready(what: &Late) -> io::Result<Ready> {
    let tree = match what {
        Late::Again(tree) => return Ok(Ready::Again(tree.clone())),
        Late::Overlay {
            lower,
            private,
            otherwise,
        } => match (overlay(lower, private), otherwise) {
            (Ok(tree), _) => tree,
            (Err(_), WithoutOverlay::ReadOnly) => read_only(lower)?,
            (Err(_), WithoutOverlay::Nothing) => return Ok(Ready::Left),
        },
        Late::Writable(source) => {
            let tree = copy(open(source)?)?;
            set_attributes(&tree, "", TAME)?;
            tree
        }
        Late::ReadOnly(source) => read_only(source)?,
        Late::Nothing => read_only(Path::new("/dev/null"))?,
        Late::Empty => {
            let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(context.as_fd())?;
            let attributes = tame() | MountAttrFlags::MOUNT_ATTR_RDONLY;
            fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?
        }
    };
    Ok(Ready::Tree(tree))
}

fn read_only(source: &Path) -> io::Result<OwnedFd> {
    let tree = copy(open(source)?)?;
    set_attributes(&tree, "", TAME | libc::MOUNT_ATTR_RDONLY)?;
    Ok(tree)
}

/// An overlay that is not mounted anywhere yet. Its directories are named by descriptor, so no link
/// on the way to them is followed. Its marks are attributes that an ordinary user may write.
fn overlay(lower: &Path, private: &Path) -> io::Result<OwnedFd> {
    let (lower, upper, work) = (
        open(lower)?,
        open(&private.join("upper"))?,
        open(&private.join("work"))?,
    );
    let named = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "lowerdir", named(&lower))?;
    fsconfig_set_string(context.as_fd(), "upperdir", named(&upper))?;
    fsconfig_set_string(context.as_fd(), "workdir", named(&work))?;
    fsconfig_set_flag(context.as_fd(), "userxattr")?;
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        tame(),
    )?)
}

fn tame() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV
}

/// Mounts one. A mount point is made where an empty directory hides the place.
pub(super) fn attach(layout: &Layout, path: &Path, ready: Ready) -> io::Result<()> {
    let tree = match ready {
        Ready::Left => return Ok(()),
        Ready::Tree(tree) => tree,
        Ready::Again(tree) => copy(open(&tree)?)?,
    };
    if layout.is_hidden(path) && path.symlink_metadata().is_err() {
        make_mount_point(path, &tree)?;
    }
    attach_at(&tree, open(path)?)
}
