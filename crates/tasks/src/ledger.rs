//! The record of a task's steps: what was done is not done again, whichever process goes on.
//!
//! The dev pipeline, workflows, monitors and agents all keep their progress here and nowhere else.
//! A step is a name and a JSON value. The order is always the same: do the work, record the result,
//! go on. A crash between the first two leaves a step that was done and is not on record; the next
//! process does it again, so work with an effect outside must look for its own earlier effect
//! first.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::Arc,
};

use codespar_protocol::{TRACE_TARGET, TaskId};
use codespar_store::{StoreError, TaskStore};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tracing::Instrument;

use crate::runner::Control;

/// Called with `made NAME` when a step is done and not yet on record, and with `NAME` once it is.
/// Tests of durability use it to end the process at exactly that point.
pub type StepHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Why a step cannot be read or recorded.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The value on record is not of the type that the step has now, or a result cannot be written
    /// as JSON.
    #[error("the record of step `{step}` cannot be read: {message}")]
    Damaged { step: String, message: String },
}

/// The steps of one task, as earlier processes left them. Only the holder of the task's lease can
/// record one. Read once when it is opened: steps that another process records later are not seen,
/// and cannot be recorded either while this one has the lease.
pub struct StepLedger {
    store: Arc<dyn TaskStore>,
    task: TaskId,
    /// The fencing number under which steps are recorded.
    epoch: u64,
    done: Mutex<HashMap<String, Value>>,
    /// Steps that only earlier tasks did.
    inherited: Mutex<HashSet<String>>,
    hook: Option<StepHook>,
}

impl StepLedger {
    pub async fn open(control: &Control) -> Result<Self, StoreError> {
        let task = control.record.task_id.clone();
        Self::of_task(control.store.clone(), task, control.epoch).await
    }

    pub(crate) async fn of_task(
        store: Arc<dyn TaskStore>,
        task: TaskId,
        epoch: u64,
    ) -> Result<Self, StoreError> {
        let steps = store.steps(&task).await?;
        Ok(Self {
            store,
            task,
            epoch,
            done: Mutex::new(steps.into_iter().collect()),
            inherited: Mutex::default(),
            hook: None,
        })
    }

    /// Takes over steps of an earlier task that this one goes on from; its own count more.
    #[must_use]
    pub fn inheriting(self, earlier: HashMap<String, Value>) -> Self {
        {
            let (mut done, mut inherited) = (self.done.lock(), self.inherited.lock());
            for (step, value) in earlier {
                if !done.contains_key(&step) {
                    done.insert(step.clone(), value);
                    inherited.insert(step);
                }
            }
        }
        self
    }

    #[must_use]
    pub fn with_hook(self, hook: Option<StepHook>) -> Self {
        Self { hook, ..self }
    }

    /// What a step came to, if it is over. `None` if it is not on record. A step whose record does
    /// not fit `T` is an error and not `None`: it must not be done a second time because its record
    /// cannot be read.
    pub fn known<T: DeserializeOwned>(&self, step: &str) -> Result<Option<T>, LedgerError> {
        let Some(value) = self.done.lock().get(step).cloned() else {
            return Ok(None);
        };
        serde_json::from_value(value)
            .map(Some)
            .map_err(|error| LedgerError::Damaged {
                step: step.to_owned(),
                message: error.to_string(),
            })
    }

    /// Whether a step is over.
    pub fn has(&self, step: &str) -> bool {
        self.done.lock().contains_key(step)
    }

    /// Whether a step was done by an earlier task alone.
    pub fn is_inherited(&self, step: &str) -> bool {
        self.inherited.lock().contains(step)
    }

