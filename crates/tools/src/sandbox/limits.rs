//! Resource limits of a sandboxed command.
//!
//! The kernel does not count root's processes against `RLIMIT_NPROC`; for root a cgroup does it
//! where one can be made (see `cgroup`), and else the watcher (see `overuse`), which measures the
//! directory for temporary files too.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// What a command and all it starts may use. `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Bytes of memory: of all commands together in a cgroup, of each process elsewhere.
    pub memory: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes in each temporary file system of the sandbox, and in the directory for temporary
    /// files.
    pub scratch: Option<u64>,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            processes: Some(4096),
            memory: *USUAL_MEMORY,
            file_size: Some(16 << 30),
            open_files: Some(65_536),
            scratch: Some(2 << 30),
        }
    }
}

/// Three quarters of what the machine has: a command that takes all of it ends before others do.
static USUAL_MEMORY: LazyLock<Option<u64>> = LazyLock::new(|| {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes.saturating_mul(1024) / 4 * 3)
});

#[cfg(target_os = "linux")]
pub(super) use linux::threads;

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, io};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::{super::cgroup, ResourceLimits};

    impl ResourceLimits {
        /// Limits the calling process and all it will start.
        pub(in super::super) fn enforce(&self) -> io::Result<()> {
            cap(Resource::Core, 0)?;
            if let Some(bytes) = self.file_size {
                cap(Resource::Fsize, bytes)?;
            }
            // Address space that is only reserved does not count, but what is mapped to be written
            // does, whether or not it is used: a group counts better.
            if let Some(bytes) = self.memory.filter(|_| !cgroup::limits_memory()) {
                cap(Resource::Data, bytes)?;
            }
            if let Some(files) = self.open_files {
                cap(Resource::Nofile, files)?;
            }
            if let Some(processes) = self.processes {
                // The kernel counts every thread of the user, also those outside.
                cap(Resource::Nproc, processes.saturating_add(threads()))?;
            }
            Ok(())
        }
    }

    /// Never raises what is in force.
    fn cap(resource: Resource, value: u64) -> io::Result<()> {
        let now = getrlimit(resource);
        let limit =
            |current: Option<u64>| Some(current.map_or(value, |current| current.min(value)));
        let new = Rlimit {
            current: limit(now.current),
            maximum: limit(now.maximum),
        };
        Ok(setrlimit(resource, new)?)
    }

    /// How many threads the whole system has: at least as many as this user's.
    pub(in super::super) fn threads() -> u64 {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let counts = load.split_whitespace().nth(3).unwrap_or_default();
        let total = counts.split_once('/').map_or("", |(_, total)| total);
        total.parse().unwrap_or(4096)
    }
}
