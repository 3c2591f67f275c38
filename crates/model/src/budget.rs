//! What calls may cost, what they have cost, and what those under way can still come to.
//!
//! ```text
//! |-- spent --|-- reserved by calls under way --|-- left --|
//! 0                                                        limit of this level
//! ```
//!
//! Budgets form a chain: a subagent's budget lies within that of its parent, and a call must fit
//! all of them. The state of every level is locked from below upwards for a reservation, so the
//! check and the reservation are one step.
//!
//! A new call must fit into what is left on every level. If it does not fit there with its full
//! answer, but would fit without the reservations of others, it waits until one of them ends. A
//! call that would not fit even alone is refused at once.

use std::{collections::BTreeMap, sync::Arc};

use codespar_protocol::{Cost, Usage, Usd};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{Prices, catalogue::web_search_price, price_lines};

/// An answer shorter than this is of no use; a call that could not have as much is not made. A
/// caller that asks for less gets what it asks for.
const SHORTEST_ANSWER: u32 = 256;

/// Reserved for what one search of the web adds to the input; results are pages, shortened by the
/// provider.
const TOKENS_OF_A_SEARCH: u64 = 16_000;

/// Tokens and money by model.
pub type Account = BTreeMap<String, (Usage, Cost)>;

/// A limit on money and tokens for one or more callers, and their account. A call reserves the
/// most it can come to before it is sent, so callers side by side cannot pass the limit together.
#[derive(Debug, Default)]
pub struct Budget {
    max_usd: Option<Usd>,
    max_tokens: Option<u64>,
    /// The budget that this one is a part of. The chain is fixed when the budget is made, so it has
    /// no cycles.
    above: Option<Arc<Budget>>,
    state: Mutex<State>,
    /// Used at the top of the chain only: a call that ends may free room for waiting calls of any
    /// budget below.
    settled: Notify,
}

#[derive(Debug, Default)]
struct State {
    account: Account,
    spent: Usd,
    tokens: u64,
    /// Of calls under way.
    reserved: Usd,
    reserved_tokens: u64,
    /// Reservations that are not yet dropped.
    calls: u32,
}

/// The most that a call can come to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) model: &'a str,
    pub(crate) input_tokens: u64,
    pub(crate) max_tokens: u32,
    pub(crate) prices: Option<Prices>,
    /// Searches of the web that the provider may make for it.
    pub(crate) web_searches: u32,
}

/// Why a call cannot be made now.
enum Denied {
    /// It does not fit what is left.
    Refused(String),
    /// It may fit when calls under way have come to less than they reserved. The caller waits for a
    /// reservation to be dropped and looks again.
    Later,
}

impl Budget {
    /// Nothing spent yet; `None` means no limit.
    pub fn new(max_usd: Option<Usd>, max_tokens: Option<u64>) -> Self {
        Self {
            max_usd,
            max_tokens,
            ..Self::default()
        }
    }

    /// As a part of another: calls must fit both, and are booked in both.
    #[must_use]
    pub fn within(mut self, above: Arc<Budget>) -> Self {
        self.above = Some(above);
        self
    }

    /// With money spent before, by others than those who call now. For a budget that outlives a
    /// process: the amount comes from the record. It counts against the limit but is not in the
    /// account.
    #[must_use]
    pub fn with_spent(self, spent: Usd) -> Self {
        self.state.lock().spent += spent;
        self
    }

    /// The account as it stands.
    pub fn account(&self) -> Account {
        self.state.lock().account.clone()
    }

    /// What was used since the account stood so, by model.
    pub fn since(&self, earlier: &Account) -> Vec<(String, Usage, Cost)> {
        let state = self.state.lock();
        let sums = state.account.iter().map(|(model, (usage, cost))| {
            let (old_usage, old_cost) = earlier.get(model).copied().unwrap_or_default();
            (model.clone(), *usage - old_usage, *cost - old_cost)
        });
        sums.filter(|(_, usage, cost)| usage.total_tokens() > 0 || *cost != Cost::default())
            .collect()
    }

    /// Books a call. Never refuses: the money is spent. A cost that is only partly known counts
    /// with the part that is known.
    pub fn add(&self, model: &str, usage: Usage, cost: Cost) {
        for level in self.levels() {
            let mut state = level.state.lock();
            let sums = state.account.entry(model.to_owned()).or_default();
            sums.0 += usage;
            sums.1 += cost;
            state.spent += cost.at_least();
            state.tokens += usage.total_tokens();
        }
    }

