//! A session of the binary in a pseudo-terminal, its screen on an emulator.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, ChildStdin, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use codespar_testkit::process::{CleanRoom, kill_9};

/// What a terminal answers that says what it is: its pastes are marked.
pub(crate) const VERSION: &str = "\x1bP>|emulator 1\x1b\\\x1b[?62c";

#[derive(Debug, Clone, Copy)]
pub(crate) struct PtySize {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

/// What the session wrote.
pub(crate) struct PtyOutput {
    pub(crate) emulator: vt100::Parser,
    pub(crate) bytes: u64,
}

/// Ends with its terminal when it is dropped.
pub(crate) struct PtySession<'a> {
    room: &'a CleanRoom,
    child: Child,
    input: ChildStdin,
    output: Arc<Mutex<PtyOutput>>,
}

impl<'a> PtySession<'a> {
    pub(crate) fn start(
        room: &'a CleanRoom,
        work: &Path,
        binary: &Path,
        url: &str,
        size: PtySize,
    ) -> Result<Self> {
        let PtySize { rows, columns } = size;
        let output = Arc::new(Mutex::new(PtyOutput {
            emulator: vt100::Parser::new(rows.try_into()?, columns.try_into()?, 0),
            bytes: 0,
        }));
        // The path is in a variable, so that no character of it means something to the shell.
        let program = format!("stty rows {rows} cols {columns}; exec \"$PROGRAM\"");
        let mut child = room
            .command("script")
            .current_dir(work)
            .args(["-qec", &program, "/dev/null"])
            .env("PROGRAM", binary)
            .env("TERM", "linux")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-a-terminal")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start `script`: install util-linux")?;
        let mut written = child.stdout.take().context("`script` has no output")?;
        let input = child.stdin.take().context("`script` has no input")?;
        let shown = Arc::clone(&output);
        thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(count @ 1..) = written.read(&mut buffer) {
                let mut shown = locked(&shown);
                shown.emulator.process(&buffer[..count]);
                shown.bytes += count as u64;
            }
        });
        Ok(Self {
            room,
            child,
            input,
            output,
        })
    }

    pub(crate) fn types(&mut self, text: &str) -> Result<()> {
        self.input.write_all(text.as_bytes())?;
        Ok(self.input.flush()?)
    }

    pub(crate) fn output(&self) -> MutexGuard<'_, PtyOutput> {
        locked(&self.output)
    }

    /// The process of the binary.
    pub(crate) fn pid(&self, binary: &Path) -> Result<u32> {
        let binary = fs::canonicalize(binary)?;
        let is_ours =
            |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary);
        let found = self.room.alive()?.into_iter().find(is_ours);
        found.context("the session has no process")
    }
}

impl Drop for PtySession<'_> {
    fn drop(&mut self) {
        // The session hears that its terminal is gone and ends; what is left after that is stuck.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let left = self.room.wait_until_empty(Duration::from_secs(5));
        for process in left.unwrap_or_default() {
            let _ = kill_9(process);
        }
    }
}

/// A panic of the thread that reads leaves a screen that can still be shown.
fn locked(output: &Mutex<PtyOutput>) -> MutexGuard<'_, PtyOutput> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}
