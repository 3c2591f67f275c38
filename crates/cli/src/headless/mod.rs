//! `codespar -p`: one run for scripts. It never waits on a terminal.
//!
//! Standard output has the answer and nothing else; everything for people goes to standard error.
//! Nobody can be asked, so what would be asked is denied and the result says so. The run waits for
//! tasks that it has started. A run that fails prints its result as well.

pub(crate) mod commands;
pub(crate) mod hook_lines;
pub(crate) mod init;
pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod partial;
pub(crate) mod structured;
mod work;

use std::{process::ExitCode, sync::Arc, time::Duration};

use codespar_agent::{Recovered, SessionEndReason};
use codespar_protocol::{Outcome, RunResult, SessionId, SessionMode};
use codespar_tasks::{AtEnd, Attendance};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Cli, OutputFormat},
    commands::gc,
    error::CommandError,
    headless::{
        hook_lines::HookLines,
        init::InitParts,
        lines::UnknownCost,
        output::{Printer, PrinterParts},
        partial::Partials,
        structured::{StructuredAnswers, StructuredEnd},
        work::{Prepared, RunWork, WorkParts, settled},
    },
    signals::Signals,
    stdin::{self, Piped},
};
use codespar_runtime::{
    ClientSide, ProcessRole, Project, ProjectCommands, ProjectConfig, ProjectDir, ProjectOptions,
    Runtime, Session, SessionDirs, Surface, mcp,
};

/// So that the model does not end in a question that nobody will see. Part of the system prompt.
const NOTE: &str = "This is a headless run: nobody can answer a question. Decide yourself what is \
                    not said, say what you assumed, and finish the work.";

/// How long a run that is over may clean up, once a day. The caller waits for the end of the
/// process, so it is kept short.
const CLEANING: Duration = Duration::from_secs(2);

/// How long hooks may take when a session is left.
pub(crate) const LEAVING_HOOKS: Duration = Duration::from_secs(60);
/// The same after a signal: whoever sent it waits.
pub(crate) const HURRIED_HOOKS: Duration = Duration::from_secs(2);

/// The prompt is read before anything is opened: a usage error must not leave a session behind. The
/// runtime is closed before the result is printed, so that a success that could not be stored is
/// reported as an error.
pub(crate) async fn run(cli: Cli, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    // First: a prompt that another option took for its value would be waited for.
    let mut options = cli.session.project_options()?;
    let given = prompt_argument(&cli);
    let prompt = prompt(given, is_resuming(&cli)).await?;
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?.and_closed_output();
    let structured = structured_answers(&cli, &mut options)?;
    let config = ProjectConfig::load(project_dir, options)?;
    refuse_without_key(&config)?;
    let config = config.with_client(client_side(&cli, &signals));
    let (runtime, project) =
        Runtime::with_project(config, Attendance::Nobody, ProcessRole::Session).await?;
    let commands = project_commands(&cli, &project, prompt.as_deref());
    let work = RunWork::of(prompt, &project, &commands, &cancel).await?;
    let session = project.open_session(&cli.session.which_session()?).await?;
    if matches!(work, RunWork::Resume) && session.transcript.messages().is_empty() {
        return Err(CommandError::Usage(
            "this session is empty; give a prompt".to_owned(),
        ));
    }
    settled(&project, &cancel).await;
    let id = session.transcript.session();
    let choice = work.choice(&project);
    let model = choice.as_ref().map(|choice| choice.id.clone());
    let printer = Arc::new(printer(&cli, &project, &session, signals.clone()));
    printer.init(&init_parts(&project, &session, model, &commands));
    printer.begin(&notices(&project, &session))?;
    tell_without_meaning(&cli);
    let sink = printer.clone();
    let surface = Surface {
        sink: Arc::new(move |event| sink.event(&event)),
        note: Some(NOTE),
        steering: None,
    };
    let mut agent = project.main_agent(session, surface, AtEnd::Wait)?;
    if let Some(choice) = choice {
        agent.set_choice(choice);
    }
    // On a thread that waits for input and output itself; this one would have to be woken for each.
    let (own_project, own_printer) = (project.clone(), printer.clone());
    let run = tokio::spawn(async move {
        let parts = WorkParts {
            project: &own_project,
            printer: &own_printer,
            cancel: &cancel,
        };
        let end: StructuredEnd = match work.prepare(&mut agent, &parts).await {
            Prepared::Over(end) => end,
            Prepared::Turn {
                message,
                rules: _until_the_end,
            } => match &structured {
                Some(answers) => answers.run(&mut agent, message, &cancel).await,
                None => agent.run(message, cancel.clone()).await.into(),
            },
        };
        let limit = match end.result.interrupted {
            true => HURRIED_HOOKS,
            false => LEAVING_HOOKS,
        };
        agent.end_session(SessionEndReason::Other, limit).await;
        (end.result, end.output)
    });
    let (mut result, output) = joined(run.await)?;
    SessionDirs::of(project.dir.state(), id).clean();
    if cli.session.client.no_session_persistence {
        forget(&project, id).await;
    }
    let closed = runtime.close().await;
    if let Err(error) = &closed {
        not_stored(&mut result, error);
    }
    printer.finish(&result, output.as_ref())?;
    if signals.exit_code().is_none() && closed.is_ok() {
        gc::for_as_long(&project.dir, &project.settings, CLEANING).await;
    }
    Ok(exit_code(&result, &signals))
}

