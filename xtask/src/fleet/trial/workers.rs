//! Worker processes, and what is done to them.
//!
//! A worker is started through `nsenter`, which stays outside of the host and waits for it. Signals
//! go to the worker itself, whose number outside is read from `/proc`.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use codespar_protocol::Labels;
use rustix::process::{Pid, Signal, kill_process};

use super::hosts::{Host, child_of};

/// Handing over tasks takes up to five seconds; the database may be out of reach besides.
const DRAIN_PATIENCE: Duration = Duration::from_secs(60);

/// What every program of a trial is started with.
pub(super) struct Environment {
    pub(super) program: PathBuf,
    /// At the same path on all hosts.
    pub(super) project: PathBuf,
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Environment {
    /// Our program on a host.
    pub(super) fn command(&self, host: &Host, args: &[&str]) -> Command {
        self.command_of(&self.program, host, args)
    }

    /// Another build of it.
    fn command_of(&self, program: &Path, host: &Host, args: &[&str]) -> Command {
        let mut command = host.command(program, &self.project);
        command.args(args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What a build calls itself.
    pub(super) fn version_of(&self, program: &Path, host: &Host) -> Result<String> {
        let output = self.command_of(program, host, &["--version"]).output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        Ok(printed.trim().to_owned())
    }

    /// Runs it to its end; gives what it printed.
    pub(super) fn run(&self, host: &Host, args: &[&str]) -> Result<String> {
        let output = self.command(host, args).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("`codespar {}` on {}: {said}", args.join(" "), host.name);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// What the worker of a host is started as.
#[derive(Debug, Clone)]
pub(super) struct WorkerRole {
    pub(super) program: PathBuf,
    pub(super) labels: Labels,
}

/// The worker of one host. Dropping it kills it.
pub(super) struct WorkerProcess<'a> {
    pub(super) host: &'a Host,
    environment: &'a Environment,
    role: WorkerRole,
    running: Option<Running>,
    starts: u32,
}

struct Running {
    /// Waits for the worker, outside of its host.
    outside: Child,
    pid: Pid,
}

impl<'a> WorkerProcess<'a> {
    pub(super) fn start(
        host: &'a Host,
        environment: &'a Environment,
        role: WorkerRole,
    ) -> Result<Self> {
        let mut worker = Self {
            host,
            environment,
            role,
            running: None,
            starts: 0,
        };
        worker.start_again()?;
        Ok(worker)
    }

    /// Another process on the same host, with the same state directory.
    pub(super) fn start_again(&mut self) -> Result<()> {
        self.starts += 1;
        let log = File::create(self.log(self.starts))?;
        let WorkerRole { program, labels } = &self.role;
        let labels = labels.iter().flat_map(|label| ["--label", label]);
        let args: Vec<&str> = std::iter::once("worker").chain(labels).collect();
        let mut command = self.environment.command_of(program, self.host, &args);
        let outside = command
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start a worker")?;
        let pid = i32::try_from(child_of(outside.id())?)?;
        let pid = Pid::from_raw(pid).context("a worker has no process id")?;
        self.running = Some(Running { outside, pid });
        Ok(())
    }

    /// Returns when the kernel has taken it away. Its commands end with their guard process.
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(mut running) = self.running.take() {
            kill_process(running.pid, Signal::KILL)?;
            running.outside.wait()?;
        }
        Ok(())
    }

    /// Only the worker: its commands go on.
    pub(super) fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    pub(super) fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)?;
        // Whoever waits for a process that stops is stopped with it.
        if let Some(running) = &self.running {
            kill_process(Pid::from_child(&running.outside), Signal::CONT)?;
        }
        Ok(())
    }

    /// Asks it to hand its tasks over and to end.
    pub(super) fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Whether it has come to its end. One that was asked to end and does not is an error.
    pub(super) fn has_ended(&mut self, asked: Instant) -> Result<bool> {
        let Some(running) = &mut self.running else {
            return Ok(true);
        };
        if running.outside.try_wait()?.is_some() {
            self.running = None;
            return Ok(true);
        }
        if asked.elapsed() > DRAIN_PATIENCE {
            bail!(
                "the worker of {} does not end after SIGTERM",
                self.host.name
            );
        }
        Ok(false)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let running = self.running.as_ref().context("the worker does not run")?;
        kill_process(running.pid, signal)
            .with_context(|| format!("the worker of {} is gone", self.host.name))
    }

    fn log(&self, start: u32) -> PathBuf {
        self.host.dir.join(format!("worker-{start}.log"))
    }

    /// What its processes have written, for the case that something is wrong.
    pub(super) fn logs(&self) -> String {
        let texts = (1..=self.starts).map(|start| read(&self.log(start)));
        texts.collect()
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

impl Drop for WorkerProcess<'_> {
    fn drop(&mut self) {
        self.kill().ok();
    }
}
