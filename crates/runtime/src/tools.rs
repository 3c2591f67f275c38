//! Which tools an agent of a project has.
//!
//! Three sets: the agent of the user has its own, a coordinator only those that direct others,
//! agents of tasks what their kind lists. `--disallowedTools` with a bare name takes a tool from
//! the first and the last; a coordinator keeps it, and the deny rule refuses its calls. A name that
//! is not in the set cannot be called, whatever the model writes.

use std::sync::Arc;

use codespar_agent::AgentDefinition;
use codespar_policy::{Mode, RuleKind, RuleSet};
use codespar_protocol::SessionMode;
use codespar_tasks::{
    AgentKind, Caller, MakesTasks, TOOLS_FOR_MADE_TASKS, TaskHub, ToolSet, builtin_kinds,
    coordinator_tools, shell_tool, subagent_tools, task_tools, team_tools,
};
use codespar_tools::{Registry, Tool, WebSearch, standard_tools};

use crate::{Project, Session, dev};

/// Only these and the MCP tools, for workers of `CODESPAR_SIMPLE`.
const SIMPLE: [&str; 3] = ["Bash", "Read", "Edit"];

/// Names that models of other agents call some tools by.
const ALIASES: [(&str, &str); 5] = [
    ("Agent", "Task"),
    ("BashOutput", "TaskOutput"),
    ("KillShell", "TaskStop"),
    ("MultiEdit", "Edit"),
    ("NotebookEdit", "Edit"),
];

impl Project {
    /// The names of the tools that the agent of a session has. For showing them; the tools
    /// themselves are made anew for the agent.
    pub fn tool_names(self: &Arc<Self>, session: &Session) -> Vec<String> {
        let id = session.transcript.session();
        let caller = self.caller(id, session.mode, Arc::new(|_| {}));
        let tools = self.session_tools(session.mode, &caller);
        tools.names().into_iter().map(str::to_owned).collect()
    }

    /// The tools of MCP servers that are connected now, for an agent that was made before. A server
    /// may connect after the conversation began.
    pub fn server_tools(&self) -> Registry {
        let mut tools = Registry::default();
        add_all(&mut tools, self.mcp.tools());
        tools.filtered(None, &self.denied)
    }

    pub(crate) fn session_tools(self: &Arc<Self>, mode: SessionMode, caller: &Caller) -> Registry {
        match mode {
            SessionMode::Normal => self.own_tools(caller),
            SessionMode::Coordinator => self.directing_tools(caller),
        }
    }

    /// What a coordinator has; following pull requests too where there is a repository.
    fn directing_tools(self: &Arc<Self>, caller: &Caller) -> Registry {
        let mut tools = coordinator_tools(&self.hub, caller);
        // Followers are workflows, which plan mode does not run.
        if self.mode.get() != Mode::Plan {
            add_all(&mut tools, dev::subscriptions(self, caller));
        }
        tools.filtered(None, &self.denied)
    }

    /// Standard tools and those for tasks, less what `--disallowedTools` takes away.
    fn own_tools(&self, caller: &Caller) -> Registry {
        let mut tools = self.tools.clone();
        add_all(&mut tools, task_tools(&self.hub, caller));
        add_all(&mut tools, subagent_tools(&self.hub, caller));
        add_all(&mut tools, team_tools(&self.hub, caller));
        self.add_web_search(&mut tools, &self.rules.read(), self.mode.get());
        let mut tools = self.on_offer(tools);
        add_all(&mut tools, self.mcp.tools());
        let tools = match self.own_definition() {
            Some(own) => {
                let wanted = own.tools.as_deref().map(by_our_names);
                let wanted = wanted.filter(|names| !names.iter().any(|name| name == "*"));
                tools.filtered(wanted.as_deref(), &by_our_names(&own.disallowed_tools))
            }
            None => tools,
        };
        let tools = tools.filtered(None, &self.denied);
        with_aliases(with_shell(tools, &self.hub, caller))
    }

    /// The built-in tools that the caller wants.
    pub(crate) fn on_offer(&self, tools: Registry) -> Registry {
        match self.options.built_in_tools.only() {
            Some(names) => tools.filtered(Some(&by_our_names(names)), &[]),
            None => tools,
        }
    }

