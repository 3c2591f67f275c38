//! A private directory for one command's socket, gone with it, whatever happens to us.
//!
//! ```text
//! <base>/                  0700, locked shared while a directory is made
//! <base>/egress-XXXXXX/    0700, locked for as long as it is used
//! <base>/egress-XXXXXX/s   the socket
//! ```
//!
//! Locks are `flock`s, which the kernel releases when their process ends, however it ends. Whoever
//! makes the next directory removes those without a lock.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

/// The socket's name in its directory.
const NAME: &str = "s";

/// A path longer than this does not fit into a socket's address, for which Linux has 108 bytes.
const LONGEST_PATH: usize = 100;

/// The directory. Its lock says that somebody is using it; the kernel takes the lock back from a
/// process that was killed. Dropped, it is removed with its socket.
#[derive(Debug)]
pub(super) struct SocketDir {
    path: PathBuf,
    _lock: File,
}

impl SocketDir {
    /// Makes one in `base`, and removes what killed processes left there. `base` may be shared by
    /// any number of processes of the user.
    pub(super) fn make(base: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(base)?;
        fs::set_permissions(base, Permissions::from_mode(0o700))?;
        // The sandbox knows paths without symlinks only.
        let base = &base.canonicalize()?;
        let all = File::open(base)?;
        sweep(base, &all);
        // Keeps others from sweeping a directory that is made and not locked yet.
        flock(&all, FlockOperation::LockShared)?;
        let dir = tempfile::Builder::new()
            .prefix("egress-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(base)?;
        let lock = File::open(dir.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self {
            path: dir.keep(),
            _lock: lock,
        })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join(NAME)
    }

    /// Listens there.
    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let listener = UnixListener::bind(Address::of(&self.socket())?.path())?;
        // The directory keeps others out. Inside, the command may be somebody else.
        fs::set_permissions(self.socket(), Permissions::from_mode(0o666))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl Drop for SocketDir {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Connects to a socket, however long its path is.
pub(super) fn connect(socket: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(Address::of(socket)?.path())
}

/// A path that fits into a socket's address.
enum Address {
    Itself(PathBuf),
    /// Through the open directory: `/proc/self/fd/<number>/<name>`. The file must stay open while
    /// it is used.
    Within(File, OsString),
}

impl Address {
    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().as_bytes().len() <= LONGEST_PATH {
            return Ok(Self::Itself(path.to_path_buf()));
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let name = path.file_name().ok_or_else(invalid)?;
        let dir = File::open(path.parent().ok_or_else(invalid)?)?;
        Ok(Self::Within(dir, name.to_owned()))
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Itself(path) => path.clone(),
            Self::Within(dir, name) => {
                Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name)
            }
        }
    }
}

/// Removes directories that nobody holds. Where somebody is making or sweeping, it is left to the
/// next time.
fn sweep(base: &Path, all: &File) {
    if flock(all, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let Ok(entries) = fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let is_free = File::open(&path)
            .is_ok_and(|dir| flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_free {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_stays() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("egress");
        let live = SocketDir::make(&base).unwrap();
        let dead = base.join("egress-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(NAME), "").unwrap();
        let next = SocketDir::make(&base).unwrap();
        assert!(!dead.exists());
        assert!(live.socket().parent().unwrap().exists());
        drop((live, next));
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
    }

    #[test]
    fn only_the_user_gets_in_and_a_long_path_is_no_obstacle() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("long".repeat(50));
        let dir = SocketDir::make(&base).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&base), 0o700);
        assert_eq!(mode(dir.socket().parent().unwrap()), 0o700);
        let _listener = dir.listen().unwrap();
        connect(&dir.socket()).unwrap();
    }
}