/// What could not be stored is no success.
fn not_stored(result: &mut RunResult, error: &dyn std::fmt::Display) {
    if result.outcome == Outcome::Success {
        result.outcome = Outcome::ErrorDuringExecution;
        result.result = format!("{}\n\n{error}", result.result);
    }
}

/// A script must not take a missing key for an answer.
fn refuse_without_key(config: &ProjectConfig) -> Result<(), CommandError> {
    match config.missing_key() {
        None => Ok(()),
        Some(what) => Err(CommandError::Usage(format!(
            "a prompt needs a model: {what}; --simulate runs without one"
        ))),
    }
}

fn is_resuming(cli: &Cli) -> bool {
    cli.session.resume.is_some() || cli.session.continue_last
}

/// A panic of the run is one of this process.
fn joined<T>(ended: Result<T, tokio::task::JoinError>) -> Result<T, CommandError> {
    ended.map_err(|failed| match failed.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => CommandError::Failed(error.to_string()),
    })
}

/// Prints the run.
fn printer(cli: &Cli, project: &Arc<Project>, session: &Session, signals: Signals) -> Printer {
    let pieces = cli.session.client.include_partial_messages;
    Printer::new(PrinterParts {
        format: cli.output_format.unwrap_or(OutputFormat::Text),
        verbose: cli.verbose,
        session: session.transcript.session(),
        project: project.clone(),
        partials: pieces.then(Partials::default),
        unknown_cost: UnknownCost::Null,
        signals,
    })
}

/// What the first line says. `model` is that of a command, if it wants one.
fn init_parts(
    project: &Arc<Project>,
    session: &Session,
    model: Option<String>,
    commands: &ProjectCommands,
) -> InitParts {
    let built_in = std::iter::once("compact".to_owned());
    let prompts = project.mcp.prompts();
    InitParts {
        session: session.transcript.session(),
        is_resumed: session.is_resumed,
        tools: project.tool_names(session),
        model: model.unwrap_or_else(|| project.provider.choice.id.clone()),
        commands: built_in
            .chain(commands::names(commands, &prompts))
            .collect(),
    }
}

/// The commands of files; read only where the prompt may be one, or the first line lists them.
fn project_commands(cli: &Cli, project: &Project, prompt: Option<&str>) -> ProjectCommands {
    let is_listed = cli.output_format == Some(OutputFormat::StreamJson);
    let may_be_one = prompt.is_some_and(|text| text.trim_start().starts_with('/'));
    match is_listed || may_be_one {
        true => ProjectCommands::load(&project.dir, &project.plugins, &project.options),
        false => ProjectCommands::default(),
    }
}

/// Hears of hooks where lines are printed.
fn client_side(cli: &Cli, signals: &Signals) -> ClientSide {
    let is_heard = cli.output_format == Some(OutputFormat::StreamJson);
    let lines = || HookLines::new(cli.session.client.hook_events(), signals.clone());
    ClientSide {
        hook_observer: is_heard.then(|| Arc::new(lines()) as Arc<_>),
        ..ClientSide::default()
    }
}

/// What `--json-schema` asks for; the model is told of it.
pub(crate) fn structured_answers(
    cli: &Cli,
    options: &mut ProjectOptions,
) -> Result<Option<StructuredAnswers>, CommandError> {
    let Some(schema) = cli.session.client.schema()? else {
        return Ok(None);
    };
    options.append_to_prompt(structured::NOTE);
    StructuredAnswers::new(schema).map(Some)
}

