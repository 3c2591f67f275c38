//! `in_process_teammate`: an agent that comes to rest when it has nothing to do.
//!
//! Rest is the end of an attempt: the task is completed, and its result is the report to the lead.
//! The next message or item makes it pending again. Items that it still holds are named in the
//! report, since no one else can take them until they are given back.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_protocol::{TaskSpec, TaskStatus};

use super::TeamMember;
use crate::{
    AgentRunner,
    runner::{Control, Runner, TaskOutcome},
};

pub struct TeammateRunner {
    /// Runs the agent.
    pub agents: Arc<AgentRunner>,
}

#[async_trait]
impl Runner for TeammateRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        match self.attempt(&control).await {
            Ok(outcome) => outcome,
            Err(error) => TaskOutcome::failed(error),
        }
    }
}

impl TeammateRunner {
    /// A result without text is left out, and with it the notification: see `scheduler/ending.rs`.
    async fn attempt(&self, control: &Control) -> Result<TaskOutcome, String> {
        let TaskSpec::Teammate(teammate) = control.spec()? else {
            return Err(control.wrong_kind());
        };
        let attempt = self.agents.attempt(control, teammate.agent.clone()).await?;
        let mut outcome = attempt.outcome;
        // It was made to wait, and has said nothing: that is no news.
        outcome.result = outcome.result.filter(|text| !text.is_empty());
        let rests = outcome.status == TaskStatus::Completed;
        if let (true, Some(member)) = (rests, TeamMember::of(&control.record)) {
            let held = self.agents.hub.held_by(&member).await.unwrap_or_default();
            let left: Vec<String> = held
                .iter()
                .map(|item| format!("[It still has {}: {}]", item.task_id, item.subject))
                .collect();
            if !left.is_empty() {
                let text = outcome.result.unwrap_or_default();
                outcome.result = Some(format!("{text}\n\n{}", left.join("\n")));
            }
        }
        Ok(outcome)
    }
}
