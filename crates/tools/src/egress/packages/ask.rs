//! Asking a package manager for its configuration.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use super::PackageConfig;
use crate::child_environment;

/// A manager that has not answered by then does not tell.
const PATIENCE: Duration = Duration::from_secs(10);

impl PackageConfig {
    /// Where a program is installed. Relative entries of the search path and those in the project
    /// do not count.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(self.var("PATH")?)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(name))
            .filter_map(|path| Some((path.canonicalize().ok()?, path)))
            .find(|(real, path)| {
                real.is_file()
                    && ![real, path]
                        .iter()
                        .any(|path| path.starts_with(&self.project))
            })
            .map(|(_, path)| path)
    }

    /// What a manager prints. It runs outside of the sandbox, in `/`, where no project's
    /// configuration is found, and without secrets in its environment. `None` if it is not
    /// installed, fails or takes too long; it is killed then.
    pub(super) async fn ask(&self, program: &str, args: &[&str]) -> Option<String> {
        let program = self.program(program)?;
        let output = Command::new(program)
            .args(args)
            .current_dir("/")
            .env_clear()
            .envs(child_environment(self.vars.iter().cloned(), [], &[]))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(PATIENCE, output).await.ok()?.ok()?;
        let said = String::from_utf8(output.stdout).ok()?;
        output.status.success().then_some(said)
    }
}
