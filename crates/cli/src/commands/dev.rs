//! `codespar dev`.
//!
//! The command records a task and follows it; the work is done by the runner of the dev agent in
//! this process. It could as well be done by another: what is printed comes from events and the
//! store. Ctrl-C stops the run; a signal to terminate leaves it for another process.

mod order;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::{Args, ValueEnum};
use codespar_change::verify::detect as detect_tests;
use codespar_dev::{DevOrder, recorded_base, recorded_report};
use codespar_policy::Mode;
use codespar_protocol::{SessionId, TaskId, TaskRecord, TaskSpec, TaskStatus, TaskType, Usd};
use codespar_pulls::headline;
use codespar_store::Notify;
use codespar_tasks::{Attendance, Caller, TaskExtra, Waited, find_typed_task};
use tokio_util::sync::CancellationToken;

use self::order::order;
use crate::{
    args::dollars,
    dev::{
        AtTerminal, Conclusion, WorkingTree, hint,
        simulation::{self, SimulationAnswer},
    },
    error::CommandError,
    progress::Progress,
    signals::Signals,
};
use codespar_runtime::{
    ProcessRole, Project, ProjectConfig, ProjectDir, ProjectOptions, Runtime, which,
};

/// Turn an instruction into a verified pull request.
///
/// Finds the files, writes the change, proves it by the project's tests in a throw-away copy, and
/// opens a pull request: on GitHub where the origin is there and GITHUB_TOKEN is set, otherwise as
/// a local record (`codespar pr list`). Your working tree and your current branch stay as they are.
/// Without an API key the run is simulated: every step runs, but nothing is changed. On GitHub the
/// user is asked before, and a run without a terminal needs --simulate or --yes;
/// `dev.requireModel` in the settings refuses instead.
///
/// The run is a durable task: if it is killed, `codespar dev --resume ID` or a `codespar worker`
/// on the same state directory continues it.
///
/// Exit code 0: the pull request was opened or updated and its tests pass, or there were none to
/// run. 1: the run failed. 2: wrong arguments. 3: the pull request was opened or updated, but its
/// tests do not pass. 130: stopped by Ctrl-C.
///
/// `codespar fix …`, `implement …`, `refactor …` and `add …` are short for `codespar dev fix …` and so
/// on; `codespar instruct …` is `codespar dev …`.
///
/// Examples:
///   codespar dev "fix the auth timeout in login.ts: sessions expire too fast"
///   codespar dev "add a health check endpoint" --verify "make check" --max-budget-usd 0.50
///   codespar dev --pr 12 "also cover the empty list"
///   codespar fix the typo in the title of README.md
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct DevArgs {
    /// What is to be done; quotes may be left out.
    #[arg(required_unless_present = "resume")]
    instruction: Vec<String>,

    /// owner/name on GitHub, or a directory; the current one by default.
    #[arg(long, value_name = "REPO")]
    repo: Option<String>,

    /// The branch the change is for; the repository's default branch by default.
    #[arg(long, value_name = "BRANCH", conflicts_with = "pr")]
    base: Option<String>,

    /// Add to the branch of this open pull request instead of opening one.
    #[arg(long, value_name = "N")]
    pr: Option<u64>,

    /// A picture that goes with the instruction (PNG, JPEG, GIF, WebP, at most 4 MB). May be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,

    /// The test command; by default chosen by the project's files (Cargo.toml, package.json …).
    #[arg(long, value_name = "CMD", conflicts_with = "no_verify")]
    verify: Option<String>,

    /// The command that installs what the tests need, where the checkout does not have it; by
    /// default chosen by the lock files (`npm ci`, `uv sync` …). Empty to install nothing.
    #[arg(long, value_name = "CMD", conflicts_with = "no_verify")]
    verify_setup: Option<String>,

    /// Run no tests.
    #[arg(long)]
    no_verify: bool,

    /// Open the pull request as a draft.
    #[arg(long)]
    draft: bool,

    /// Let the change touch protected files (CI workflows, CODEOWNERS, lock files).
    #[arg(long)]
    allow_protected: bool,

    /// Call no model, whatever keys are set; a pull request on GitHub is then a draft.
    #[arg(long)]
    simulate: bool,

    /// Open a simulated draft on GitHub without asking, if no model can be called.
    #[arg(long)]
    yes: bool,

    /// Stop before spending more than this many US dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_budget_usd: Option<Usd>,

    /// The model that writes: an alias or a provider's id (TASK_MODEL).
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// generate: one answer of the model, with repairs. agent: the agent loop with tools, for
    /// changes that span many files. auto (the default): generate, and the agent where the files
    /// do not fit, the instruction lists several places, or the repairs fail.
    #[arg(long, value_enum, value_name = "ENGINE")]
    engine: Option<EngineName>,

    /// With the agent engine: allow these tools without asking, as for a session:
    /// `"Bash(make *)"`. May be repeated.
    #[arg(
        long = "allowedTools",
        visible_alias = "allowed-tools",
        value_name = "RULES",
        num_args = 1
    )]
    allowed_tools: Vec<String>,

    /// Resume a run that was interrupted or failed, by the id of its task or a unique prefix.
    #[arg(long, value_name = "ID", conflicts_with_all = ["instruction", "repo", "base", "pr", "image", "verify", "verify_setup", "no_verify", "draft", "allow_protected", "simulate", "yes", "model", "engine"])]
    resume: Option<String>,

    /// Print one JSON object at the end (fields: docs/dev-agent.md).
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Auto,
    Generate,
    Agent,
}

