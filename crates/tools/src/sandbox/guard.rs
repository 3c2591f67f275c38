//! The guard: a small process between us and a command that sees to it that nothing survives.
//!
//! It is process 1 of a bubblewrap sandbox, or a subreaper elsewhere; either way everything the
//! command starts stays below it. It watches its lifeline and the command, and ends only when all
//! below it is gone.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open},
};

use super::{
    confine::Confinement,
    family,
    harden::harden_self,
    keep::Kept,
    order::{FAILED, GuardedEnd, Order, Report},
};

/// How long what a command left in the background may take to end by itself: enough for the
/// output of a process substitution to arrive.
const LINGER: Duration = Duration::from_millis(200);

/// Zombies of daemons are collected at least this often.
const TICK: Duration = Duration::from_millis(500);

/// At most this many names are reported.
const NAMES: usize = 20;

/// Runs as the hidden child: `args` are what follows the subcommand, `<order> -- program args…`.
/// Must be called before any thread is started. Returns the exit code for the process.
pub fn child_main(args: impl Iterator<Item = OsString>) -> i32 {
    let report = match Watch::begin(args) {
        Ok(watch) => watch.conclude(),
        Err(error) => Report::Failed {
            reason: error.to_string(),
        },
    };
    // Nobody may be left to read it.
    if let Ok(text) = serde_json::to_string(&report) {
        let _ = writeln!(io::stderr(), "{text}");
    }
    match report {
        Report::Ended(end) => end.code.or(end.signal.map(|signal| 128 + signal)),
        Report::Failed { .. } | Report::Broken { .. } => None,
    }
    .unwrap_or(FAILED)
}

/// A command under way.
struct Watch {
    family: Family,
    kept: Kept,
    order: Order,
    own: Confinement,
}

impl Watch {
    fn begin(mut args: impl Iterator<Item = OsString>) -> io::Result<Self> {
        let order = args.next().ok_or_else(|| malformed("no order"))?;
        let order: Order = serde_json::from_slice(order.as_encoded_bytes())?;
        if args.next().as_deref() != Some(OsStr::new("--")) {
            return Err(malformed("no `--` after the order"));
        }
        let program = args.next().ok_or_else(|| malformed("no command"))?;

        // The command must not reach into the process that watches it.
        let _ = harden_self();
        if getpid() != Pid::INIT {
            rustix::process::set_child_subreaper(Some(getpid()))?;
        }
        let kept = Kept::take(&order.keep)?;
        let own = Confinement::prepare(&order)?;
        let main = start(&order, &program, args)?;
        Ok(Self {
            family: Family { main, ended: None },
            kept,
            order,
            own,
        })
    }

    fn conclude(mut self) -> Report {
        let leftovers = watch(&mut self.family);
        self.family.kill_all();
        let restored = self.put_back();
        match (leftovers, restored) {
            (Ok(leftovers), Ok(restored)) => Report::Ended(GuardedEnd {
                code: self.family.ended.and_then(|status| status.exit_status()),
                signal: self
                    .family
                    .ended
                    .and_then(|status| status.terminating_signal()),
                leftovers,
                restored,
            }),
            (Err(error), _) => Report::Broken {
                reason: error.to_string(),
            },
            (_, Err(error)) => Report::Broken {
                reason: format!("protected files could not be put back: {error}"),
            },
        }
    }

    /// Confined like the command was: no symlink it left may lead us out of the workspace.
    fn put_back(&mut self) -> io::Result<Vec<std::path::PathBuf>> {
        if self.kept.is_untouched()? {
            return Ok(Vec::new());
        }
        self.own.enforce()?;
        self.kept.put_back(&self.order.aside)
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("sandbox child: {what}"),
    )
}

#[allow(unsafe_code)]
fn start(order: &Order, program: &OsStr, args: impl Iterator<Item = OsString>) -> io::Result<Pid> {
    let mut confinement = Confinement::prepare(order)?;
    let errors: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(errors);
    // SAFETY: this process has one thread, so the code after the fork finds every lock free.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            confinement.enforce()
        });
    }
    let child = command.spawn().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{}: {error}", program.to_string_lossy()),
        )
    })?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| malformed("a child without an id"))
}

/// The command and everything below it.
pub(super) struct Family {
    pub(super) main: Pid,
    pub(super) ended: Option<WaitStatus>,
}

impl Family {
    /// Collects what has ended; says whether anybody is left.
    pub(super) fn collect(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.main {
                        self.ended = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    pub(super) fn kill_all(&mut self) {
        while self.collect() {
            family::signal_all(Signal::KILL);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the names of what had to be killed after the command's own end. Once we were asked to
/// end it, whoever is left has until the lifeline closes.
fn watch(family: &mut Family) -> io::Result<Vec<String>> {
    let main = pidfd_open(family.main, PidfdFlags::empty()).ok();
    let mut lingering: Option<Instant> = None;
    let mut asked = false;
    while family.collect() {
        if family.ended.is_some() {
            let since = *lingering.get_or_insert_with(Instant::now);
            if !asked && since.elapsed() > LINGER {
                let names = family::names(NAMES);
                family.kill_all();
                return Ok(names);
            }
        }
        let (watched, pause) = match (&main, lingering) {
            (Some(main), None) => (Some(main), TICK),
            _ => (None, Duration::from_millis(5)),
        };
        match next_word(watched, pause)? {
            Word::Nothing => {}
            Word::End => {
                asked = true;
                family::signal_all(Signal::TERM);
            }
            Word::Gone => family.kill_all(),
        }
    }
    Ok(Vec::new())
}

/// What the lifeline says.
enum Word {
    Nothing,
    End,
    Gone,
}

/// Waits for the lifeline or the command's end, but not longer than `pause`.
fn next_word(main: Option<&OwnedFd>, pause: Duration) -> io::Result<Word> {
    let stdin = io::stdin();
    let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
    fds.extend(main.map(|main| PollFd::new(main, PollFlags::IN)));
    let pause = Timespec {
        tv_sec: pause.as_secs().cast_signed(),
        tv_nsec: pause.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if fds[0].revents().is_empty() {
        return Ok(Word::Nothing);
    }
    let mut bytes = [0; 16];
    match stdin.lock().read(&mut bytes) {
        Ok(0) | Err(_) => Ok(Word::Gone),
        Ok(_) => Ok(Word::End),
    }
}
