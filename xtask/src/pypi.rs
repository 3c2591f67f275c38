//! Packages of PyPI that tests compare us with, in virtual environments below `target`. Where Python
//! is not here, or the registry is out of reach, those tests are reported as skipped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::steps;

/// Tries an HTTP API against its own description.
const SCHEMATHESIS: &str = "schemathesis";
const VERSION: &str = "4.32.5";

/// Installs them, once. A mark with the version is written after a complete installation; one that
/// was interrupted is done again.
pub(crate) fn ensure(root: &Path) -> Result<()> {
    let folder = folder(root);
    if schemathesis(root).is_some() {
        println!("present: {SCHEMATHESIS} {VERSION}");
        return Ok(());
    }
    if !has_pip() {
        println!(
            "skipped: python3 with `venv` and `pip` is not here; the test with {SCHEMATHESIS} is skipped"
        );
        return Ok(());
    }
    match install(&folder) {
        Ok(()) => fs::write(mark(&folder), "")?,
        Err(error) => {
            println!("skipped: {error:#}; the test with {SCHEMATHESIS} is skipped");
        }
    }
    Ok(())
}

/// The program, if it is installed.
pub(crate) fn schemathesis(root: &Path) -> Option<PathBuf> {
    let folder = folder(root);
    mark(&folder)
        .exists()
        .then(|| folder.join("bin").join(SCHEMATHESIS))
}

/// Some systems leave `ensurepip` out of Python, and then a virtual environment has no `pip`.
pub(crate) fn has_pip() -> bool {
    let mut command = Command::new("python3");
    let output = command.args(["-c", "import venv, ensurepip"]).output();
    output.is_ok_and(|output| output.status.success())
}

fn install(folder: &Path) -> Result<()> {
    let mut command = Command::new("python3");
    steps::run(command.args(["-m", "venv", "--clear"]).arg(folder))?;
    let mut command = Command::new(folder.join("bin/pip"));
    let package = format!("{SCHEMATHESIS}=={VERSION}");
    steps::run(command.args(["install", "--quiet", &package]))
}

fn folder(root: &Path) -> PathBuf {
    root.join("target").join(SCHEMATHESIS)
}

fn mark(folder: &Path) -> PathBuf {
    folder.join(format!("installed-{VERSION}"))
}