pub(crate) async fn run(args: DevArgs, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?.and_closed_output();
    let options = project_options(&args, &project_dir);
    let config = ProjectConfig::load(project_dir, options)?;
    let mut attendance = Attendance::Nobody;
    let progress = if args.json {
        Progress::beside_json()
    } else {
        let progress = Progress::for_people();
        if let Some(person) = AtTerminal::find(&progress) {
            attendance = Attendance::Here(Arc::new(person));
        }
        progress
    };
    let (runtime, project) =
        Runtime::with_project(config, attendance, ProcessRole::Session).await?;
    for warning in &project.warnings {
        crate::printer::err(format_args!(
            "{} {warning}",
            crate::style::warning("warning:")
        ));
    }
    let outcome = match confirmed(args.clone(), &project).await {
        Ok(args) => attend(&args, &project, &progress, &cancel, &signals).await,
        Err(refused) => Err(refused),
    };
    progress.rest();
    let closed = runtime.close().await;
    let conclusion = outcome?;
    if conclusion.record.status == TaskStatus::Completed {
        closed?;
    }
    if args.json {
        super::print_json(&conclusion.json())?;
    }
    conclusion.exit(&signals)
}

/// The arguments, once a simulated pull request that others would see is agreed to.
async fn confirmed(mut args: DevArgs, project: &Project) -> Result<DevArgs, CommandError> {
    if args.resume.is_none() {
        let repository = which(&project.dir, &project.settings, args.repo.as_deref())?;
        let answer = simulation::confirm(project, &repository, args.simulation()).await?;
        args.yes |= answer == SimulationAnswer::Given;
    }
    Ok(args)
}

/// Begins a run or goes on with one, and stays with it.
async fn attend(
    args: &DevArgs,
    project: &Arc<Project>,
    progress: &Progress,
    cancel: &CancellationToken,
    signals: &Signals,
) -> Result<Conclusion, CommandError> {
    let started = start(args, project, progress).await?;
    let record = follow(project, &started.id, cancel, signals).await?;
    Ok(Conclusion {
        base: recorded_base(&*project.store, &record).await?,
        report: recorded_report(&*project.store, &record).await?,
        working_tree: started.working_tree,
        record,
    })
}

/// A run that this process attends. The working tree as it was when this process began to attend.
pub(crate) struct Started {
    pub(crate) id: TaskId,
    working_tree: Option<WorkingTree>,
}

/// Begins a run, or resumes one. Who follows it puts its questions.
pub(crate) async fn start(
    args: &DevArgs,
    project: &Arc<Project>,
    progress: &Progress,
) -> Result<Started, CommandError> {
    match &args.resume {
        Some(text) => resume(project, text, progress, args).await,
        None => begin(args, project, progress).await,
    }
}

/// Says what of the working tree is not part of the run.
async fn look_at_working_tree(
    project: &Project,
    order: &DevOrder,
    progress: &Progress,
) -> Option<WorkingTree> {
    let working_tree = WorkingTree::look(project, &order.repository).await?;
    for note in working_tree.notes() {
        progress.line(&note);
    }
    Some(working_tree)
}

/// Records the task; from here on it outlives us.
async fn begin(
    args: &DevArgs,
    project: &Arc<Project>,
    progress: &Progress,
) -> Result<Started, CommandError> {
    let id = TaskId::new(TaskType::LocalWorkflow);
    let order = order(args, project, &id).await?;
    let working_tree = look_at_working_tree(project, &order, progress).await;
    record_task(project, &id, &order, progress).await?;
    hint(&id, "started");
    Ok(Started { id, working_tree })
}

