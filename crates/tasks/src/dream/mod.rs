//! `dream`: an agent that reads, thinks about recent sessions, and leaves a note in the project's
//! memory.
//!
//! The sessions are given to it as a digest in its prompt; it cannot read the store itself. The
//! note is written by the runner and not by the model, so the agent needs no tool that writes. A
//! dream that is killed or fails leaves no note; one that is resumed gets a fresh digest only if
//! its conversation is still empty.

mod digest;
mod notes;

use std::sync::Arc;

use async_trait::async_trait;
use codespar_protocol::{TaskSpec, TaskStatus};
use serde_json::json;

use crate::{
    AgentKind, AgentRunner, ToolSet,
    runner::{Control, Runner, TaskOutcome},
};

/// What a dream is called among the kinds of agents.
const NAME: &str = "dream";

/// The agent of a dream. It is not among the kinds that can be asked for, and no definition of a
/// repository can replace it: it has tools that read, and no others.
pub fn dream_kind() -> AgentKind {
    AgentKind {
        name: NAME.to_owned(),
        description: "thinks about recent work and writes notes".to_owned(),
        tools: ToolSet::Only(["Read", "Glob", "Grep", "LS"].map(str::to_owned).to_vec()),
        model: Some("sonnet".to_owned()),
        max_turns: 20,
        max_wall_seconds: None,
        prompt: include_str!("../prompts/dream.md").trim().to_owned(),
        isolation: None,
        background: false,
        skills: Vec::new(),
    }
}

pub struct DreamRunner {
    /// Runs the agent.
    pub agents: Arc<AgentRunner>,
}

#[async_trait]
impl Runner for DreamRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        match self.dream(&control).await {
            Ok(outcome) => outcome,
            Err(error) => TaskOutcome::failed(error),
        }
    }
}

impl DreamRunner {
    /// The note is written before the end of the task is recorded; a later attempt replaces the
    /// same file.
    async fn dream(&self, control: &Control) -> Result<TaskOutcome, String> {
        let TaskSpec::Dream(agent) = control.spec()? else {
            return Err(control.wrong_kind());
        };
        let mut agent = agent.clone();
        let digest = digest::of(self.agents.hub.sessions(), &*control.store, &agent)
            .await
            .map_err(|error| format!("recent sessions cannot be read: {error}"))?;
        agent.prompt = prompt(&digest, &agent.prompt);
        let root = agent.root.clone();
        let attempt = self.agents.attempt(control, agent).await?;
        let mut outcome = attempt.outcome;
        if outcome.status == TaskStatus::Completed {
            let path = notes::write(&root, &control.record, &attempt.text)?;
            outcome
                .metadata
                .insert("memory_file".to_owned(), json!(path));
        }
        Ok(outcome)
    }
}

/// The digest comes first and is escaped, so that text of a session cannot close the tag and pass
/// for the order.
fn prompt(digest: &str, wish: &str) -> String {
    let wish = match wish.trim() {
        "" => "Write the note.",
        wish => wish,
    };
    format!("<recent-sessions>\n{digest}</recent-sessions>\n\n{wish}")
}
