//! Bash: a shell command, in the sandbox.
//!
//! One command is one shell process. Only the working directory carries over between commands; it
//! is written to a file by a trap that the script sets (`bash/shell.rs`) and read back after the
//! command has ended:
//!
//! ```text
//! check input -> directory to start in -> script with trap -> Launch
//!     -> process::run (sandbox, capture, timeout) -> new directory -> text for the model
//! ```
//!
//! The command may end by itself, by its timeout or by cancellation; in each case the model gets
//! the output so far and how it ended. A command that could not be confined or started is an error
//! without output.

mod shell;

use std::{ffi::OsString, path::Path, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_policy::Access;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    BackgroundCommand, BackgroundCommands, Call, Context, Effect, Intent, Tool, ToolError,
    ToolOutput, input,
    live_output::LiveTail,
    process::{self, Capture, Ended, Ending, Launch},
    sandbox::Approval,
};
pub(crate) use shell::CwdNote;
use shell::Shell;

/// Milliseconds, for a call that names none.
const DEFAULT_TIMEOUT: u64 = 120_000;
/// Milliseconds. Longer commands are for background tasks.
const LONGEST_TIMEOUT: u64 = 600_000;

/// Keeps programs from asking, paging and colouring.
const NON_INTERACTIVE: [(&str, &str); 4] = [
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// What is kept between commands is in the [`Context`].
pub struct Bash {
    /// Or why there is none.
    background: Result<Arc<dyn BackgroundCommands>, String>,
}

impl Default for Bash {
    fn default() -> Self {
        Self::new()
    }
}

impl Bash {
    pub fn new() -> Self {
        Self::foreground("there are no background tasks here")
    }

    /// Without background commands; a call that asks for one is told the reason.
    pub fn foreground(reason: impl Into<String>) -> Self {
        Self {
            background: Err(reason.into()),
        }
    }

    pub fn with_background(commands: Arc<dyn BackgroundCommands>) -> Self {
        Self {
            background: Ok(commands),
        }
    }

    /// Starts the command and returns. Nothing of it carries over to later calls.
    async fn start(&self, checked: Checked, context: &Context) -> Result<ToolOutput, ToolError> {
        let commands = self.background()?;
        let mut notes = Vec::new();
        let cwd = standing(context, &mut notes);
        let started = commands
            .start(BackgroundCommand {
                command: checked.command,
                description: checked.description,
                cwd,
                timeout: checked.timeout,
            })
            .await?;
        let mut text = format!("Started in the background as {}.", started.id);
        if let Some(output) = started.output {
            text.push_str(&format!(" Its output goes to {}.", output.display()));
        }
        text.push_str(
            " A notification comes at its end: do not wait for it or poll. TaskOutput reads what \
             it has written, TaskStop ends it.",
        );
        for note in notes {
            text.push('\n');
            text.push_str(&note);
        }
        Ok(ToolOutput::text(text))
    }

    fn background(&self) -> Result<&Arc<dyn BackgroundCommands>, ToolError> {
        self.background.as_ref().map_err(|reason| {
            ToolError(format!(
                "`run_in_background` cannot be used: {reason}; run the command without it"
            ))
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    /// Milliseconds; 120000 by default, 600000 at most unless in the background
    timeout: Option<u64>,
    /// What it does, in a few words
    description: Option<String>,
    /// Return at once; a notification comes at its end
    run_in_background: Option<bool>,
}

/// How long a command is waited for.
#[derive(Clone, Copy)]
struct Patience {
    timeout: Duration,
    /// Whether it could run in the background instead.
    background: bool,
}

impl Patience {
    /// What is said about a command that took longer: with what it could be run again.
    fn exceeded(self) -> String {
        let mut ways = Vec::new();
        if self.timeout < Duration::from_millis(LONGEST_TIMEOUT) {
            ways.push(format!("a longer `timeout` (up to {LONGEST_TIMEOUT})"));
        }
        if self.background {
            ways.push("`run_in_background`".to_owned());
        }
        let ways = match ways.as_slice() {
            [] => "a command that takes less".to_owned(),
            ways => ways.join(" or "),
        };
        format!(
            "stopped: still running after {} ms. Run it again with {ways}.",
            self.timeout.as_millis()
        )
    }
}

/// A call whose input is as it must be.
struct Checked {
    command: String,
    description: Option<String>,
    /// As the call gave it.
    timeout: Option<Duration>,
    in_background: bool,
}

#[async_trait]
impl Tool for Bash {
    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        "Runs a shell command and returns its output (stdout and stderr). The working directory \
         carries over to the next call, other shell state does not. Writes are limited to the \
         workspace and $TMPDIR; no network unless allowed; no input. Processes left in the \
         background end with the command.\n\
         {{needs Read, Edit}}Use Read and Edit rather than cat and sed.\n\
         {{needs Glob, Grep}}Use Glob and Grep rather than find and grep."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        let schema = input::schema::<Input>();
        match self.background {
            Ok(_) => schema,
            Err(_) => input::without_field(&schema, "run_in_background"),
        }
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, input: &RawValue, _context: &Context) -> Result<Intent, ToolError> {
        let Checked {
            command,
            in_background,
            ..
        } = check(input)?;
        if in_background {
            self.background()?;
        }
        Ok(Intent {
            summary: command.clone(),
            access: vec![Access::Command(command)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let checked = match check(&call.input) {
            Ok(checked) => checked,
            Err(error) => return error.into(),
        };
        if call.cancel.is_cancelled() {
            return ToolOutput::error("cancelled before it was started");
        }
        let done = if checked.in_background {
            self.start(checked, context).await
        } else {
            let timeout = checked.timeout;
            let timeout = timeout.unwrap_or(Duration::from_millis(DEFAULT_TIMEOUT));
            let patience = Patience {
                timeout,
                background: self.background.is_ok(),
            };
            run(&checked.command, patience, &call, context).await
        };
        done.unwrap_or_else(ToolOutput::from)
    }
}

/// Checked twice, in `inspect` and in `run`. A NUL byte cannot be part of a program's argument.
fn check(input: &RawValue) -> Result<Checked, ToolError> {
    let Input {
        command,
        timeout,
        description,
        run_in_background,
    } = input::parse(input)?;
    let in_background = run_in_background == Some(true);
    if command.trim().is_empty() {
        return Err(ToolError("`command` is empty".to_owned()));
    }
    if command.contains('\0') {
        return Err(ToolError("`command` contains a NUL byte".to_owned()));
    }
    // Nobody waits for a command in the background.
    let longest = if in_background {
        u64::MAX
    } else {
        LONGEST_TIMEOUT
    };
    if let Some(timeout) = timeout.filter(|timeout| *timeout == 0 || *timeout > longest) {
        return Err(ToolError(format!(
            "`timeout` is {timeout} ms; it must be between 1 and {LONGEST_TIMEOUT}"
        )));
    }
    Ok(Checked {
        command,
        description: description.filter(|text| !text.trim().is_empty()),
        timeout: timeout.map(Duration::from_millis),
        in_background,
    })
}

/// A shell command as the Bash tool runs it: same shell, environment and sandbox. Also for
/// background commands and for tests of a change, which have no working directory to carry over.
///
/// The policy of the sandbox is computed here from the context as it is now. Nothing is started.
pub fn shell_launch(
    command: &str,
    cwd: &Path,
    context: &Context,
    timeout: Duration,
    approval: Approval,
) -> Result<Launch, ToolError> {
    let shell = Shell::find(context.child_env());
    let policy = context
        .shared_sandbox()
        .policy(context)
        .map_err(|error| ToolError(error.to_string()))?;
    let mut env = environment(context, cwd);
    policy.layers.add_variables(&mut env);
    Ok(Launch {
        program: shell.program,
        arguments: vec!["-c".into(), command.into()],
        cwd: cwd.to_path_buf(),
        env,
        policy,
        approval,
        timeout,
    })
}

/// The shell that runs commands.
pub(crate) fn shell_program(env: &[(OsString, OsString)]) -> PathBuf {
    Shell::find(env).program
}

/// The note for the working directory is taken out of the context while a command uses it, and put
/// back only if it was written as expected. A command that was killed, or that destroyed the note,
/// leaves the directory as it was and the next command gets a new note.
async fn run(
    command: &str,
    patience: Patience,
    call: &Call,
    context: &Context,
) -> Result<ToolOutput, ToolError> {
    let failed = |error: &dyn std::fmt::Display| ToolError(error.to_string());
    let sandbox = context.shared_sandbox();
    let mut notes = Vec::new();
    let cwd = standing(context, &mut notes);
    let kept = context.cwd_note().lock().take();
    let note = match kept {
        Some(note) => Ok(note),
        None => CwdNote::new(context.temp_dir()),
    };
    let note = note.map_err(|error| failed(&error))?;
    let script = note.script(command).map_err(|error| failed(&error))?;
    let launch = shell_launch(&script, &cwd, context, patience.timeout, call.approval)?;
    let watch = context.output_watch();
    let live = watch.as_ref().map(|_| Arc::new(LiveTail::default()));
    let capture = Capture::new(context.output_dir(), "Bash", context.redactor());
    let mut capture = capture.watched_by(live.clone());
    let running = process::run(&launch, sandbox, &mut capture, &call.cancel);
    let ended = match (live, watch) {
        (Some(live), Some(watch)) => live.watched(running, |lines| watch(&call.id, lines)).await,
        _ => running.await,
    };
    let ended = ended.map_err(|error| failed(&error))?;
    if let Some((ended_in, note)) = note.read() {
        *context.cwd_note().lock() = Some(note);
        move_to(context, ended_in, &cwd, &mut notes);
    }
    Ok(tell(&capture.finish(), &ended, patience, notes))
}

/// Where the command starts: where the last one ended, or the root if that is gone.
fn standing(context: &Context, notes: &mut Vec<String>) -> PathBuf {
    let cwd = context.cwd();
    if cwd.is_dir() {
        return cwd;
    }
    let root = context.root().to_path_buf();
    notes.push(format!(
        "{} is gone; the command ran in {}",
        cwd.display(),
        root.display()
    ));
    context.set_cwd(root.clone());
    root
}

/// Follows the command only within the workspace: relative paths of later calls would otherwise
/// lead outside of it. The model is told when it is taken back.
fn move_to(context: &Context, ended_in: PathBuf, cwd: &Path, notes: &mut Vec<String>) {
    let inside = context.workspace().any(|tree| {
        let real = tree.canonicalize();
        ended_in.starts_with(real.as_deref().unwrap_or(tree))
    });
    if inside && ended_in.is_dir() {
        context.set_cwd(ended_in);
    } else {
        notes.push(format!(
            "{} is outside of the workspace; the working directory is {} again",
            ended_in.display(),
            cwd.display()
        ));
    }
}

/// Later entries win over those of the context. `OLDPWD` would be that of the user's shell.
fn environment(context: &Context, cwd: &Path) -> Vec<(OsString, OsString)> {
    let mut env = context.child_env().to_vec();
    env.retain(|(name, _)| name != "OLDPWD");
    let fixed = NON_INTERACTIVE.map(|(name, value)| (name.into(), value.into()));
    env.extend(fixed);
    env.push(("TMPDIR".into(), context.temp_dir().into()));
    env.push(("PWD".into(), cwd.into()));
    env
}

/// The result for the model: output, then how the command ended, then what else happened. A command
/// that changed protected paths has failed whatever its exit code, because they were put back.
fn tell(output: &str, ended: &Ended, patience: Patience, mut notes: Vec<String>) -> ToolOutput {
    let (mut is_error, how) = match ended.ending {
        Ending::Exited(0) => (false, None),
        Ending::Exited(code) => (true, Some(exit_code(code))),
        Ending::Signalled(signal) => (true, Some(format!("killed by signal {signal}"))),
        Ending::TimedOut => (true, Some(patience.exceeded())),
        Ending::Cancelled => (true, Some("stopped: cancelled".to_owned())),
    };
    if !ended.leftovers.is_empty() {
        notes.push(format!(
            "still running in the background at the end, and stopped: {}",
            ended.leftovers.join(", ")
        ));
    }
    for restored in &ended.restored {
        is_error = true;
        notes.push(restored.describe());
    }
    let output = output.trim_end_matches('\n');
    let mut text = match output {
        "" => "(no output)".to_owned(),
        output => output.to_owned(),
    };
    for note in how.into_iter().chain(notes) {
        text.push('\n');
        text.push_str(&note);
    }
    ToolOutput {
        content: codespar_protocol::ToolResultContent::Text(text),
        is_error,
    }
}

/// A shell reports a child that a signal ended as 128 plus the signal.
fn exit_code(code: i32) -> String {
    let signal = match code {
        130 => " (interrupted)",
        134 => " (aborted, SIGABRT)",
        137 => " (killed, SIGKILL)",
        139 => " (crashed, SIGSEGV)",
        143 => " (terminated, SIGTERM)",
        _ => "",
    };
    format!("exit code {code}{signal}")
}
