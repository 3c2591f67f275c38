//! `codespar locate`.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Instant};

use clap::Args;
use codespar_locate::{IndexProgress, Locator};
use serde_json::json;

use crate::{error::CommandError, progress::Progress, style};
use codespar_runtime::ProjectDir;

/// Find the files that an instruction is about; offline, no model.
///
/// The index of a repository is kept in the state directory and brought up to date each time. At a
/// terminal, standard error shows how many files are read if that takes more than a second.
///
/// Example: codespar locate "fix the auth timeout in login.ts" -n 5 --json
#[derive(Args)]
pub(crate) struct LocateArgs {
    /// What the change is about.
    instruction: String,

    /// The repository or directory; the current one by default.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,

    /// How many files.
    #[arg(short = 'n', long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    number: u16,

    /// Print JSON: `files`, each with `path`, `score` and `reasons`, and `elapsed_ms`.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(
    args: LocateArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let began = Instant::now();
    if args.instruction.trim().is_empty() {
        return Err(CommandError::Usage("the instruction is empty".to_owned()));
    }
    let root = match &args.repo {
        Some(dir) => dir
            .canonicalize()
            .map_err(|error| CommandError::Usage(format!("--repo {}: {error}", dir.display())))?,
        None => project_dir.root.clone(),
    };
    let cache = project_dir.state().join("dev/index");
    let (instruction, number) = (args.instruction.clone(), usize::from(args.number));
    let progress = match args.json {
        true => Progress::nowhere(),
        false => Progress::beside_result().until_signal(),
    };
    let counted = Arc::new(IndexProgress::default());
    let seen = counted.clone();
    progress.doing_now(move || under_way(&seen));
    let ranked = tokio::task::spawn_blocking(move || {
        Locator::open_counted(&root, Some(&cache), &counted)
            .map(|locator| locator.rank(&instruction, number))
    })
    .await;
    progress.rest();
    let ranked = ranked
        .map_err(|error| CommandError::Failed(error.to_string()))?
        .map_err(|error| CommandError::Failed(error.to_string()))?;
    let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if args.json {
        let files: Vec<_> = ranked
            .iter()
            .map(|file| json!({"path": file.path, "score": file.score, "reasons": file.reasons.iter().map(|reason| reason.as_str()).collect::<Vec<_>>()}))
            .collect();
        super::print_json(&json!({"files": files, "elapsed_ms": elapsed_ms}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if ranked.is_empty() {
        super::print(format_args!("no file seems to fit\n"))?;
    }
    for file in &ranked {
        let reasons: Vec<&str> = file.reasons.iter().map(|reason| reason.as_str()).collect();
        super::print(format_args!(
            "{:7.2}  {}  {}\n",
            file.score,
            style::strong(&file.path),
            style::faint(reasons.join(", "))
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Which files have to be read is known once all are listed.
fn under_way(index: &IndexProgress) -> String {
    match index.files() {
        Some(files) => format!("Indexing files: {} of {}", files.read, files.expected),
        None => "Listing files".to_owned(),
    }
}
