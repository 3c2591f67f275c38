//! Running a command to its end: output captured, time limited, nothing left behind.

mod capture;
mod hold;
mod plain;
mod server;
mod spill;

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    process::{Child, Command},
    time::{sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    egress::Gateway,
    sandbox::{GuardedEnd, Leash, Network, Report, Sandbox, SandboxError, SandboxPolicy, Wrapped},
};

pub use capture::Capture;
use hold::Hold;
pub use server::{Served, ServerHold, ServerLaunch, serve};

/// How long a command may take to end once it was asked to.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long the guard may take to kill everything before it is killed itself.
const GUARD_GRACE: Duration = Duration::from_secs(3);

/// How long output of a process that ended may still arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A command to run.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program, by absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it may touch, if the sandbox restricts at all.
    pub policy: SandboxPolicy,
    /// How long it may take.
    pub timeout: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with an exit code.
    Exited(i32),
    /// By a signal that was not ours.
    Signalled(i32),
    /// We stopped it: it took too long.
    TimedOut,
    /// We stopped it: nobody wants it any more.
    Cancelled,
}

/// What is known of a command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// How long it took.
    pub duration: Duration,
    /// Names of processes it had left in the background; they were stopped.
    pub leftovers: Vec<String>,
    /// Protected paths it had changed; they were put back.
    pub restored: Vec<PathBuf>,
    /// Hosts that the network proxy refused it, with the reason where it is not the list.
    pub blocked: Vec<String>,
}