/// What was given for nothing, where somebody wants to know.
pub(crate) fn tell_without_meaning(cli: &Cli) {
    for text in cli.session.client.without_meaning() {
        if cli.verbose {
            crate::printer::err(format_args!("codespar: {text}"));
        }
    }
}

/// Removes a session that is not to be kept, with its files. Its holder must be gone.
pub(crate) async fn forget(project: &Project, id: SessionId) {
    if let Err(error) = project.store.remove_session(id).await {
        let text = format!("the session {id} could not be removed: {error}");
        crate::printer::err(format_args!("codespar: {text}"));
        return;
    }
    let dirs = SessionDirs::of(project.dir.state(), id);
    for dir in [&dirs.temp, &dirs.output, &dirs.checkpoints] {
        let _ = std::fs::remove_dir_all(dir);
    }
}

/// A signal counts only if it interrupted the run: one that comes when the work is done changes
/// nothing.
fn exit_code(result: &RunResult, signals: &Signals) -> ExitCode {
    match signals.exit_code() {
        Some(code) if result.interrupted => ExitCode::from(code),
        _ if result.outcome == Outcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The prompt on the command line: after `-p`, after the options, or both. An unquoted prompt
/// arrives as several arguments, which are joined with spaces.
pub(crate) fn prompt_argument(cli: &Cli) -> Option<String> {
    let mut parts: Vec<&str> = cli
        .print
        .as_deref()
        .filter(|p| !p.is_empty())
        .into_iter()
        .collect();
    parts.extend(cli.prompt.iter().map(String::as_str));
    let text = parts.join(" ");
    (!text.trim().is_empty()).then_some(text)
}

/// A prompt on the command line and piped text are joined, prompt first. `None` only for a session
/// that is resumed without one.
async fn prompt(given: Option<String>, is_resuming: bool) -> Result<Option<String>, CommandError> {
    let piped = match (&given, is_resuming) {
        (None, false) => stdin::read_fully().await?,
        _ => stdin::read_with_patience().await?,
    };
    let piped = match piped {
        Piped::Text(text) if !text.trim().is_empty() => Some(text),
        Piped::Silent => {
            crate::printer::err(format_args!(
                "codespar: nothing came on standard input; going on without it (< /dev/null avoids \
                 the wait)"
            ));
            None
        }
        _ => None,
    };
    match (given, piped) {
        (Some(given), Some(piped)) => Ok(Some(format!("{given}\n\n{piped}"))),
        (Some(text), None) | (None, Some(text)) => Ok(Some(text)),
        (None, None) if is_resuming => Ok(None),
        (None, None) => Err(CommandError::Usage(
            "there is no prompt: write it after -p, or pipe it in".to_owned(),
        )),
    }
}

/// What a person should know before the run begins. In `stream-json` they are lines of their own,
/// elsewhere warnings on standard error.
pub(crate) fn notices(project: &Project, session: &Session) -> Vec<String> {
    let mut notices = project.warnings.clone();
    notices.extend(mcp::notices(&project.mcp));
    notices.extend(recovery_notices(&session.recovered));
    notices.extend(mode_notice(project, session));
    if project.provider.is_simulated() {
        notices.push(format!(
            "simulated: no model is called ({})",
            project.provider.why
        ));
    }
    notices
}

/// A session keeps working the way it began.
pub(crate) fn mode_notice(project: &Project, session: &Session) -> Option<String> {
    let (was, wanted) = (session.mode, project.wanted_mode());
    (session.is_resumed && was != wanted).then(|| match was {
        SessionMode::Coordinator => {
            "this session is a coordinator's: coordinator mode is on".to_owned()
        }
        SessionMode::Normal => {
            "this session is not a coordinator's: coordinator mode is off".to_owned()
        }
    })
}

/// What a resumed session left open. Calls that had started and those that had not are told apart:
/// only the former may have had an effect.
pub(crate) fn recovery_notices(recovered: &Recovered) -> Vec<String> {
    let unknown = recovered
        .outcome_unknown
        .iter()
        .map(|call| format!("interrupted while it ran, outcome unknown, not run again: {call}"));
    let never = recovered
        .never_started
        .iter()
        .map(|call| format!("interrupted before it ran: {call}"));
    unknown.chain(never).collect()
}
