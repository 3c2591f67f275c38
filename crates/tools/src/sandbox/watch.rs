//! One command under watch: started, ended with all it started, and what it left put right.

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
    namespaces::{self, Namespaces, Told},
    nested,
    order::{self, CommandLine, GuardedEnd, Means, Order, Report, Restored},
    overuse::Overuse,
    placeholders::Placeholders,
    seccomp::{self, Sockets, Truncation},
};

/// How long what a command left in the background may take to end by itself: enough for the
/// output of a process substitution to arrive.
const LINGER: Duration = Duration::from_millis(200);

/// At most this many names are reported.
const NAMES: usize = 20;

/// The name of bubblewrap's own processes.
const BUBBLEWRAP: &str = "bwrap";

/// Runs the command that is ordered over `control`, and reports.
pub(super) fn watch(control: &UnixStream, output: OwnedFd) {
    let report = match Watch::begin(control, output) {
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

/// Where the sandbox tells how the command ended.
enum Status {
    /// By the first process inside.
    Init(File),
    /// By bubblewrap, which ends with the command.
    Bubblewrap(File),
}

impl Watch {
    fn begin(control: &UnixStream, output: OwnedFd) -> io::Result<Self> {
        let (order, line) = order::decode(control)?;
        rustix::process::set_child_subreaper(Some(getpid()))?;
        let events = ChildEvents::new()?;
        let Order {
            means,
            mut policy,
            cwd,
        } = order;
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
            Means::Namespaces(namespaces) => watch.start_behind(namespaces, &line, &cwd, output),
            Means::Bubblewrap(bubblewrap) => watch.start_in(&bubblewrap, &line, &cwd, output),
            Means::Landlock => watch.start_under_landlock(&line, &cwd, output),
            Means::Nothing => start(plain(&line, &cwd), output, |()| Ok(())),
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
        namespaces: Namespaces,
        line: &CommandLine,
        cwd: &std::path::Path,
        output: OwnedFd,
    ) -> io::Result<Pid> {
        let layout = self.lay_out()?;
        let mut command = plain(line, cwd);
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let started = namespaces.start(&self.policy, &layout, command)?;
        self.status = Some(Status::Init(started.told));
        Ok(started.init)
    }

    /// Sees to what is protected: by mounts where they can cover it, by a check afterwards elsewhere.
    fn lay_out(&mut self) -> io::Result<Layout> {
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
            (Err(error), ..) => return broken(&error.to_string()),
            (_, Err(error), _) => {
                return broken(&format!(
                    "a protected path was changed and could not be put back: {error}"
                ));
            }
            (.., Err(error)) => {
                return broken(&format!("a placeholder could not be taken away: {error}"));
            }
        };
        let (code, signal) = match how_ended(self.status, &self.family) {
            Ok(how) => how,
            Err(report) => return report,
        };
        Report::Ended(GuardedEnd {
            code,
            signal,
            leftovers,
            restored,
        })
    }

    /// Whether the command itself has ended, whatever it left behind.
    fn has_ended(&self) -> bool {
        match &self.status {
            Some(Status::Init(told)) => is_readable(told),
            _ => self.family.ended.is_some(),
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
                        let own = self.status.as_ref().map(|status| match status {
                            Status::Init(_) => namespaces::INIT,
                            Status::Bubblewrap(_) => BUBBLEWRAP,
                        });
                        return Ok(family::names(NAMES, own));
                    }
                    pause = Some(left);
                }
            }
            let told = match &self.status {
                Some(Status::Init(told)) if lingering.is_none() => Some(told),
                _ => None,
            };
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

/// The command's exit code, or the signal that ended it.
fn how_ended(
    status: Option<Status>,
    family: &Family,
) -> Result<(Option<i32>, Option<i32>), Report> {
    let killed = Ok((None, Some(Signal::KILL.as_raw())));
    match status {
        None => Ok((
            family.ended.and_then(|status| status.exit_status()),
            family.ended.and_then(|status| status.terminating_signal()),
        )),
        Some(Status::Init(told)) => match Told::read(told) {
            Some(Told::Exited(code)) => Ok((Some(code), None)),
            Some(Told::Signalled(signal)) => Ok((None, Some(signal))),
            Some(Told::Failed(reason)) => Err(Report::Failed { reason }),
            None if family.asked => killed,
            None => Err(broken("the sandbox was killed")),
        },
        Some(Status::Bubblewrap(told)) => match exit_code_in(told) {
            Ok(Some(code)) => Ok((Some(code), None)),
            _ if family.asked => killed,
            _ if family.ended.is_some_and(|end| end.exit_status().is_some()) => {
                Err(Report::NotSetUp)
            }
            _ => Err(broken("bubblewrap was killed")),
        },
    }
}

fn broken(reason: &str) -> Report {
    Report::Broken {
        reason: reason.to_owned(),
    }
}

fn plain(line: &CommandLine, cwd: &std::path::Path) -> Command {
    let mut command = Command::new(&line.program);
    command
        .args(&line.arguments)
        .env_clear()
        .envs(line.env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd);
    command
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
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("a child without an id"))
}

/// A file in memory that programs we start inherit, positioned at its beginning.
fn anonymous(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("codespar", MemfdFlags::empty())?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn nul_separated(words: &[OsString]) -> io::Result<File> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    anonymous(&bytes)
}

fn is_readable(file: &File) -> bool {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// The last of the documents that bubblewrap wrote, if the command was run at all.
fn exit_code_in(status: File) -> io::Result<Option<i32>> {
    #[derive(serde::Deserialize)]
    struct Document {
        #[serde(rename = "exit-code")]
        exit_code: Option<i32>,
    }
    let mut text = Vec::new();
    status.take(64 << 10).read_to_end(&mut text)?;
    let documents = serde_json::Deserializer::from_slice(&text).into_iter::<Document>();
    Ok(documents.flatten().filter_map(|one| one.exit_code).last())
}

/// The command and everything below it.
#[derive(Default)]
pub(super) struct Family {
    main: Option<Pid>,
    pub(super) ended: Option<WaitStatus>,
    /// Whether we did anything to end it.
    asked: bool,
}

impl Family {
    pub(super) fn of(main: Pid) -> Self {
        Self {
            main: Some(main),
            ..Self::default()
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
