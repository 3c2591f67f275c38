//! One budget, and one account, for an agent and everything it starts.

use std::{collections::BTreeMap, sync::Arc};

use codespar_protocol::{Cost, PermissionDenial, Usage, Usd};
use parking_lot::Mutex;

/// Limits on a whole tree of agents, and what it has used. Checked before every model call.
#[derive(Debug, Default)]
pub struct TreeBudget {
    max_usd: Option<Usd>,
    max_tokens: Option<u64>,
    by_model: Mutex<Account>,
    denials: Mutex<Vec<PermissionDenial>>,
}

/// Tokens and money by model.
pub(crate) type Account = BTreeMap<String, (Usage, Cost)>;

/// An agent's place in the tree.
#[derive(Debug, Clone)]
pub enum TreeShare {
    /// The agent at the top: its result tells the sums of the whole tree.
    Root(Arc<TreeBudget>),
    /// One that another started.
    Branch(Arc<TreeBudget>),
}

impl TreeShare {
    pub(crate) fn budget(&self) -> &TreeBudget {
        match self {
            Self::Root(budget) | Self::Branch(budget) => budget,
        }
    }
}

impl TreeBudget {
    /// A budget with nothing used; `None` means no limit.
    pub fn new(max_usd: Option<Usd>, max_tokens: Option<u64>) -> Self {
        Self {
            max_usd,
            max_tokens,
            by_model: Mutex::default(),
            denials: Mutex::default(),
        }
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

    /// Counts a call.
    pub(crate) fn add(&self, model: &str, usage: Usage, cost: Cost) {
        let mut by_model = self.by_model.lock();
        let sums = by_model.entry(model.to_owned()).or_default();
        sums.0 += usage;
        sums.1 += cost;
    }

    /// The account as it stands.
    pub(crate) fn account(&self) -> Account {
        self.by_model.lock().clone()
    }

    /// What was used since the account stood so, by model.
    pub(crate) fn since(&self, earlier: &Account) -> Vec<(String, Usage, Cost)> {
        let now = self.by_model.lock();
        now.iter()
            .map(|(model, (usage, cost))| {
                let (old_usage, old_cost) = earlier.get(model).copied().unwrap_or_default();
                (model.clone(), *usage - old_usage, *cost - old_cost)
            })
            .filter(|(_, usage, cost)| usage.total_tokens() > 0 || *cost != Cost::default())
            .collect()
    }

    /// Why no further call may be made, if one more, at the least at this price, would pass a
    /// limit.
    pub(crate) fn reached(&self, next_call: Usd) -> Option<String> {
        let (mut usage, mut cost) = (Usage::default(), Cost::default());
        for (model_usage, model_cost) in self.by_model.lock().values() {
            usage += *model_usage;
            cost += *model_cost;
        }
        let (spent, tokens) = (cost.at_least(), usage.total_tokens());
        if let Some(max) = self.max_usd {
            let mut least = spent;
            least += next_call;
            if spent >= max || least > max {
                return Some(format!(
                    "stopped at {spent} of {max} (--max-budget-usd): the next call would pass it"
                ));
            }
        }
        match self.max_tokens {
            Some(max) if tokens >= max => Some(format!(
                "stopped at {tokens} of {max} tokens for this agent and those it started"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_agent_of_the_tree_spends_counts_for_all() {
        let budget = TreeBudget::new(Usd::from_dollars(1.0), Some(1_000));
        let usage = Usage {
            input_tokens: 400,
            ..Usage::default()
        };
        budget.add("a", usage, Cost::Known(Usd::from_dollars(0.4).unwrap()));
        budget.add("b", usage, Cost::Known(Usd::from_dollars(0.4).unwrap()));
        assert_eq!(budget.reached(Usd::ZERO), None);
        assert!(budget.reached(Usd::from_dollars(0.3).unwrap()).is_some());
        budget.add("a", usage, Cost::default());
        assert!(
            budget
                .reached(Usd::ZERO)
                .unwrap()
                .contains("1200 of 1000 tokens")
        );
        assert_eq!(budget.since(&Account::new()).len(), 2);
        let mark = budget.account();
        budget.add("b", usage, Cost::default());
        assert_eq!(
            budget.since(&mark),
            [("b".to_owned(), usage, Cost::default())]
        );
    }
}
