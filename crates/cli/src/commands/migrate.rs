//! `codespar migrate`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use codespar_runtime::ProjectDir;
use codespar_store::copy_to_postgres;

use crate::error::CommandError;

/// Copy all records from SQLite to an empty PostgreSQL database.
///
/// No other process may use the source meanwhile. It is left as it is; the rows of each table are
/// counted on both sides, and printed. Then set CODESPAR_DATABASE_URL to the target.
///
/// Example:
///   codespar migrate --from sqlite://$HOME/.codespar --to postgres://me@db.example/codespar
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MigrateArgs {
    /// The state directory or its codespar.db, as sqlite://PATH.
    #[arg(long, value_name = "URL")]
    from: String,

    /// An empty database, as postgres://USER:PASSWORD@HOST:PORT/DATABASE. CODESPAR_DATABASE_URL if
    /// it is not given, so that a password need not stand in a command line.
    #[arg(long, value_name = "URL")]
    to: Option<String>,

    /// Print JSON: `tables` with `table` and `rows`.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(
    args: &MigrateArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let state = state_dir(&args.from)?;
    let named = args.to.as_deref();
    let Some(to) = named.or_else(|| project_dir.environment.database_url()) else {
        let message = "name the target: --to postgres://…, or CODESPAR_DATABASE_URL";
        return Err(CommandError::Usage(message.to_owned()));
    };
    let tables = copy_to_postgres(&state, to).await?;
    if args.json {
        super::print_json(&serde_json::json!({ "tables": tables }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut all = 0;
    for count in &tables {
        super::print(format_args!("{:>9}  {}\n", count.rows, count.table))?;
        all += count.rows;
    }
    super::print(format_args!("{all:>9}  rows, as many as in the source\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn state_dir(url: &str) -> Result<PathBuf, CommandError> {
    let Some(path) = url.strip_prefix("sqlite://") else {
        return Err(CommandError::Usage(
            "--from takes sqlite://PATH: records are copied from SQLite to PostgreSQL only"
                .to_owned(),
        ));
    };
    let path = Path::new(path);
    let is_database = path.is_file() && path.file_name().is_some_and(|name| name == "codespar.db");
    let dir = match (is_database, path.parent()) {
        (true, Some(dir)) => dir,
        _ => path,
    };
    Ok(std::path::absolute(dir)?)
}
