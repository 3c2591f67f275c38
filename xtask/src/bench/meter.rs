//! Has a command measured by the small process that `cost.rs` is.
//!
//! The meter starts this program again as `measure`, which starts the command. Figures come back in
//! a file, since standard output and standard error belong to the command.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use codespar_testkit::process::CleanRoom;
use tempfile::TempPath;

use super::cost::Cost;

/// Measures one command at a time. The file is used again for each; two measurements at once would
/// mix.
pub(super) struct Meter {
    program: PathBuf,
    report: TempPath,
}

/// What a command cost, and what it wrote to its standard output.
pub(super) struct Measured {
    pub(super) cost: Cost,
    pub(super) stdout: String,
}

impl Meter {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            report: tempfile::NamedTempFile::new()?.into_temp_path(),
        })
    }

    /// The start of a command in the room; arguments and variables are added by the caller.
    pub(super) fn command(&self, room: &CleanRoom, program: impl AsRef<Path>) -> Command {
        let mut command = room.command(&self.program);
        command
            .args(["measure", "--report"])
            .arg(&self.report)
            .arg("--")
            .arg(program.as_ref());
        command
    }

    /// A command with its own environment, to be measured.
    pub(super) fn wrap(&self, measured: &Command) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["measure", "--report"])
            .arg(&self.report)
            .arg("--")
            .arg(measured.get_program())
            .args(measured.get_args());
        for (name, value) in measured.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(dir) = measured.get_current_dir() {
            command.current_dir(dir);
        }
        command
    }

    /// Runs what [`Self::command`] began. Anything but success is an error with its words.
    pub(super) fn run(&self, command: &mut Command) -> Result<Measured> {
        let output = command.stdin(Stdio::null()).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("{stderr}");
        }
        let cost = fs::read(&self.report)?;
        let cost: Cost = serde_json::from_slice(&cost).context("cannot read the cost")?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if cost.code != Some(0) {
            bail!("a measured command ended with {:?}: {stderr}", cost.code);
        }
        Ok(Measured { cost, stdout })
    }
}