    /// Does a step, or gives what it came to before. Its result is on record when this returns. If
    /// `work` fails nothing is recorded, and a later call tries again. If the future is dropped
    /// while `work` runs, the same holds.
    pub async fn once<T, E, F>(&self, step: &str, work: impl FnOnce() -> F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<LedgerError>,
        F: Future<Output = Result<T, E>>,
    {
        if let Some(known) = self.known(step)? {
            return Ok(known);
        }
        let span = tracing::info_span!(
            target: TRACE_TARGET,
            "step",
            otel.name = format!("step {step}"),
            codespar.task.id = %self.task,
        );
        let result = work().instrument(span).await?;
        self.record(step, &result).await?;
        Ok(result)
    }

    /// Puts a step's result on record, in place of an earlier one. Refused with `LeaseLost` when
    /// another runner has taken the task over; this ledger then stays as it was.
    pub async fn record<T: Serialize>(&self, step: &str, result: &T) -> Result<(), LedgerError> {
        let value = serde_json::to_value(result).map_err(|error| LedgerError::Damaged {
            step: step.to_owned(),
            message: error.to_string(),
        })?;
        if let Some(hook) = &self.hook {
            hook(&format!("made {step}"));
        }
        self.store
            .record_step(&self.task, self.epoch, step, &value)
            .await?;
        self.inherited.lock().remove(step);
        self.done.lock().insert(step.to_owned(), value);
        if let Some(hook) = &self.hook {
            hook(step);
        }
        Ok(())
    }

    /// All that is on record under names that begin so. In no order. Values of another type are
    /// left out.
    pub fn all<T: DeserializeOwned>(&self, prefix: &str) -> Vec<T> {
        self.done
            .lock()
            .iter()
            .filter(|(step, _)| step.starts_with(prefix))
            .filter_map(|(_, value)| serde_json::from_value(value.clone()).ok())
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use codespar_protocol::{
        Authority, Labels, OnDependencyFailure, SessionId, ShellSpec, TaskSpec, TaskType,
    };
    use codespar_store::{
        Capacity, ClaimScope, LeaseStore, NewTask, Notify, Projects, RunnerId, SqliteStore,
    };

    use super::*;

    /// A task that a runner has, and the number of its lease.
    pub(crate) async fn claimed_task(dir: &Path) -> (Arc<SqliteStore>, TaskId, u64) {
        let store = Arc::new(SqliteStore::open(&dir.join("state")).await.unwrap());
        let id = TaskId::new(TaskType::LocalBash);
        let new = NewTask {
            id: id.clone(),
            spec: TaskSpec::Shell(ShellSpec {
                command: "true".to_owned(),
                root: dir.to_owned(),
                cwd: dir.to_owned(),
                timeout_ms: None,
            }),
            authority: Authority {
                session: None,
                tree: SessionId::new(),
                project_root: dir.to_owned(),
                mode: "default".to_owned(),
                rules: Vec::new(),
                extra_dirs: Vec::new(),
                max_budget_usd: None,
                repository: None,
                remote: None,
                user: None,
                trace: None,
            },
            reserved_for: None,
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::Fail,
            subject: "s".to_owned(),
            description: None,
            active_form: None,
            metadata: serde_json::Map::new(),
            blocked_by: Vec::new(),
            output_file: None,
            session_id: None,
            parent_task_id: None,
            notify: Notify::Nobody,
            made_under: None,
            start_here: None,
        };
        store.create_tasks(vec![new]).await.unwrap();
        let epoch = claim(&store, "ann").await;
        (store, id, epoch)
    }

    pub(crate) async fn claim(store: &SqliteStore, runner: &str) -> u64 {
        let capacity = Capacity {
            by_type: vec![(TaskType::LocalBash, 1)],
            total: 1,
            projects: Projects::All,
            skip: Vec::new(),
            labels: Labels::default(),
            scope: ClaimScope::Everything,
        };
        let runner = RunnerId(runner.to_owned());
        let claimed = store.claim_tasks(&runner, &capacity).await.unwrap();
        claimed[0].epoch
    }

    #[tokio::test]
    async fn a_step_is_done_once_over_all_processes_and_only_by_the_holder_of_the_lease() {
        let dir = tempfile::tempdir().unwrap();
        let (store, id, epoch) = claimed_task(dir.path()).await;
        let open = async |epoch| {
            StepLedger::of_task(store.clone(), id.clone(), epoch)
                .await
                .unwrap()
        };
        let first = open(epoch).await;
        let once = async |ledger: &StepLedger, value: u32| {
            let work = || async move { Ok::<_, LedgerError>(value) };
            ledger.once::<u32, LedgerError, _>("count", work).await
        };
        assert_eq!(once(&first, 1).await.unwrap(), 1);
        assert_eq!(once(&first, 2).await.unwrap(), 1);
        // Another process goes on.
        store.release_task(&id, epoch).await.unwrap();
        let next = claim(&store, "bob").await;
        let second = open(next).await;
        assert_eq!(once(&second, 3).await.unwrap(), 1);
        let late = first.record("late", &true).await;
        assert!(
            matches!(late, Err(LedgerError::Store(StoreError::LeaseLost(_)))),
            "{late:?}"
        );
        assert!(!first.has("late"));
        let wrong = second.known::<String>("count").unwrap_err().to_string();
        assert!(
            wrong.starts_with("the record of step `count` cannot be read"),
            "{wrong}"
        );
    }

    #[tokio::test]
    async fn what_an_earlier_task_did_counts_until_this_one_does_it_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (store, id, epoch) = claimed_task(dir.path()).await;
        let ledger = StepLedger::of_task(store.clone(), id.clone(), epoch)
            .await
            .unwrap();
        ledger.record("own", &1).await.unwrap();
        let earlier =
            [("own", 7), ("other", 8)].map(|(step, value)| (step.to_owned(), value.into()));
        let ledger = ledger.inheriting(HashMap::from(earlier));
        assert_eq!(ledger.known::<u32>("own").unwrap(), Some(1));
        assert_eq!(ledger.known::<u32>("other").unwrap(), Some(8));
        assert!(ledger.is_inherited("other") && !ledger.is_inherited("own"));
        ledger.record("other", &9).await.unwrap();
        assert!(!ledger.is_inherited("other"));
        let mut all = ledger.all::<u32>("o");
        all.sort_unstable();
        assert_eq!(all, [1, 9]);
    }
}
