//! Resource limits of a sandboxed command.
//!
//! The kernel does not count root's processes against `RLIMIT_NPROC`; for root a cgroup does it
//! where one can be made (see `cgroup`).

use serde::{Deserialize, Serialize};

/// What a command and all it starts may use. `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Bytes of memory: of all commands together in a cgroup, of each process elsewhere.
    pub memory: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes in each temporary file system of the sandbox.
    pub scratch: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: Some(4096),
            memory: None,
            file_size: Some(16 << 30),
            open_files: Some(65_536),
            scratch: Some(2 << 30),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, io};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::Limits;

    impl Limits {
        /// Limits the calling process and all it will start.
        pub(in super::super) fn enforce(&self) -> io::Result<()> {
            cap(Resource::Core, 0)?;
            if let Some(bytes) = self.file_size {
                cap(Resource::Fsize, bytes)?;
            }
            if let Some(bytes) = self.memory {
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
    fn threads() -> u64 {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let counts = load.split_whitespace().nth(3).unwrap_or_default();
        let total = counts.split_once('/').map_or("", |(_, total)| total);
        total.parse().unwrap_or(4096)
    }
}