    /// Reserves what a call can come to, with as much of an answer as fits. Waits for calls under
    /// way where it could fit after them; the error says why it cannot. Dropping the future leaves
    /// nothing reserved.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        wanted: &Wanted<'_>,
    ) -> Result<Reservation, String> {
        loop {
            // Listening before looking: a call that ends in between is not missed.
            let settled = self.top().settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            match self.try_reserve(wanted) {
                Ok(reservation) => return Ok(reservation),
                Err(Denied::Refused(message)) => return Err(message),
                Err(Denied::Later) => settled.await,
            }
        }
    }

    fn try_reserve(self: &Arc<Self>, wanted: &Wanted<'_>) -> Result<Reservation, Denied> {
        let levels: Vec<&Budget> = self.levels().collect();
        // Always from below upwards, so that two callers cannot wait for each other.
        let mut states: Vec<_> = levels.iter().map(|level| level.state.lock()).collect();
        let mut max_tokens = wanted.max_tokens;
        for (level, state) in levels.iter().zip(&states) {
            max_tokens = max_tokens.min(level.room(state, wanted)?);
        }
        let usd = wanted.price(max_tokens).unwrap_or_default();
        let tokens = wanted.input_tokens + u64::from(max_tokens);
        for state in &mut states {
            state.reserved += usd;
            state.reserved_tokens = state.reserved_tokens.saturating_add(tokens);
            state.calls += 1;
        }
        drop(states);
        Ok(Reservation {
            budget: self.clone(),
            max_tokens,
            usd,
            tokens,
        })
    }

    /// How long the answer to this call may be here. Looks twice: at the limit alone, which decides
    /// about refusal, and at what the reservations of others leave, which decides about waiting.
    fn room(&self, state: &State, wanted: &Wanted<'_>) -> Result<u32, Denied> {
        let all = self.room_beside(state, wanted, Usd::ZERO, 0)?;
        if state.calls == 0 {
            return Ok(all);
        }
        // Rather wait for the others than be cut short for what they may not use.
        match self.room_beside(state, wanted, state.reserved, state.reserved_tokens) {
            Ok(room) if room >= wanted.max_tokens => Ok(room),
            _ => Err(Denied::Later),
        }
    }

    /// An error if not even the shortest answer fits. With a limit in dollars, a model without a
    /// price is refused: its cost could not be bounded.
    fn room_beside(
        &self,
        state: &State,
        wanted: &Wanted<'_>,
        reserved: Usd,
        reserved_tokens: u64,
    ) -> Result<u32, Denied> {
        let shortest = SHORTEST_ANSWER.min(wanted.max_tokens);
        let mut room = wanted.max_tokens;
        if let Some(max) = self.max_usd {
            let Some(least) = wanted.price(shortest) else {
                return Err(Denied::Refused(format!(
                    "`{}` has no known price, so --max-budget-usd cannot be kept: add it to \
                     `models.toml` in the state directory, or leave the limit out\n{}",
                    wanted.model,
                    price_lines(wanted.model)
                )));
            };
            let spent = state.spent;
            let left = less(less(max, spent), reserved);
            if least > left {
                return Err(Denied::Refused(format!(
                    "stopped at {spent} of {max} (--max-budget-usd): the next call of {} has up to \
                     {} tokens of input and could cost {least}",
                    wanted.model, wanted.input_tokens
                )));
            }
            room = room.min(wanted.longest_answer(left));
        }
        if let Some(max) = self.max_tokens {
            let left = max
                .saturating_sub(state.tokens)
                .saturating_sub(reserved_tokens)
                .saturating_sub(wanted.input_tokens);
            if left < u64::from(shortest) {
                return Err(Denied::Refused(format!(
                    "stopped at {} of {max} tokens for this agent and those it started: the next \
                     call has up to {} tokens of input",
                    state.tokens, wanted.input_tokens
                )));
            }
            room = room.min(u32::try_from(left).unwrap_or(u32::MAX));
        }
        Ok(room)
    }

    /// Itself and those above, from below upwards.
    fn levels(&self) -> impl Iterator<Item = &Budget> {
        std::iter::successors(Some(self), |level| level.above.as_deref())
    }

    fn top(&self) -> &Budget {
        self.levels().last().unwrap_or(self)
    }
}

impl Wanted<'_> {
    /// What it costs at the most with an answer of this length. New input is written to the cache
    /// where there is one, and what is in it may have expired.
    fn price(&self, answer: u32) -> Option<Usd> {
        let mut price = self.input_price()?;
        price += self.prices?.output.per_million(u64::from(answer));
        Some(price)
    }

    fn input_price(&self) -> Option<Usd> {
        let prices = self.prices?;
        let dearest = prices.input.max(prices.cache_write_5m);
        let searches = u64::from(self.web_searches);
        // What a search finds is input too, which nobody can measure before.
        let found = searches.saturating_mul(TOKENS_OF_A_SEARCH);
        let mut price = dearest.per_million(self.input_tokens.saturating_add(found));
        price += web_search_price(searches);
        Some(price)
    }

    /// The longest answer that can be paid for. No bound beyond the request's own if output is
    /// free.
    fn longest_answer(&self, left: Usd) -> u32 {
        let (Some(input), Some(prices)) = (self.input_price(), self.prices) else {
            return self.max_tokens;
        };
        let left = u128::from(less(left, input).nanos()) * 1_000_000;
        match left.checked_div(u128::from(prices.output.nanos())) {
            Some(tokens) => u32::try_from(tokens).unwrap_or(u32::MAX),
            None => self.max_tokens,
        }
    }
}

fn less(from: Usd, amount: Usd) -> Usd {
    Usd::from_nanos(from.nanos().saturating_sub(amount.nanos()))
}

/// What a call under way may still come to. Dropped, it is free for others. It holds for the whole
/// call, retries included, and covers one try.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    /// How long the answer may be.
    pub(crate) max_tokens: u32,
    usd: Usd,
    tokens: u64,
}

impl Reservation {
    /// Whether what is reserved still fits beside what has been booked meanwhile: a try that was
    /// paid for and lost leaves less for the next.
    pub(crate) fn still_fits(&self) -> bool {
        self.budget.levels().all(|level| {
            let state = level.state.lock();
            let mut usd = state.spent;
            usd += state.reserved;
            let tokens = state.tokens.saturating_add(state.reserved_tokens);
            level.max_usd.is_none_or(|max| usd <= max)
                && level.max_tokens.is_none_or(|max| tokens <= max)
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for level in self.budget.levels() {
            let mut state = level.state.lock();
            state.reserved = less(state.reserved, self.usd);
            state.reserved_tokens = state.reserved_tokens.saturating_sub(self.tokens);
            state.calls = state.calls.saturating_sub(1);
        }
        self.budget.top().settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
