//! Processes: started in a clean environment, waited for, killed, and looked for afterwards.
//!
//! The search for survivors reads `/proc`, so it works on Linux only and says so elsewhere.
//!
//! A test of the binary looks like this:
//!
//! ```text
//! let room = CleanRoom::new()?;
//! let running = spawn(room.command(binary).arg("-p").arg("hello"))?;
//! let ended = running.wait(Duration::from_secs(30))?;
//! assert!(room.wait_until_empty(Duration::from_secs(5))?.is_empty());  // nothing is left running
//! ```
//!
//! Nothing of the user's environment reaches the program: no keys, no configuration, no home. Every
//! wait has a limit, and what runs out of it is an error that holds the output so far.

mod running;
mod search;

pub use running::{Finished, Running, kill_9, spawn, spawn_with_stdin};
pub use search::{processes_with_cmdline, processes_with_env};

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// The variable that [`CleanRoom::command`] sets, and that children inherit. Programs that clear
/// their environment are not found by it.
pub const MARK: &str = "CODESPAR_TEST_MARK";

/// An empty home in a temporary directory, with a mark by which its processes are found.
///
/// Dropping it removes the directory, not the processes.
///
/// ```text
/// codespar-test-XXXX/   TMPDIR; its name is the mark
///     home/             HOME
///     state/            CODESPAR_HOME
///     work/             the working directory
/// ```
#[derive(Debug)]
pub struct CleanRoom {
    directory: TempDir,
    mark: String,
}

impl CleanRoom {
    /// Makes the directories.
    pub fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("codespar-test-")
            .tempdir()?;
        let name = directory.path().file_name().unwrap_or_default();
        let mark = name.to_string_lossy().into_owned();
        let room = Self { directory, mark };
        for path in [room.home(), room.codespar_home(), room.work()] {
            fs::create_dir(path)?;
        }
        Ok(room)
    }

    /// `HOME`.
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// `CODESPAR_HOME`.
    pub fn codespar_home(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// The value of [`MARK`] for everything started here.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// A command with this environment and no other: `PATH` of the test itself, `HOME`,
    /// `CODESPAR_HOME`, `TMPDIR`, a plain locale and terminal, and the mark.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("CODESPAR_HOME", self.codespar_home())
            .env("TMPDIR", self.directory.path())
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env(MARK, &self.mark)
            .current_dir(self.work());
        command
    }

    /// The processes started here that are still alive. Children and those that left their process
    /// group included, since the variable is inherited.
    pub fn alive(&self) -> io::Result<Vec<u32>> {
        processes_with_env(MARK, &self.mark)
    }

    /// Waits until none is alive, at most so long; returns those that are left.
    pub fn wait_until_empty(&self, patience: Duration) -> io::Result<Vec<u32>> {
        let begin = Instant::now();
        loop {
            let alive = self.alive()?;
            if alive.is_empty() || begin.elapsed() >= patience {
                return Ok(alive);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}
