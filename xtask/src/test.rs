//! `cargo xtask test`: everything that must hold, in order.
//!
//! Roughly from the quickest check to the slowest: a formatting mistake is known before anything is
//! compiled. Tests that cannot run on a machine are named at the end, so that nobody takes them for
//! passed.

use std::{path::Path, process::Command};

use anyhow::{Result, bail};

use crate::{
    conditional, dependencies, figures, fleet, in_memory, npm, pypi, redteam,
    steps::{SHIPPED, Steps, cargo, run as run_command},
    tools,
};

/// Run all checks and tests, as CI does; the first failure ends it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this step, by the name that is printed above it ("red team"), and the installation of
    /// what tests need. May be repeated.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
}

/// Warnings of clippy and of rustdoc are errors. Documentation is built without the dependencies.
pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    if in_memory::run_again()? {
        return Ok(());
    }
    let mut steps = Steps::only(&args.only);
    steps.always("tools", tools::ensure)?;
    // Packages are waited for and clippy computes: both at once. They are needed from the tests on.
    std::thread::scope(|scope| {
        let packages = scope.spawn(|| npm::ensure(root).and_then(|()| pypi::ensure(root)));
        let checked = check_sources(&mut steps, root);
        let installed = || {
            let ended = packages.join();
            ended.unwrap_or_else(|_| bail!("the installation of packages ended with a panic"))
        };
        checked.and(steps.always("packages", installed))
    })?;
    steps.step("tests", || run_command(&mut tests(root)))?;
    let mut skipped = Vec::new();
    steps.step("tests that need more", || {
        skipped = conditional::run(root)?;
        Ok(())
    })?;
    steps.step("fleet", || {
        skipped.extend(fleet::run(root)?);
        Ok(())
    })?;
    steps.step("doc tests", || {
        run_command(
            cargo(root)
                .args(["test", "--workspace", "--doc"])
                .args(SHIPPED),
        )
    })?;
    steps.step("documentation", || {
        let mut command = cargo(root);
        command
            .args(["doc", "--workspace", "--no-deps"])
            .args(SHIPPED);
        run_command(command.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    steps.step("dependencies", || dependencies::check(root))?;
    steps.step("figures of the code", || {
        figures::run(&figures::Args::for_tests(), root)
    })?;
    steps.step("red team", || {
        redteam::run(&redteam::Args::for_tests(root)?, root)
    })?;
    steps.check_names()?;
    for test in skipped {
        println!("skipped: {test}");
    }
    println!("\n{}", steps.summary());
    Ok(())
}

fn check_sources(steps: &mut Steps, root: &Path) -> Result<()> {
    let plain = |args: &[&str]| run_command(cargo(root).args(args));
    steps.step("format", || plain(&["fmt", "--all", "--check"]))?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        SHIPPED[0],
        SHIPPED[1],
        "--",
        "-D",
        "warnings",
    ];
    steps.step("clippy", || plain(&clippy))
}

/// nextest runs tests of all crates at once; where it is absent cargo does. Both go on after a
/// failing test, so that one run shows all failures.
fn tests(root: &Path) -> Command {
    let mut command = cargo(root);
    if tools::on_path("cargo-nextest") {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
    } else {
        command.args([
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--no-fail-fast",
        ]);
    }
    command.args(SHIPPED);
    command
}
