//! Mounting a layout in the calling process's own mount namespace.
//!
//! Paths are opened without following symlinks, once, and used through their descriptors: what a
//! command running beside puts in their place meanwhile makes this fail.
//!
//! The order is what makes it work. Trees that stay writable, and those that an empty directory is
//! going to hide, are copied first and not mounted anywhere yet (`early`). Then everything is made
//! read-only at once, and the layout is mounted on top of it, parents before children. A copy keeps
//! the attributes it was taken with, so making the rest read-only does not affect it.
//!
//! Nothing of this is seen outside: propagation is cut off before the first mount. A failure at any
//! step ends the first process, and the command is not started.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::symlink,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
        OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
        mount_change, move_mount, open_tree, unmount,
    },
};

use super::{
    late,
    layout::{Layout, Mount},
    namespaces::ProcView,
};

/// Devices every program may use.
const DEVICES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];

/// Links that programs expect beside them.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Bytes for the names in `/dev`.
const DEV_SIZE: u64 = 64 << 10;

/// No privileges through files, no devices. Given to every mount but those of the devices in
/// `/dev`, so that a setuid program or a device file in a writable tree is harmless.
pub(super) const TAME: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// What is the same for every command, made before anything is known of it.
pub(super) struct Base {
    /// A `/dev` that is not mounted anywhere yet. It must not become read-only with the rest, as
    /// terminals and shared memory in it are written to.
    dev: OwnedFd,
}

impl Base {
    /// Cuts the calling process off from what is mounted outside from now on, and makes a `/dev`
    /// and a `/proc`. `scratch` is the size of what can be written to in them. The machine's
    /// devices are copied one by one before they are covered. Fails where the kernel does not allow
    /// another `/proc` (in many containers); `probe` then tries with the machine's own.
    pub(super) fn make(proc_view: ProcView, scratch: Option<u64>) -> io::Result<Self> {
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )?;
        let devices: Vec<(&str, OwnedFd)> = DEVICES
            .iter()
            .filter_map(|name| Some((*name, device(name)?)))
            .collect();
        mount_devices(devices, scratch)?;
        // It is put back when all else has become read-only.
        let dev = copy(open(Path::new("/dev"))?)?;
        unmount("/dev", UnmountFlags::DETACH)?;
        if proc_view == ProcView::Own {
            let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
            attach_new("proc", &[], attributes, Path::new("/proc"))?;
        }
        Ok(Self { dev })
    }

    /// Makes the disk look as laid out. `scratch` is the size of each empty directory.
    /// `layout.mounts` is in the order of paths, and `early` takes its trees in the same order, so
    /// one pass over both is enough.
    pub(super) fn lay_out(self, layout: &Layout, scratch: Option<u64>) -> io::Result<()> {
        let early = early(layout)?;
        let late = late::prepare(&layout.late)?;
        set_attributes(CWD, "/", TAME | libc::MOUNT_ATTR_RDONLY)
            .map_err(|error| io::Error::new(error.kind(), format!("/ read-only: {error}")))?;
        attach_at(self.dev, open(Path::new("/dev"))?)?;
        let mut early = early.into_iter().peekable();
        for (path, mount) in &layout.mounts {
            let ready = early
                .next_if(|(ready, _)| ready == path)
                .map(|(_, tree)| tree);
            attach(layout, path, mount, ready, scratch).map_err(|error| named(path, &error))?;
        }
        for (path, ready) in late {
            late::attach(layout, &path, ready).map_err(|error| named(&path, &error))?;
        }
        Ok(())
    }
}

/// An error that says which path it is about; it ends up in the report of the command.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Copies of the trees that can only be had while nothing is mounted yet: those that an empty
/// directory will hide, and those that stay writable when the rest becomes read-only. What lies in
/// a writable tree is not among them: it is copied from that tree once it is mounted, and so is
/// writable too.
fn early(layout: &Layout) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let mut trees = Vec::new();
    for (path, mount) in &layout.mounts {
        let is_early = match mount {
            Mount::Empty | Mount::Nothing => false,
            Mount::ReadOnly => layout.is_hidden(path),
            Mount::Writable => !layout.is_in_writable(path),
        };
        if is_early {
            let tree = open(path).and_then(|place| copy(&place));
            trees.push((path.clone(), tree.map_err(|error| named(path, &error))?));
        }
    }
    Ok(trees)
}

/// Mounts one entry. `ready` is the copy taken before, if there is one.
///
/// Where a path lies in an empty directory, its mount point is made first. The place is opened
/// after that, once, without following links: if a command running beside has put a link there,
/// this fails.
fn attach(
    layout: &Layout,
    path: &Path,
    mount: &Mount,
    ready: Option<OwnedFd>,
    scratch: Option<u64>,
) -> io::Result<()> {
    if *mount == Mount::Empty {
        if layout.is_hidden(path) {
            fs::create_dir_all(path)?;
        }
        return attach_empty(path, scratch);
    }
    if let Some(tree) = &ready
        && layout.is_hidden(path)
    {
        make_mount_point(path, tree)?;
    }
    let place = open(path)?;
    let tree = match (ready, mount) {
        (Some(tree), _) => tree,
        (None, Mount::Nothing) => copy(open(Path::new("/dev/null"))?)?,
        (None, _) => copy(&place)?,
    };
    let attributes = match mount {
        Mount::Writable => TAME,
        _ => TAME | libc::MOUNT_ATTR_RDONLY,
    };
    set_attributes(&tree, "", attributes)?;
    attach_at(&tree, &place)
}

