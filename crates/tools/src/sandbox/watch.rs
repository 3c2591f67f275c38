//! One command under watch: started, ended with all it started, and what it left put right.
//!
//! A command is confined and started, followed until it has ended (by itself, by an order over the
//! lifeline, or for taking too much), and whatever it started is killed. Only then are placeholders
//! removed and protected paths compared, so nothing can change them again before the report. An
//! error on the way makes the command fail, also where it succeeded itself.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream, process::CommandExt},
    },
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::MemfdFlags,
    process::{Pid, Signal, WaitOptions, WaitStatus, getpid},
};

use super::{
    Network, SandboxPolicy,
    bubblewrap::Bubblewrap,
    child_events::ChildEvents,
    family,
    guard::send,
    keep::Kept,
    landlock::Confinement,
    layout::Layout,
    namespaces::{Prepared, Purpose},
    nested,
    order::{self, CommandLine, GuardedEnd, Means, Order, Report, Restored},
    overuse::Overuse,
    placeholders::Placeholders,
    seccomp::{self, Sockets, Truncation},
    status::{HowEnded, Status, is_readable},
};

/// How long what a command left in the background may take to end by itself: enough for the
/// output of a process substitution to arrive.
const LINGER: Duration = Duration::from_millis(200);

/// At most this many names are reported.
const NAMES: usize = 20;

/// Runs the command that is ordered over `control`, and reports. It gets the namespaces that are
/// `prepared` if they are what it needs; `taken` is told what that is.
pub(super) fn watch(
    control: &UnixStream,
    output: OwnedFd,
    prepared: Option<Prepared>,
    taken: impl FnOnce(Option<Purpose>),
) {
    let report = match Watch::begin(control, output, prepared, taken) {
        Ok(watch) => watch.conclude(control),
        Err(error) => Report::Failed {
            reason: error.to_string(),
        },
    };
    send(control, &report);
}

/// A command under way.
struct Watch {
    family: Family,
    events: ChildEvents,
    policy: SandboxPolicy,
    kept: Kept,
    placeholders: Placeholders,
    status: Option<Status>,
    begun: SystemTime,
    confined: bool,
    /// Looks for what the kernel does not limit, and tells of it in the command's output.
    overuse: Overuse,
}

impl Watch {
    fn begin(
        control: &UnixStream,
        output: OwnedFd,
        prepared: Option<Prepared>,
        taken: impl FnOnce(Option<Purpose>),
    ) -> io::Result<Self> {
        let (order, line) = order::decode(control)?;
        rustix::process::set_child_subreaper(Some(getpid()))?;
        let events = ChildEvents::new()?;
        let Order {
            means,
            mut policy,
            cwd,
        } = order;
        let purpose = match means {
            Means::Namespaces(namespaces) => Some(Purpose::of(namespaces, &policy)),
            _ => None,
        };
        taken(purpose);
        let prepared = prepared.and_then(|prepared| prepared.for_purpose(purpose));
        let overuse = match means {
            Means::Nothing => Overuse::default(),
            _ => Overuse::watch(&mut policy, output.try_clone()?),
        };
        let mut watch = Self {
            overuse,
            family: Family::default(),
            events,
            policy,
            kept: Kept::default(),
            placeholders: Placeholders::default(),
            status: None,
            begun: SystemTime::now(),
            confined: means != Means::Nothing,
        };
        let started = match means {
            Means::Namespaces(namespaces) => {
                let prepared = match prepared {
                    Some(prepared) => Ok(prepared),
                    None => Prepared::make(Purpose::of(namespaces, &watch.policy)),
                };
                let started = prepared
                    .and_then(|prepared| watch.start_behind(prepared, &line, &cwd, &output));
                // The command has it; who reads it waits for its last holder.
                drop(output);
                started
            }
            Means::Bubblewrap(bubblewrap) => watch.start_in(&bubblewrap, &line, &cwd, output),
            Means::Landlock => watch.start_under_landlock(&line, &cwd, output),
            Means::Nothing => start_unconfined(plain(&line, &cwd), output),
        };
        match started {
            Ok(main) => {
                watch.family.main = Some(main);
                Ok(watch)
            }
            Err(error) => {
                watch.placeholders.release()?;
                Err(error)
            }
        }
    }

