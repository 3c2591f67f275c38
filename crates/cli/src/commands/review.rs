//! `codespar review`.

use std::process::ExitCode;

use clap::Args;
use codespar_protocol::Usd;
use codespar_pulls::Reviewed;
use tokio_util::sync::CancellationToken;

use super::{
    pr::{At, reach, shown},
    pull_words::PullWords,
};
use crate::{args::dollars, error::CommandError, printer::plain, signals::Signals, style};
use codespar_runtime::{ProjectDir, ReviewRequest};

/// Review a pull request and post the findings.
///
/// Findings are comments on lines of the diff, or part of the review's text where no line of the
/// diff fits; the risk level is computed. Without a model's key only the computed part is posted. A
/// commit is reviewed once.
///
/// JSON: `number`, `findings`, `unplaced` (findings in the text of the review), `unseen` (files that
/// the model was not shown, or only in part), `risk`, `simulated`, `review` and `cost_usd`.
///
/// Examples:
///   codespar review 15
///   codespar review acme/api#15
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    pull: PullWords,

    /// The model: an alias or a provider's id (TASK_MODEL).
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Stop before spending more than this many US dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_budget_usd: Option<Usd>,

    #[command(flatten)]
    at: At,
}

pub(crate) async fn run(
    args: ReviewArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?.and_closed_output();
    let outcome = review(&args, project_dir, &cancel).await;
    if let Some(code) = signals.exit_code() {
        return Ok(ExitCode::from(code));
    }
    let reviewed = outcome?;
    if args.at.json {
        super::print_json(&reviewed)?;
    } else {
        show(&reviewed)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reviews and posts; `cancel` stops it.
pub(crate) async fn review(
    args: &ReviewArgs,
    project_dir: &ProjectDir,
    cancel: &CancellationToken,
) -> Result<Reviewed, CommandError> {
    let target = args.pull.alone(&args.at, project_dir)?;
    let reached = reach(&target.at, project_dir).await?;
    let request = ReviewRequest {
        model: args.model.clone(),
        max_budget: args.max_budget_usd,
    };
    let outcome = reached.pulls.review(target.number, &request, cancel).await;
    let closed = reached.close().await;
    let reviewed = outcome?;
    closed?;
    Ok(reviewed)
}

pub(crate) fn show(reviewed: &Reviewed) -> Result<(), CommandError> {
    super::print(format_args!(
        "{} #{}\n{}\n",
        style::strong("reviewed"),
        reviewed.number,
        shown(&reviewed.review.body)
    ))?;
    for comment in &reviewed.review.comments {
        super::print(format_args!(
            "\n{}  {}\n",
            style::strong(plain(&format!("{}:{}", comment.path, comment.line))),
            plain(&comment.body)
        ))?;
    }
    Ok(())
}
