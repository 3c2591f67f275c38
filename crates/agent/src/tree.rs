//! What an agent and everything it starts have in common: one budget and one list of denials.

use std::sync::Arc;

use codespar_model::Budget;
use codespar_protocol::{PermissionDenial, Usd};
use parking_lot::Mutex;

/// The budget of a whole tree of agents, and the calls in it that were not allowed.
#[derive(Debug, Default)]
pub struct TreeBudget {
    budget: Arc<Budget>,
    denials: Mutex<Vec<PermissionDenial>>,
}

/// An agent's place in the tree.
#[derive(Debug, Clone)]
pub enum TreeShare {
    /// The agent at the top: its result tells the sums of the whole tree.
    Root(Arc<TreeBudget>),
    /// One that another started.
    Branch(Arc<TreeBudget>),
}

impl TreeShare {
    pub(crate) fn tree(&self) -> &TreeBudget {
        match self {
            Self::Root(tree) | Self::Branch(tree) => tree,
        }
    }
}

impl TreeBudget {
    /// A budget with nothing used; `None` means no limit.
    pub fn new(max_usd: Option<Usd>, max_tokens: Option<u64>) -> Self {
        Self {
            budget: Arc::new(Budget::new(max_usd, max_tokens)),
            denials: Mutex::default(),
        }
    }

    /// What the tree may spend, and has.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Keeps a call that was not allowed.
    pub(crate) fn deny(&self, denial: PermissionDenial) {
        self.denials.lock().push(denial);
    }

    /// How many calls were not allowed so far.
    pub(crate) fn denied(&self) -> usize {
        self.denials.lock().len()
    }

    /// Calls that were not allowed, after the first so many.
    pub(crate) fn denials_since(&self, earlier: usize) -> Vec<PermissionDenial> {
        self.denials.lock().iter().skip(earlier).cloned().collect()
    }
}
