//! What an agent may do: what its task's authority says, narrowed by the process that runs it and
//! by its own definition, and never widened by either.

use std::sync::Arc;

use codespar_agent::{AgentDefinition, TreeBudget};
use codespar_policy::{Mode, RuleSet};
use codespar_protocol::{AgentSpec, Authority, SessionId, TaskSpec};
use codespar_tasks::{
    AgentKind, AuthoritySource, Control, TaskHub, builtin_kinds, dream_kind, narrowed_mode,
    narrowed_rules, rule_texts,
};
use parking_lot::RwLock;

use crate::{assemble::Ground, trees::Trees, works::kind_of};

/// Whose definition of an agent it is, in `AgentDefinition::origin`.
const PROJECT: &str = "project";

/// What one agent is and may do.
pub(crate) struct Powers {
    pub(crate) kind: AgentKind,
    /// Tools that its definition takes away.
    pub(crate) denied_tools: Vec<String>,
    pub(crate) authority: Authority,
    pub(crate) mode: Mode,
    pub(crate) rules: Arc<RwLock<RuleSet>>,
    pub(crate) budget: Arc<TreeBudget>,
}

impl Powers {
    /// Those of the agent of a task.
    pub(crate) async fn of(
        spec: &AgentSpec,
        control: &Control,
        ground: &Ground,
        hub: &TaskHub,
        trees: &Trees,
    ) -> Result<Self, String> {
        let authority = control.authority()?.clone();
        let custom = definition(ground, &authority, &spec.subagent_type);
        let kind = match (control.spec()?, custom) {
            (TaskSpec::Dream(_), _) => dream_kind(),
            (_, Some(custom)) => kind_of(custom),
            (_, None) => builtin(&spec.subagent_type, &authority)?,
        };
        let custom = custom.filter(|custom| custom.name == kind.name);
        let mode = narrowed_mode(&authority, ground.mode)?;
        let own = custom.and_then(|custom| custom.permission_mode);
        let mode = own.map_or(mode, |own| own.stricter(mode));
        let shared = ground.rules();
        let made_here = control.record.reserved_for.as_ref() == Some(&hub.scheduler().id().0);
        let (rules, budget) = if made_here {
            // What the person allows while it runs holds for it too.
            (shared, trees.own())
        } else {
            let rules = narrowed_rules(&authority, &shared.read())?;
            let budget = trees.of_task(&authority, &*ground.store).await;
            let budget = budget.map_err(|error| error.to_string())?;
            (Arc::new(RwLock::new(rules)), budget)
        };
        Ok(Self {
            denied_tools: custom.map_or_else(Vec::new, |custom| custom.disallowed_tools.clone()),
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

/// The custom agent of that name. Those of a worker's own repository are not for the tasks of
/// other projects.
fn definition<'a>(
    ground: &'a Ground,
    authority: &Authority,
    name: &str,
) -> Option<&'a AgentDefinition> {
    let is_ours = authority.project_root == ground.place.root;
    let found = ground.agents.agents.get(name);
    found.filter(|agent| is_ours || agent.origin != PROJECT)
}

fn builtin(name: &str, authority: &Authority) -> Result<AgentKind, String> {
    let mut kinds = builtin_kinds().into_iter();
    kinds.find(|kind| kind.name == name).ok_or_else(|| {
        format!(
            "there is no kind of agent `{name}` here; start codespar in {} to run it",
            authority.project_root.display()
        )
    })
}
