//! The user's own status line (`terminal.statusCommand`): a command that reads the state of the
//! session as JSON and whose first line of output is shown.
//!
//! It runs when the state has changed, at most once a second, and is killed with everything it
//! started when it takes too long or the session ends. It is the user's and not confined; a project
//! cannot set it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use codespar_policy::{Redactor, printable};
use codespar_runtime::Project;
use codespar_tools::{
    child_environment,
    process::{Served, ServerLaunch, serve},
};
use codespar_tui::Status;
use serde::Serialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use crate::printer::without_styles;

/// How long one run may take.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// From one start to the next.
const PAUSE: Duration = Duration::from_secs(1);
/// Output that is read.
const MAX_OUTPUT: u64 = 64 * 1024;

/// What the command reads, as one JSON object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct StatusInput {
    pub(crate) model: String,
    /// The permission mode.
    pub(crate) mode: String,
    pub(crate) branch: Option<String>,
    pub(crate) context: Option<ContextInput>,
    pub(crate) cost: String,
    /// How many run.
    pub(crate) tasks: usize,
    pub(crate) cwd: PathBuf,
    /// The id; `None` before the first prompt.
    pub(crate) session: Option<String>,
}

/// In tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct ContextInput {
    pub(crate) used: u64,
    pub(crate) window: u64,
}

