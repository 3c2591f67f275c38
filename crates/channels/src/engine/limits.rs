//! How much may be asked for: turns in an hour, money in a day.
//!
//! Two bots that answer each other end here, whatever else was overlooked: turns are counted for
//! everybody, admins too, and from the record, so a restart does not begin anew. People without a
//! role use up no turns of others; how often they are told so is limited by itself.

use codespar_protocol::Usd;
use codespar_store::{ChannelMessage, StoreError};
use jiff::{SignedDuration, Timestamp};

use super::ChannelCore;

/// Loops of bots have reached 1,800 comments elsewhere.
const TURNS_OF_THREAD: u64 = 60;
const TURNS_OF_PERSON: u64 = 120;
/// Refusals in an hour that one stranger, and that all strangers in a thread, are told of.
const REFUSALS_OF_STRANGER: u64 = 5;
const REFUSALS_IN_THREAD: u64 = 20;

impl ChannelCore {
    /// Why a message is one too many, if it is. The message itself is on record, and counts.
    pub(crate) async fn too_many_turns(
        &self,
        message: &ChannelMessage,
    ) -> Result<Option<String>, StoreError> {
        let settings = self.settings();
        let since = Timestamp::now() - SignedDuration::from_hours(1);
        let store = self.store();
        let most = settings.turns_per_thread_hour.unwrap_or(TURNS_OF_THREAD);
        if store.turns_of_thread(message, since).await? > most {
            return Ok(Some(format!("this thread had {most} turns in an hour")));
        }
        let most = settings.turns_per_person_hour.unwrap_or(TURNS_OF_PERSON);
        if store.turns_of_speaker(message, since).await? > most {
            return Ok(Some(format!("you had {most} turns in an hour")));
        }
        Ok(None)
    }

    /// Whether strangers have been told often enough that they have no role.
    pub(crate) async fn is_refused_enough(
        &self,
        message: &ChannelMessage,
    ) -> Result<bool, StoreError> {
        let since = Timestamp::now() - SignedDuration::from_hours(1);
        let (of_speaker, in_thread) = self.store().refusals(message, since).await?;
        Ok(of_speaker >= REFUSALS_OF_STRANGER || in_thread >= REFUSALS_IN_THREAD)
    }

    /// What the work on a repository may still cost today (UTC); nothing where there is no limit.
    /// An error names the budget that is used up.
    pub(crate) async fn budget_left(&self, repository: &str) -> Result<Option<Usd>, BudgetError> {
        let settings = self.settings();
        let since = day_began(Timestamp::now());
        let mut left: Option<Usd> = None;
        for (most, of, name) in [
            (settings.daily_budget_usd, None, "the daily budget"),
            (
                settings.repository_daily_budget_usd,
                Some(repository),
                "the daily budget of the repository",
            ),
        ] {
            let Some(most) = most else { continue };
            let spent = self.store().channel_spending(since, of).await?;
            let rest = most.nanos().saturating_sub(spent.nanos());
            if rest == 0 {
                return Err(BudgetError::UsedUp(format!("{name} ({most}) is used up")));
            }
            let rest = Usd::from_nanos(rest);
            left = Some(left.map_or(rest, |left| left.min(rest)));
        }
        Ok(left)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BudgetError {
    #[error("{0}")]
    UsedUp(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn day_began(now: Timestamp) -> Timestamp {
    let seconds = now.as_second().div_euclid(86_400) * 86_400;
    Timestamp::from_second(seconds).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_utc() {
        let now: Timestamp = "2026-11-17T17:30:00Z".parse().unwrap();
        assert_eq!(day_began(now).to_string(), "2026-11-17T00:00:00Z");
    }
}
