//! The guard of a server that talks over its standard streams: it dies with us, with all it
//! started.
//!
//! Input and output are the server's own. The guard's standard error is a socket to us: what the
//! server says on its standard error goes there, and when our end closes (also by our death)
//! everything is killed.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{ChildStderr, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, getpid, pidfd_open},
};

use super::{guard::Family, harden::harden_self, order::FAILED};

/// Zombies are collected at least this often.
const TICK: Duration = Duration::from_millis(500);

/// Runs as the hidden child: `args` are what follows the subcommand, `-- program args…`. Must be
/// called before any thread is started. Returns the exit code for the process.
pub fn server_main(args: impl Iterator<Item = OsString>) -> i32 {
    match keep(args) {
        Ok(code) => code,
        Err(error) => {
            // Nobody may be left to read it.
            let _ = writeln!(io::stderr(), "{error}");
            FAILED
        }
    }
}

fn keep(mut args: impl Iterator<Item = OsString>) -> io::Result<i32> {
    let malformed = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    if args.next().as_deref() != Some(OsStr::new("--")) {
        return Err(malformed("server child: no `--`"));
    }
    let program = args
        .next()
        .ok_or_else(|| malformed("server child: no program"))?;
    // The server must not reach into the process that watches it.
    let _ = harden_self();
    if getpid() != Pid::INIT {
        rustix::process::set_child_subreaper(Some(getpid()))?;
    }
    let (main, errors) = start(&program, args)?;
    let passing_on = pass_on(errors);
    let mut family = Family { main, ended: None };
    let ended = watch(&mut family);
    family.kill_all();
    // Nobody is left to write: what was said last is passed on, then it ends.
    let _ = passing_on.map(thread::JoinHandle::join);
    ended?;
    Ok(family
        .ended
        .and_then(|status| status.exit_status())
        .unwrap_or(FAILED))
}

#[allow(unsafe_code)]
fn start(
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
) -> io::Result<(Pid, Option<ChildStderr>)> {
    let mut command = Command::new(program);
    command.args(args).stderr(Stdio::piped());
    // SAFETY: this process has one thread, so the code after the fork finds every lock free.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
    let mut child = command.spawn().map_err(|error| {
        let words = format!("{} cannot be started: {error}", program.to_string_lossy());
        io::Error::new(error.kind(), words)
    })?;
    let pid = Pid::from_raw(child.id().cast_signed())
        .ok_or_else(|| io::Error::other("a child without an id"))?;
    Ok((pid, child.stderr.take()))
}

/// A pipe for the server rather than our socket: programs open `/dev/stderr` by name.
fn pass_on(errors: Option<ChildStderr>) -> Option<thread::JoinHandle<()>> {
    let mut errors = errors?;
    Some(thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = errors.read(&mut buffer) {
            let _ = io::stderr().write_all(&buffer[..count]);
        }
    }))
}

/// Until the server has ended or nobody holds us any more.
fn watch(family: &mut Family) -> io::Result<()> {
    let main = pidfd_open(family.main, PidfdFlags::empty()).ok();
    let lifeline: OwnedFd = io::stderr().as_fd().try_clone_to_owned()?;
    while family.collect() && family.ended.is_none() {
        let mut fds = vec![PollFd::new(&lifeline, PollFlags::IN)];
        fds.extend(main.as_ref().map(|main| PollFd::new(main, PollFlags::IN)));
        let pause = Timespec {
            tv_sec: TICK.as_secs().cast_signed(),
            tv_nsec: TICK.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&pause)) {
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