    /// The tools for tasks that were made are described when there is one, except those that an
    /// allow rule names: somebody means them to be used.
    pub(crate) fn hold_back_task_tools(&self, tools: &mut Registry) {
        let rules = self.rules.read();
        let is_named = |name: &str| {
            rules
                .list(RuleKind::Allow)
                .any(|(rule, _)| rule.tool() == name)
        };
        let unnamed = TOOLS_FOR_MADE_TASKS.into_iter();
        tools.hold_back(unnamed.filter(|name| !is_named(name)));
    }

    /// Where the provider searches the web and the agent's rules allow it.
    pub(crate) fn add_web_search(&self, tools: &mut Registry, rules: &RuleSet, mode: Mode) {
        if self.provider.model.searches_web() && WebSearch::is_allowed(rules, mode) {
            tools.add(Arc::new(WebSearch));
        }
    }

    /// Workers have everything but the coordinator's own tools.
    pub(crate) fn worker_tools(&self, hub: &Arc<TaskHub>, caller: &Caller) -> Registry {
        let environment = &self.dir.environment;
        let names = ["CODESPAR_SIMPLE", "CLAUDE_CODE_SIMPLE"];
        if names.into_iter().any(|name| environment.is_enabled(name)) {
            let mut tools = standard_tools().filtered(Some(&SIMPLE.map(str::to_owned)), &[]);
            add_all(&mut tools, self.mcp.tools());
            return tools;
        }
        let mut tools = standard_tools();
        add_all(&mut tools, task_tools(hub, caller));
        let mut tools = self.on_offer(tools);
        add_all(&mut tools, self.mcp.tools());
        tools
    }
}

/// Names of other programs for our tools, as ours.
fn by_our_names(names: &[String]) -> Vec<String> {
    let ours = |name: &String| {
        let alias = ALIASES.iter().find(|(alias, _)| alias == name);
        alias.map_or_else(|| name.clone(), |(_, ours)| (*ours).to_owned())
    };
    names.iter().map(ours).collect()
}

pub(crate) fn add_all(tools: &mut Registry, added: impl IntoIterator<Item = Arc<dyn Tool>>) {
    for tool in added {
        tools.add(tool);
    }
}

/// Puts the Bash tool that can run commands in the background in the place of the plain one, for an
/// agent that may make tasks.
pub(crate) fn with_shell(mut tools: Registry, hub: &Arc<TaskHub>, caller: &Caller) -> Registry {
    if tools.get("Bash").is_some() {
        let makes_tasks = match tools.get("TaskCreate") {
            Some(_) => MakesTasks::Yes,
            None => MakesTasks::No,
        };
        tools.add(shell_tool(hub, caller, makes_tasks));
    }
    tools
}

/// An alias is added only if the tool it stands for is there.
pub(crate) fn with_aliases(mut tools: Registry) -> Registry {
    for (alias, name) in ALIASES {
        if tools.get(name).is_some() {
            tools.alias(alias, name);
        }
    }
    tools
}

/// Built-in kinds of agents and the given definitions; a definition of the same name wins.
pub(crate) fn kinds<'a>(custom: impl Iterator<Item = &'a AgentDefinition>) -> Vec<AgentKind> {
    let custom: Vec<AgentKind> = custom.map(kind_of).collect();
    let mut kinds = builtin_kinds();
    kinds.retain(|kind| custom.iter().all(|other| other.name != kind.name));
    kinds.extend(custom);
    kinds
}

/// The kind that a definition makes.
///
/// A definition without `tools` has all of them. 20 turns are those of `general-purpose`.
pub(crate) fn kind_of(agent: &AgentDefinition) -> AgentKind {
    AgentKind {
        name: agent.name.clone(),
        description: agent.description.clone(),
        tools: match &agent.tools {
            Some(names) if !names.iter().any(|name| name == "*") => ToolSet::Only(names.clone()),
            _ => ToolSet::All,
        },
        model: agent.model.clone(),
        max_turns: agent.max_turns.unwrap_or(20),
        max_wall_seconds: agent.max_wall_seconds,
        prompt: agent.prompt.clone(),
        isolation: agent.isolation,
        background: agent.background,
        skills: agent.skills.clone(),
    }
}
