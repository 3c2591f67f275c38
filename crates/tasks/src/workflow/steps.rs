//! The tasks that steps become.
//!
//! The task of a step has the authority of the workflow, is its child, and reports to nobody: the
//! workflow reports for all. Its dependencies are recorded as `blocked_by`, so the store fails a
//! step whose needs did not complete and the runner need not.

use std::collections::HashMap;

use codespar_protocol::{
    AgentSpec, Authority, Labels, OnDependencyFailure, SessionMode, ShellSpec, StepWork, TaskId,
    TaskRecord, TaskSpec, TaskStatus, WorkflowSpec, WorkflowStep,
};
use codespar_store::{NewSession, NewTask, Notify, RunnerId, StoreError};
use serde_json::{Map, Value, json};

use super::{progress::Progress, template};
use crate::{
    TaskHub,
    runner::{Control, PROCESS_ENDED},
    trace::current_trace,
};

/// The tasks of a workflow as the store has them.
pub(super) type Records = HashMap<TaskId, TaskRecord>;

/// What there is to know when a step's task is made or looked at. Borrowed for one look; nothing
/// here changes anything but sessions of agents.
pub(super) struct View<'a> {
    pub(super) hub: &'a TaskHub,
    pub(super) control: &'a Control,
    pub(super) spec: &'a WorkflowSpec,
    pub(super) progress: &'a Progress,
    pub(super) records: &'a Records,
}

impl<'a> View<'a> {
    /// The latest task of a step, if it was made.
    pub(super) fn record(&self, step: &str) -> Option<&'a TaskRecord> {
        self.records.get(&self.progress.of(step)?.task_id)
    }

    /// All that a step needs has completed.
    pub(super) fn needs_met(&self, step: &WorkflowStep) -> bool {
        step.needs.iter().all(|need| {
            self.record(need)
                .is_some_and(|record| record.status == TaskStatus::Completed)
        })
    }

    /// Nothing more will become of a step.
    pub(super) fn is_settled(&self, step: &WorkflowStep) -> bool {
        self.record(&step.id)
            .is_some_and(|record| record.status.is_final())
            && !self.is_to_be_retried(step)
    }

    /// A step may begin, or has to be told that it will not: all it needs has come to an end.
    pub(super) fn is_due(&self, step: &WorkflowStep) -> bool {
        step.needs.iter().all(|need| {
            let needed = self.spec.workflow.steps.iter().find(|s| s.id == *need);
            needed.is_some_and(|needed| self.is_settled(needed))
        })
    }

    /// It did not complete, and the file says to try again. What someone stopped stays stopped.
    pub(super) fn is_to_be_retried(&self, step: &WorkflowStep) -> bool {
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
    ///
    /// `None` if no ids are on record for the step. A step whose needs failed is made as well: it
    /// is born failed, with the reason.
    pub(super) async fn new_task(
        &self,
        step: &WorkflowStep,
    ) -> Result<Option<NewTask>, StoreError> {
        let Some(made) = self.progress.of(&step.id).cloned() else {
            return Ok(None);
        };
        let workflow = &self.control.record;
        let Some(authority) = workflow.authority.clone() else {
            return Ok(None);
        };
        let spec = match &step.work {
            StepWork::Command { command } => TaskSpec::Shell(ShellSpec {
                command: command.clone(),
                root: self.spec.root.clone(),
                cwd: self.spec.cwd.clone(),
                timeout_ms: None,
            }),
            StepWork::Prompt { .. } => match self.agent(step).await? {
                Some(agent) => TaskSpec::Agent(agent),
                None => return Ok(None),
            },
        };
        // An agent that waits for the workflow must not take up the room of its steps.
        let scheduler = self.hub.scheduler();
        let start_here = (workflow.parent_task_id.is_some() && self.needs_met(step))
            .then(|| scheduler.id().clone());
        let needs = step.needs.iter();
        Ok(Some(NewTask {
            output_file: Some(scheduler.output_file(authority.tree, &made.task_id)),
            id: made.task_id,
            spec,
            authority: Authority {
                trace: current_trace().or(authority.trace),
                ..authority
            },
            reserved_for: workflow.reserved_for.clone().map(RunnerId),
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::Fail,
            subject: format!("{}: {}", self.spec.workflow.name, step.id),
            description: None,
            active_form: None,
            metadata: Map::from_iter([("workflow_step".to_owned(), json!(step.id))]),
            blocked_by: needs
                .filter_map(|need| Some(self.progress.of(need)?.task_id.clone()))
                .collect(),
            session_id: workflow.session_id,
            parent_task_id: Some(workflow.task_id.clone()),
            made_under: Some(self.control.lease()),
            notify: Notify::Nobody,
            start_here,
        }))
    }

    /// Creates the conversation if it does not exist: a crash may have come between it and the
    /// task.
    async fn agent(&self, step: &WorkflowStep) -> Result<Option<AgentSpec>, StoreError> {
        let made = self.progress.of(&step.id);
        let (
            StepWork::Prompt {
                prompt,
                agent,
                model,
            },
            Some(agent_session),
        ) = (&step.work, made.and_then(|made| made.agent_session))
        else {
            return Ok(None);
        };
        let sessions = self.hub.sessions();
        if let Err(StoreError::NoSuchSession(_)) = sessions.session(agent_session).await {
            sessions
                .create_session(NewSession {
                    id: agent_session,
                    cwd: self.spec.cwd.clone(),
                    model: model.clone().unwrap_or_default(),
                    mode: SessionMode::Normal,
                })
                .await?;
        }
        Ok(Some(AgentSpec {
            prompt: template::fill(prompt, |id| self.record(id).map(result)),
            subagent_type: agent.clone(),
            model: model.clone(),
            max_budget_usd: None,
            max_turns: None,
            max_wall_seconds: None,
            name: None,
            isolation: self.hub.kind(agent).ok().and_then(|kind| kind.isolation),
            root: self.spec.root.clone(),
            cwd: self.spec.cwd.clone(),
            agent_session,
            depth: self.spec.depth,
            tool_use_id: None,
        }))
    }
}

/// The final text of a step; empty if it has none.
pub(super) fn result(record: &TaskRecord) -> String {
    let text = record.metadata.get("result").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
