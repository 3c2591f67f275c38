//! The tasks that steps become.

use std::collections::HashMap;

use codespar_protocol::{SessionMode, TaskId, TaskRecord, TaskStatus};
use codespar_store::{NewSession, NewTask, Notify, StoreError};
use serde_json::{Map, Value, json};

use super::{Step, Work, WorkflowOrder, progress::Progress, template};
use crate::{
    TaskHub,
    order::{self, AgentOrder, BashOrder},
    runner::{Control, PROCESS_ENDED},
};

/// The tasks of a workflow as the store has them.
pub(super) type Records = HashMap<TaskId, TaskRecord>;

/// What there is to know when a step's task is made or looked at.
pub(super) struct View<'a> {
    pub(super) hub: &'a TaskHub,
    pub(super) control: &'a Control,
    pub(super) order: &'a WorkflowOrder,
    pub(super) progress: &'a Progress,
    pub(super) records: &'a Records,
}

impl<'a> View<'a> {
    /// The latest task of a step, if it was made.
    pub(super) fn record(&self, step: &str) -> Option<&'a TaskRecord> {
        self.records.get(&self.progress.of(step)?.task_id)
    }

    /// All that a step needs has completed.
    pub(super) fn needs_met(&self, step: &Step) -> bool {
        step.needs.iter().all(|need| {
            self.record(need)
                .is_some_and(|record| record.status == TaskStatus::Completed)
        })
    }

    /// Nothing more will become of a step.
    pub(super) fn is_settled(&self, step: &Step) -> bool {
        self.record(&step.id)
            .is_some_and(|record| record.status.is_final())
            && !self.is_to_be_retried(step)
    }

    /// A step may begin, or has to be told that it will not: all it needs has come to an end.
    pub(super) fn is_due(&self, step: &Step) -> bool {
        step.needs.iter().all(|need| {
            let needed = self.order.workflow.steps.iter().find(|s| s.id == *need);
            needed.is_some_and(|needed| self.is_settled(needed))
        })
    }

    /// It did not complete, and the file says to try again. What someone stopped stays stopped.
    pub(super) fn is_to_be_retried(&self, step: &Step) -> bool {
        let (Some(made), Some(record)) = (self.progress.of(&step.id), self.record(&step.id)) else {
            return false;
        };
        let failed = match record.status {
            TaskStatus::Failed => true,
            TaskStatus::Killed => record.error.as_deref() == Some(PROCESS_ENDED),
            _ => false,
        };
        failed && made.retries < step.retry && self.needs_met(step)
    }

    /// The task of a step, under the names that are on record.
    pub(super) async fn new_task(&self, step: &Step) -> Result<Option<NewTask>, StoreError> {
        let Some(made) = self.progress.of(&step.id).cloned() else {
            return Ok(None);
        };
        let mut metadata = match &step.work {
            Work::Command { command } => order::write(&BashOrder {
                command: command.clone(),
                root: self.order.root.clone(),
                cwd: self.order.cwd.clone(),
            }),
            Work::Prompt { .. } => self.agent_order(step).await?,
        };
        metadata.insert("workflow_step".to_owned(), json!(step.id));
        let workflow = &self.control.record;
        if let Some(runner) = workflow.metadata.get("runner_only") {
            metadata.insert("runner_only".to_owned(), runner.clone());
        }
        // An agent that waits for the workflow must not take up the room of its steps.
        let scheduler = self.hub.scheduler();
        let start_here = (workflow.parent_task_id.is_some() && self.needs_met(step))
            .then(|| (scheduler.id().clone(), scheduler.lease()));
        let needs = step.needs.iter();
        Ok(Some(NewTask {
            output_file: Some(scheduler.output_file(&made.task_id)),
            task_type: match step.work {
                Work::Command { .. } => codespar_protocol::TaskType::LocalBash,
                Work::Prompt { .. } => codespar_protocol::TaskType::LocalAgent,
            },
            id: made.task_id,
            subject: format!("{}: {}", self.order.workflow.name, step.id),
            description: None,
            active_form: None,
            metadata,
            blocked_by: needs
                .filter_map(|need| Some(self.progress.of(need)?.task_id.clone()))
                .collect(),
            session_id: workflow.session_id,
            parent_task_id: Some(workflow.task_id.clone()),
            notify: Notify::Nobody,
            start_here,
        }))
    }

    async fn agent_order(&self, step: &Step) -> Result<Map<String, Value>, StoreError> {
        let made = self.progress.of(&step.id);
        let (
            Work::Prompt {
                prompt,
                agent,
                model,
            },
            Some(agent_session),
        ) = (&step.work, made.and_then(|made| made.agent_session))
        else {
            return Ok(Map::new());
        };
        let sessions = self.hub.sessions();
        if let Err(StoreError::NoSuchSession(_)) = sessions.session(agent_session).await {
            sessions
                .create_session(NewSession {
                    id: agent_session,
                    cwd: self.order.cwd.clone(),
                    model: model.clone().unwrap_or_default(),
                    mode: SessionMode::Normal,
                })
                .await?;
        }
        Ok(order::write(&AgentOrder {
            prompt: template::fill(prompt, |id| self.record(id).map(result)),
            subagent_type: agent.clone(),
            model: model.clone(),
            max_budget_usd: None,
            max_turns: None,
            name: None,
            isolation: None,
            root: self.order.root.clone(),
            cwd: self.order.cwd.clone(),
            agent_session,
            depth: self.order.depth,
            tool_use_id: None,
        }))
    }
}

/// The final text of a step; empty if it has none.
pub(super) fn result(record: &TaskRecord) -> String {
    let text = record.metadata.get("result").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
