//! `codespar ask`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use codespar_dev::{Consent, Reply};
use codespar_protocol::Usd;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{args::dollars, error::CommandError, signals::Signals};
use codespar_runtime::{AskOnce, ProjectDir, ask_once};

/// Ask the model one question; no files are read or written.
///
/// For questions about this directory's code use `codespar -p`, which can read it. Without a model's
/// key it fails with exit code 2.
///
/// Example: codespar ask "what does HTTP status 409 mean for a merge?"
#[derive(Args)]
pub(crate) struct AskArgs {
    /// The question; quotes may be left out.
    #[arg(required = true)]
    question: Vec<String>,

    /// An image to send with the question. May be repeated.
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,

    /// The model: an alias or a provider's id (TASK_MODEL).
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Call no model, whatever keys are set: the answer only repeats the question.
    #[arg(long)]
    simulate: bool,

    /// Refuse to spend more than this many US dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_budget_usd: Option<Usd>,

    /// Print JSON: `answer`, `model`, `usage` and `cost_usd`.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: AskArgs, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?.and_closed_output();
    let outcome = answer(&args, project_dir, &cancel).await;
    if let Some(code) = signals.exit_code() {
        return Ok(ExitCode::from(code));
    }
    let reply = outcome?;
    if args.json {
        super::print_json(&json!({
            "answer": reply.text,
            "model": reply.model,
            "usage": reply.usage,
            "cost_usd": reply.cost.known(),
        }))?;
    } else {
        super::print(format_args!("{}\n", reply.text.trim_end()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks; `cancel` stops it.
pub(crate) async fn answer(
    args: &AskArgs,
    project_dir: &ProjectDir,
    cancel: &CancellationToken,
) -> Result<Reply, CommandError> {
    let request = AskOnce {
        question: args.question.join(" "),
        images: args.image.clone(),
        model: args.model.clone(),
        max_budget: args.max_budget_usd,
        simulation: match args.simulate {
            true => Consent::Granted,
            false => Consent::Withheld,
        },
        watch: None,
    };
    Ok(ask_once(request, project_dir, cancel).await?)
}
