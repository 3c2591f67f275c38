//! One call of git: its arguments, input and limits, and what it left.
//!
//! A call is built by value and consumed by one of three ends: [`GitCall::run`] blocks this thread,
//! [`GitCall::finish`] a thread of the pool, [`GitCall::stream`] hands the output over as it comes.
//! None of them returns while git may still be running unattended: an error, a dropped future or a
//! dropped stream ends its process group.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::{Seek, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use crate::{
    GitError,
    environment::{PERSON, fixed, guards, program},
    pump::{Pump, StopOnDrop},
    stream::Stream,
    view::View,
};

/// How much a call may write and how long it may take.
#[derive(Debug, Clone, Copy)]
pub struct GitLimits {
    /// Bytes of standard output. Past it git is ended and the call is an error; nothing is cut off
    /// silently.
    pub bytes: usize,
    /// From start to end.
    pub time: Duration,
    /// Bytes of memory that it may allocate; a crafted tree can ask for any amount. The kernel
    /// enforces it (`RLIMIT_DATA`): git fails with a message of its own. Linux only.
    pub memory: u64,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            time: Duration::from_secs(300),
            memory: 4 << 30,
        }
    }
}

/// Standard input. Bytes are put into a file first, see `as_file`.
enum Input {
    Nothing,
    Bytes(Vec<u8>),
    File(File),
}

/// A call that is not started yet.
pub struct GitCall {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    directory: PathBuf,
    /// Programs are not looked for in here.
    repository: Option<PathBuf>,
    input: Input,
    limits: GitLimits,
    largest_file: Option<u64>,
    /// Settings of our own for this call.
    config: Vec<(String, OsString)>,
    /// Keys of guards that do not hold for it.
    lifted: Vec<&'static str>,
    /// Stays until the call is over.
    view: Option<Arc<View>>,
}

/// What a call left.
#[derive(Debug)]
pub struct Output {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// The beginning of standard error.
    pub message: String,
    pub(crate) command: String,
}

impl Output {
    /// Standard output as text, trimmed.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).trim().to_owned()
    }

    /// The call itself if it succeeded, otherwise what git said.
    pub fn checked(self) -> Result<Self, GitError> {
        match self.code {
            Some(0) => Ok(self),
            _ => Err(self.failure()),
        }
    }

    /// As an error, whatever the exit code. Git's own message if it wrote one, otherwise the exit
    /// code.
    pub fn failure(&self) -> GitError {
        GitError::Failed {
            command: self.command.clone(),
            message: match (self.message.trim(), self.code) {
                ("", Some(code)) => format!("exit code {code}"),
                ("", None) => "it was killed".to_owned(),
                (message, _) => message.to_owned(),
            },
        }
    }
}

impl GitCall {
    /// A call with nothing but the fixed environment, in `directory`.
    pub(crate) fn detached<S: AsRef<OsStr>>(
        args: impl IntoIterator<Item = S>,
        directory: &Path,
    ) -> Self {
        Self {
            args: args
                .into_iter()
                .map(|arg| arg.as_ref().to_owned())
                .collect(),
            env: fixed(),
            directory: directory.to_owned(),
            repository: None,
            input: Input::Nothing,
            limits: GitLimits::default(),
            largest_file: None,
            config: Vec::new(),
            lifted: Vec::new(),
            view: None,
        }
    }

    pub(crate) fn of_repository(mut self, root: Option<&Path>, view: Option<Arc<View>>) -> Self {
        self.repository = root.map(Path::to_owned);
        self.view = view;
        self
    }

    /// Sets a variable of its environment. It replaces one of the fixed environment of the same
    /// name, so a caller can also weaken that: only names and values of our own belong here.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.into()));
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// Lets it read the user's own settings, and the system's.
    pub(crate) fn with_person(mut self) -> Self {
        for name in PERSON {
            self = self.without_env(name);
            if let Some(value) = env::var_os(name) {
                self = self.env(*name, value);
            }
        }
        self
    }

    /// Settings for this call. They are in its environment, not among its arguments, where other
    /// processes could see them.
    pub(crate) fn with_config<V: Into<OsString> + Clone>(
        mut self,
        settings: &[(String, V)],
    ) -> Self {
        let settings = settings.iter().cloned();
        self.config
            .extend(settings.map(|(key, value)| (key, value.into())));
        self
    }

    /// Lifts a guard, by its key: what it forbids is the purpose of the call.
    pub(crate) fn without_guard(mut self, key: &'static str) -> Self {
        self.lifted.push(key);
        self
    }

