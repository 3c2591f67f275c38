//! `codespar acp`: the Agent Client Protocol over standard input and output, for editors.
//!
//! ```text
//! transport    lines of JSON, bounded, on standard input and output
//! server       which message of the client does what
//! sessions     the sessions of the connection: new, load, list, close
//! conversation one session: prompts one after the other, news of tasks in between
//! view         the surface of a session: its events and texts as updates, its questions as requests
//! ```
//!
//! Each session has a project of its own and is driven like any other (`crate::session`). Standard
//! output belongs to the protocol: what commands print goes to the session that they run in. When
//! the client goes away everything it asked for is stopped; durable tasks are handed over as at the
//! end of every process.

mod capabilities;
mod choices;
mod conversation;
mod history;
mod permission;
mod printing;
mod prompt;
mod server;
mod servers;
mod sessions;
mod tool_calls;
mod transport;
mod updates;
mod view;

use std::{process::ExitCode, sync::Arc};

use clap::Args;
use codespar_policy::Mode;
use codespar_protocol::Usd;
use codespar_runtime::{ProjectDir, ProjectOptions};
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

use self::sessions::Sessions;
use crate::{
    args::{dollars, mode},
    error::CommandError,
    printer,
    signals::Signals,
};

/// Serve an editor over the Agent Client Protocol (ACP) on standard input and output.
///
/// The editor starts it, and opens sessions in the directories of its projects. What a project's
/// files grant counts where you trust the project: `codespar trust add DIR`. `--trust` counts for the
/// directory in which the command is started.
///
/// Example, in the settings of an editor: {"command": "codespar", "args": ["acp"]}
#[derive(Args)]
pub(crate) struct AcpArgs {
    /// The model: an alias (haiku, sonnet, opus) or a provider's id.
    #[arg(long, value_name = "MODEL", env = "CODESPAR_MODEL")]
    model: Option<String>,

    /// Call no model, whatever keys are set: the answer says what would have been asked.
    #[arg(long)]
    simulate: bool,

    /// Stop a prompt after this many model calls.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,

    /// Stop before a session spends more than this many US dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_budget_usd: Option<Usd>,

    /// The permission mode that sessions begin with: default, acceptEdits, plan, dontAsk or
    /// bypassPermissions.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    permission_mode: Option<Mode>,
}

impl AcpArgs {
    fn options(&self) -> ProjectOptions {
        ProjectOptions {
            model: self.model.clone(),
            simulate: self.simulate,
            max_turns: self.max_turns,
            max_budget_usd: self.max_budget_usd,
            permission_mode: self.permission_mode,
            ..ProjectOptions::default()
        }
    }
}

/// Serves until the client closes its end or a signal comes.
pub(crate) async fn run(args: &AcpArgs, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    let _diverted = printer::divert(printing::to_current_session());
    let signals = Signals::watch(CancellationToken::new())?;
    let sessions = Arc::new(Sessions::new(project_dir, args.options(), signals.clone()));
    let local = LocalSet::new();
    let work = async {
        let served = server::serve(sessions.clone(), signals.token().clone()).await;
        signals.token().cancel();
        (served, sessions.close().await)
    };
    let (served, closed) = local.run_until(work).await;
    if let Some(code) = signals.exit_code() {
        return Ok(ExitCode::from(code));
    }
    served.map_err(CommandError::Failed)?;
    closed?;
    Ok(ExitCode::SUCCESS)
}
