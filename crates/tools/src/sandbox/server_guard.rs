//! The guard of a server that talks over its standard streams: it dies with us, with all it
//! started.
//!
//! The guard starts with an empty environment; what to run comes first over its standard input.
//! From then on input and output are the server's own. The guard's standard error is a socket to
//! us: what the server says on its standard error goes there, and when our end closes (also by our
//! death) everything is killed.
//!
//! ```text
//! stdin    the order, then the server's input
//! stdout   the server's output, untouched
//! stderr   a socket to us: the server's standard error, and the lifeline
//! ```
//!
//! The server is not confined: its order has no policy. What the guard adds is an end for
//! everything the server has started, also when we are killed.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{ChildStderr, Command, Stdio},
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, getpid},
};

use super::{
    child_events::ChildEvents,
    harden::harden_self,
    order::{self, CommandLine, FAILED, Means, Order},
    watch::Family,
};

/// Runs as the hidden child. Must be called before any thread is started. Returns the exit code for
/// the process. It is that of the server, or 125 if the server could not be started or a signal
/// ended it.
pub fn server_main(_args: impl Iterator<Item = OsString>) -> i32 {
    match keep() {
        Ok(code) => code,
        Err(error) => {
            // Nobody may be left to read it.
            let _ = writeln!(io::stderr(), "{error}");
            FAILED
        }
    }
}

/// What is written to a server guard's standard input before anything else.
pub(crate) fn server_order(line: &CommandLine, cwd: &Path) -> Result<Vec<u8>, super::SandboxError> {
    let order = Order {
        means: Means::Nothing,
        policy: super::SandboxPolicy::default(),
        cwd: cwd.to_path_buf(),
    };
    order::encode(&order, line)
}

/// Starts the server and stays until all of it has ended. When the server ends by itself, what it
/// has left running is killed.
///
/// In a container the guard can be process 1, which collects orphans without being a subreaper.
fn keep() -> io::Result<i32> {
    // Not through the buffered handle: what follows the order is the server's.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (order, line): (Order, _) = order::decode(&input)?;
    drop(input);
    // The server must not reach into the process that watches it.
    let _ = harden_self();
    if getpid() != Pid::INIT {
        rustix::process::set_child_subreaper(Some(getpid()))?;
    }
    let events = ChildEvents::new()?;
    let (main, errors) = start(&line, &order.cwd)?;
    let passing_on = pass_on(errors);
    let mut family = Family::of(main);
    let ended = watch(&mut family, &events);
    family.kill_all(&events);
    // Nobody is left to write: what was said last is passed on, then it ends.
    let _ = passing_on.map(thread::JoinHandle::join);
    ended?;
    Ok(family
        .ended
        .and_then(|status| status.exit_status())
        .unwrap_or(FAILED))
}

/// The server's input and output are the guard's own, inherited. In a session of its own, the
/// server does not get signals of our terminal; it is killed if the guard dies.
#[allow(unsafe_code)]
fn start(line: &CommandLine, cwd: &Path) -> io::Result<(Pid, Option<ChildStderr>)> {
    let mut command = Command::new(&line.program);
    command
        .args(&line.arguments)
        .env_clear()
        .envs(line.env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        .stderr(Stdio::piped());
    // SAFETY: this process has one thread, so the code after the fork finds every lock free.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
    let mut child = command.spawn().map_err(|error| {
        let program = line.program.to_string_lossy();
        io::Error::new(
            error.kind(),
            format!("{program} cannot be started: {error}"),
        )
    })?;
    let pid = Pid::from_raw(child.id().cast_signed())
        .ok_or_else(|| io::Error::other("a child without an id"))?;
    Ok((pid, child.stderr.take()))
}

/// Copies the server's standard error to our socket. The server gets a pipe rather than the socket:
/// programs open `/dev/stderr` by name, which fails for a socket.
fn pass_on(errors: Option<ChildStderr>) -> Option<thread::JoinHandle<()>> {
    let mut errors = errors?;
    Some(thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = errors.read(&mut buffer) {
            let _ = io::stderr().write_all(&buffer[..count]);
        }
    }))
}

/// Until the server has ended or nobody holds us any more. Does not kill; the caller does in both
/// cases.
fn watch(family: &mut Family, events: &ChildEvents) -> io::Result<()> {
    let lifeline: OwnedFd = io::stderr().as_fd().try_clone_to_owned()?;
    while family.collect(events) && family.ended.is_none() {
        let mut fds = [
            PollFd::new(&lifeline, PollFlags::IN),
            PollFd::new(events, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // We are sent nothing: a lifeline that can be read has been closed.
        if !fds[0].revents().is_empty() {
            return Ok(());
        }
    }
    Ok(())
}
