//! Builds what is measured, and goes on in the optimised build of this program.
//!
//! All programs of the workspace are built with one profile, the scripted model and the meter too:
//! a slow server would show in the figures as time of the client.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use clap::ValueEnum;

use super::{Args, Profile};
use crate::{
    dist,
    metadata::Metadata,
    steps::{self, cargo},
};

/// Builds the programs of the workspace; returns their directory.
///
/// What is shipped is measured as it is shipped, with all features.
pub(super) fn programs(profile: Profile, root: &Path) -> Result<PathBuf> {
    let which = ["--workspace", "--bins"];
    if profile == Profile::Dist {
        return dist::build(root, None, &which);
    }
    let name = profile.name();
    let args = [&["build", "--profile", name], &which[..]].concat();
    let mut command = cargo(root);
    let done = command.args(&args).status()?;
    anyhow::ensure!(
        done.success(),
        "`cargo {}` ended with {done}",
        args.join(" ")
    );
    Ok(Metadata::read(root)?.target_directory.join(name))
}

/// Runs the built `xtask` with the same arguments. Arguments are listed one by one, so a new option
/// must be added here.
pub(super) fn run_again(args: &Args, programs: &Path, root: &Path) -> Result<()> {
    let mut command = Command::new(programs.join("xtask"));
    command
        .current_dir(root)
        .args(["bench", "--programs"])
        .arg(programs)
        .args(["--runs", &args.runs.to_string()]);
    for subject in &args.only {
        let value = subject.to_possible_value();
        command.arg("--only");
        command.args(value.as_ref().map(|value| value.get_name()));
    }
    if let Some(other) = &args.against {
        command.arg("--against").arg(other);
    }
    if args.profile != Profile::default() {
        command.args(["--profile", args.profile.name()]);
    }
    for (flag, is_set) in [("--json", args.json), ("--write", args.write)] {
        if is_set {
            command.arg(flag);
        }
    }
    steps::run_quietly(&mut command)
}
