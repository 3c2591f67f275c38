//! `local_bash`: a shell command in its own process group, output to the task's file.
//!
//! The command runs in the sandbox, with an environment without secrets and with a temporary
//! directory of its own that is removed afterwards. It is started once: a command whose runner is
//! lost is failed with what is known, never started again, since it may have had half of its
//! effect. The permission to run it was given when the task was made; here the rules only hide
//! files from it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use codespar_policy::{Lifetime, Redactor, RepositoryScope, RuleSet, SandboxState, Scope};
use codespar_protocol::{Cost, ShellSpec, TaskSpec, TaskStatus, Usage};
use codespar_tools::{
    Context, ContextParts, Hidden, Skills,
    process::{self, Capture, Ending},
    sandbox::{Approval, Restored, Sandbox},
    shell_launch,
};
use parking_lot::RwLock;

use crate::{
    narrowed_rules,
    runner::{Control, Runner, TaskOutcome},
    vital::{self, Presence},
};

/// Nobody waits for a background command: without a limit of its own it is stopped, not timed out.
/// Thirty days is the most that a task can be left running.
const FOREVER: Duration = Duration::from_secs(30 * 24 * 3600);
/// How much of the output's end a notification carries. In bytes; the whole is in the output file.
const TAIL: u64 = 1_500;

/// What every command of this process shares.
#[derive(Clone)]
pub struct ShellSetup {
    /// How commands are confined.
    pub sandbox: Arc<Sandbox>,
    /// Their environment.
    pub child_env: Vec<(OsString, OsString)>,
    /// Each task gets a directory of its own in here.
    pub temp_dir: PathBuf,
    /// Takes secrets out of their output.
    pub redactor: Arc<Redactor>,
    /// What rules this process has; files that they or the task's own forbid to read are hidden.
    /// Shared with the agents of the process and read when a command starts.
    pub rules: Arc<RwLock<RuleSet>>,
    /// The user's home, for rules about it.
    pub home: Option<PathBuf>,
}

impl ShellSetup {
    /// Files that commands in this tree cannot read, because the rules forbid it.
    ///
    /// The scope describes the tree alone, without extra directories: rules are resolved against
    /// its root.
    pub fn hidden(&self, rules: &RuleSet, root: &Path) -> Hidden {
        let scope = Scope {
            root: root.to_path_buf(),
            cwd: root.to_path_buf(),
            home: self.home.clone(),
            workspace: vec![root.to_path_buf()],
            free: Vec::new(),
            sandbox_state: SandboxState::Sandboxed,
            repository: RepositoryScope::Project,
            lifetime: Lifetime::Kept,
        };
        Hidden::by_rules(rules, &scope)
    }
}

pub struct ShellRunner(pub ShellSetup);

/// A task that was taken over runs nothing; it is only reported as lost.
#[async_trait]
impl Runner for ShellRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        if let Some(runner) = &control.taken_from {
            return TaskOutcome::failed(lost_with(vital::presence(runner)));
        }
        let spec = match control.spec() {
            Ok(TaskSpec::Shell(spec)) => spec,
            Ok(_) => return TaskOutcome::failed(control.wrong_kind()),
            Err(error) => return TaskOutcome::failed(error),
        };
        let rules = control
            .authority()
            .and_then(|authority| narrowed_rules(authority, &self.0.rules.read()));
        let rules = match rules {
            Ok(rules) => rules,
            Err(error) => return TaskOutcome::failed(error),
        };
        let temp = self.0.temp_dir.join(control.record.task_id.as_str());
        let outcome = self
            .run_in(&control, spec, &rules, &temp)
            .await
            .unwrap_or_else(TaskOutcome::failed);
        let _ = std::fs::remove_dir_all(&temp);
        outcome
    }
}