/// In a directory that we have just made, so nothing of anybody else's is on the way. A directory
/// for a directory, an empty file for anything else.
pub(super) fn make_mount_point(path: &Path, tree: &OwnedFd) -> io::Result<()> {
    let is_directory = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode)
        == rustix::fs::FileType::Directory;
    if is_directory {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::create_new(path).map(|_| ())
}

/// A file system in memory of its own, so that each has the whole of `scratch` as its size. It is
/// discarded with the namespaces. `/tmp` and `/dev/shm` can be written to by every user, as usual.
fn attach_empty(path: &Path, scratch: Option<u64>) -> io::Result<()> {
    let is_shared = path == Path::new("/tmp") || path == Path::new("/dev/shm");
    let mode = if is_shared { "1777" } else { "755" };
    let size = scratch.map(|bytes| bytes.to_string());
    let mut options = vec![("mode", mode)];
    options.extend(size.as_deref().map(|size| ("size", size)));
    attach_new("tmpfs", &options, MountAttrFlags::empty(), path)
}

/// A `/dev` of harmless devices, terminals of its own and shared memory. Only `/dev` itself becomes
/// read-only; the terminals and the shared memory in it are mounts of their own and stay writable.
/// Devices themselves may be used as devices, unlike on every other mount.
fn mount_devices(devices: Vec<(&str, OwnedFd)>, scratch: Option<u64>) -> io::Result<()> {
    let dev = Path::new("/dev");
    let size = DEV_SIZE.to_string();
    let options = [("mode", "755"), ("size", size.as_str())];
    attach_new("tmpfs", &options, MountAttrFlags::empty(), dev)?;
    for (name, tree) in devices {
        let path = dev.join(name);
        fs::File::create_new(&path)?;
        set_attributes(&tree, "", libc::MOUNT_ATTR_NOSUID)?;
        attach_at(&tree, open(&path)?)?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, dev.join(name))?;
    }
    for name in ["pts", "shm"] {
        fs::create_dir(dev.join(name))?;
    }
    let options = [("ptmxmode", "666"), ("mode", "620")];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOEXEC;
    attach_file_system("devpts", &options, attributes, &dev.join("pts"))?;
    attach_empty(&dev.join("shm"), scratch)?;
    let read_only = TAME | libc::MOUNT_ATTR_RDONLY;
    set_own_attributes(CWD, "/dev", read_only)
}

/// A copy of a device of the machine; `None` where it does not exist.
fn device(name: &str) -> Option<OwnedFd> {
    copy(open(&Path::new("/dev").join(name)).ok()?).ok()
}

/// A new file system without privileges and devices.
fn attach_new(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
    path: &Path,
) -> io::Result<()> {
    let attributes = attributes | MountAttrFlags::MOUNT_ATTR_NODEV;
    attach_file_system(kind, options, attributes, path)
}

/// A new file system that ignores setuid bits; devices are the caller's decision, as terminals are
/// devices.
fn attach_file_system(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
    path: &Path,
) -> io::Result<()> {
    let make = || -> io::Result<()> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (name, value) in options {
            fsconfig_set_string(context.as_fd(), *name, *value)?;
        }
        fsconfig_create(context.as_fd())?;
        let attributes = attributes | MountAttrFlags::MOUNT_ATTR_NOSUID;
        let tree = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        attach_at(&tree, open(path)?)
    };
    make().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{kind} at {}: {error}", path.display()),
        )
    })
}

/// The thing at an absolute path, without following any symlink. Opened as a place only: nothing is
/// read, and devices and pipes are not touched.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(
        CWD,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?)
}

/// A copy of the mounts at and below a place, not mounted anywhere yet.
pub(super) fn copy(place: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(place.as_fd(), "", flags)?)
}

/// Mounts a tree over a place, both given by descriptors.
pub(super) fn attach_at(tree: impl AsFd, place: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree.as_fd(), "", place.as_fd(), "", flags)?)
}

/// Adds attributes to all mounts of a tree; none is taken away.
pub(super) fn set_attributes(base: impl AsFd, path: &str, attributes: u64) -> io::Result<()> {
    change_attributes(base, path, attributes, libc::AT_RECURSIVE)
}

/// Adds attributes to one mount.
fn set_own_attributes(base: impl AsFd, path: &str, attributes: u64) -> io::Result<()> {
    change_attributes(base, path, attributes, 0)
}

/// `attr_clr` stays zero: a mount that is read-only outside never becomes writable here.
#[allow(unsafe_code)]
fn change_attributes(
    base: impl AsFd,
    path: &str,
    attributes: u64,
    reach: libc::c_int,
) -> io::Result<()> {
    let path = std::ffi::CString::new(path)?;
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path and the structure outlive the call, which only reads them; the size is the
    // structure's own.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            base.as_fd().as_raw_fd(),
            path.as_ptr(),
            libc::AT_EMPTY_PATH | reach,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
