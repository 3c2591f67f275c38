//! Sockets of other programs that a sandboxed command could talk its way out through.
//!
//! A read-only mount does not stop a connection: the container engine's socket alone would give the
//! whole disk. So each socket that somebody listens on and that can be seen inside is covered, also
//! in the workspace.

use std::{
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use super::{Network, SandboxPolicy};

/// Sockets bound in another network namespace are not in our table; a container engine's socket
/// handed into a container is one of these.
const KNOWN: [&str; 5] = [
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
];

/// The sockets to cover, of those that are seen inside. The proxy's own socket is left out, as
/// bubblewrap's command reaches the proxy through it. A socket that somebody begins to listen on
/// while the command runs is not covered.
pub(super) fn to_cover(policy: &SandboxPolicy, is_seen: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let proxy = match &policy.network {
        Network::Proxy(socket) => Some(socket.as_path()),
        Network::Denied | Network::Allowed => None,
    };
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    let mut paths: Vec<PathBuf> = bound_paths(&table)
        .chain(KNOWN.iter().map(Path::new))
        .filter(|path| is_socket(path))
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| Some(path.as_path()) != proxy)
        .filter(|path| !path.starts_with("/dev") && is_socket(path) && is_seen(path))
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

fn bound_paths(table: &str) -> impl Iterator<Item = &Path> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('/').map(|(row, _)| &line[row.len()..]))
        .map(Path::new)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|kind| kind.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_kernels_table_and_abstract_names_are_not() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
             00000000ee4de2ee: 00000003 00000000 00000000 0001 03    45\n\
             00000000aaaaaaaa: 00000002 00000000 00010000 0001 01 123 /run/docker.sock\n\
             00000000bbbbbbbb: 00000002 00000000 00010000 0001 01 124 @abstract\n\
             00000000cccccccc: 00000002 00000000 00010000 0001 01 125 /run/with space/s\n";
        assert_eq!(
            bound_paths(table).collect::<Vec<_>>(),
            vec![
                Path::new("/run/docker.sock"),
                Path::new("/run/with space/s")
            ]
        );
    }
}
