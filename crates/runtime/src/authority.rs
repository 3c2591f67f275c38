//! What an agent may do: what its task's authority says, narrowed by the process that runs it and
//! by its own definition, and never widened by either.
//!
//! An agent is as strict as the strictest of three: the authority that was recorded with its task,
//! the settings of the process that runs it, and its own definition. The agent of a task that this
//! very process made shares the rules of the process, so that an answer of the user counts for it
//! at once.

use std::sync::Arc;

use codespar_agent::TreeBudget;
use codespar_policy::{Mode, RuleSet, hooks::Hook};
use codespar_protocol::{AgentSpec, Authority, SessionId, TaskSpec};
use codespar_tasks::{
    AgentKind, AuthoritySource, Control, DEV_ENGINE, builtin_kinds, dev_kind, dream_kind,
    narrowed_mode, narrowed_rules, rule_texts,
};
use parking_lot::RwLock;

use crate::{Project, hooks::agent_hooks, tools::kind_of};

/// What one agent is and may do.
pub(crate) struct AgentPermissions {
    pub(crate) kind: AgentKind,
    /// Tools that its definition takes away.
    pub(crate) denied_tools: Vec<String>,
    pub(crate) authority: Authority,
    pub(crate) mode: Mode,
    pub(crate) rules: Arc<RwLock<RuleSet>>,
    pub(crate) budget: Arc<TreeBudget>,
    /// Those of its definition.
    pub(crate) hooks: Vec<Hook>,
}

impl AgentPermissions {
    /// Those of the agent of a task.
    ///
    /// A kind that is defined in the repository is used only if it is trusted here too:
    /// `project.agents` has no others. If it is not, a built-in kind of that name is used, or the
    /// task fails. Dreams have their own kind, whatever is named.
    pub(crate) async fn of(
        spec: &AgentSpec,
        control: &Control,
        project: &Project,
    ) -> Result<Self, String> {
        let authority = control.authority()?.clone();
        let custom = project.agents.agents.get(&spec.subagent_type);
        let kind = match (control.spec()?, custom) {
            (TaskSpec::Dream(_), _) => dream_kind(),
            _ if spec.subagent_type == DEV_ENGINE => dev_kind(),
            (_, Some(custom)) => kind_of(custom),
            (_, None) => builtin(&spec.subagent_type, &authority)?,
        };
        let custom = custom.filter(|custom| custom.name == kind.name);
        let mode = narrowed_mode(&authority, project.mode.get())?;
        let own = custom.and_then(|custom| custom.permission_mode);
        let mode = own.map_or(mode, |own| own.stricter(mode));
        let shared = project.rules();
        let made_here =
            control.record.reserved_for.as_ref() == Some(&project.hub.scheduler().id().0);
        let (rules, budget) = if made_here {
            // What the user allows while it runs holds for it too.
            (shared, project.budgets.own())
        } else {
            let rules = narrowed_rules(&authority, &shared.read())?;
            let budget = project.budgets.of_task(&authority, &*project.store).await;
            let budget = budget.map_err(|error| error.to_string())?;
            (Arc::new(RwLock::new(rules)), budget)
        };
        Ok(Self {
            denied_tools: custom.map_or_else(Vec::new, |custom| custom.disallowed_tools.clone()),
            hooks: match custom {
                Some(custom) => agent_hooks(custom, project)?,
                None => Vec::new(),
            },
            kind,
            authority,
            mode,
            rules,
            budget,
        })
    }

    /// What the tasks of the agent may do: no more than the agent itself.
    pub(crate) fn authority(&self, session: SessionId) -> AuthoritySource {
        let (authority, mode, rules) = (self.authority.clone(), self.mode, self.rules.clone());
        Arc::new(move || Authority {
            session: Some(session),
            mode: mode.to_string(),
            rules: rule_texts(&rules.read()),
            ..authority.clone()
        })
    }
}

/// The error names the project, because its agents are known only there.
fn builtin(name: &str, authority: &Authority) -> Result<AgentKind, String> {
    let mut kinds = builtin_kinds().into_iter();
    kinds.find(|kind| kind.name == name).ok_or_else(|| {
        format!(
            "there is no kind of agent `{name}` here; start codespar in {} to run it",
            authority.project_root.display()
        )
    })
}
