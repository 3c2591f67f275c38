//! A session driven by a client over standard input and output: programs of the Agent SDKs, editors
//! that use them, actions.
//!
//! ```text
//! input        lines of standard input, understood
//! client       lines to the client, requests to it and its answers
//! initialize   the request that opens a session
//! driver       turns: one at a time, with what the client asks for meanwhile
//! control      requests of the client
//! questions    can_use_tool, elicitation        asked of the client
//! hooks        hook_callback                    asked of the client
//! servers      mcp_message                      asked of the client
//! ```
//!
//! The client was started by the same user and may do what the user may; what it allows is weighed
//! like an answer of the user, and lifts no rule that denies. What it says is read with limits: a
//! line that cannot be read is reported and changes nothing.

mod client;
mod context;
mod control;
mod driver;
mod hooks;
mod initialize;
mod input;
mod prompt;
mod questions;
mod server_requests;
mod servers;

use std::{
    process::ExitCode,
    sync::{Arc, OnceLock},
    time::Duration,
};

use codespar_agent::HookRunner;
use codespar_policy::Mode;
use codespar_runtime::{
    ClientSide, ProcessRole, ProjectCommands, ProjectConfig, ProjectDir, Runtime,
};
use codespar_tasks::Attendance;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::{
    client::Client,
    driver::{Driver, DriverParts},
    initialize::ClientParts,
    input::Incoming,
    questions::{Bypass, ClientQuestions, CurrentTurn, Prompts},
    servers::ClientServers,
};
use crate::{
    args::{Cli, OutputFormat, PermissionPrompts},
    commands::gc,
    error::CommandError,
    headless::{self, hook_lines::HookLines, structured::StructuredAnswers},
    signals::Signals,
};

/// How long a process that is over may clean up, once a day.
const CLEANING: Duration = Duration::from_secs(2);
/// What may wait for the driver.
const WAITING: usize = 64;

