//! Reads the environment and the home directory; nothing else does.
//!
//! All of it is read at the start. Code elsewhere gets an `Environment`; a test can so run commands
//! with values of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_runtime::{Environment, ProjectDir};
use etcetera::BaseStrategy;

use crate::error::CommandError;

/// What this process was given. A missing home directory is no error as long as `CODESPAR_HOME` is
/// set, as in a container.
pub(crate) fn read() -> Result<Environment, CommandError> {
    let home = etcetera::choose_base_strategy()
        .ok()
        .map(|base| base.home_dir().to_path_buf());
    Ok(Environment {
        state: state_dir(home.as_deref())?,
        home,
        vars: std::env::vars_os().collect(),
        program: std::env::current_exe()?,
    })
}

fn state_dir(home: Option<&Path>) -> Result<PathBuf, CommandError> {
    let named = std::env::var_os("CODESPAR_HOME").filter(|dir| !dir.is_empty());
    match (named, home) {
        (Some(dir), _) => Ok(std::path::absolute(dir)?),
        (None, Some(home)) => Ok(home.join(".codespar")),
        (None, None) => Err(CommandError::Usage(
            "there is no home directory; set CODESPAR_HOME to a directory for sessions".to_owned(),
        )),
    }
}

/// The project around the working directory, or around `cwd`.
pub(crate) fn project_dir(cwd: Option<&Path>) -> Result<ProjectDir, CommandError> {
    let environment = Arc::new(read()?);
    let cwd = cwd.unwrap_or(Path::new("."));
    Ok(ProjectDir::find(environment, cwd)?)
}