    fn start_in(
        &mut self,
        bubblewrap: &Bubblewrap,
        line: &CommandLine,
        cwd: &std::path::Path,
        output: OwnedFd,
    ) -> io::Result<Pid> {
        let layout = self.lay_out()?;
        let policy = &self.policy;
        let arguments = bubblewrap.arguments(policy, &layout, line, cwd);
        let sockets = match policy.network {
            // The machine's own network namespace has local sockets without a file.
            Network::Allowed => Sockets::NetworkOnly,
            Network::Denied | Network::Proxy(_) => Sockets::Namespaced,
        };
        let mut inherited = vec![nul_separated(&arguments)?];
        for filter in seccomp::filters(sockets, Truncation::Allowed)? {
            inherited.push(anonymous(&seccomp::bytes(filter))?);
        }
        let (status, told) = io::pipe()?;
        rustix::io::fcntl_setfd(&told, rustix::io::FdFlags::empty())?;
        let mut command = Command::new(&bubblewrap.program);
        let number = |fd: &dyn AsRawFd| fd.as_raw_fd().to_string();
        command.arg("--args").arg(number(&inherited[0]));
        for filter in &inherited[1..] {
            command.arg("--add-seccomp-fd").arg(number(filter));
        }
        command.arg("--json-status-fd").arg(number(&told));
        command
            .arg("--")
            .arg(&line.program)
            .args(&line.arguments)
            .env_clear()
            .current_dir("/");
        let limits = policy.limits.clone();
        let main = start(command, output, move |()| limits.enforce())?;
        self.status = Some(Status::Bubblewrap(File::from(OwnedFd::from(status))));
        Ok(main)
    }

    fn start_behind(
        &mut self,
        prepared: Prepared,
        line: &CommandLine,
        cwd: &std::path::Path,
        output: &OwnedFd,
    ) -> io::Result<Pid> {
        let layout = match self.lay_out() {
            Ok(layout) => layout,
            Err(error) => {
                prepared.discard();
                return Err(error);
            }
        };
        let started = prepared.start(&self.policy, layout, (line, cwd), output)?;
        self.status = Some(Status::Init(started.told));
        Ok(started.init)
    }

    /// Sees to what is protected: by mounts where they can cover it, by a check afterwards
    /// elsewhere.
    fn lay_out(&mut self) -> io::Result<Layout> {
        self.policy.layers.make_places();
        let policy = &self.policy;
        if let Some(registry) = &policy.registry {
            self.placeholders =
                Placeholders::acquire(registry, &policy.protected, &policy.writable)?;
        }
        let mut layout = Layout::of(policy);
        let uncovered = std::mem::take(&mut layout.uncovered);
        self.kept = Kept::take(uncovered, &policy.writable)?;
        Ok(layout)
    }

    fn start_under_landlock(
        &mut self,
        line: &CommandLine,
        cwd: &std::path::Path,
        output: OwnedFd,
    ) -> io::Result<Pid> {
        let policy = &self.policy;
        let protected = policy.protected.iter().map(|one| one.path.clone());
        self.kept = Kept::take(protected, &policy.writable)?;
        let mut confinement = Confinement::prepare(policy)?;
        let limits = policy.limits.clone();
        start(plain(line, cwd), output, move |()| {
            limits.enforce()?;
            confinement.enforce()
        })
    }

    fn conclude(mut self, control: &UnixStream) -> Report {
        let leftovers = self.follow(control);
        self.overuse.close();
        self.family.kill_all(&self.events);
        let released = std::mem::take(&mut self.placeholders).release();
        let restored = self.put_right();
        let (leftovers, restored) = match (leftovers, restored, released) {
            (Ok(leftovers), Ok(restored), Ok(())) => (leftovers, restored),
            (Err(error), ..) => return Report::broken(&error.to_string()),
            (_, Err(error), _) => {
                return Report::broken(&format!(
                    "a protected path was changed and could not be put back: {error}"
                ));
            }
            (.., Err(error)) => {
                return Report::broken(&format!("a placeholder could not be taken away: {error}"));
            }
        };
        let how = match self.status {
            Some(status) => match status.how_ended(&self.family) {
                Ok(how) => how,
                Err(report) => return report,
            },
            None => self.family.how_ended(),
        };
        Report::Ended(GuardedEnd {
            code: how.code,
            signal: how.signal,
            leftovers,
            restored,
        })
    }

    /// Whether the command itself has ended, whatever it left behind.
    fn has_ended(&self) -> bool {
        match self.status.as_ref().and_then(Status::told) {
            Some(told) => is_readable(told),
            None => self.family.ended.is_some(),
        }
    }

    /// Undoes what the command did to protected paths.
    fn put_right(&self) -> io::Result<Vec<Restored>> {
        let quarantine = &self.policy.quarantine;
        let mut restored = self.kept.put_back(quarantine)?;
        if self.confined {
            restored.extend(nested::defuse(
                &self.policy.workspace,
                self.begun,
                quarantine,
            )?);
        }
        Ok(restored)
    }

