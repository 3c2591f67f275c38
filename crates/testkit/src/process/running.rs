//! A process under way: its output, its end, the signals it is sent.
//!
//! A thread for each pipe collects the output, so a program that writes much never blocks and a
//! test can look at what there is at any time. Waiting is done by looking every few milliseconds:
//! it is simple, and works without a runtime.

use std::{
    io::{self, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

/// How long output is waited for after the end of a process: one that it leaves behind may hold
/// the pipe open for ever.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// A process under way. Its output is read all the time, so that it never waits for a reader.
/// Dropping it kills it.
///
/// Only the process itself is killed. Those that it started are the program's own to end, and
/// `CleanRoom::alive` finds what it left behind.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Output,
    stderr: Output,
}

/// A process that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// With the signal where one ended it.
    pub status: ExitStatus,
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
}

/// Starts a command with nothing on its standard input.
pub fn spawn(command: &mut Command) -> io::Result<Running> {
    Running::new(command.stdin(Stdio::null()))
}

/// Starts a command that reads this from its standard input.
pub fn spawn_with_stdin(command: &mut Command, input: Vec<u8>) -> io::Result<Running> {
    let mut running = Running::new(command.stdin(Stdio::piped()))?;
    if let Some(mut stdin) = running.child.stdin.take() {
        // On a thread, and without complaint: a program may end without reading all of it.
        thread::spawn(move || io::Write::write_all(&mut stdin, &input));
    }
    Ok(running)
}

/// Kills any process at once (SIGKILL).
pub fn kill_9(process: u32) -> io::Result<()> {
    Ok(kill_process(pid(process)?, Signal::KILL)?)
}

impl Running {
    fn new(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self {
            stdout: Output::of(child.stdout.take()),
            stderr: Output::of(child.stderr.take()),
            child,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// What it has written to its standard output by now.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.so_far()
    }

    /// What it has written to its standard error by now.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.so_far()
    }

    /// Waits until its standard output contains this. An error if it ends before, or after this
    /// time. Standard error is shown in the error message but not searched.
    pub fn wait_for_output(&mut self, text: &str, patience: Duration) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            // Looked at before the output: what it writes last must not be missed.
            let silent =
                self.has_ended()? && self.stdout.is_complete() && self.stderr.is_complete();
            if self.stdout_so_far().contains(text) {
                return Ok(());
            }
            if silent || begin.elapsed() >= patience {
                return Err(self.gave_up(&format!("did not write `{text}`")));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for its end, at most so long; then it is killed and this is an error with what it
    /// had written.
    pub fn wait(mut self, patience: Duration) -> io::Result<Finished> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(self.finished(status));
            }
            if begin.elapsed() >= patience {
                return Err(self.gave_up(&format!("did not end within {patience:?}")));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills it at once, as a crash would, and reaps it. Its children are left alone.
    pub fn kill_9(mut self) -> io::Result<Finished> {
        self.child.kill()?;
        let status = self.child.wait()?;
        Ok(self.finished(status))
    }

    /// Asks it to end, as `kill` does (SIGTERM).
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Interrupts it, as Ctrl-C does (SIGINT).
    pub fn interrupt(&self) -> io::Result<()> {
        self.signal(Signal::INT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(pid(self.pid())?, signal)?)
    }

    /// Waits a little for the rest of the output.
    fn finished(&self, status: ExitStatus) -> Finished {
        let begin = Instant::now();
        while !(self.stdout.is_complete() && self.stderr.is_complete())
            && begin.elapsed() < OUTPUT_GRACE
        {
            thread::sleep(Duration::from_millis(1));
        }
        Finished {
            status,
            stdout: self.stdout.so_far(),
            stderr: self.stderr.so_far(),
        }
    }

    /// What the process wrote is often the reason, so it is part of the error.
    fn gave_up(&self, what: &str) -> io::Error {
        let message = format!(
            "process {} {what}\nstdout: {}\nstderr: {}",
            self.pid(),
            self.stdout.so_far(),
            self.stderr.so_far()
        );
        io::Error::new(io::ErrorKind::TimedOut, message)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago; there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came out of a pipe, collected by a thread.
#[derive(Debug)]
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let reader = pipe.map(|mut pipe| {
            let bytes = Arc::clone(&bytes);
            thread::spawn(move || {
                let mut buffer = [0; 8192];
                while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                    bytes.lock().extend_from_slice(&buffer[..count]);
                }
            })
        });
        Self { bytes, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock()).into_owned()
    }

    /// Whether the pipe was closed, by the process and by all that inherited it.
    fn is_complete(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

fn pid(id: u32) -> io::Result<Pid> {
    let known = i32::try_from(id).ok().and_then(Pid::from_raw);
    known.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{id} is no process id"),
        )
    })
}
