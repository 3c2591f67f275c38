//! Runs a command of ours again with its temporary files in memory.
//!
//! Tests make and remove some hundred thousand small files and wait for each commit of a database
//! to be on the disk: a quarter of their time. Root can have a file system in memory for them that
//! no other process sees and that is gone with the last of ours, however it ends. Anybody else, or
//! a machine with little memory, uses the usual directory.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

/// Set in the second run.
const MARK: &str = "CODESPAR_XTASK_IN_MEMORY";
/// At most so much is kept in memory; the suite needs less than a quarter of it.
const SIZE: &str = "4g";
/// Compilers and tests need theirs too.
const FREE_KILOBYTES: u64 = 10 * 1024 * 1024;
/// Open to all users, since some attacks are made by an ordinary one.
const MOUNT: &str = r#"mount -t tmpfs -o "mode=1777,size=$1" codespar-tests "$0""#;

/// Runs this program once more with the same arguments, where that is possible; whether it was.
pub(crate) fn run_again() -> Result<bool> {
    if std::env::var_os(MARK).is_some() || !has_room() || !rustix::process::geteuid().is_root() {
        return Ok(false);
    }
    let directory = tempfile::Builder::new()
        .prefix("codespar-tests-")
        .tempdir()
        .context("cannot make a temporary directory")?;
    let trial = namespace(directory.path(), MOUNT).output();
    if !trial.is_ok_and(|done| done.status.success()) {
        return Ok(false);
    }
    println!("temporary files are kept in memory");
    let script = format!("{MOUNT} && shift && exec \"$@\"");
    let mut command = namespace(directory.path(), &script);
    command
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env("TMPDIR", directory.path())
        .env(MARK, "1");
    let status = command.status().context("cannot start `unshare`")?;
    anyhow::ensure!(status.success(), "the run in memory ended with {status}");
    Ok(true)
}

/// A script with mounts of its own.
fn namespace(directory: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script])
        .arg(directory)
        .arg(SIZE);
    command
}

fn has_room() -> bool {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available(&memory).is_some_and(|kilobytes| kilobytes >= FREE_KILOBYTES)
}

fn available(memory: &str) -> Option<u64> {
    let line = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read_as_linux_writes_it() {
        let memory = "MemTotal:       24000000 kB\nMemAvailable:   12345678 kB\n";
        assert_eq!(available(memory), Some(12_345_678));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
    }
}