    /// Returns the names of what had to be killed after the command's own end. Once we were asked
    /// to end it, whoever is left has until the lifeline closes.
    fn follow(&mut self, control: &UnixStream) -> io::Result<Vec<String>> {
        let mut lingering: Option<Instant> = None;
        while self.family.collect(&self.events) {
            if self.overuse.is_found() {
                self.family.asked = true;
                self.family.kill_all(&self.events);
                continue;
            }
            let mut pause = self.overuse.pause();
            if self.has_ended() {
                let since = *lingering.get_or_insert_with(Instant::now);
                let left = LINGER.saturating_sub(since.elapsed());
                if !self.family.asked {
                    if left.is_zero() {
                        let own = self.status.as_ref().map(Status::own_name);
                        return Ok(family::names(NAMES, own));
                    }
                    pause = Some(left);
                }
            }
            let told = self.status.as_ref().and_then(Status::told);
            let told = told.filter(|_| lingering.is_none());
            match next_word(control, &self.events, told, pause)? {
                Word::Nothing => {}
                Word::End => {
                    self.family.asked = true;
                    self.family.ask_to_end(self.status.is_some());
                }
                Word::Gone => {
                    self.family.asked = true;
                    self.family.kill_all(&self.events);
                }
            }
        }
        Ok(Vec::new())
    }
}

/// A command with nothing but its own arguments, variables and directory.
pub(super) fn plain(line: &CommandLine, cwd: &std::path::Path) -> Command {
    let mut command = Command::new(&line.program);
    command
        .args(&line.arguments)
        .env_clear()
        .envs(line.env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd);
    command
}

/// Starts a command in a process group of its own. Without code of ours between fork and exec, no
/// memory of this process has to be copied for it.
fn start_unconfined(mut command: Command, output: OwnedFd) -> io::Result<Pid> {
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    spawn(command)
}

fn spawn(mut command: Command) -> io::Result<Pid> {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("a child without an id"))
}

#[allow(unsafe_code)]
fn start(
    mut command: Command,
    output: OwnedFd,
    mut confine: impl FnMut(()) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<Pid> {
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    // SAFETY: this process has one thread, so the code after the fork finds every lock free.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            confine(())
        });
    }
    spawn(command)
}

/// A file in memory that programs we start inherit, positioned at its beginning.
fn anonymous(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("codespar", MemfdFlags::empty())?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn nul_separated(arguments: &[OsString]) -> io::Result<File> {
    let mut bytes = Vec::new();
    for word in arguments {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    anonymous(&bytes)
}

/// The command and everything below it.
#[derive(Default)]
pub(super) struct Family {
    main: Option<Pid>,
    pub(super) ended: Option<WaitStatus>,
    /// Whether we did anything to end it.
    pub(super) asked: bool,
}

impl Family {
    pub(super) fn of(main: Pid) -> Self {
        Self {
            main: Some(main),
            ..Self::default()
        }
    }

    /// How the command itself ended.
    fn how_ended(&self) -> HowEnded {
        HowEnded {
            code: self.ended.and_then(|status| status.exit_status()),
            signal: self.ended.and_then(|status| status.terminating_signal()),
        }
    }

    /// Collects what has ended; says whether anybody is left.
    pub(super) fn collect(&mut self, events: &ChildEvents) -> bool {
        events.clear();
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if Some(pid) == self.main {
                        self.ended = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Asks everybody; bubblewrap itself waits for the command's end and tells of it.
    fn ask_to_end(&self, in_bubblewrap: bool) {
        match self.main.filter(|_| in_bubblewrap) {
            Some(main) => family::signal_below(main, Signal::TERM),
            None => family::signal_all(Signal::TERM, &[]),
        }
    }

    /// Repeats, as processes may be forked while others are killed; returns when none is left.
    pub(super) fn kill_all(&mut self, events: &ChildEvents) {
        while self.collect(events) {
            family::signal_all(Signal::KILL, &[]);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What the lifeline says.
enum Word {
    Nothing,
    End,
    Gone,
}

/// Waits for the lifeline, a child's end or what the sandbox tells, but not longer than `pause`.
fn next_word(
    mut control: &UnixStream,
    events: &ChildEvents,
    told: Option<&File>,
    pause: Option<Duration>,
) -> io::Result<Word> {
    let mut fds = vec![
        PollFd::new(control, PollFlags::IN),
        PollFd::new(events, PollFlags::IN),
    ];
    fds.extend(told.map(|told| PollFd::new(told, PollFlags::IN)));
    let pause = pause.map(|pause| Timespec {
        tv_sec: pause.as_secs().cast_signed(),
        tv_nsec: pause.subsec_nanos().into(),
    });
    match poll(&mut fds, pause.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if fds[0].revents().is_empty() {
        return Ok(Word::Nothing);
    }
    let mut bytes = [0; 16];
    match control.read(&mut bytes) {
        Ok(0) | Err(_) => Ok(Word::Gone),
        Ok(_) => Ok(Word::End),
    }
}