impl ShellRunner {
    /// `Approval::Rules` means that the command is refused where no sandbox works, unless the
    /// user's settings switch it off: nobody is there to approve an unconfined one. If the command
    /// changed a protected path, which the guard has restored, the task fails whatever its exit
    /// code.
    async fn run_in(
        &self,
        control: &Control,
        spec: &ShellSpec,
        rules: &RuleSet,
        temp: &Path,
    ) -> Result<TaskOutcome, String> {
        std::fs::create_dir_all(temp).map_err(|error| format!("{}: {error}", temp.display()))?;
        let context = Context::new(ContextParts {
            root: spec.root.clone(),
            cwd: spec.cwd.clone(),
            extra_dirs: Vec::new(),
            temp_dir: temp.to_path_buf(),
            output_dir: temp.to_path_buf(),
            child_env: self.0.child_env.clone(),
            sandbox: self.0.sandbox.clone(),
            skills: Arc::new(Skills::default()),
            page_reader: None,
            hidden: self.0.hidden(rules, &spec.root),
            redactor: self.0.redactor.clone(),
        });
        let limit = time_limit(spec);
        let launch = shell_launch(&spec.command, &spec.cwd, &context, limit, Approval::Rules)
            .map_err(|error| error.to_string())?;
        if let Some(dir) = control.output.parent() {
            std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        }
        let mut capture = Capture::to_file(&control.output, &self.0.redactor)
            .map_err(|error| format!("{}: {error}", control.output.display()))?;
        let ended = process::run(&launch, &self.0.sandbox, &mut capture, &control.cancel)
            .await
            .map_err(|error| error.to_string())?;
        capture.finish();
        let mut outcome = conclude(control, spec, &ended.ending);
        if !ended.restored.is_empty() {
            outcome.status = TaskStatus::Failed;
            outcome.error = Some(
                ended
                    .restored
                    .iter()
                    .map(Restored::describe)
                    .collect::<Vec<_>>()
                    .join("; "),
            );
        }
        Ok(outcome)
    }
}

/// What is known of a command whose runner is lost.
///
/// Only a process that is certainly dead proves that the command ended with it.
fn lost_with(runner: Presence) -> &'static str {
    match runner {
        Presence::Dead => {
            "lost: the process that ran it died, and the command with it. It was not run again."
        }
        Presence::Running | Presence::Stopped | Presence::Unknown => {
            "lost: the process that ran it, on another machine or in another container, has not \
             been heard of for a minute. Whether the command still runs there is not known. It was \
             not run again."
        }
    }
}

fn time_limit(spec: &ShellSpec) -> Duration {
    spec.timeout_ms
        .map_or(FOREVER, Duration::from_millis)
        .min(FOREVER)
}

/// The scheduler decides what a cancelled command becomes: see `what_to_do` in
/// `scheduler/attempt.rs`.
fn conclude(control: &Control, spec: &ShellSpec, ending: &Ending) -> TaskOutcome {
    let (status, exit_code, error) = match ending {
        Ending::Exited(0) => (TaskStatus::Completed, Some(0), None),
        Ending::Exited(code) => (
            TaskStatus::Failed,
            Some(*code),
            Some(format!("exit code {code}")),
        ),
        Ending::Signalled(signal) => (
            TaskStatus::Failed,
            None,
            Some(format!("ended by signal {signal}")),
        ),
        Ending::TimedOut => (
            TaskStatus::Failed,
            None,
            Some(format!(
                "the time limit of {} s was reached",
                time_limit(spec).as_secs_f64()
            )),
        ),
        Ending::Cancelled => (TaskStatus::Killed, None, Some(control.reason_to_end())),
    };
    TaskOutcome {
        status,
        result: tail(&control.output),
        error,
        exit_code,
        usage: Usage::default(),
        cost: Cost::default(),
        ..TaskOutcome::failed("")
    }
}

/// The end of the output, whole lines. A first line that was cut off is left out. `None` if there
/// is no output or it cannot be read.
fn tail(path: &std::path::Path) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = if length > TAIL {
        text.split_once('\n').map_or(&*text, |(_, rest)| rest)
    } else {
        &text
    };
    (!text.trim().is_empty()).then(|| text.trim_end().to_owned())
}
