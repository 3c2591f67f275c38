//! `codespar worker`.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::{args::SessionArgs, commands::gc, error::CommandError, signals::Signals};
use codespar_runtime::{Interaction, ProcessRole, ProjectConfig, ProjectDir, Runtime};

const POLL: Duration = Duration::from_millis(300);
/// How often nothing must be left before the worker believes it.
const IDLE_LOOKS: u32 = 3;

/// Run background tasks in this terminal.
///
/// SIGTERM or Ctrl-C shuts it down cleanly: agents are handed to another process, commands are
/// stopped.
///
/// Example: codespar worker --until-idle
#[derive(Args)]
pub(crate) struct WorkerArgs {
    /// Exit when no task is left to run.
    #[arg(long)]
    until_idle: bool,
}

/// Runs it.
pub(crate) async fn run(
    args: &WorkerArgs,
    session: &SessionArgs,
    project_dir: ProjectDir,
) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?;
    let config = ProjectConfig::load(project_dir, session.project_options())?;
    let (runtime, project) =
        Runtime::with_project(config, Interaction::default(), ProcessRole::Worker).await?;
    crate::printer::err(format_args!(
        "codespar: taking tasks of {}",
        project.dir.state().display()
    ));
    gc::daily(&project.dir, &project.settings);
    let mut idle = 0;
    while idle < IDLE_LOOKS {
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = cancel.cancelled() => break,
        }
        let left = project.store.outstanding().await?;
        // What others run may be lost with them, or make more; it is waited for.
        let is_idle = left.ready == 0 && left.running == 0;
        idle = if args.until_idle && is_idle {
            idle + 1
        } else {
            0
        };
    }
    runtime.close().await?;
    Ok(signals
        .exit_code()
        .map_or(ExitCode::SUCCESS, ExitCode::from))
}
