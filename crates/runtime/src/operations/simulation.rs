//! Whether a run without a model may go on: what it would make outside must be wanted.
//!
//! A local pull request is a record that its owner can close. One on GitHub is seen by others, so a
//! key that is missing by mistake must not open it.

use codespar_dev::{Consent, RepositoryRef};

use crate::{Project, RuntimeError};

/// Refuses a simulated run where the settings ask for a model, or where it would show on GitHub and
/// nobody said that it may.
pub fn check_simulation(
    project: &Project,
    repository: &RepositoryRef,
    consent: Consent,
) -> Result<(), RuntimeError> {
    if !project.provider.is_simulated() {
        return Ok(());
    }
    let why = &project.provider.why;
    if project.settings.dev.require_model == Some(true) {
        return Err(RuntimeError::Usage(format!(
            "`dev.requireModel` is set, and no model can be called: {why}"
        )));
    }
    match (repository, consent) {
        (RepositoryRef::Local { .. }, _) | (_, Consent::Granted) => Ok(()),
        (RepositoryRef::GitHub { owner, name }, Consent::Withheld) => {
            Err(RuntimeError::Usage(format!(
                "no model can be called ({why}), so the pull request on {owner}/{name} would be \
                 empty; --simulate opens it as a draft all the same"
            )))
        }
    }
}