/// The command was not run.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("{program} could not be started in {cwd}: {error}")]
    Start {
        /// The program.
        program: PathBuf,
        /// Where.
        cwd: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its sandbox could not be described.
    #[error(transparent)]
    Policy(#[from] SandboxError),
    /// Its sandbox could not be set up.
    #[error("the sandbox could not be set up: {0}")]
    Sandbox(String),
    /// Something on the way to its end failed.
    #[error("the command could not be watched: {0}")]
    Watch(#[from] io::Error),
}

/// Runs a command; its output goes to `capture`, and `blocked: host` for each host it was refused. When the returned future is dropped, the command
/// and everything it started are killed.
pub async fn run(
    launch: &Launch,
    sandbox: &Arc<Sandbox>,
    capture: &mut Capture,
    cancel: &CancellationToken,
) -> Result<Ended, ProcessError> {
    match attempt(launch, sandbox, capture, cancel).await {
        // Something to be mounted had just gone. Nothing was run, so once more is safe.
        Err(ProcessError::Sandbox(reason)) if reason.starts_with("bwrap:") => {
            attempt(launch, sandbox, capture, cancel).await
        }
        other => other,
    }
}

async fn attempt(
    launch: &Launch,
    sandbox: &Arc<Sandbox>,
    capture: &mut Capture,
    cancel: &CancellationToken,
) -> Result<Ended, ProcessError> {
    let started = Instant::now();
    let (launch, gateway) = connect(launch, sandbox).await?;
    let wrapped = wrap(launch.clone(), Arc::clone(sandbox)).await?;
    let mut running = Running::start(&launch, &wrapped)?;
    let deadline = started + launch.timeout;
    let stopped = running.follow(deadline, capture, cancel).await?;
    let mut ended = running.conclude(capture).await?;
    if let Some(ending) = stopped {
        ended.ending = ending;
    }
    ended.restored = sandbox.sort_out(ended.restored);
    ended.duration = started.elapsed();
    ended.blocked = gateway.map_or_else(Vec::new, |gateway| gateway.blocked());
    for host in &ended.blocked {
        capture.add_line(&format!("blocked: {host}"));
    }
    Ok(ended)
}

/// Gives the command its way through the network proxy, if there is one.
async fn connect(
    launch: &Launch,
    sandbox: &Arc<Sandbox>,
) -> Result<(Launch, Option<Gateway>), ProcessError> {
    let mut launch = launch.clone();
    // Asking for the kind may try the sandbox.
    let asked = Arc::clone(sandbox);
    let egress = tokio::task::spawn_blocking(move || asked.egress().cloned());
    let Some(egress) = egress.await.map_err(io::Error::other)? else {
        return Ok((launch, None));
    };
    let failed = |error| ProcessError::Sandbox(format!("the network proxy: {error}"));
    let gateway = egress.open().await.map_err(failed)?;
    egress.add_variables(&mut launch.env, &launch.cwd).await;
    launch.policy.network = Network::Proxy(gateway.socket().to_path_buf());
    Ok((launch, Some(gateway)))
}

/// Looking at the disk and, the first time, trying the sandbox: off the runtime's threads.
async fn wrap(launch: Launch, sandbox: Arc<Sandbox>) -> Result<Wrapped, ProcessError> {
    let wrapped = tokio::task::spawn_blocking(move || {
        sandbox.wrap(
            &launch.policy,
            &launch.program,
            &launch.arguments,
            &launch.cwd,
        )
    });
    Ok(wrapped.await.map_err(io::Error::other)??)
}

struct Running {
    child: Child,
    output: pipe::Receiver,
    hold: Hold,
    leash: Leash,
    closed: bool,
}

impl Running {
    fn start(launch: &Launch, wrapped: &Wrapped) -> Result<Self, ProcessError> {
        let failed = |error| ProcessError::Start {
            program: launch.program.clone(),
            cwd: launch.cwd.clone(),
            error,
        };
        // One pipe for both streams, so that their lines stay in order.
        let (output, input) = io::pipe().map_err(failed)?;
        let mut command = Command::new(&wrapped.program);
        command
            .args(&wrapped.arguments)
            .current_dir(&launch.cwd)
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .process_group(0);
        match wrapped.leash {
            Leash::Guard => command.stdin(Stdio::piped()).stderr(Stdio::piped()),
            Leash::Group => command
                .stdin(Stdio::null())
                .stderr(input.try_clone().map_err(failed)?),
        };
        command.stdout(input);
        let mut child = command.spawn().map_err(failed)?;
        // Our ends of the pipe are in there.
        drop(command);
        Ok(Self {
            hold: Hold::of(&mut child, wrapped.leash),
            output: pipe::Receiver::from_owned_fd(output.into()).map_err(failed)?,
            child,
            leash: wrapped.leash,
            closed: false,
        })
    }

    /// Until the process has ended; says how, if that was our doing.
    async fn follow(
        &mut self,
        deadline: Instant,
        capture: &mut Capture,
        cancel: &CancellationToken,
    ) -> io::Result<Option<Ending>> {
        let mut buffer = vec![0; 64 << 10];
        let mut stopped: Option<Ending> = None;
        let mut next = deadline;
        loop {
            tokio::select! {
                status = self.child.wait() => {
                    status?;
                    return Ok(stopped);
                }
                read = self.output.read(&mut buffer), if !self.closed => match read? {
                    0 => self.closed = true,
                    count => capture.push(&buffer[..count]),
                },
                () = cancel.cancelled(), if stopped.is_none() => {
                    stopped = Some(Ending::Cancelled);
                    next = self.hold.tighten().await;
                }
                () = sleep_until(next.into()) => {
                    stopped.get_or_insert(Ending::TimedOut);
                    next = self.hold.tighten().await;
                }
            }
        }
    }

    /// After the process's end: what it still had to say, and what it left behind.
    async fn conclude(mut self, capture: &mut Capture) -> Result<Ended, ProcessError> {
        self.hold.collected();
        // Already collected, so this does not wait.
        let status = self.child.wait().await?;
        self.drain(capture).await;
        let mut leftovers = Vec::new();
        if !self.closed && self.leash == Leash::Group && self.hold.is_loose() {
            leftovers.push("a process that holds on to the output".to_owned());
        }
        self.hold.clear_out();
        self.drain(capture).await;
        if self.leash == Leash::Guard {
            return self.hear_guard(status).await;
        }
        Ok(Ended {
            ending: ending_of(status),
            duration: Duration::ZERO,
            leftovers,
            restored: Vec::new(),
            blocked: Vec::new(),
        })
    }

    async fn drain(&mut self, capture: &mut Capture) {
        let mut buffer = vec![0; 64 << 10];
        while !self.closed {
            match timeout(LAST_WORDS, self.output.read(&mut buffer)).await {
                Ok(Ok(count)) if count > 0 => capture.push(&buffer[..count]),
                Ok(_) => self.closed = true,
                Err(_) => return,
            }
        }
    }

    async fn hear_guard(
        &mut self,
        status: std::process::ExitStatus,
    ) -> Result<Ended, ProcessError> {
        let mut text = String::new();
        if let Some(errors) = self.child.stderr.take() {
            let mut errors = errors.take(64 << 10);
            let _ = timeout(GUARD_GRACE, errors.read_to_string(&mut text)).await;
        }
        match text.lines().last().map(serde_json::from_str::<Report>) {
            Some(Ok(Report::Ended(end))) => Ok(ended(end)),
            Some(Ok(Report::Failed { reason })) => Err(ProcessError::Sandbox(reason)),
            Some(Ok(Report::Broken { reason })) => Err(io::Error::other(reason).into()),
            _ if self.hold.is_killed() => Ok(Ended {
                ending: ending_of(status),
                duration: Duration::ZERO,
                leftovers: Vec::new(),
                restored: Vec::new(),
                blocked: Vec::new(),
            }),
            Some(Err(_)) => Err(ProcessError::Sandbox(text.trim().to_owned())),
            None => Err(ProcessError::Watch(io::Error::other(format!(
                "its guard ended early ({status}); what it started may still be running"
            )))),
        }
    }
}

fn ended(end: GuardedEnd) -> Ended {
    Ended {
        ending: match (end.code, end.signal) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Signalled(signal),
            (None, None) => Ending::Signalled(9),
        },
        duration: Duration::ZERO,
        leftovers: end.leftovers,
        restored: end.restored,
        blocked: Vec::new(),
    }
}

fn ending_of(status: std::process::ExitStatus) -> Ending {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signalled(signal.unwrap_or(9)),
    }
}
