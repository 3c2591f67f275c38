//! Asks whether a run without a model may open a pull request that others see.

use std::io::{BufRead, IsTerminal};

use codespar_dev::{Consent, RepositoryRef};
use codespar_runtime::{Project, check_simulation};

use crate::{error::CommandError, printer};

/// The user's consent, after asking where someone is there to answer.
pub(crate) async fn confirm(
    project: &Project,
    repository: &RepositoryRef,
    consent: Consent,
) -> Result<Consent, CommandError> {
    let refused = match check_simulation(project, repository, consent) {
        Ok(()) => return Ok(consent),
        Err(refused) => refused,
    };
    let is_there = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !is_there || check_simulation(project, repository, Consent::Granted).is_err() {
        return Err(refused.into());
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
        "y" | "yes" => Ok(Consent::Granted),
        _ => Err(CommandError::Usage("nothing was started".to_owned())),
    }
}
