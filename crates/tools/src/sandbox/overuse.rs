//! What the kernel does not limit by itself, looked at while a command runs: the size of its
//! directory for temporary files, and root's processes where no control group counts them.
//!
//! The watcher asks [`Overuse::is_found`] each time it wakes up and sleeps no longer than
//! [`Overuse::pause`]. A command that takes too much is killed with all it started; the reason
//! stands at the end of its output. Between two looks a command can exceed a limit: this is a quota
//! against accidents and a full disk, not an exact bound.

use std::{
    fs::{self, File},
    io::Write,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{SandboxPolicy, cgroup, family, limits::threads};

/// Between two looks at the directory; a long look is followed by a longer pause.
const LOOK: Duration = Duration::from_millis(250);
/// A look takes at most this part of the time.
const SHARE: u32 = 20;
/// Between two looks at the number of processes, which cost a read of one short file.
const COUNT: Duration = Duration::from_millis(50);
/// What a file takes besides its content.
const ENTRY: u64 = 1024;
/// Before a command begins, no more of the directory is looked at.
const FIRST_LOOK: usize = 2_000;
/// Bytes of one file that a command may write while the directory is full: it may take files away.
const WHEN_FULL: u64 = 64 << 10;

/// Finds a command that takes too much. The default looks at nothing.
#[derive(Default)]
pub(super) struct Overuse {
    scratch: Option<Scratch>,
    processes: Option<Processes>,
    /// The command's output; what was found is told there, once. Held open, it would keep the
    /// output from ending: see [`Overuse::close`].
    output: Option<File>,
}

/// The look at the directory for temporary files.
struct Scratch {
    dir: PathBuf,
    /// Bytes.
    most: u64,
    next: Instant,
}

/// The look at the number of processes. Only for root, and only where no control group counts: the
/// kernel limits the processes of other users.
struct Processes {
    most: u64,
    /// Threads of the whole system when the command began.
    before: u64,
    next: Instant,
}

impl Overuse {
    /// Where the directory is full already, the command may write next to nothing: it has until the
    /// first look to remove files, and one that ends earlier cannot add much. What is looked at
    /// before the start is limited to [`FIRST_LOOK`] entries, as the command waits for it.
    pub(super) fn watch(policy: &mut SandboxPolicy, output: OwnedFd) -> Self {
        let now = Instant::now();
        if let (Some(dir), Some(most)) = (&policy.scratch, policy.limits.scratch)
            && size(dir, most, FIRST_LOOK) > most
        {
            policy.limits.file_size = Some(WHEN_FULL);
        }
        let limits = &policy.limits;
        let is_uncounted = rustix::process::getuid().is_root() && !cgroup::limits_processes();
        Self {
            scratch: policy
                .scratch
                .clone()
                .zip(limits.scratch)
                .map(|(dir, most)| Scratch {
                    dir,
                    most,
                    next: now + LOOK,
                }),
            processes: limits
                .processes
                .filter(|_| is_uncounted)
                .map(|most| Processes {
                    most,
                    before: threads(),
                    next: now + COUNT,
                }),
            output: Some(File::from(output)),
        }
    }

    /// How long until the next look; `None` when there is nothing to look at.
    pub(super) fn pause(&self) -> Option<Duration> {
        let scratch = self.scratch.as_ref().map(|scratch| scratch.next);
        let processes = self.processes.as_ref().map(|processes| processes.next);
        let next = [scratch, processes].into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Whether the command takes too much, and has to end.
    pub(super) fn is_found(&mut self) -> bool {
        let scratch = self.scratch.as_mut().and_then(Scratch::look);
        let Some(reason) = scratch.or_else(|| self.processes.as_mut().and_then(Processes::look))
        else {
            return false;
        };
        if let Some(mut output) = self.output.take() {
            // It is killed whether or not this can be said.
            let _ = writeln!(output, "\n[stopped: {reason}]");
        }
        true
    }

    /// The output ends when nobody holds it.
    pub(super) fn close(&mut self) {
        self.output = None;
    }
}

impl Scratch {
    /// What to tell the command, if it holds too much; nothing is measured before it is due.
    fn look(&mut self) -> Option<String> {
        let began = Instant::now();
        if began < self.next {
            return None;
        }
        let used = size(&self.dir, self.most, usize::MAX);
        self.next = Instant::now() + LOOK.max(began.elapsed() * SHARE);
        (used > self.most).then(|| {
            format!(
                "the directory for temporary files has more than the {} MB that \
                 `sandbox.limits.scratchMb` allows; remove files from $TMPDIR",
                self.most >> 20
            )
        })
    }
}

impl Processes {
    /// Threads of the whole system are counted first, which is cheap; only when these have grown by
    /// more than the limit is `/proc` read to count the command's own.
    fn look(&mut self) -> Option<String> {
        if Instant::now() < self.next {
            return None;
        }
        let more = threads().saturating_sub(self.before);
        // Others start processes as well, so they are counted when there are many.
        let is_found = more > self.most && family::count() as u64 > self.most;
        self.next = Instant::now() + COUNT;
        is_found.then(|| {
            format!(
                "it started more than the {} processes that `sandbox.limits.processes` allows",
                self.most
            )
        })
    }
}

/// What a directory holds, in bytes; counting ends above `most`, and after so many entries. Links
/// are not followed.
fn size(dir: &Path, most: u64, mut entries: usize) -> u64 {
    let mut used = 0;
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            // What is gone again takes nothing.
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            used += facts.blocks() * 512 + ENTRY;
            if facts.is_dir() {
                dirs.push(entry.path());
            }
            entries -= 1;
            if used > most || entries == 0 {
                return used;
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_directory_is_measured_without_following_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/file"), vec![1; 100_000]).unwrap();
        let all = |most| size(dir.path(), most, usize::MAX);
        let small = all(u64::MAX);
        assert!((100_000..200_000).contains(&small), "{small}");
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).unwrap();
        assert!(all(u64::MAX) < small + 10_000);
        assert!(all(50_000) > 50_000);
    }

    #[test]
    fn processes_are_counted_where_no_group_counts_them() {
        let mut processes = Processes {
            most: 40,
            before: 0,
            next: Instant::now(),
        };
        assert_eq!(processes.look(), None);
        let mut children: Vec<_> = (0..50)
            .map(|_| Command::new("sleep").arg("60").spawn().unwrap())
            .collect();
        processes.next = Instant::now();
        let reason = processes.look();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(reason.unwrap().contains("more than the 40 processes"));
    }
}
