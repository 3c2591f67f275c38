//! A trial has a network, processes, mounts and temporary files of its own.
//!
//! This program is run once more in new namespaces of the kernel, as their first process. When it
//! ends, however it ends, the kernel ends all that it started and takes its links, mounts and files
//! away. It also ends when the run that started it is gone, so an interrupted trial leaves nothing.
//! Nothing in it can reach a network outside.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{fleet::postgres::PostgresServer, tools::on_path};

/// Set in the second run: its directory.
const MARK: &str = "CODESPAR_XTASK_TRIAL";
/// At most so much is kept in memory.
const SIZE: &str = "3g";
/// Directories that Debian has, usually empty: one is covered by the files of the trial.
const PLACES: &[&str] = &["/media", "/srv", "/mnt"];
/// `$0` is the directory.
const MOUNT: &str = r#"mount -t tmpfs -o "mode=1777,size=$1" codespar-trial "$0""#;
/// What a network of hosts needs.
const TRY: &str = "ip link add fleet0 type bridge && ip link add one type veth peer name two";

/// The directory of this run, if it is the second.
pub(super) fn directory() -> Option<PathBuf> {
    std::env::var_os(MARK).map(PathBuf::from)
}

/// Why there can be no trial here; `None` where there can.
pub(super) fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root, for namespaces of the network".to_owned());
    }
    for (program, package) in [
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
        ("setpriv", "util-linux"),
    ] {
        if !on_path(program) {
            return Some(format!("needs `{program}`: apt-get install {package}"));
        }
    }
    if !PostgresServer::is_installed() {
        return Some("needs PostgreSQL: apt-get install postgresql".to_owned());
    }
    let Some(place) = place() else {
        return Some(format!("needs one empty directory of {PLACES:?}"));
    };
    let tried = apart(place, &format!("{MOUNT} && {TRY}")).output();
    match tried {
        Ok(done) if done.status.success() => None,
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            Some(format!("namespaces cannot be made here: {said}"))
        }
        Err(error) => Some(format!("namespaces cannot be made here: {error}")),
    }
}

/// Runs this program with these arguments in namespaces of its own, to its end.
pub(super) fn run_apart(args: impl IntoIterator<Item = OsString>) -> Result<()> {
    let place = place().context("there is no empty directory for the files of the trial")?;
    let mut command = apart(place, &format!("{MOUNT} && shift && exec \"$@\""));
    command
        .arg(std::env::current_exe()?)
        .args(args)
        .env("TMPDIR", place)
        .env(MARK, place);
    let status = command.status().context("cannot start `unshare`")?;
    if !status.success() {
        bail!("the trial ended with {status}");
    }
    Ok(())
}

fn place() -> Option<&'static Path> {
    let is_empty = |path: &&Path| {
        path.read_dir()
            .is_ok_and(|mut files| files.next().is_none())
    };
    PLACES.iter().map(Path::new).find(is_empty)
}

/// A script that is ended when this process is gone, and all that it started with it.
fn apart(place: &Path, script: &str) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "unshare", "--fork", "--kill-child"])
        .args(["--mount", "--mount-proc", "--pid", "--net", "--ipc"])
        .args(["sh", "-c", script])
        .arg(place)
        .arg(SIZE);
    command
}
