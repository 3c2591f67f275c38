//! A program that serves over its standard streams for as long as it is held.
//!
//! For MCP servers. They are not confined; a guard (`__server-child`) sees to it that nothing of
//! them outlives us. The guard's standard error is a socket whose other end a task of ours reads:
//! what the server says there is kept for error messages, and closing it is the order to kill.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::AsyncReadExt,
    net::{UnixStream, unix::pipe},
    process::{Child, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

use crate::sandbox::{CommandLine, SERVER_COMMAND};

/// How much of what it said on its standard error is kept. Bytes; earlier ones are forgotten.
const STDERR_TAIL: usize = 4 << 10;
/// How long it may take to end once its input is closed.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long its guard may take to kill everything.
const KILLING: Duration = Duration::from_secs(3);

/// A server to start. It has neither a time limit nor a policy.
#[derive(Debug, Clone)]
pub struct ServerLaunch {
    /// The program, by path or by a name on the `PATH` of `env`.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
}

/// A server under way. Close `input` to ask the server to end; then call [`ServerHold::end`].
pub struct Served {
    /// What it reads.
    pub input: pipe::Sender,
    /// What it writes.
    pub output: ChildStdout,
    /// Keeps it alive.
    pub hold: ServerHold,
}

/// The hold on a server. Dropped, the server is killed with all it started.
pub struct ServerHold {
    child: Child,
    /// Only without a guard: the group to kill.
    group: Option<rustix::process::Pid>,
    errors: JoinHandle<()>,
    said: Arc<Mutex<Vec<u8>>>,
}

/// Starts a server. `guard` is this binary, which answers to [`SERVER_COMMAND`]; without one the
/// server is held by its process group alone. Must be called on a runtime. A program that cannot be
/// found is an error only without a guard; with one, the guard says so on the standard error and
/// its streams close.
pub fn serve(launch: &ServerLaunch, guard: Option<&Path>) -> io::Result<Served> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let guard = guard.filter(|_| cfg!(target_os = "linux"));
    let (reader, mut writer) = io::pipe()?;
    let mut command = match guard {
        // The guard runs outside of everything, so nothing of the server's environment may reach
        // it: that follows over its input.
        Some(guard) => {
            let mut command = Command::new(guard);
            command.arg(SERVER_COMMAND).env_clear().current_dir("/");
            command
        }
        None => {
            let mut command = Command::new(&launch.program);
            command
                .args(&launch.arguments)
                .env_clear()
                .envs(launch.env.iter().map(|(name, value)| (name, value)))
                .current_dir(&launch.cwd);
            command
        }
    };
    command
        .stdin(reader)
        .stdout(Stdio::piped())
        .stderr(OwnedFd::from(theirs))
        .process_group(0);
    let mut child = command.spawn()?;
    // Their ends of pipe and socket are in there.
    drop(command);
    if guard.is_some() {
        writer.write_all(&order(launch)?)?;
    }
    let missing = || io::Error::other("a child without its pipes");
    let output = child.stdout.take().ok_or_else(missing)?;
    let input = pipe::Sender::from_owned_fd(writer.into())?;
    let said = Arc::new(Mutex::new(Vec::new()));
    let errors = tokio::spawn(listen(UnixStream::from_std(ours)?, said.clone()));
    let group = match guard {
        Some(_) => None,
        None => child.id().and_then(|id| i32::try_from(id).ok()),
    };
    let hold = ServerHold {
        child,
        group: group.and_then(rustix::process::Pid::from_raw),
        errors,
        said,
    };
    Ok(Served {
        input,
        output,
        hold,
    })
}

#[cfg(target_os = "linux")]
fn order(launch: &ServerLaunch) -> io::Result<Vec<u8>> {
    let line = CommandLine {
        program: launch.program.clone(),
        arguments: launch.arguments.clone(),
        env: launch.env.clone(),
    };
    crate::sandbox::server_order(&line, &launch.cwd).map_err(io::Error::other)
}

/// Guards exist on Linux only.
#[cfg(not(target_os = "linux"))]
fn order(_launch: &ServerLaunch) -> io::Result<Vec<u8>> {
    Ok(Vec::new())
}

/// Collects what it says on its standard error. Our end of the lifeline lives in here. It ends when
/// the guard has ended, or is aborted to kill the server.
async fn listen(mut errors: UnixStream, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let mut said = said.lock();
        said.extend_from_slice(&buffer[..count]);
        let surplus = said.len().saturating_sub(STDERR_TAIL);
        said.drain(..surplus);
    }
}

impl ServerHold {
    /// The end of what it said on its standard error.
    pub fn stderr_tail(&self) -> String {
        String::from_utf8_lossy(&self.said.lock()).trim().to_owned()
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, however long that takes. The code it ended with, as in
    /// [`ServerHold::exit_code`].
    pub async fn wait(&mut self) -> Option<i32> {
        self.child.wait().await.ok()?.code()
    }

    /// The code it ended with. `None` while it runs, and if a signal ended it.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().ok().flatten()?.code()
    }

    /// Waits a little for its own end (its input must be closed), then kills what is left. Takes
    /// four seconds at most. Unless it had to be killed, what the server said last is in
    /// [`ServerHold::stderr_tail`] afterwards.
    pub async fn end(&mut self) {
        if timeout(FAREWELL, self.child.wait()).await.is_err() {
            self.kill();
            let _ = timeout(KILLING, self.child.wait()).await;
        }
        // What it said last may still be on its way.
        if !self.errors.is_finished() {
            let _ = timeout(FAREWELL, &mut self.errors).await;
        }
    }

    fn kill(&mut self) {
        // The guard sees its lifeline close; a mere group has to be killed.
        self.errors.abort();
        if let Some(group) = self.group.filter(|_| self.child.id().is_some()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for ServerHold {
    fn drop(&mut self) {
        self.kill();
    }
}
