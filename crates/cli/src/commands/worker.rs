//! `codespar worker`.
//!
//! A worker takes tasks of every project of the state directory, each by the settings and the trust
//! of its own project. It can be started by hand or by `codespar task create`, which starts one
//! with `--until-idle`.

use std::{convert::Infallible, process::ExitCode, time::Duration};

use clap::Args;
use codespar_protocol::Labels;
use codespar_store::{ChangeKind, Database, StoreChange};
use codespar_tasks::{Attendance, Workload};
use tokio_util::sync::CancellationToken;

use crate::{
    args::SessionArgs, commands::gc, error::CommandError, progress::Progress, signals::Signals,
};
use codespar_runtime::{ProcessRole, ProjectConfig, ProjectDir, Runtime};

/// How long nothing must be left before the worker believes it.
const IDLE: Duration = Duration::from_millis(900);

/// Run background tasks in this terminal.
///
/// At a terminal a line shows how many tasks run and for how long the oldest has.
///
/// SIGTERM or Ctrl-C shuts it down cleanly: agents are handed to another process, commands are
/// stopped.
///
/// Example: codespar worker --until-idle
#[derive(Args)]
pub(crate) struct WorkerArgs {
    /// Exit when no task is left that this worker may run.
    #[arg(long)]
    until_idle: bool,
    /// Also take tasks that require this label (`codespar task create --label`), such as `gpu` or
    /// `repo:acme/api`. May be repeated. Tasks without labels are taken by every worker.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
}

pub(crate) async fn run(
    args: &WorkerArgs,
    session: &SessionArgs,
    project_dir: ProjectDir,
) -> Result<ExitCode, CommandError> {
    let labels = Labels::new(args.labels.iter().cloned())
        .map_err(|error| CommandError::Usage(format!("--label: {error}")))?;
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?;
    let config = ProjectConfig::load(project_dir, session.project_options()?)?;
    let (runtime, project) =
        Runtime::with_project(config, Attendance::Elsewhere, ProcessRole::Worker).await?;
    runtime.offer_labels(labels.clone());
    runtime.start_tasks();
    crate::printer::err(format_args!(
        "codespar: taking tasks of {}",
        project.dir.state().display()
    ));
    gc::daily(&project.dir, &project.settings);
    let progress = Progress::beside_result();
    let done = tokio::select! {
        idle = until_idle(&runtime, &labels), if args.until_idle => idle,
        () = cancel.cancelled() => Ok(()),
        never = show_workload(&runtime, &progress) => match never {},
    };
    progress.rest();
    done?;
    progress
        .during("Handing over tasks", runtime.close())
        .await?;
    Ok(signals
        .exit_code()
        .map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Returns when no task has been left for a while.
async fn until_idle(runtime: &Runtime, offered: &Labels) -> Result<(), CommandError> {
    let is_task = |change: &StoreChange| matches!(change.kind, ChangeKind::Task { .. });
    let mut changes = runtime.changes().follow().await?;
    loop {
        if has_work(&**runtime.store(), offered).await? {
            changes.until(is_task).await;
            continue;
        }
        let next = tokio::time::timeout(IDLE, changes.until(is_task)).await;
        if next.is_err() {
            return Ok(());
        }
    }
}

/// Whether anything is left for a worker that offers these labels. What others run may be lost with
/// them, or make more; it counts.
pub(super) async fn has_work(store: &dyn Database, offered: &Labels) -> Result<bool, CommandError> {
    let left = store.outstanding().await?;
    if left.running > 0 || left.ready == 0 {
        return Ok(left.running > 0);
    }
    let queues = store.fleet().await?.queues;
    Ok(queues.iter().any(|queue| offered.include(&queue.labels)))
}

/// Follows what runs here. Without a live line nothing is followed.
async fn show_workload(runtime: &Runtime, progress: &Progress) -> Infallible {
    if progress.is_live() {
        let mut workload = runtime.workload();
        loop {
            let now = *workload.borrow_and_update();
            show(progress, now);
            if workload.changed().await.is_err() {
                break;
            }
        }
    }
    std::future::pending().await
}

fn show(progress: &Progress, workload: Workload) {
    match (workload.tasks, workload.oldest) {
        (0, _) | (_, None) => progress.waiting("waiting for tasks"),
        (1, Some(oldest)) => progress.doing_since("running 1 task", oldest),
        (tasks, Some(oldest)) => progress.doing_since(format!("running {tasks} tasks"), oldest),
    }
}
