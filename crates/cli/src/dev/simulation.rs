//! Whether a run without a model may go on: what it would make outside must be wanted.
//!
//! A local pull request is a record that its owner can close. One on GitHub is seen by others, so a
//! key that is missing by mistake must not open it.

use std::io::{BufRead, IsTerminal};

use codespar_dev::RepositoryRef;
use codespar_runtime::Project;

use crate::{error::CommandError, printer};

/// The user's answer on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimulationAnswer {
    /// `--simulate` or `--yes`.
    Given,
    Missing,
}

/// Refuses a simulated run where the settings ask for a model, or where it would show on GitHub and
/// nobody said that it may.
pub(crate) fn check(
    project: &Project,
    repository: &RepositoryRef,
    answer: SimulationAnswer,
) -> Result<(), CommandError> {
    if !project.provider.is_simulated() {
        return Ok(());
    }
    let why = &project.provider.why;
    if project.settings.dev.require_model == Some(true) {
        return Err(CommandError::Usage(format!(
            "`dev.requireModel` is set, and no model can be called: {why}"
        )));
    }
    match (repository, answer) {
        (RepositoryRef::Local { .. }, _) | (_, SimulationAnswer::Given) => Ok(()),
        (RepositoryRef::GitHub { owner, name }, SimulationAnswer::Missing) => {
            Err(CommandError::Usage(format!(
                "no model can be called ({why}), so the pull request on {owner}/{name} would be \
                 empty; --simulate opens it as a draft all the same"
            )))
        }
    }
}

/// The same, after asking where someone is there to answer.
pub(crate) async fn confirm(
    project: &Project,
    repository: &RepositoryRef,
    answer: SimulationAnswer,
) -> Result<SimulationAnswer, CommandError> {
    let refused = match check(project, repository, answer) {
        Ok(()) => return Ok(answer),
        Err(refused) => refused,
    };
    let is_there = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !is_there || check(project, repository, SimulationAnswer::Given).is_err() {
        return Err(refused);
    }
    printer::out(format_args!(
        "No model can be called ({}).\nOpen a simulated draft pull request on GitHub all the same? \
         y/N › ",
        project.provider.why
    ))?;
    let read = || {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    };
    let line = tokio::task::spawn_blocking(read).await;
    let line = line.map_err(|error| CommandError::Failed(error.to_string()))??;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(SimulationAnswer::Given),
        _ => Err(CommandError::Usage("nothing was started".to_owned())),
    }
}
