//! `codespar dev`.
//!
//! The command records a task and follows it; the work is done by the runner of the dev agent in
//! this process. It could as well be done by another: what is printed comes from events and the
//! store. Ctrl-C stops the run; a signal to terminate leaves it for another process.

mod follow_remote;
mod order;
mod remote;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::{Args, ValueEnum};
use codespar_dev::{Consent, DevOrder, recorded_base, recorded_report};
use codespar_protocol::{SessionId, TaskId, TaskRecord, TaskStatus, TaskType, Usd};
use codespar_tasks::{Attendance, Waited, find_typed_task};
use tokio_util::sync::CancellationToken;

use self::order::{consent, request};
use crate::{
    args::dollars,
    dev::{AtTerminal, Conclusion, EndedRun, WorkingTree, hint, simulation},
    error::CommandError,
    progress::Progress,
    remote::ServerAddress,
    signals::Signals,
};
use codespar_runtime::{
    DevResumption, ProcessRole, Project, ProjectConfig, ProjectDir, ProjectOptions, Runtime, which,
};

/// Turn an instruction into a verified pull request.
///
/// Finds the files, writes the change, proves it by the project's tests in a throw-away copy, and
/// opens a pull request: on GitHub where the origin is there and there is a token (GITHUB_TOKEN,
/// `gh auth token` or git's credential helper), otherwise as a local record (`codespar pr list`).
/// Your working tree and your current branch stay as they are. Without an API key the run is
/// simulated: every step runs, but nothing is changed. On GitHub the user is asked before, and a
/// run without a terminal needs --simulate or --yes; `dev.requireModel` in the settings refuses
/// instead.
///
/// The run is a durable task: if it is killed, `codespar dev --resume ID` or a `codespar worker`
/// on the same state directory continues it. With --server it runs on a server: Ctrl-C then ends
/// the following and not the run, and what is printed says how to follow it again.
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
///   codespar dev --server "$CODESPAR_SERVER" "fix the auth timeout in login.ts"
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

    /// Hand the work to the `codespar serve` at this address and follow it: https, or http on this
    /// machine. The project is found by --repo (a name, a key or owner/name), or by this directory.
    #[arg(long, value_name = "URL", conflicts_with_all = ["image", "verify", "verify_setup", "no_verify", "allow_protected", "simulate", "yes", "engine", "allowed_tools"])]
    server: Option<ServerAddress>,

    /// The file with the token for --server; otherwise it is in CODESPAR_SERVER_TOKEN.
    #[arg(long, value_name = "FILE", requires = "server")]
    server_token_file: Option<PathBuf>,

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
    if let Some(address) = &args.server {
        return remote::run(&args, address, &project_dir).await;
    }
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
    if conclusion.run.status == TaskStatus::Completed {
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
        args.yes |= answer == Consent::Granted;
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
        run: EndedRun::from(&record),
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
    let order = project.dev_order(request(args, project)?, &id).await?;
    let working_tree = look_at_working_tree(project, &order, progress).await;
    record_task(project, &id, &order, progress).await?;
    hint(&id, "started");
    Ok(Started { id, working_tree })
}

async fn record_task(
    project: &Arc<Project>,
    id: &TaskId,
    order: &DevOrder,
    progress: &Progress,
) -> Result<(), CommandError> {
    let session = SessionId::new();
    listen(project, id, session, progress);
    project.record_dev(id, session, order).await?;
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
    let mut working_tree = None;
    match project.dev_resumption(&record, args.max_budget_usd)? {
        DevResumption::Again(order) => {
            let id = TaskId::new(TaskType::LocalWorkflow);
            let working_tree = look_at_working_tree(project, &order, progress).await;
            record_task(project, &id, &order, progress).await?;
            hint(&id, "started");
            return Ok(Started { id, working_tree });
        }
        DevResumption::Underway(order) => {
            working_tree = look_at_working_tree(project, &order, progress).await;
            hint(id, "resumed");
        }
        DevResumption::Over => {}
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
    /// A server does the work; files of this directory have no say in it.
    pub(crate) fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    fn simulation(&self) -> Consent {
        consent(self.simulate || self.yes)
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

fn project_options(args: &DevArgs, project_dir: &ProjectDir) -> ProjectOptions {
    let mut options = ProjectOptions::for_dev_runs(&project_dir.root, args.verify.as_deref());
    options.allowed_tools.extend(args.allowed_tools.clone());
    ProjectOptions {
        max_budget_usd: args.max_budget_usd,
        simulate: args.simulate,
        ..options
    }
}
