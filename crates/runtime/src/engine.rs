//! Which engine brings tasks to this process.

use std::sync::Arc;

use codespar_protocol::TaskId;
use codespar_store::{Database, DispatchStore};
use codespar_tasks::{EngineWorker, LeaseEngine, TaskEngine};
use url::Url;

use crate::{Environment, ProcessRole, RuntimeError};

/// Names the Temporal server; the other variables of the SDK count only with it.
const ADDRESS: &str = "TEMPORAL_ADDRESS";
const NAMESPACE: &str = "TEMPORAL_NAMESPACE";
/// Where people find Temporal's web pages, which are at another address than the server.
const PAGES: &str = "CODESPAR_TEMPORAL_UI";

/// Temporal where its address is given and can be used, else leases. Nothing is connected yet.
///
/// Whoever develops for Temporal has the variable set for other programs. So only those processes are
/// refused that serve a fleet, where it decides who runs tasks.
pub(crate) fn of(
    environment: &Environment,
    store: &Arc<dyn Database>,
    role: ProcessRole,
) -> Result<Arc<dyn TaskEngine>, RuntimeError> {
    let dispatch: Arc<dyn DispatchStore> = store.clone();
    let serves_fleet = match role {
        ProcessRole::Worker | ProcessRole::Client => true,
        ProcessRole::Session => false,
    };
    match (environment.var(ADDRESS), unusable_engine(environment)) {
        (_, Some(engine)) if serves_fleet => Err(RuntimeError::Usage(engine.why)),
        (None, _) | (_, Some(_)) => Ok(Arc::new(LeaseEngine(dispatch))),
        (Some(address), None) => {
            pages(environment)?;
            temporal(address, environment, dispatch)
        }
    }
}

/// An engine that is named and that this program cannot use as it is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableEngine {
    /// What names it.
    pub variable: &'static str,
    /// With what to do.
    pub why: String,
}

/// `None` where no engine is named, or where it can be used.
pub fn unusable_engine(environment: &Environment) -> Option<UnusableEngine> {
    let address = environment.var(ADDRESS)?;
    let why = if environment.database_url().is_none() {
        format!(
            "{ADDRESS} is set, but CODESPAR_DATABASE_URL is not: Temporal dispatches tasks that are \
             in a PostgreSQL database; set both, or neither"
        )
    } else if cfg!(not(feature = "temporal")) {
        not_built(address)
    } else {
        return None;
    };
    Some(UnusableEngine {
        variable: ADDRESS,
        why,
    })
}

fn not_built(address: &str) -> String {
    format!(
        "{ADDRESS} is {address}, but this program was built without Temporal; use a release, build \
         with `--features temporal`, or unset {ADDRESS} to dispatch by leases"
    )
}

/// The page on which the engine shows the offers of a task, if the address of its pages is known.
/// It lists them by their ids: an offer may be delivered more than once, and the page of one
/// delivery has a name that only the engine knows.
pub fn engine_page(environment: &Environment, task: &TaskId) -> Option<String> {
    environment.var(ADDRESS)?;
    environment.database_url()?;
    let mut page = pages(environment).ok()??;
    let namespace = environment.var(NAMESPACE).unwrap_or("default");
    page.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend(["namespaces", namespace, "activities"]);
    let query = format!("`ActivityId` STARTS_WITH \"{task}.\"");
    page.query_pairs_mut().append_pair("query", &query);
    Some(page.into())
}

fn pages(environment: &Environment) -> Result<Option<Url>, RuntimeError> {
    let Some(text) = environment.var(PAGES) else {
        return Ok(None);
    };
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.map(Some).ok_or_else(|| {
        RuntimeError::Usage(format!(
            "{PAGES} is `{text}`; give the address of Temporal's web pages, such as \
             https://temporal.example:8080"
        ))
    })
}

/// What dispatches tasks besides the database, if anything does, and who takes tasks from it. The error
/// says why it is of no use.
pub async fn engine_workers(
    environment: &Environment,
) -> Option<Result<Vec<EngineWorker>, RuntimeError>> {
    environment.var(ADDRESS)?;
    let workers = async {
        let store = environment.open_database().await?;
        let engine = of(environment, &store, ProcessRole::Worker)?;
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

/// Not reached: see [`unusable_engine`].
#[cfg(not(feature = "temporal"))]
fn temporal(
    address: &str,
    _: &Environment,
    _: Arc<dyn DispatchStore>,
) -> Result<Arc<dyn TaskEngine>, RuntimeError> {
    Err(RuntimeError::Usage(not_built(address)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    fn environment(vars: &[(&str, &str)]) -> Environment {
        Environment {
            home: None,
            state: "/state".into(),
            vars: vars
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            program: "/bin/codespar".into(),
        }
    }

    #[test]
    fn a_task_is_found_on_the_pages_of_the_engine() {
        let task: TaskId = "r-0a1b2c3d".parse().unwrap();
        let address = (ADDRESS, "temporal:7233");
        let database = ("CODESPAR_DATABASE_URL", "postgres://db/codespar");
        let page = |vars: &[(&str, &str)]| {
            let vars = [&[database], vars].concat();
            engine_page(&environment(&vars), &task)
        };
        let query = "?query=%60ActivityId%60+STARTS_WITH+%22r-0a1b2c3d.%22";
        assert_eq!(
            page(&[address, (PAGES, "https://ui.example/temporal/")]),
            Some(format!(
                "https://ui.example/temporal/namespaces/default/activities{query}"
            ))
        );
        assert_eq!(
            page(&[address, (PAGES, "http://ui:8080"), (NAMESPACE, "a b")]),
            Some(format!("http://ui:8080/namespaces/a%20b/activities{query}"))
        );
        assert_eq!(page(&[address]), None);
        assert_eq!(page(&[(PAGES, "http://ui:8080")]), None, "leases dispatch");
        let alone = environment(&[address, (PAGES, "http://ui:8080")]);
        assert_eq!(engine_page(&alone, &task), None, "it is not used");
    }

    #[test]
    fn an_address_of_pages_that_cannot_be_one_is_refused_by_its_variable() {
        for text in ["ui.example:8080", "ftp://ui", "not an address"] {
            let error = pages(&environment(&[(PAGES, text)])).unwrap_err();
            assert!(error.to_string().contains(PAGES), "{error}");
        }
    }
}
