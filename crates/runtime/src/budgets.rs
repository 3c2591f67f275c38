//! Which budget pays for an agent: that of the tree that started it, whoever runs it.
//!
//! A budget belongs to a tree: a conversation of the user and all agents below it. In the process
//! of that conversation it is one object that all of them share. A process that takes over one of
//! its agents makes another, from what is left according to the store; the two do not see each
//! other's reservations.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use codespar_agent::TreeBudget;
use codespar_protocol::{Authority, SessionId, TaskRecord, Usd};
use codespar_store::{Database, StoreError, TaskFilter};
use parking_lot::Mutex;

/// The budgets of one project in this process.
pub(crate) struct Budgets {
    own: Arc<TreeBudget>,
    /// From the settings of this process: tokens are not part of an authority.
    max_tokens: Option<u64>,
    /// The conversations of this process with the user.
    sessions: Mutex<HashSet<SessionId>>,
    /// Trees of processes that are gone.
    others: Mutex<HashMap<SessionId, Arc<TreeBudget>>>,
}

impl Budgets {
    /// Budgets with these limits.
    pub(crate) fn new(max_usd: Option<Usd>, max_tokens: Option<u64>) -> Self {
        Self {
            own: Arc::new(TreeBudget::new(max_usd, max_tokens)),
            max_tokens,
            sessions: Mutex::default(),
            others: Mutex::default(),
        }
    }

    /// The budget of a conversation of this process; what it started pays from the same one.
    pub(crate) fn of_session(&self, session: SessionId) -> Arc<TreeBudget> {
        self.sessions.lock().insert(session);
        self.own.clone()
    }

    /// The budget of a task that this process made.
    pub(crate) fn own(&self) -> Arc<TreeBudget> {
        self.own.clone()
    }

    /// The budget of a task that another process made. What is left is read once for each tree;
    /// after that the budget of this process counts down itself.
    pub(crate) async fn of_task(
        &self,
        authority: &Authority,
        store: &dyn Database,
    ) -> Result<Arc<TreeBudget>, StoreError> {
        let tree = authority.tree;
        if self.sessions.lock().contains(&tree) {
            return Ok(self.own.clone());
        }
        if let Some(budget) = self.others.lock().get(&tree) {
            return Ok(budget.clone());
        }
        let left = left(authority, store).await?;
        let fresh = Arc::new(TreeBudget::new(left, self.max_tokens));
        Ok(self.others.lock().entry(tree).or_insert(fresh).clone())
    }
}

/// What a tree may still spend.
async fn left(authority: &Authority, store: &dyn Database) -> Result<Option<Usd>, StoreError> {
    let Some(max) = authority.max_budget_usd else {
        return Ok(None);
    };
    let spent = spent(authority.tree, store).await?;
    Ok(Some(Usd::from_nanos(
        max.nanos().saturating_sub(spent.nanos()),
    )))
}

/// What a tree has cost so far, in all its conversations. Costs that are not known count with what
/// is known of them.
async fn spent(tree: SessionId, store: &dyn Database) -> Result<Usd, StoreError> {
    let filter = TaskFilter {
        tree: Some(tree),
        ..TaskFilter::default()
    };
    let tasks = store.tasks(filter).await?;
    let agents = tasks.iter().filter_map(TaskRecord::agent);
    let sessions = agents.map(|agent| agent.agent_session).chain([tree]);
    let mut spent = Usd::ZERO;
    for session in sessions {
        match store.session(session).await {
            Ok(session) => spent += session.cost.at_least(),
            // Removed, or never a conversation.
            Err(StoreError::NoSuchSession(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(spent)
}

#[cfg(test)]
mod tests {
    use codespar_protocol::{
        AgentSpec, Cost, EntryBody, Labels, Message, OnDependencyFailure, SessionMode, StopReason,
        TaskId, TaskSpec, TaskType, Usage,
    };
    use codespar_store::{NewSession, NewTask, Notify, SqliteStore, Store, TaskStore};

    use super::*;

    async fn conversation(store: &SqliteStore, cents: u64) -> SessionId {
        let id = SessionId::new();
        let new = NewSession {
            id,
            cwd: "/p".into(),
            model: "m".into(),
            mode: SessionMode::Normal,
        };
        store.create_session(new).await.unwrap();
        let answer = EntryBody::Assistant {
            message: Message::user("said"),
            message_id: None,
            model: "m".into(),
            stop_reason: StopReason::EndTurn,
            usage: Usage::default(),
            cost: Cost::Known(Usd::from_nanos(cents * 10_000_000)),
        };
        store.append(id, 0, vec![answer]).await.unwrap();
        id
    }

    #[tokio::test]
    async fn a_tree_pays_for_its_own_agents_and_for_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).await.unwrap();
        let (tree, agent_session) = (
            conversation(&store, 10).await,
            conversation(&store, 25).await,
        );
        let authority = Authority {
            session: Some(tree),
            tree,
            project_root: "/p".into(),
            mode: "default".into(),
            rules: Vec::new(),
            extra_dirs: Vec::new(),
            max_budget_usd: Usd::from_dollars(0.5),
            repository: None,
            remote: None,
            user: None,
            trace: None,
        };
        let agent = AgentSpec {
            prompt: "go".into(),
            subagent_type: "worker".into(),
            model: None,
            max_turns: None,
            max_wall_seconds: None,
            max_budget_usd: None,
            name: None,
            isolation: None,
            root: "/p".into(),
            cwd: "/p".into(),
            agent_session,
            depth: 1,
            tool_use_id: None,
        };
        let new = NewTask {
            id: TaskId::new(TaskType::LocalAgent),
            spec: TaskSpec::Agent(agent),
            authority: authority.clone(),
            reserved_for: None,
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::Fail,
            subject: "s".into(),
            description: None,
            active_form: None,
            metadata: serde_json::Map::new(),
            blocked_by: Vec::new(),
            output_file: None,
            session_id: Some(tree),
            parent_task_id: None,
            notify: Notify::Nobody,
            made_under: None,
            start_here: None,
        };
        store.create_tasks(vec![new]).await.unwrap();
        assert_eq!(
            left(&authority, &store).await.unwrap(),
            Usd::from_dollars(0.15)
        );

        let budgets = Budgets::new(Usd::from_dollars(9.0), None);
        let theirs = budgets.of_task(&authority, &store).await.unwrap();
        assert!(!Arc::ptr_eq(&theirs, &budgets.own()));
        let again = budgets.of_task(&authority, &store).await.unwrap();
        assert!(Arc::ptr_eq(&theirs, &again));
        let driven = Budgets::new(None, None);
        let own = driven.of_session(tree);
        let task = driven.of_task(&authority, &store).await.unwrap();
        assert!(Arc::ptr_eq(&own, &task));
        store.close().await.unwrap();
    }
}
