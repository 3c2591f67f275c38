//! Running a command to its end: output captured, time limited, nothing left behind.
//!
//! A command is asked of the sandbox, which starts it in a guard or says what to start directly
//! (`guarded`, `direct`). While it runs, its output is read, turned into plain text and redacted
//! (`plain`, `capture`), and kept in memory or in a file (`spill`). At its deadline, or when it is
//! cancelled, it is ended in steps:
//!
//! ```text
//! running -- deadline, cancelled --> asked -- GRACE --> killed -- GUARD_GRACE --> given up
//! ```
//!
//! Servers, which run until they are let go of, have a module of their own (`server`).

mod capture;
mod direct;
#[cfg(target_os = "linux")]
mod guarded;
mod hold;
mod plain;
mod server;
mod spill;

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use crate::{
    egress::Gateway,
    sandbox::{
        Approval, CommandLine, Network, Restored, Sandbox, SandboxError, SandboxPolicy, Wrapped,
    },
};

pub use capture::Capture;
pub use server::{Served, ServerHold, ServerLaunch, serve};

/// How long a command may take to end once it was asked to.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long we wait for the guard's report once it was told to kill everything; after that we go on
/// without one.
const GUARD_GRACE: Duration = Duration::from_secs(3);

/// How long output of a process that ended may still arrive. A process that holds on to the pipe
/// may keep it open for ever.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);

/// A command to run. Cloned for each attempt; `env` and `policy` are completed for the network
/// proxy in the clone.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program, by absolute path.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Where it starts. It must be visible in the sandbox.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it may touch, if the sandbox restricts at all.
    pub policy: SandboxPolicy,
    /// Who has said that it may run.
    pub approval: Approval,
    /// How long it may take. Setting up the sandbox counts, the end of the command in steps does
    /// not.
    pub timeout: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with an exit code.
    Exited(i32),
    /// By a signal. Also where the guard killed it for taking too much; the output then says so.
    Signalled(i32),
    /// We stopped it: it took too long. Its exit code, if it had one, is not told.
    TimedOut,
    /// We stopped it: nobody wants it any more.
    Cancelled,
}

/// What is known of a command that has ended. Under a guard, nothing that it started is left then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub ending: Ending,
    /// How long it took.
    pub duration: Duration,
    /// Names of processes it had left in the background; they were stopped.
    pub leftovers: Vec<String>,
    /// Protected paths it had changed; they were put back. Callers count a command with any of them
    /// as failed.
    pub restored: Vec<Restored>,
    /// Hosts that the network proxy refused it, with the reason where it is not the list.
    pub blocked: Vec<String>,
}

/// There is no result of a command. Only after [`ProcessError::Watch`] may it have run, and
/// something it did to protected paths may not have been undone.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("{program} could not be started in {cwd}: {error}")]
    Start {
        program: PathBuf,
        cwd: PathBuf,
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

/// Runs a command; its output goes to `capture`, and `blocked: host` for each host it was refused.
/// When the returned future is dropped, the command and everything it started are killed.
///
/// A command that fails, is stopped or is killed is an `Ok`; see [`Ending`]. On an error `capture`
/// may hold part of the output.
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

/// The gateway lives until the end of the command: without it there is no network.
async fn attempt(
    launch: &Launch,
    sandbox: &Arc<Sandbox>,
    capture: &mut Capture,
    cancel: &CancellationToken,
) -> Result<Ended, ProcessError> {
    let started = Instant::now();
    let (launch, gateway) = connect(launch, sandbox).await?;
    let deadline = started + launch.timeout;
    let mut ended = match wrap(launch.clone(), Arc::clone(sandbox)).await? {
        #[cfg(target_os = "linux")]
        Wrapped::Guarded(guarded) => {
            let running = guarded::Running::new(guarded)?;
            running.finish(deadline, capture, cancel).await?
        }
        Wrapped::Plain(line) => {
            let mut running = direct::Running::start(&launch, &line)?;
            let stopped = running.follow(deadline, capture, cancel).await?;
            let mut ended = running.conclude(capture).await?;
            if let Some(ending) = stopped {
                ended.ending = ending;
            }
            ended
        }
    };
    ended.restored = sandbox.sort_out(ended.restored);
    ended.duration = started.elapsed();
    ended.blocked = gateway.map_or_else(Vec::new, |gateway| gateway.blocked());
    for host in &ended.blocked {
        capture.add_line(&format!("blocked: {host}"));
    }
    Ok(ended)
}

/// Gives the command its way through the network proxy, if there is one. The first call tries the
/// sandbox and asks package managers for their hosts. Without a sandbox that has network namespaces
/// there is no proxy, and the command's network stays as the policy says.
async fn connect(
    launch: &Launch,
    sandbox: &Arc<Sandbox>,
) -> Result<(Launch, Option<Gateway>), ProcessError> {
    let mut launch = launch.clone();
    if !sandbox.has_egress() {
        return Ok((launch, None));
    }
    let asked = Arc::clone(sandbox);
    let Some(egress) = off_runtime(sandbox.is_tried(), move || asked.egress().cloned()).await?
    else {
        return Ok((launch, None));
    };
    let failed = |error| ProcessError::Sandbox(format!("the network proxy: {error}"));
    let gateway = egress.open().await.map_err(failed)?;
    egress.add_variables(&mut launch.env, &launch.cwd).await;
    launch.policy.network = Network::Proxy(gateway.socket().to_path_buf());
    Ok((launch, Some(gateway)))
}

/// Starting a command looks at the disk and may wait for a guard, so it is done on another thread.
/// If this future is dropped meanwhile, a command that the guard starts is killed at once, as
/// nobody takes it.
async fn wrap(launch: Launch, sandbox: Arc<Sandbox>) -> Result<Wrapped, ProcessError> {
    let wrapped = off_runtime(sandbox.starts_at_once(), move || {
        let line = CommandLine {
            program: launch.program.into(),
            arguments: launch.arguments,
            env: launch.env,
        };
        sandbox.wrap(&launch.policy, line, &launch.cwd, launch.approval)
    });
    Ok(wrapped.await??)
}

/// Does what may look at the disk or try the sandbox off the runtime's threads; what is `quick` is
/// done before another thread would have begun.
async fn off_runtime<T: Send + 'static>(
    is_quick: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    if is_quick {
        return Ok(work());
    }
    let work = tokio::task::spawn_blocking(work);
    work.await.map_err(io::Error::other)
}
