//! A control group for all commands of this process: it counts root's processes too.
//!
//! The guard joins it once; whatever it starts is born into it. Where none can be made, resource
//! limits of single processes are all there is.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use super::ResourceLimits;

/// Where control groups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";

/// What joined groups limit. It is read back from the group, which has no file for the limit of a
/// controller that is not handed down. Set in the guard; the processes of commands are forked from
/// it and inherit both.
static PROCESSES: AtomicBool = AtomicBool::new(false);
static MEMORY: AtomicBool = AtomicBool::new(false);

/// Whether a group counts the processes of commands.
pub(super) fn limits_processes() -> bool {
    PROCESSES.load(Ordering::Relaxed)
}

/// Whether a group counts the memory of commands.
pub(super) fn limits_memory() -> bool {
    MEMORY.load(Ordering::Relaxed)
}

/// Notes which limits of a group are in force. `max`, which is no number, is no limit.
fn note(group: &Path) {
    let is_set = |name: &str| {
        let value = fs::read_to_string(group.join(name)).unwrap_or_default();
        value.trim().parse::<u64>().is_ok()
    };
    if is_set("pids.max") {
        PROCESSES.store(true, Ordering::Relaxed);
    }
    if is_set("memory.max") || is_set("memory.limit_in_bytes") {
        MEMORY.store(true, Ordering::Relaxed);
    }
}

/// A joined control group. Left and removed at the end. Empty where no group could be made.
#[derive(Default)]
pub(super) struct Cgroup {
    /// Each with the group to go back to.
    joined: Vec<(PathBuf, PathBuf)>,
}

impl Cgroup {
    /// Joins a new group, as far as one can be made. Reads `/proc/self/cgroup`, a line
    /// `number:controller:path` for each hierarchy; version 2 has no controller there. Failing is
    /// not an error: `limits` and `overuse` do what they can instead.
    pub(super) fn join(limits: &ResourceLimits) -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut cgroup = Self::default();
        for line in own.lines() {
            let mut fields = line.splitn(3, ':');
            let (_, controller, path) = (fields.next(), fields.next(), fields.next());
            let (Some(controller), Some(path)) = (controller, path) else {
                continue;
            };
            let path = Path::new(path.trim_start_matches('/'));
            let joined = match controller {
                "" => join_unified(path, limits),
                "pids" => join_controller("pids", path, &[("pids.max", limits.processes)]),
                "memory" => {
                    let values = [("memory.limit_in_bytes", limits.memory)];
                    join_controller("memory", path, &values)
                }
                _ => continue,
            };
            if let Some((group, _)) = &joined {
                note(group);
            }
            cgroup.joined.extend(joined);
        }
        cgroup
    }

    /// Goes back and removes the groups; whoever is still in one keeps it.
    pub(super) fn leave(self) {
        for (group, home) in self.joined {
            let _ = fs::write(home.join("cgroup.procs"), "0");
            let _ = fs::remove_dir(group);
        }
    }
}

/// Version 2: beside our own group, where the parent hands the controllers down. Beside and not
/// below: a group that has processes of its own cannot hand controllers down.
fn join_unified(path: &Path, limits: &ResourceLimits) -> Option<(PathBuf, PathBuf)> {
    let own = Path::new(MOUNTED).join(path);
    let parent = match path.parent() {
        Some(above) => Path::new(MOUNTED).join(above),
        None => own.clone(),
    };
    let handed = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
    handed.split_whitespace().find(|name| *name == "pids")?;
    join_new(
        &parent,
        own,
        &[
            ("pids.max", limits.processes),
            ("memory.max", limits.memory),
        ],
    )
}

/// Version 1: below our own group of this controller.
fn join_controller(
    name: &str,
    path: &Path,
    values: &[(&str, Option<u64>)],
) -> Option<(PathBuf, PathBuf)> {
    let own = Path::new(MOUNTED).join(name).join(path);
    join_new(&own.clone(), own, values)
}

/// Makes a group below `parent`, sets its limits and moves this process into it. Returns the group
/// and `home`, to go back to; `None` if any step fails, with nothing left behind. Limits are set
/// before the group is joined, so that there is no moment without them.
fn join_new(
    parent: &Path,
    home: PathBuf,
    values: &[(&str, Option<u64>)],
) -> Option<(PathBuf, PathBuf)> {
    sweep(parent);
    let group = parent.join(format!("codespar-{}", std::process::id()));
    let made = || -> io::Result<()> {
        fs::create_dir(&group)?;
        for (file, value) in values {
            if let Some(value) = value {
                let path = group.join(file);
                // A controller that is not handed down has no such file.
                if path.exists() {
                    fs::write(path, value.to_string())?;
                }
            }
        }
        fs::write(group.join("cgroup.procs"), "0")
    };
    if made().is_ok() {
        return Some((group, home));
    }
    let _ = fs::remove_dir(&group);
    None
}

/// Removes groups of guards that were killed: only an empty one can be removed. A directory is
/// named after the process that made it, `codespar-<pid>`.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name
            .to_str()
            .and_then(|name| name.strip_prefix("codespar-"));
        if id.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
