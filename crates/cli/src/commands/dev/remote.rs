//! `codespar dev --server`: the work is done by a server; here it is handed over and followed.
//!
//! Nothing of the run is kept here. Whoever stops following loses nothing: the same task is
//! followed again by its id, from any machine.

use std::{io::Read, process::ExitCode};

use codespar_protocol::{TaskId, TaskStatus, Usd};
use codespar_runtime::{ProjectDir, github_origin};
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{DevArgs, follow_remote::Follower};
use crate::{
    error::CommandError,
    printer,
    progress::Progress,
    remote::{
        RemoteError, RemoteEvent, RemoteEvents, RemoteProject, RemoteServer, RemoteTask,
        ServerAddress,
    },
    signals::Signals,
    style,
};

const TOKEN_VARIABLE: &str = "CODESPAR_SERVER_TOKEN";
/// A file that is longer is not a token; it is not read to its end.
const MOST_TOKEN_BYTES: u64 = 4096;

/// Connects before it hands the work over: a wrong address or token costs no run.
pub(super) async fn run(
    args: &DevArgs,
    address: &ServerAddress,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?.and_closed_output();
    let proxy = crate::channels::proxy(project_dir, address.url())?;
    let token = token(args, project_dir)?;
    let server = RemoteServer::new(address.clone(), token, proxy.as_ref())?;
    let progress = match args.json {
        true => Progress::beside_json(),
        false => Progress::for_people(),
    };
    if let Some(version) = server.greet().await? {
        printer::err(format_args!(
            "codespar: {address} runs version {version}, this is {}",
            env!("CARGO_PKG_VERSION")
        ));
    }
    // Before there is a task, so that none of its steps is missed.
    let mut events = RemoteEvents::new(server.clone());
    while !matches!(events.next().await?, RemoteEvent::Open { .. }) {}
    let task = hand_over(args, &server, project_dir, &progress).await?;
    let id = &task.task_id;
    if !task.status.is_final() {
        let text = format!(
            "codespar: task {id} runs on {address}. Follow it with: {}",
            follow_command(address, id)
        );
        printer::err(format_args!("{}", style::faint(text)));
    }
    let mut follower = Follower::new(&server, &progress, events, id);
    let followed = tokio::select! {
        followed = follower.until_it_is_over(task.clone()) => Some(followed),
        () = cancel.cancelled() => None,
    };
    progress.rest();
    let Some(ended) = followed else {
        printer::err(format_args!(
            "codespar: task {id} goes on at the server; it is not stopped. Follow it with: {}\n\
             codespar: Stop it at {address}/tasks/{id}",
            follow_command(address, id)
        ));
        return Ok(signals
            .exit_code()
            .map_or(ExitCode::FAILURE, ExitCode::from));
    };
    let conclusion = follower
        .conclusion(&ended?, follow_command(address, id))
        .await?;
    if args.json {
        super::super::print_json(&conclusion.json())?;
    }
    conclusion.exit(&signals)
}

fn follow_command(address: &ServerAddress, id: &TaskId) -> String {
    format!("codespar dev --server {address} --resume {id}")
}

/// From a file or the environment, never from the arguments: those are seen by every user of the
/// machine.
fn token(args: &DevArgs, project_dir: &ProjectDir) -> Result<SecretString, CommandError> {
    let text = match &args.server_token_file {
        Some(path) => {
            let failed = |error: std::io::Error| {
                CommandError::Usage(format!("--server-token-file {}: {error}", path.display()))
            };
            let mut text = String::new();
            let file = std::fs::File::open(path).map_err(failed)?;
            let mut file = file.take(MOST_TOKEN_BYTES);
            file.read_to_string(&mut text).map_err(failed)?;
            text
        }
        None => project_dir
            .var(TOKEN_VARIABLE)
            .unwrap_or_default()
            .to_owned(),
    };
    match text.trim() {
        "" => Err(CommandError::Usage(format!(
            "--server needs a token: set {TOKEN_VARIABLE}, or give --server-token-file; an admin \
             of the server makes one with: codespar token create --role write --name NAME"
        ))),
        token => Ok(SecretString::from(token.to_owned())),
    }
}

