//! What a task runs, fixed when it is made.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{DevOrder, FollowOrder, SessionId, TaskType, ToolUseId, Usd, WorkflowSpec};

/// What a task runs. Runners take their parameters from here and from nowhere else; nothing
/// changes it once the task is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskSpec {
    /// A shell command.
    Shell(ShellSpec),
    /// A subagent.
    Agent(AgentSpec),
    /// An agent for a `codespar worker`.
    RemoteAgent(AgentSpec),
    /// A member of a team.
    Teammate(TeammateSpec),
    /// Work on the list of a team, which a member takes. Nothing runs it.
    TeamItem(TeamItemSpec),
    /// A workflow of a file.
    Workflow(WorkflowSpec),
    /// A run of the dev agent.
    Dev(Box<DevOrder>),
    /// A subscription to a pull request.
    FollowPullRequest(FollowOrder),
    /// Watches an MCP server.
    Monitor(MonitorSpec),
    /// Writes notes for the project's memory.
    Dream(AgentSpec),
}

/// A shell command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellSpec {
    pub command: String,
    /// The directory it may write to.
    pub root: PathBuf,
    /// Where it starts.
    pub cwd: PathBuf,
    /// After this many milliseconds it is stopped; without a limit it runs until someone stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Where an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In a git worktree and branch of its own.
    Worktree,
}

/// An agent to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// What it is to do.
    pub prompt: String,
    /// Its kind.
    pub subagent_type: String,
    /// Its model, if not the kind's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its limit on turns, if not the kind's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Its limit on the wall time of an attempt; the kind and the settings may have a lower one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_seconds: Option<u64>,
    /// The most it may cost, over all its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<Usd>,
    /// A name to send messages to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it works, if not in the project itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The root of the tree it works in.
    pub root: PathBuf,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its own conversation.
    pub agent_session: SessionId,
    /// How far below the user's agent it is; 1 for its children.
    pub depth: u32,
    /// The call that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
}

impl AgentSpec {
    /// The same agent with what was asked for when it was continued.
    #[must_use]
    pub fn with(self, options: &AttemptOptions) -> Self {
        Self {
            model: options.model.clone().or(self.model),
            max_turns: options.max_turns.or(self.max_turns),
            max_wall_seconds: options.max_wall_seconds.or(self.max_wall_seconds),
            ..self
        }
    }
}

/// What one attempt of an agent uses in place of its spec. Given with the message that starts the
/// attempt and recorded as a step of the task ([`AttemptOptions::step`]); nothing here is a
/// permission.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptOptions {
    /// Another model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another limit on turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Another limit on wall time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_seconds: Option<u64>,
}

impl AttemptOptions {
    /// The step of a task that holds the options of one attempt.
    pub fn step(attempt: u32) -> String {
        format!("attempt {attempt} options")
    }

    /// The attempt runs as the spec says.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeammateSpec {
    pub team: String,
    /// What the others call it.
    pub name: String,
    pub agent: AgentSpec,
}

/// Work on the list of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamItemSpec {
    /// Whose list.
    pub team: String,
}

/// What a monitor watches, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorSpec {
    /// The server's name.
    pub server: String,
    /// Resources to watch; all that the server lists, if none are named.
    #[serde(default)]
    pub resources: Vec<String>,
    /// It ends after this many events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u32>,
    /// It ends after this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<u64>,
    /// Seconds between two looks at whether the server answers.
    pub interval_s: u64,
    /// The project whose server it is.
    pub root: PathBuf,
}

impl TaskSpec {
    /// The type of a task that runs this.
    pub const fn task_type(&self) -> TaskType {
        match self {
            Self::Shell(_) => TaskType::LocalBash,
            Self::Agent(_) => TaskType::LocalAgent,
            Self::RemoteAgent(_) => TaskType::RemoteAgent,
            Self::Teammate(_) | Self::TeamItem(_) => TaskType::InProcessTeammate,
            Self::Workflow(_) | Self::Dev(_) | Self::FollowPullRequest(_) => {
                TaskType::LocalWorkflow
            }
            Self::Monitor(_) => TaskType::MonitorMcp,
            Self::Dream(_) => TaskType::Dream,
        }
    }

    /// The agent it runs, if it runs one.
    pub fn agent(&self) -> Option<&AgentSpec> {
        match self {
            Self::Agent(agent) | Self::RemoteAgent(agent) | Self::Dream(agent) => Some(agent),
            Self::Teammate(teammate) => Some(&teammate.agent),
            _ => None,
        }
    }

    /// The agent that runs it: its name, or its kind. Commands and workflows have none.
    pub fn owner(&self) -> Option<&str> {
        let agent = self.agent()?;
        Some(agent.name.as_ref().unwrap_or(&agent.subagent_type))
    }

    /// The team on whose list it stands.
    pub fn team_list(&self) -> Option<&str> {
        match self {
            Self::TeamItem(item) => Some(&item.team),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_written_with_its_kind_and_read_back() {
        let spec = TaskSpec::Shell(ShellSpec {
            command: "make".into(),
            root: "/p".into(),
            cwd: "/p/a".into(),
            timeout_ms: None,
        });
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"shell","command":"make","root":"/p","cwd":"/p/a"}"#
        );
        assert_eq!(serde_json::from_str::<TaskSpec>(&text).unwrap(), spec);
    }
}
