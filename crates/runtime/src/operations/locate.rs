//! The files that an instruction is probably about, without a model.

use codespar_locate::{Locator, Ranked};

use crate::{ProjectDir, RuntimeError};

/// The most likely ones first, at most `number` of them. The index is kept in the state directory.
pub async fn locate_files(
    dir: &ProjectDir,
    instruction: String,
    number: usize,
) -> Result<Vec<Ranked>, RuntimeError> {
    let (root, cache) = (dir.root.clone(), dir.state().join("dev/index"));
    let rank = move || Ok(Locator::open(&root, Some(&cache))?.rank(&instruction, number));
    let failed = |error: &dyn std::fmt::Display| RuntimeError::Failed(error.to_string());
    let ranked: Result<Vec<Ranked>, codespar_locate::LocateError> =
        tokio::task::spawn_blocking(rank)
            .await
            .map_err(|error| failed(&error))?;
    ranked.map_err(|error| failed(&error))
}