/// The task to follow: a new one, the one that is named, or another attempt of it. A request whose
/// answer is lost may have started a task: it is not sent again, and the error says so.
async fn hand_over(
    args: &DevArgs,
    server: &RemoteServer,
    project_dir: &ProjectDir,
    progress: &Progress,
) -> Result<RemoteTask, CommandError> {
    if let Some(text) = &args.resume {
        let id: TaskId = text
            .parse()
            .map_err(|error| CommandError::Usage(format!("--resume: {error}")))?;
        let task = server.task(&id).await?;
        return match task.status {
            TaskStatus::Failed | TaskStatus::Killed => {
                let path = format!("/api/v1/tasks/{id}/retry");
                Ok(server.post(&path, &Value::Object(Map::new())).await?)
            }
            _ => Ok(task),
        };
    }
    let project = project(args, server, project_dir, progress).await?;
    let made = server.post("/api/v1/tasks", &order(args, &project)).await;
    Ok(made.map_err(|error| match error {
        RemoteError::Unreachable { server, reason } => RemoteError::Unreachable {
            reason: format!(
                "{reason}; the task may have been started all the same, look there first"
            ),
            server,
        },
        other => other,
    })?)
}

/// What is sent. How the work is tested and confined is decided by the server.
fn order(args: &DevArgs, project: &RemoteProject) -> Value {
    let mut order = Map::new();
    order.insert("instruction".to_owned(), args.instruction.join(" ").into());
    order.insert("project".to_owned(), project.key.clone().into());
    if let Some(base) = &args.base {
        order.insert("base".to_owned(), base.clone().into());
    }
    if let Some(number) = args.pr {
        order.insert("pull_request".to_owned(), number.into());
    }
    if args.draft {
        order.insert("draft".to_owned(), true.into());
    }
    if let Some(model) = &args.model {
        order.insert("model".to_owned(), model.clone().into());
    }
    if let Some(most) = args.max_budget_usd.map(Usd::dollars) {
        order.insert("max_budget_usd".to_owned(), most.into());
    }
    Value::Object(order)
}

/// The project of the server that is meant: the one that is named, else that of this directory by
/// its origin or its name, else the only one there is, which is said.
async fn project(
    args: &DevArgs,
    server: &RemoteServer,
    project_dir: &ProjectDir,
    progress: &Progress,
) -> Result<RemoteProject, CommandError> {
    let projects = server.projects().await?;
    let has_repository = |project: &RemoteProject, wanted: &str| {
        let repository = project.repository.as_deref();
        repository.is_some_and(|name| name.eq_ignore_ascii_case(wanted))
    };
    let found = match &args.repo {
        Some(wanted) => projects.iter().find(|project| {
            project.key == *wanted || project.name == *wanted || has_repository(project, wanted)
        }),
        None => {
            let origin = github_origin(project_dir);
            let name = project_dir.root.file_name().and_then(|name| name.to_str());
            let by_origin = projects.iter().find(|project| {
                let origin = origin.as_deref();
                origin.is_some_and(|origin| has_repository(project, origin))
            });
            by_origin.or_else(|| {
                let mut same = projects
                    .iter()
                    .filter(|one| Some(one.name.as_str()) == name);
                same.next().filter(|_| same.next().is_none())
            })
        }
    };
    if let Some(found) = found {
        return Ok(found.clone());
    }
    match (projects.as_slice(), &args.repo) {
        ([only], None) => {
            let text = format!("Project: {}, the only one of {}", only.name, server.address);
            progress.line(&text);
            Ok(only.clone())
        }
        _ => {
            let names: Vec<&str> = projects.iter().map(|one| one.name.as_str()).collect();
            Err(CommandError::Usage(format!(
                "say which project of {} is meant with --repo: {}",
                server.address,
                names.join(", ")
            )))
        }
    }
}
