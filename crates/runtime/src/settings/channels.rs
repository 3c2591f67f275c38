//! Who may ask for what in chat channels, within which limits. The user's own settings alone: a
//! repository does not decide who may change it.

use std::{collections::BTreeMap, path::PathBuf};

use codespar_protocol::{AccessRole, Usd};
use serde::Deserialize;

/// `channels` in the settings. Nobody may do anything where nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ChannelSettings {
    /// By the name of the channel: `slack`, `terminal` …
    pub access: BTreeMap<String, ChannelAccess>,
    /// Directories of repositories by the name that people use: `acme/api`.
    pub repositories: BTreeMap<String, PathBuf>,
    /// Repositories whose comments on GitHub are listened to, besides those that are served:
    /// `acme/api`, or `acme/*`.
    pub github_repositories: Vec<String>,
    /// What the work of all channels may cost in a day.
    pub daily_budget_usd: Option<Usd>,
    /// What the work on one repository may cost in a day.
    pub repository_daily_budget_usd: Option<Usd>,
    pub turns_per_thread_hour: Option<u64>,
    pub turns_per_person_hour: Option<u64>,
    /// Replies in threads of ours count without a mention.
    pub all_replies: Option<bool>,
    /// The time zone of schedules, such as `Europe/Berlin`; UTC otherwise.
    pub time_zone: Option<String>,
}

/// Who may do what in one channel. The strongest of the roles that apply counts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ChannelAccess {
    /// By the id that the platform has for a person.
    pub users: BTreeMap<String, AccessRole>,
    /// Everybody in these conversations.
    pub conversations: BTreeMap<String, AccessRole>,
    /// Everybody in the channel.
    pub everyone: Option<AccessRole>,
    /// Bots that are listened to; others are not, whatever else is set.
    pub bots: Vec<String>,
}

impl ChannelSettings {
    /// What another file says wins.
    pub(super) fn add(&mut self, other: Self) {
        self.access.extend(other.access);
        self.repositories.extend(other.repositories);
        self.github_repositories.extend(other.github_repositories);
        self.daily_budget_usd = other.daily_budget_usd.or(self.daily_budget_usd);
        self.repository_daily_budget_usd = other
            .repository_daily_budget_usd
            .or(self.repository_daily_budget_usd);
        self.turns_per_thread_hour = other.turns_per_thread_hour.or(self.turns_per_thread_hour);
        self.turns_per_person_hour = other.turns_per_person_hour.or(self.turns_per_person_hour);
        self.all_replies = other.all_replies.or(self.all_replies);
        self.time_zone = other.time_zone.or(self.time_zone.take());
    }
}
