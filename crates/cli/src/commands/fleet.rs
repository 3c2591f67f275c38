//! `codespar fleet`.

use std::{fmt::Write as _, process::ExitCode};

use clap::{Args, Subcommand};
use codespar_runtime::{Environment, ProjectDir, engine_page};
use codespar_store::{
    ChangeFeed, ChangeKind, Database, EngineState, FleetReport, FleetRunner, FleetTask, LEASES,
    Limit, LimitScope, LimitUse, QueueDepth, RunnerState, Store,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{error::CommandError, printer::plain, style};

/// Show all processes that run tasks, what waits for them, and the limits of what runs at once.
///
/// All processes on the same database belong to the fleet: those of this machine by default, those
/// of any number of machines with CODESPAR_DATABASE_URL.
///
/// Example: codespar fleet status --watch
#[derive(Args)]
pub(crate) struct FleetCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show who runs what, and what waits for how long.
    Status {
        /// Print it again whenever a task begins or ends, until interrupted.
        #[arg(long)]
        watch: bool,
        /// Print JSON: `runners` with what each runs, `queues` with depth and age, `limits` with
        /// what runs under each. With --watch, one object for each change.
        #[arg(long)]
        json: bool,
    },
    /// List the limits of what runs at once.
    Limits {
        /// Print JSON: `limits`, each with `scope`, `name` and `limit`.
        #[arg(long)]
        json: bool,
    },
    /// Set a limit of what runs at once, in all processes together.
    ///
    /// A limit counts the tasks that somebody asked for; what such a task starts itself is part of
    /// it. What runs already is not stopped by a lower limit.
    ///
    /// Examples: codespar fleet limit all 200; codespar fleet limit repository 20; codespar fleet
    /// limit user 5 --name alice; codespar fleet limit labels none --name gpu
    Limit {
        /// all, repository, user or labels.
        scope: LimitScope,
        /// How many may run at once, or `none` to remove the limit.
        #[arg(value_parser = number_or_none)]
        limit: NumberOrNone,
        /// Which repository, user or set of labels (`gpu,linux`). Without it the limit is for each
        /// repository or user that has none of its own.
        #[arg(long, default_value = "")]
        name: String,
    },
}

#[derive(Debug, Clone, Copy)]
struct NumberOrNone(Option<u32>);

fn number_or_none(text: &str) -> Result<NumberOrNone, String> {
    match text {
        "none" => Ok(NumberOrNone(None)),
        text => match text.parse() {
            Ok(number) => Ok(NumberOrNone(Some(number))),
            Err(_) => Err("give a number, or `none`".to_owned()),
        },
    }
}

pub(crate) async fn run(
    command: FleetCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let environment = &project_dir.environment;
    let store = environment.open_database().await?;
    match command.verb {
        Verb::Status { watch: false, json } => show(&store.fleet().await?, environment, json)?,
        Verb::Status { watch: true, json } => {
            let sessions: std::sync::Arc<dyn Store> = store.clone();
            watch(&*store, &ChangeFeed::new(sessions), environment, json).await?;
        }
        Verb::Limits { json } => list(&store.limits().await?, json)?,
        Verb::Limit { scope, limit, name } => {
            check_name(scope, &name)?;
            store.set_limit(scope, &name, limit.0).await?;
            list(&store.limits().await?, false)?;
        }
    }
    store.close().await?;
    Ok(ExitCode::SUCCESS)
}

fn check_name(scope: LimitScope, name: &str) -> Result<(), CommandError> {
    match scope {
        LimitScope::All if !name.is_empty() => Err(CommandError::Usage(
            "the limit of all tasks has no --name".to_owned(),
        )),
        LimitScope::Labels if name.is_empty() => Err(CommandError::Usage(
            "a limit of labels needs --name: the labels, such as `gpu,linux`".to_owned(),
        )),
        LimitScope::All | LimitScope::Labels | LimitScope::Repository | LimitScope::User => Ok(()),
    }
}

/// Until the process is interrupted or its reader is gone.
async fn watch(
    store: &dyn Database,
    feed: &ChangeFeed,
    environment: &Environment,
    json: bool,
) -> Result<(), CommandError> {
    let mut changes = feed.follow().await?;
    loop {
        show(&store.fleet().await?, environment, json)?;
        if !json {
            super::print(format_args!("\n"))?;
        }
        let is_task =
            |change: &codespar_store::StoreChange| matches!(change.kind, ChangeKind::Task { .. });
        changes.until(is_task).await;
    }
}

