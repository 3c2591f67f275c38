//! The built-in kinds of subagents.
//!
//! A kind is a configuration of the agent loop: tools, model, limit on turns and system prompt.
//! Agents defined by the user or by a trusted repository become kinds as well; the runtime puts
//! them beside these, and one of the same name replaces the built-in kind. Rules and budget are no
//! part of a kind: they come from the authority of the task.

use codespar_agent::lines_for_tools;
use codespar_protocol::Isolation;

/// The kind whose agents a coordinator directs.
pub const WORKER: &str = "worker";

/// The kind of the agent that writes a change for the dev agent. No definition can have a name of
/// this form.
pub const DEV_ENGINE: &str = "dev_engine";

/// Tools that change nothing and start nothing.
const READING: [&str; 5] = ["Read", "Glob", "Grep", "LS", "WebFetch"];

/// Which tools an agent has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSet {
    /// Everything there is.
    All,
    /// Everything but what only a coordinator has.
    Worker,
    /// These alone.
    Only(Vec<String>),
}

impl ToolSet {
    /// Whether a tool whose name starts so could be in it. With `mcp__` it says whether an agent is
    /// worth waiting for MCP servers to connect.
    pub fn may_have(&self, start: &str) -> bool {
        match self {
            Self::All | Self::Worker => true,
            Self::Only(names) => names
                .iter()
                .any(|name| name.starts_with(start) || name == "*"),
        }
    }
}

/// A kind of subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKind {
    /// What it is called by.
    pub name: String,
    /// When to use it, for the model.
    pub description: String,
    pub tools: ToolSet,
    /// Its model, by alias or id; the parent's when absent.
    pub model: Option<String>,
    /// Its limit on turns.
    pub max_turns: u32,
    /// Its limit on wall time for each attempt.
    pub max_wall_seconds: Option<u64>,
    /// Its system prompt.
    pub prompt: String,
    /// Where its agents work, if not said when they are started.
    pub isolation: Option<Isolation>,
    /// Its agents always run beside the conversation.
    pub background: bool,
    /// Skills whose text its agents begin with.
    pub skills: Vec<String>,
}

fn only(names: &[&str]) -> ToolSet {
    ToolSet::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Explore, Plan, Bash, general-purpose and worker.
pub fn builtin_kinds() -> Vec<AgentKind> {
    let kind =
        |name: &str, description: &str, tools, model: &str, max_turns, prompt: &str| AgentKind {
            name: name.to_owned(),
            description: description.to_owned(),
            tools,
            model: Some(model.to_owned()),
            max_turns,
            max_wall_seconds: None,
            prompt: prompt.trim().to_owned(),
            isolation: None,
            background: false,
            skills: Vec::new(),
        };
    let planning: Vec<&str> = READING.iter().copied().chain(["TodoWrite"]).collect();
    vec![
        kind(
            "Explore",
            "finds things out in code you do not know, quickly; reads only, so not for changes",
            only(&READING),
            "haiku",
            10,
            include_str!("prompts/explore.md"),
        ),
        kind(
            "Plan",
            "works out the steps of a change that spans files; reads only; not for small changes",
            only(&planning),
            "sonnet",
            5,
            include_str!("prompts/plan.md"),
        ),
        kind(
            "Bash",
            "runs a series of commands and reports what mattered in their output; not for a single command",
            only(&["Bash", "TaskOutput", "TaskStop"]),
            "haiku",
            20,
            include_str!("prompts/bash.md"),
        ),
        kind(
            "general-purpose",
            "does a piece of work of several steps with all tools; not where one of the others is enough",
            ToolSet::All,
            "sonnet",
            20,
            include_str!("prompts/general.md"),
        ),
        kind(
            WORKER,
            "does a piece of work that a coordinator hands out",
            ToolSet::Worker,
            "sonnet",
            50,
            include_str!("prompts/worker.md"),
        ),
    ]
}

/// The agent that writes a change in a tree of its own. It is not among the kinds that can be asked
/// for, and no definition of a repository can replace it.
pub fn dev_kind() -> AgentKind {
    AgentKind {
        name: DEV_ENGINE.to_owned(),
        description: "writes a change in a throw-away tree".to_owned(),
        tools: ToolSet::Worker,
        model: Some("sonnet".to_owned()),
        max_turns: 100,
        max_wall_seconds: None,
        prompt: include_str!("prompts/dev.md").trim().to_owned(),
        isolation: None,
        background: false,
        skills: Vec::new(),
    }
}

/// The system prompt of a coordinator: how it works, and what its workers have.
///
/// Following pull requests is mentioned if the coordinator can, skills if its workers can use them.
pub fn coordinator_prompt(
    own_tools: &[String],
    worker_tools: &[String],
    mcp_servers: &[String],
    scratchpad: &std::path::Path,
) -> String {
    let servers = match mcp_servers {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let has = |tool: &str| match tool {
        "Skill" => worker_tools.iter().any(|name| name == tool),
        _ => own_tools.iter().any(|name| name == tool),
    };
    format!(
        "{}\n\nWorkers have: {}\nConnected MCP servers: {servers}\nScratchpad, where workers share lasting \
         knowledge without asking: {}",
        lines_for_tools(include_str!("prompts/coordinator.md").trim(), has),
        worker_tools.join(", "),
        scratchpad.display()
    )
}
