//! `cargo xtask eval`: holds parts of the product against data that others wrote.
//!
//! The data is not in the repository; each command is given a directory. Evaluations are run by
//! hand, not by `cargo xtask test`.

mod cases;
mod context;
mod context_score;
mod fixes;
mod folds;
mod locate;
mod score;

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;

use crate::eval_edits;

/// Hold parts of the product against evaluation data.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    Locate(locate::Args),
    Context(context::Args),
    Edits(eval_edits::Args),
}

pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    match &args.subject {
        Subject::Locate(args) => locate::run(args, root),
        Subject::Context(args) => context::run(args, root),
        Subject::Edits(args) => eval_edits::run(args, root),
    }
}