fn show(fleet: &FleetReport, environment: &Environment, json: bool) -> Result<(), CommandError> {
    match json {
        true => super::print_json(&view(fleet, environment)),
        false => super::print(format_args!(
            "{}",
            text(fleet, environment, Timestamp::now())
        )),
    }
}

/// The report, with the page of each running task where an engine has one.
fn view(fleet: &FleetReport, environment: &Environment) -> Value {
    let mut view = json!(fleet);
    for (place, runner) in fleet.runners.iter().enumerate() {
        for (task_place, task) in runner.running.iter().enumerate() {
            if let Some(page) = engine_page(environment, &task.task_id) {
                view["runners"][place]["running"][task_place]["engine_url"] = page.into();
            }
        }
    }
    view
}

fn text(fleet: &FleetReport, environment: &Environment, now: Timestamp) -> String {
    let mut text = String::new();
    if fleet.runners.is_empty() {
        text.push_str("no process runs tasks; `codespar worker` starts one\n");
    }
    for runner in &fleet.runners {
        let _ = writeln!(text, "{}", about(runner, now));
        for task in &runner.running {
            let _ = writeln!(text, "{}", running(task, now));
            if let Some(page) = engine_page(environment, &task.task_id) {
                let _ = writeln!(text, "    {}", style::faint(page));
            }
        }
    }
    for queue in &fleet.queues {
        let _ = writeln!(text, "{}", waiting(queue, now));
    }
    for limit in &fleet.limits {
        let _ = writeln!(text, "{}", used(limit));
    }
    text
}

/// What a process is, without what it runs.
fn about(runner: &FleetRunner, now: Timestamp) -> String {
    let short: String = runner.id.chars().take(20).collect();
    let state = runner.state();
    let shown = match state {
        RunnerState::Alive => style::good(state.as_str()),
        RunnerState::Silent | RunnerState::Gone => style::error(state.as_str()),
    };
    let about = runner.about.as_ref().map_or_else(String::new, |about| {
        let labels = match about.labels.is_empty() {
            true => String::new(),
            false => format!("  labels {}", about.labels),
        };
        let engine = match (about.engine.as_str(), about.engine_state) {
            (LEASES, _) => String::new(),
            (engine, EngineState::Connected) => format!("  {}", plain(engine)),
            (engine, EngineState::Unreachable) => {
                let unreachable = format!("{} not reached", plain(engine));
                format!("  {}", style::error(unreachable))
            }
        };
        format!(
            "  {}  version {}  up {}{labels}{engine}",
            plain(&about.host),
            plain(&about.version),
            age(about.started_at, now)
        )
    });
    format!("{short}  {shown}{about}")
}

fn running(task: &FleetTask, now: Timestamp) -> String {
    let since = task.started_at.map_or_else(String::new, |at| age(at, now));
    format!(
        "  {}  {}  {}",
        task.task_id,
        plain(&task.subject),
        style::faint(format!("{} for {since}", plain(&task.repository)))
    )
}

fn waiting(queue: &QueueDepth, now: Timestamp) -> String {
    let labels = match queue.labels.is_empty() {
        true => String::new(),
        false => format!(" with labels {}", queue.labels),
    };
    format!(
        "{} {} of {}{labels}: {} ready, the oldest for {}",
        style::faint("waiting".to_owned()),
        queue.task_type,
        plain(&queue.repository),
        queue.ready,
        age(queue.oldest_ready_at, now)
    )
}

fn used(limit: &LimitUse) -> String {
    format!(
        "{} {}: {} of {} run",
        style::faint("limit".to_owned()),
        named(&limit.limit),
        limit.running,
        limit.limit.limit
    )
}

fn named(limit: &Limit) -> String {
    match (limit.scope, limit.name.as_str()) {
        (LimitScope::All, _) => "all".to_owned(),
        (scope, "") => format!("each {scope}"),
        (scope, name) => format!("{scope} {}", plain(name)),
    }
}

fn list(limits: &[Limit], json: bool) -> Result<(), CommandError> {
    if json {
        return super::print_json(&json!({ "limits": limits }));
    }
    if limits.is_empty() {
        return super::print(format_args!("no limits\n"));
    }
    for limit in limits {
        super::print(format_args!("{}: {}\n", named(limit), limit.limit))?;
    }
    Ok(())
}

/// In the largest unit that says something.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_the_largest_unit_that_says_something() {
        let now = Timestamp::now();
        let of = |seconds: i64| age(now - jiff::SignedDuration::from_secs(seconds), now);
        assert_eq!(
            [of(-5), of(59), of(61), of(7_200), of(200_000)],
            ["0 s", "59 s", "1 min", "2 h", "2 d"]
        );
    }
}