impl StatusInput {
    pub(crate) fn new(status: &Status, cwd: &Path, session: Option<String>) -> Self {
        Self {
            model: status.model.clone(),
            mode: status.mode.clone(),
            branch: status.branch.clone(),
            context: status
                .context
                .map(|(used, window)| ContextInput { used, window }),
            cost: status.cost.clone(),
            tasks: status.running_tasks,
            cwd: cwd.to_path_buf(),
            session,
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatusLine {
    /// Shown in place of the usual line.
    Custom(String),
    /// The usual line: the command printed nothing, or failed again.
    Usual,
    /// The usual line, and a notice with this text. Comes once.
    Failed(String),
}

#[derive(Debug, thiserror::Error)]
enum StatusCommandError {
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    #[error("it did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("it ended with {how}{said}")]
    Failed { how: String, said: String },
}

/// The command, ready to be run.
pub(crate) struct StatusCommand {
    launch: ServerLaunch,
    /// This binary, which ends everything that the command started.
    guard: Option<PathBuf>,
    redactor: Arc<Redactor>,
    limit: Duration,
}

impl StatusCommand {
    /// `None` if the user has set none.
    pub(crate) fn of(project: &Project) -> Option<Self> {
        let command = project.settings.terminal.status_command.as_deref()?;
        let environment = &project.dir.environment;
        let vars = environment.vars.iter().cloned();
        Some(Self {
            // Variables of the settings may be a project's; this command is the user's alone.
            launch: launch(command, &project.dir.cwd, child_environment(vars, [], &[])),
            guard: Some(environment.program.clone()),
            redactor: project.redactor.clone(),
            limit: TIME_LIMIT,
        })
    }

    /// Runs the command for the states that are sent, and hands each result to `show`, until what
    /// is returned is dropped. Must be called on a runtime.
    pub(crate) fn follow(self, show: impl Fn(StatusLine) + Send + 'static) -> StatusFeed {
        let (states, news) = watch::channel(None);
        let running = tokio::spawn(self.run_for_each(news, show));
        StatusFeed { states, running }
    }

    async fn run_for_each(
        self,
        mut news: watch::Receiver<Option<StatusInput>>,
        show: impl Fn(StatusLine),
    ) {
        let mut has_failed = false;
        while news.changed().await.is_ok() {
            let Some(state) = news.borrow_and_update().clone() else {
                continue;
            };
            let next = Instant::now() + PAUSE;
            let line = match self.run(&state).await {
                Ok(line) if line.is_empty() => StatusLine::Usual,
                Ok(line) => StatusLine::Custom(line),
                Err(_) if has_failed => StatusLine::Usual,
                Err(error) => {
                    has_failed = true;
                    StatusLine::Failed(format!(
                        "terminal.statusCommand: {error}; the usual status line is shown"
                    ))
                }
            };
            show(line);
            sleep_until(next).await;
        }
    }

    async fn run(&self, state: &StatusInput) -> Result<String, StatusCommandError> {
        let started = serve(&self.launch, self.guard.as_deref());
        let Served {
            mut input,
            output,
            mut hold,
        } = started.map_err(StatusCommandError::Start)?;
        let mut state = serde_json::to_vec(state).unwrap_or_default();
        state.push(b'\n');
        let talk = async {
            // A command that does not want to know closes its input.
            let _ = input.write_all(&state).await;
            drop(input);
            let mut printed = Vec::new();
            let _ = output.take(MAX_OUTPUT).read_to_end(&mut printed).await;
            hold.end().await;
            (printed, hold)
        };
        // Without an end in time the hold is dropped, which kills.
        let Ok((printed, mut hold)) = timeout(self.limit, talk).await else {
            return Err(StatusCommandError::TimedOut(self.limit));
        };
        match hold.exit_code() {
            Some(0) => Ok(self.first_line(&String::from_utf8_lossy(&printed))),
            code => {
                let said = self.first_line(&hold.stderr_tail());
                Err(StatusCommandError::Failed {
                    how: code.map_or("a signal".to_owned(), |code| format!("exit code {code}")),
                    said: match said.is_empty() {
                        true => said,
                        false => format!(": {said}"),
                    },
                })
            }
        }
    }

    /// Without colours and anything else that a terminal would obey.
    fn first_line(&self, printed: &str) -> String {
        let first = printed.lines().next().unwrap_or_default();
        let plain = without_styles(first).replace('\t', " ");
        let plain: String = plain.chars().filter(|c| !c.is_control()).collect();
        printable(&self.redactor.redact(&plain))
            .trim_end()
            .to_owned()
    }
}

fn launch(
    command: &str,
    cwd: &Path,
    env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
) -> ServerLaunch {
    ServerLaunch {
        program: "sh".into(),
        arguments: vec!["-c".into(), command.into()],
        cwd: cwd.to_path_buf(),
        env,
    }
}

/// Where states are sent to. Dropped, the command is ended.
pub(crate) struct StatusFeed {
    states: watch::Sender<Option<StatusInput>>,
    running: JoinHandle<()>,
}

impl StatusFeed {
    /// Returns at once. Of states that come faster than the command runs, the last one counts.
    pub(crate) fn send(&self, state: StatusInput) {
        self.states.send_if_modified(|last| {
            let is_new = last.as_ref() != Some(&state);
            if is_new {
                *last = Some(state);
            }
            is_new
        });
    }
}

impl Drop for StatusFeed {
    fn drop(&mut self) {
        self.running.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn command(text: &str, cwd: &Path) -> StatusCommand {
        let path = std::env::var_os("PATH").unwrap();
        StatusCommand {
            launch: launch(text, cwd, vec![("PATH".into(), path)]),
            guard: None,
            redactor: Arc::new(Redactor::by_shape()),
            limit: PATIENCE,
        }
    }

    fn state(cost: &str) -> StatusInput {
        let status = Status {
            model: "sonnet".into(),
            mode: "plan".into(),
            branch: Some("main".into()),
            context: Some((24_000, 200_000)),
            cost: cost.into(),
            running_tasks: 2,
            custom: None,
        };
        StatusInput::new(&status, Path::new("/project"), Some("s-1".into()))
    }

    async fn printed(text: &str) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let ran = command(text, directory.path()).run(&state("$0.04")).await;
        ran.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_command_reads_the_state_as_one_object() {
        let line = printed("cat").await.unwrap();
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        let wanted = serde_json::json!({
            "model": "sonnet",
            "mode": "plan",
            "branch": "main",
            "context": {"used": 24_000, "window": 200_000},
            "cost": "$0.04",
            "tasks": 2,
            "cwd": "/project",
            "session": "s-1",
        });
        assert_eq!(read, wanted);
    }

    #[tokio::test]
    async fn the_first_line_is_shown_without_what_a_terminal_would_obey() {
        let text = r"printf '\033[31mred\033[0m\tone\a\033]0;owned\007 two\r\nsecond\n'";
        assert_eq!(printed(text).await.unwrap(), "red one two");
        assert_eq!(printed("true").await.unwrap(), "");
    }

    #[tokio::test]
    async fn a_command_that_does_not_read_is_no_failure() {
        let text = "exec 0<&-; echo fine";
        assert_eq!(printed(text).await.unwrap(), "fine");
    }

    #[tokio::test]
    async fn a_failure_says_what_the_command_said() {
        let error = printed("echo shown; echo no such branch >&2; exit 3").await;
        assert_eq!(
            error,
            Err("it ended with exit code 3: no such branch".to_owned())
        );
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let text = "sleep 1000 & echo $! > child; mv child pid; wait";
        let slow = StatusCommand {
            limit: Duration::from_secs(2),
            ..command(text, directory.path())
        };
        let error = slow.run(&state("$0")).await.unwrap_err().to_string();
        assert_eq!(error, "it did not end within 2 s");
        let pid = fs::read_to_string(directory.path().join("pid")).unwrap();
        let status = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
        // A zombie has been killed; whoever is its parent now collects it.
        let lives = || fs::read_to_string(&status).is_ok_and(|text| !text.contains(") Z "));
        let ended = async {
            while lives() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, ended).await.unwrap();
    }

    async fn next(shown: &mut mpsc::UnboundedReceiver<StatusLine>) -> StatusLine {
        timeout(PATIENCE, shown.recv()).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn it_runs_only_for_a_state_that_is_new_and_the_last_one_counts() {
        let directory = tempfile::tempdir().unwrap();
        let text = "read state; echo x >> runs; echo \"$state\" | sed 's/.*cost\":\"//; s/\".*//'";
        let (show, mut shown) = mpsc::unbounded_channel();
        let feed = command(text, directory.path()).follow(move |line| {
            let _ = show.send(line);
        });
        feed.send(state("first"));
        assert_eq!(next(&mut shown).await, StatusLine::Custom("first".into()));
        feed.send(state("first"));
        for number in 0..50 {
            feed.send(state(&number.to_string()));
        }
        let last = StatusLine::Custom("49".into());
        while next(&mut shown).await != last {}
        let runs = fs::read_to_string(directory.path().join("runs")).unwrap();
        assert!(runs.lines().count() < 10, "{runs}");
    }

    #[tokio::test]
    async fn a_command_that_fails_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let (show, mut shown) = mpsc::unbounded_channel();
        let feed = command("exit 1", directory.path()).follow(move |line| {
            let _ = show.send(line);
        });
        feed.send(state("1"));
        let told = next(&mut shown).await;
        assert!(
            matches!(&told, StatusLine::Failed(text) if text.contains("exit code 1")),
            "{told:?}"
        );
        feed.send(state("2"));
        assert_eq!(next(&mut shown).await, StatusLine::Usual);
    }
}