/// Runs until the client has closed its input and everything it sent is done.
pub(crate) async fn run(cli: Cli, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    check(&cli)?;
    let signals = Signals::watch(CancellationToken::new())?.and_closed_output();
    let client = Client::new(signals.clone());
    let servers = Arc::new(ClientServers::new(client.clone()));
    let mut incoming = route(input::lines()?, client.clone(), servers.clone());
    let first = loop {
        let came = tokio::select! {
            came = incoming.recv() => came,
            () = signals.token().cancelled() => None,
        };
        match came {
            Some(Incoming::Malformed(why)) => client.warn(&why),
            Some(Incoming::Other) => {}
            came => break came,
        }
    };
    let Some(first) = first else {
        return Ok(ExitCode::from(signals.exit_code().unwrap_or(0)));
    };
    let (initialize, first) = match first {
        Incoming::Request { id, request } if request["subtype"] == "initialize" => {
            (Some((id, request)), None)
        }
        other => (None, Some(other)),
    };
    let id = initialize.as_ref().map(|(id, _)| id.clone());
    let request = initialize.map(|(_, request)| request);
    let opened = open(&cli, project_dir, request, &client, servers.clone());
    let (runtime, parts) = match opened.await {
        Ok(opened) => opened,
        Err(error) => {
            // The client waits for this answer; the reason is on standard error as well.
            if let Some(id) = id {
                client.reply(&id, Err(error.to_string()));
            }
            return Err(error);
        }
    };
    let project = parts.project.clone();
    if let Some(id) = id {
        client.reply(&id, Ok(initialize::reply(&project, &parts.commands)));
    }
    headless::tell_without_meaning(&cli);
    let mut driver = Driver::new(parts, incoming, signals.clone(), servers);
    let ended = driver.run(first).await;
    driver.leave().await;
    drop(driver);
    let closed = runtime.close().await;
    if signals.exit_code().is_none() && closed.is_ok() {
        gc::for_as_long(&project.dir, &project.settings, CLEANING).await;
    }
    match signals.exit_code() {
        Some(code) => Ok(ExitCode::from(code)),
        None => {
            ended?;
            closed?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(cli: &Cli) -> Result<(), CommandError> {
    if headless::prompt_argument(cli).is_some() {
        return Err(CommandError::Usage(
            "with --input-format stream-json prompts come on standard input, not as arguments"
                .to_owned(),
        ));
    }
    match cli.output_format {
        Some(OutputFormat::StreamJson) => Ok(()),
        _ => Err(CommandError::Usage(
            "--input-format stream-json needs --output-format stream-json".to_owned(),
        )),
    }
}

/// Passes answers to those who wait for them, and the rest to the driver, which may be busy. Ends
/// with the input.
fn route(
    mut lines: mpsc::Receiver<Incoming>,
    client: Client,
    servers: Arc<ClientServers>,
) -> mpsc::Receiver<Incoming> {
    let (pass, passed) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            match line {
                Incoming::Response { id, answer } => client.answered(&id, answer),
                Incoming::Request { id, mut request } if request["subtype"] == "mcp_message" => {
                    let server = request["server_name"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned();
                    let said = servers.said(&server, request["message"].take());
                    client.reply(&id, said.map(|()| Value::Object(serde_json::Map::new())));
                }
                other => {
                    if pass.send(other).await.is_err() {
                        return;
                    }
                }
            }
        }
        client.close();
    });
    passed
}

/// Opens the project as the arguments and the client want it.
async fn open(
    cli: &Cli,
    project_dir: ProjectDir,
    initialize: Option<Value>,
    client: &Client,
    servers: Arc<ClientServers>,
) -> Result<(Arc<Runtime>, DriverParts), CommandError> {
    let args = &cli.session.client;
    let mut options = cli.session.project_options()?;
    let lines = Arc::new(HookLines::new(args.hook_events(), client.signals().clone()));
    let brought = match initialize {
        Some(request) => initialize::read(request, &mut options, client, &lines)
            .map_err(|error| CommandError::Usage(format!("initialize: {error}")))?,
        None => ClientParts::default(),
    };
    let schema = brought.schema.or(args.schema()?);
    if schema.is_some() {
        options.append_to_prompt(headless::structured::NOTE);
    }
    let structured = schema.map(StructuredAnswers::new).transpose()?;
    let structured = structured.map(Arc::new);
    let bypass = match options.permission_mode {
        Some(Mode::BypassPermissions) => Bypass::Possible,
        _ if args.allow_dangerously_skip_permissions => Bypass::Possible,
        _ => Bypass::Refused,
    };
    let config = ProjectConfig::load(project_dir, options)?;
    if let Some(what) = config.missing_key() {
        return Err(CommandError::Usage(format!(
            "a session needs a model: {what}; --simulate runs without one"
        )));
    }
    let turn = CurrentTurn::default();
    let questions = Arc::new(ClientQuestions {
        client: client.clone(),
        prompts: match (&args.permission_prompt_tool, args.permission_prompts) {
            (Some(_), None | Some(PermissionPrompts::Host)) => Prompts::ToClient,
            _ => Prompts::ToNobody,
        },
        bypass,
        turn: turn.clone(),
        project: OnceLock::new(),
    });
    let hooks = brought
        .hooks
        .map(|hooks| Arc::new(hooks) as Arc<dyn HookRunner>);
    let config = config.with_client(ClientSide {
        hooks,
        servers: Some(servers),
        hook_observer: Some(lines),
    });
    let attendance = Attendance::Here(questions.clone());
    let (runtime, project) =
        Runtime::with_project(config, attendance, ProcessRole::Session).await?;
    let _ = questions.project.set(Arc::downgrade(&project));
    let commands = Arc::new(ProjectCommands::load(
        &project.dir,
        &project.plugins,
        &project.options,
    ));
    let parts = DriverParts {
        client: client.clone(),
        project,
        commands,
        structured,
        bypass,
        turn,
        which: cli.session.which_session()?,
        args: args.clone(),
        verbose: cli.verbose,
    };
    Ok((runtime, parts))
}
