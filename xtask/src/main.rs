//! Project chores, run with `cargo xtask <command>`.
//!
//! ```text
//! test           all checks, as CI runs them
//! dependencies   licences, unwanted and unused crates, layers
//! dist           the binary as it is shipped
//! bench          times and memory of the built binary against the bars
//! eval           quality of locating files, showing them and applying edits, on data
//! fleet-trial    workers on several hosts, of which one is always in trouble
//! figures        sizes, names and documentation of the sources
//! image          the root file system of the container image, with the program in it
//! redteam        attacks on the program
//! screenshots    pictures of the session at a terminal, for the documentation
//! ```
//!
//! A program in the workspace and not shell scripts: it is compiled, tested and formatted like the
//! rest, and needs nothing but cargo. `measure` is hidden, because only `bench` calls it.

mod bench;
mod conditional;
mod dependencies;
mod dist;
mod eval;
mod eval_edits;
mod figures;
mod fleet;
mod image;
mod in_memory;
mod layers;
mod licences;
mod metadata;
mod npm;
mod pty;
mod pypi;
mod redteam;
mod screenshots;
mod steps;
mod test;
mod tools;
mod unused;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Chores of the project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Test(test::Args),
    Dependencies(dependencies::Args),
    Dist(dist::DistArgs),
    Bench(bench::Args),
    Eval(eval::Args),
    FleetTrial(fleet::TrialArgs),
    Figures(figures::Args),
    Image(image::Args),
    Redteam(redteam::Args),
    Screenshots(screenshots::Args),
    #[command(hide = true)]
    Measure(bench::cost::Args),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = root()?;
    match Args::parse().command {
        Command::Test(args) => test::run(&args, &root),
        Command::Dependencies(args) => dependencies::run(&args, &root),
        Command::Dist(args) => dist::run(&args, &root),
        Command::Bench(args) => bench::run(&args, &root),
        Command::Eval(args) => eval::run(&args, &root),
        Command::FleetTrial(args) => fleet::run_trial(&args, &root),
        Command::Figures(args) => figures::run(&args, &root),
        Command::Image(args) => image::run(&args, &root),
        Command::Redteam(args) => redteam::run(&args, &root),
        Command::Screenshots(args) => screenshots::run(&args, &root),
        Command::Measure(args) => bench::cost::run(&args),
    }
}

/// The root of the workspace: this crate is a folder in it. Taken from the build and not from the
/// working directory, so it works from any folder.
fn root() -> Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.parent().context("xtask is not inside a workspace")?;
    Ok(root.to_owned())
}
