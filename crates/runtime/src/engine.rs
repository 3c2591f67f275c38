//! Which engine brings tasks to this process.

use std::sync::Arc;

use codespar_store::{Database, DispatchStore};
use codespar_tasks::{EngineWorker, LeaseEngine, TaskEngine};

use crate::{Environment, RuntimeError};

/// Names the Temporal server; the other variables of the SDK count only with it.
const ADDRESS: &str = "TEMPORAL_ADDRESS";

/// Temporal where its address is given, else leases. Nothing is connected yet.
pub(crate) fn of(
    environment: &Environment,
    store: &Arc<dyn Database>,
) -> Result<Arc<dyn TaskEngine>, RuntimeError> {
    let dispatch: Arc<dyn DispatchStore> = store.clone();
    match environment.var(ADDRESS) {
        None => Ok(Arc::new(LeaseEngine(dispatch))),
        Some(_) if environment.database_url().is_none() => Err(RuntimeError::Usage(format!(
            "{ADDRESS} is set, but CODESPAR_DATABASE_URL is not: Temporal dispatches tasks that are \
             in a PostgreSQL database; set both, or neither"
        ))),
        Some(address) => temporal(address, environment, dispatch),
    }
}

/// What dispatches tasks besides the database, if anything does, and who takes tasks from it. The error
/// says why it is of no use.
pub async fn engine_workers(
    environment: &Environment,
) -> Option<Result<Vec<EngineWorker>, RuntimeError>> {
    environment.var(ADDRESS)?;
    let workers = async {
        let store = environment.open_database().await?;
        let engine = of(environment, &store)?;
        let workers = engine.workers().await.map_err(RuntimeError::Failed);
        store.close().await?;
        workers
    };
    Some(workers.await)
}

#[cfg(feature = "temporal")]
fn temporal(
    address: &str,
    environment: &Environment,
    store: Arc<dyn DispatchStore>,
) -> Result<Arc<dyn TaskEngine>, RuntimeError> {
    let options = codespar_fleet::TemporalOptions::read(address, |name| environment.var(name))
        .map_err(|error| RuntimeError::Usage(error.to_string()))?;
    Ok(Arc::new(codespar_fleet::TemporalEngine::new(
        options, store,
    )))
}

#[cfg(not(feature = "temporal"))]
fn temporal(
    address: &str,
    _: &Environment,
    _: Arc<dyn DispatchStore>,
) -> Result<Arc<dyn TaskEngine>, RuntimeError> {
    Err(RuntimeError::Usage(format!(
        "{ADDRESS} is {address}, but this program was built without Temporal; use a release, build \
         with `--features temporal`, or unset {ADDRESS} to dispatch by leases"
    )))
}
