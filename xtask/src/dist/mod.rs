//! `cargo xtask dist`: the binary as it is shipped.
//!
//! With every feature and optimised at link time, and then linked once more with the functions that a
//! run uses side by side. The kernel maps a program in pieces of 64 KiB, and every piece of which one
//! function is used counts as memory of the run: in the order that the linker chooses, a run of one
//! turn touches half of the program, although it uses a twentieth of it.
//!
//! The order is not kept in the repository: names of functions change with every compiler and every
//! dependency. A run of the program that was just built tells it (`trace`), and linking again the same
//! inputs takes a second (`relink`). Where that cannot be done (the linker is not LLVM's, valgrind is
//! not installed), the binary stays as it is, and the reason is printed.

mod relink;
mod trace;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    metadata::Metadata,
    steps::{self, SHIPPED, cargo},
};
use relink::{LinkInputs, Linker};

/// Read by the build script of the binary; one argument a line.
const LINK_ARGS: &str = "CODESPAR_LINK_ARGS";
const PROGRAM: &str = "codespar";

/// Build the binary as it is shipped: with all features, optimised at link time, with the functions
/// that a run uses side by side. Prints its path.
#[derive(clap::Args)]
pub(crate) struct DistArgs {
    /// The platform, as rustc names it; that of this machine by default
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
}

pub(crate) fn run(args: &DistArgs, root: &Path) -> Result<()> {
    let package = ["--locked", "--package", PROGRAM];
    let directory = build(root, args.target.as_deref(), &package)?;
    println!("{}", directory.join(PROGRAM).display());
    Ok(())
}

/// Builds what is named; returns the directory of the programs.
pub(crate) fn build(root: &Path, target: Option<&str>, which: &[&str]) -> Result<PathBuf> {
    let mut directory = Metadata::read(root)?.target_directory;
    directory.extend(target);
    directory.push("dist");
    let platform: Vec<&str> = target
        .into_iter()
        .flat_map(|name| ["--target", name])
        .collect();
    let mut command = cargo(root);
    command.args(["build", "--profile", "dist"]);
    command.args(which).args(SHIPPED).args(&platform);
    let linker = Linker::of(target)?;
    let inputs = directory.join("link-inputs.tar");
    if let Some(linker) = &linker {
        command.env(LINK_ARGS, linker.keeping(&inputs).join("\n"));
        if !inputs.exists() {
            // What is built already is not linked again, and its inputs would stay unknown.
            let mut clean = cargo(root);
            clean.args([
                "clean",
                "--quiet",
                "--profile",
                "dist",
                "--package",
                PROGRAM,
            ]);
            steps::run_quietly(clean.args(&platform))?;
        }
    }
    steps::run(&mut command)?;
    let ordered = match &linker {
        Some(linker) => order(linker, &inputs, &directory),
        None => Err(anyhow::anyhow!("the linker of this platform is not LLVM's")),
    };
    match ordered {
        Ok(functions) => println!("{functions} functions that runs use are side by side"),
        Err(why) => println!("functions stay where the linker put them: {why:#}"),
    }
    Ok(directory)
}

/// Links the program anew; returns how many functions have a place.
fn order(linker: &Linker, inputs: &Path, directory: &Path) -> Result<usize> {
    let inputs = LinkInputs::unpack(inputs, linker)?;
    let with_names = inputs.link("traced", &["--strip-debug"])?;
    let functions = trace::used_functions(&with_names)?;
    let ordered = inputs.link_in_order("ordered", &functions)?;
    let (next, program) = (directory.join("codespar.next"), directory.join(PROGRAM));
    fs::copy(ordered, &next).context("the linked program cannot be copied")?;
    fs::rename(next, program)?;
    Ok(functions.len())
}
