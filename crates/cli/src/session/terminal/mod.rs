//! The surface that draws at a terminal: `codespar_tui`, with what commands print diverted to it.
//!
//! The surface has a thread of its own and is told by messages, so nothing here waits for the
//! terminal. Commands print as they do on the command line; while the surface is there, the printer
//! hands their text to it instead of writing beside it.

mod completion;
mod diverted;
mod options;

use std::{io::IsTerminal, sync::Arc};

use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{Event, Message, NoticeLevel, QuestionRequest, RunResult};
use codespar_runtime::{Project, ProjectCommands};
use codespar_tui::{Choice, QuestionReply, Status, TaskRow, Tui, UserAction};
use parking_lot::Mutex;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task::JoinHandle,
};

use super::view::SessionView;
use crate::{
    args::Cli,
    error::CommandError,
    printer::{self, Diversion},
};

const KEYS: &str = "\
!COMMAND             run a command and let the model see it     #TEXT  keep a note in AGENTS.md
@PATH                attach a file                              Tab    complete, or queue for after the turn
Enter                send; while the agent works: at its next step
Shift-Enter, Alt-Enter, \\ Enter   a new line                   Esc    interrupt; the text stays
Ctrl-R               search what you typed                      Ctrl-G edit in $EDITOR
Shift-Tab            next permission mode                       Ctrl-T the whole transcript
Ctrl-V               attach the picture on the clipboard
Ctrl-C               clear the text, interrupt, twice: leave    Ctrl-D leave
Up, then Enter, Delete, Alt-Up, Alt-Down   edit, drop or move queued messages";

/// Whether the terminal can show it and nobody asked for the plain one.
pub(super) fn is_possible(cli: &Cli) -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !cli.plain && !is_dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// `stop` ends the diversion first, then the surface; what is printed after that goes to the
/// terminal as usual.
pub(super) struct TerminalView {
    tui: Tui,
    diversion: Mutex<Option<Diversion>>,
    /// Tells the surface of the terminal's size and of being continued.
    watching: JoinHandle<()>,
}

impl TerminalView {
    pub(super) fn start(
        project: &Arc<Project>,
        commands: &Arc<ProjectCommands>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<UserAction>), CommandError> {
        let options = options::options(project, commands)?;
        let (tui, actions) =
            Tui::start(options).map_err(|error| CommandError::Failed(error.to_string()))?;
        restore_on_panic();
        let view = Self {
            diversion: Mutex::new(Some(printer::divert(diverted::to(tui.clone())))),
            watching: watch_terminal(tui.clone())?,
            tui,
        };
        Ok((view, actions))
    }
}

#[async_trait]
impl SessionView for TerminalView {
    fn event(&self, event: Event) {
        self.tui.event(event);
    }

    fn shows_command_output(&self) -> bool {
        true
    }

    fn say(&self, text: &str) {
        self.tui.output(diverted::lines(text));
    }

    fn notice(&self, level: NoticeLevel, text: String) {
        self.tui.notice(level, text);
    }

    fn markdown(&self, text: &str) {
        self.tui.output(codespar_tui::markdown(text));
    }

    fn diff(&self, text: &str) {
        self.tui.output(codespar_tui::code(text, "diff"));
    }

    fn turn_started(&self) {
        self.tui.turn_started();
    }

    fn turn_ended(&self, _result: Option<&RunResult>) {
        self.tui.turn_ended();
    }

    fn has_status_line(&self) -> bool {
        true
    }

    fn status(&self, status: Status) {
        self.tui.status(status);
    }

    fn suggest(&self, text: &str) {
        self.tui.suggest(text);
    }

    fn insert_file(&self, path: &str) {
        self.tui.insert_file(path);
    }

    fn transcript(&self, messages: &[Arc<Message>], redactor: &Redactor) {
        let items = codespar_tui::transcript_items(messages, redactor);
        self.tui.page("Transcript", items);
    }

    fn has_task_list(&self) -> bool {
        true
    }

    fn show_tasks(&self, rows: Vec<TaskRow>) {
        self.tui.tasks(rows);
    }

    fn update_tasks(&self, rows: Vec<TaskRow>) {
        self.tui.update_tasks(rows);
    }

    fn copy(&self, text: String) -> Result<(), String> {
        self.tui.copy(text)
    }

    async fn ask(&self, request: QuestionRequest, from: Option<String>) -> QuestionReply {
        self.tui.ask(request, from).await
    }

    async fn pick(&self, title: String, choices: Vec<Choice>) -> Option<usize> {
        self.tui.pick(title, choices).await
    }

    fn keys(&self) -> &'static str {
        KEYS
    }

    async fn stop(&self) {
        self.watching.abort();
        drop(self.diversion.lock().take());
        self.tui.stop().await;
    }
}

/// Signals are received by the runtime and handed on as messages: the thread of the surface has no
/// handlers of its own.
fn watch_terminal(tui: Tui) -> std::io::Result<JoinHandle<()>> {
    let mut resized = signal(SignalKind::window_change())?;
    let continued = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
    let mut continued = signal(continued)?;
    Ok(tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = resized.recv() => tui.resized(),
                _ = continued.recv() => tui.continued(),
            }
        }
    }))
}

/// A panic of the thread that draws, or of the main one, ends the session: the terminal is given
/// back before the message is printed. Others are caught where they happen; their message is output
/// like any other.
fn restore_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        match thread.name() {
            Some("main" | codespar_tui::THREAD_NAME) => {
                codespar_tui::restore_terminal();
                usual(panic);
            }
            _ => printer::err(format_args!("{panic}")),
        }
    }));
}
