//! `codespar audit`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use codespar_runtime::ProjectDir;

use crate::{error::CommandError, printer};

/// How many entries are read at once.
const AT_ONCE: u32 = 500;

/// Show who asked for what in chat channels.
#[derive(Args)]
pub(crate) struct AuditCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print the audit log as JSON lines, the oldest entry first.
    ///
    /// Each line has `seq`, `time`, `channel`, `conversation`, `thread`, `identity`, `speaker`,
    /// `role`, `action`, `decision` (allowed, refused, done or failed), `detail`, `repository` and
    /// `task_id`. The log is append-only.
    ///
    /// Example: codespar audit export --after 120
    Export {
        /// Only entries after this `seq`.
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        after: u64,
    },
}

pub(crate) async fn run(
    command: &AuditCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let Verb::Export { mut after } = command.verb;
    let store = project_dir.environment.open_database().await?;
    loop {
        let entries = store.audit(after, AT_ONCE).await?;
        let Some(last) = entries.last() else { break };
        after = last.seq;
        for entry in &entries {
            let line = serde_json::to_string(entry)
                .map_err(|error| CommandError::Failed(error.to_string()))?;
            printer::json(&line)?;
        }
    }
    store.close().await?;
    Ok(ExitCode::SUCCESS)
}