    pub(crate) fn flag_after_command(mut self, flag: &str) -> Self {
        let at = self.args.len().min(1);
        self.args.insert(at, flag.into());
        self
    }

    /// What it reads from standard input.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// A file that it reads from standard input.
    #[must_use]
    pub fn input_file(mut self, file: File) -> Self {
        self.input = Input::File(file);
        self
    }

    /// Other limits than the usual ones.
    #[must_use]
    pub fn limits(mut self, limits: GitLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Ends it if it writes a larger file than this. Linux only.
    #[must_use]
    pub(crate) fn largest_file(mut self, bytes: u64) -> Self {
        self.largest_file = Some(bytes);
        self
    }

    /// Runs it to its end on this thread.
    pub fn run(self) -> Result<Output, GitError> {
        self.run_until(&Arc::default())
    }

    /// Runs it on the pool of blocking threads. Dropping the future ends git. It happens on that
    /// thread: it notices within a tenth of a second, then gives git two seconds to remove its lock
    /// files.
    pub async fn finish(self) -> Result<Output, GitError> {
        let command = self.name();
        let guard = StopOnDrop::default();
        let stop = guard.stop();
        let running = tokio::task::spawn_blocking(move || self.run_until(&stop));
        let output = running.await.map_err(|error| GitError::Start {
            command,
            source: std::io::Error::other(error),
        })?;
        drop(guard);
        output
    }

    /// Starts it, to be read while it runs. Standard error is discarded, because nobody would read
    /// it while standard output is read.
    pub fn stream(self) -> Result<Stream, GitError> {
        let (command, limits) = (self.name(), self.limits);
        let (child, view) = self.spawn(Stdio::null())?;
        Ok(Stream::new(child, command, limits, view))
    }

    fn run_until(self, stop: &Arc<crate::pump::Stop>) -> Result<Output, GitError> {
        let (command, limits) = (self.name(), self.limits);
        let (child, _view) = self.spawn(Stdio::piped())?;
        Pump::new(child, command, limits, stop.clone()).run()
    }

    /// The subcommand, for messages.
    fn name(&self) -> String {
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if arg == "-c" {
                args.next();
            } else {
                return arg.to_string_lossy().into_owned();
            }
        }
        String::new()
    }

    /// Starts git in a process group of its own. The view comes back with the child: it has to
    /// outlive the process, whose git directory it is.
    fn spawn(self, errors: Stdio) -> Result<(Child, Option<Arc<View>>), GitError> {
        let name = self.name();
        let failed = |source| GitError::Start {
            command: name.clone(),
            source,
        };
        if let Some(view) = &self.view {
            view.refresh_head()?;
        }
        let (program, path) = program(self.repository.as_deref())?;
        let stdin = match self.input {
            Input::Nothing => Stdio::null(),
            Input::File(file) => file.into(),
            Input::Bytes(bytes) => as_file(&bytes).map_err(failed)?.into(),
        };
        let child = Command::new(program)
            .args(guards(&self.lifted))
            .args(&self.args)
            .env_clear()
            .env("PATH", path)
            .envs(self.env)
            .envs(numbered(self.config))
            .current_dir(&self.directory)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        limit(&child, self.limits.memory, self.largest_file);
        Ok((child, self.view))
    }
}

/// As git reads settings from its environment.
fn numbered(config: Vec<(String, OsString)>) -> Vec<(String, OsString)> {
    if config.is_empty() {
        return Vec::new();
    }
    let count = (
        "GIT_CONFIG_COUNT".to_owned(),
        config.len().to_string().into(),
    );
    let pairs = config
        .into_iter()
        .enumerate()
        .flat_map(|(at, (key, value))| {
            [
                (format!("GIT_CONFIG_KEY_{at}"), key.into()),
                (format!("GIT_CONFIG_VALUE_{at}"), value),
            ]
        });
    [count].into_iter().chain(pairs).collect()
}

/// Set from outside, right after the start, so that nothing of ours has to run between `fork` and
/// `exec`. What git starts later inherits it.
#[cfg(target_os = "linux")]
fn limit(child: &Child, memory: u64, largest_file: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let limits = [
        (Resource::Data, Some(memory)),
        (Resource::Fsize, largest_file),
    ];
    for (resource, most) in limits {
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        // A git that is gone already needs no limit.
        let _ = pid
            .filter(|_| most.is_some())
            .map(|pid| prlimit(Some(pid), resource, limit));
    }
}

#[cfg(not(target_os = "linux"))]
fn limit(_: &Child, _: u64, _: Option<u64>) {}

/// A file without a name: no writer has to keep up with a git that reads and writes at once.
fn as_file(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
