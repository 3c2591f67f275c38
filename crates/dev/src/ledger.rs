//! The record of a run's steps: what was done is not done again.

use std::{collections::HashMap, future::Future, sync::Arc};

use codespar_protocol::TaskId;
use codespar_store::TaskStore;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::Failure;

/// Called with `made NAME` when a step is done and not yet on record, and with `NAME` once it is.
pub type StepHook = Arc<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Ledger {
    store: Arc<dyn TaskStore>,
    task: TaskId,
    epoch: u64,
    done: Mutex<HashMap<String, Value>>,
    hook: Option<StepHook>,
}

impl Ledger {
    /// Opens the record of a task as earlier attempts left it, with those of failed runs that it
    /// goes on from.
    pub(crate) async fn open(
        store: Arc<dyn TaskStore>,
        task: TaskId,
        epoch: u64,
        resumes: &[TaskId],
        hook: Option<StepHook>,
    ) -> Result<Self, Failure> {
        let mut done = HashMap::new();
        for earlier in resumes.iter().chain([&task]) {
            done.extend(store.steps(earlier).await?);
        }
        Ok(Self {
            store,
            task,
            epoch,
            done: Mutex::new(done),
            hook,
        })
    }

    /// What a step came to, if it is over.
    pub(crate) fn known<T: DeserializeOwned>(&self, step: &str) -> Result<Option<T>, Failure> {
        let Some(value) = self.done.lock().get(step).cloned() else {
            return Ok(None);
        };
        serde_json::from_value(value).map(Some).map_err(|error| {
            Failure::Broken(format!(
                "the record of step `{step}` cannot be read: {error}"
            ))
        })
    }

    /// Whether a step is over.
    pub(crate) fn has(&self, step: &str) -> bool {
        self.done.lock().contains_key(step)
    }

    /// Does a step, or gives what it came to before. Its result is on record when this returns.
    pub(crate) async fn once<T, F>(
        &self,
        step: &str,
        work: impl FnOnce() -> F,
    ) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, Failure>>,
    {
        if let Some(known) = self.known(step)? {
            return Ok(known);
        }
        let result = work().await?;
        self.record(step, &result).await?;
        Ok(result)
    }

    /// Puts a step's result on record.
    pub(crate) async fn record<T: Serialize>(&self, step: &str, result: &T) -> Result<(), Failure> {
        let value = serde_json::to_value(result)
            .map_err(|error| Failure::Broken(format!("step `{step}`: {error}")))?;
        if let Some(hook) = &self.hook {
            hook(&format!("made {step}"));
        }
        self.store
            .record_step(&self.task, self.epoch, step, &value)
            .await?;
        self.done.lock().insert(step.to_owned(), value);
        if let Some(hook) = &self.hook {
            hook(step);
        }
        Ok(())
    }

    /// All that is on record under names that begin so.
    pub(crate) fn all<T: DeserializeOwned>(&self, prefix: &str) -> Vec<T> {
        self.done
            .lock()
            .iter()
            .filter(|(step, _)| step.starts_with(prefix))
            .filter_map(|(_, value)| serde_json::from_value(value.clone()).ok())
            .collect()
    }
}