/// The task belongs to a tree of its own; the fresh session id stands for it.
async fn record_task(
    project: &Arc<Project>,
    id: &TaskId,
    order: &DevOrder,
    progress: &Progress,
) -> Result<(), CommandError> {
    // Nobody is told of its end, so there need not be a conversation.
    let session = SessionId::new();
    let caller = Caller {
        session,
        name: "the user".to_owned(),
        task: None,
        depth: 0,
        sink: Arc::new(|_| {}),
        root: project.dir.root.clone(),
        authority: project.authority(session),
    };
    listen(project, id, session, progress);
    let subject = format!("dev: {}", headline(order));
    project
        .hub
        .create_builtin(
            &caller,
            id.clone(),
            &subject,
            TaskSpec::Dev(Box::new(order.clone())),
            TaskExtra::default(),
            Notify::Nobody,
        )
        .await
        .map_err(|error| CommandError::Failed(error.to_string()))?;
    Ok(())
}

/// A run that is over is shown again. One that failed or was stopped is started as a new task that
/// takes over the recorded steps of the old one. One that is pending or running is followed, and
/// run here if nobody has it.
async fn resume(
    project: &Arc<Project>,
    text: &str,
    progress: &Progress,
    args: &DevArgs,
) -> Result<Started, CommandError> {
    let store = &*project.store;
    let found = find_typed_task(store, text)
        .await
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let id = &found.ok_or_else(|| CommandError::Usage(format!("there is no task `{text}`")))?;
    let record = store.task(id).await?;
    if let (Some(report), false) = (recorded_report(store, &record).await?, args.json) {
        // Nobody will say it again.
        progress.line(&report.text());
    }
    let Some(TaskSpec::Dev(order)) = record.spec.clone() else {
        return Err(CommandError::Usage(format!(
            "{id} is not a run of the dev agent"
        )));
    };
    if matches!(record.status, TaskStatus::Failed | TaskStatus::Killed) {
        let mut order = order.again(id.clone());
        order.max_budget = args.max_budget_usd.or(order.max_budget);
        // It may be what ended the earlier run: what the settings say now counts.
        order.limits.max_wall_seconds = project.settings.max_wall_seconds;
        let id = TaskId::new(TaskType::LocalWorkflow);
        let working_tree = look_at_working_tree(project, &order, progress).await;
        record_task(project, &id, &order, progress).await?;
        hint(&id, "started");
        return Ok(Started { id, working_tree });
    }
    let is_over = record.status.is_final();
    if let (false, false, Some(authority)) = (
        is_over,
        project.hub.scheduler().may_run(&record),
        &record.authority,
    ) {
        return Err(CommandError::Usage(format!(
            "{id} was started in {}; resume it there",
            authority.project_root.display()
        )));
    }
    let mut working_tree = None;
    if !is_over {
        working_tree = look_at_working_tree(project, &order, progress).await;
        hint(id, "resumed");
    }
    listen(project, id, SessionId::new(), progress);
    project.hub.wake();
    Ok(Started {
        id: id.clone(),
        working_tree,
    })
}

/// Shows the events of the task in this process. The run of another process has none here; its
/// steps are then not shown.
fn listen(project: &Arc<Project>, id: &TaskId, session: SessionId, progress: &Progress) {
    let progress = progress.clone();
    let show = Arc::new(move |event| progress.event(&event));
    project.hub.follow(id, session, show);
}

impl DevArgs {
    fn simulation(&self) -> SimulationAnswer {
        match self.simulate || self.yes {
            true => SimulationAnswer::Given,
            false => SimulationAnswer::Missing,
        }
    }
}

/// Waits for the end. Ctrl-C stops the run; being terminated leaves it for another process.
async fn follow(
    project: &Arc<Project>,
    id: &TaskId,
    cancel: &CancellationToken,
    signals: &Signals,
) -> Result<TaskRecord, CommandError> {
    let failed = |error: codespar_tasks::HubError| CommandError::Failed(error.to_string());
    match project.hub.wait(id, cancel).await.map_err(failed)? {
        Waited::Ended(record) => Ok(*record),
        Waited::GaveUp if signals.was_interrupted() => {
            project.hub.stop(id, "interrupted").await.map_err(failed)
        }
        Waited::GaveUp => Ok(project.store.task(id).await?),
    }
}

/// The agent engine works in a throw-away tree, where edits need no asking.
fn project_options(args: &DevArgs, project_dir: &ProjectDir) -> ProjectOptions {
    // The project's own tests may be run by whoever is to make them pass.
    let command = args
        .verify
        .clone()
        .or_else(|| detect_tests(&project_dir.root));
    let mut allowed_tools = args.allowed_tools.clone();
    allowed_tools.extend(
        command
            .filter(|command| !command.trim().is_empty())
            .map(|command| format!("Bash({command})")),
    );
    ProjectOptions {
        permission_mode: Some(Mode::AcceptEdits),
        max_budget_usd: args.max_budget_usd,
        simulate: args.simulate,
        allowed_tools,
        ..ProjectOptions::default()
    }
}
