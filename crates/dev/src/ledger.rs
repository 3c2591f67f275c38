//! The record of a run's steps: what was done is not done again.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::Arc,
};

use codespar_protocol::TaskId;
use codespar_store::TaskStore;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Failure, run::ANSWER};

/// On record when the answers of a run led to its failure.
pub(crate) const BAD_ANSWERS: &str = "bad_answers";
/// The picker's answer, which no change depends on.
const PICK: &str = "answer-pick";

/// Called with `made NAME` when a step is done and not yet on record, and with `NAME` once it is.
pub type StepHook = Arc<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Ledger {
    store: Arc<dyn TaskStore>,
    task: TaskId,
    epoch: u64,
    done: Mutex<HashMap<String, Value>>,
    /// Steps that only earlier runs did.
    inherited: Mutex<HashSet<String>>,
    hook: Option<StepHook>,
}

impl Ledger {
    /// Opens the record of a task as earlier attempts left it, with those of failed runs that it
    /// goes on from. Answers that led to a failure are paid for and are not used again.
    pub(crate) async fn open(
        store: Arc<dyn TaskStore>,
        task: TaskId,
        epoch: u64,
        resumes: &[TaskId],
        hook: Option<StepHook>,
    ) -> Result<Self, Failure> {
        let mut done = HashMap::new();
        for earlier in resumes {
            let steps = store.steps(earlier).await?.into_iter().collect();
            done.extend(usable(earlier, steps));
        }
        let own: HashMap<String, Value> = store.steps(&task).await?.into_iter().collect();
        let inherited = done
            .keys()
            .filter(|step| !own.contains_key(*step))
            .cloned()
            .collect();
        done.extend(own);
        Ok(Self {
            store,
            task,
            epoch,
            done: Mutex::new(done),
            inherited: Mutex::new(inherited),
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

    /// Whether a step was done by an earlier run alone.
    pub(crate) fn is_inherited(&self, step: &str) -> bool {
        self.inherited.lock().contains(step)
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
        self.inherited.lock().remove(step);
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

/// What a later run may take over of a run's steps.
fn usable(task: &TaskId, steps: HashMap<String, Value>) -> HashMap<String, Value> {
    if !steps.contains_key(BAD_ANSWERS) {
        return steps;
    }
    let keep = |(step, value): (String, Value)| match step.strip_prefix(ANSWER) {
        _ if step == PICK => Some((step, value)),
        // Under a name that nobody asks for, it still counts as spent.
        Some(rest) => Some((format!("{ANSWER}{task}-{rest}"), value)),
        None if step.starts_with("after-") => None,
        None if matches!(step.as_str(), "agent" | "agent_task" | "reply") => None,
        None => Some((step, value)),
    };
    steps.into_iter().filter_map(keep).collect()
}
