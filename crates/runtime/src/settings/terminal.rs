//! How the session at a terminal looks and which keys it has. The user's own settings alone: a
//! repository does not decide what a key does.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Everything is as usual where a field is not set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TerminalSettings {
    /// Actions and their keys.
    pub keys: BTreeMap<String, String>,
    /// Nothing spins.
    pub reduced_motion: Option<bool>,
    /// The plain session, as with `--plain`.
    pub plain: Option<bool>,
    /// The keys of vim where text is typed.
    pub vim: Option<bool>,
    /// A shell command whose first line of output is the status line.
    pub status_command: Option<String>,
}

impl TerminalSettings {
    /// What another file says wins.
    pub(super) fn add(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.reduced_motion = other.reduced_motion.or(self.reduced_motion);
        self.plain = other.plain.or(self.plain);
        self.vim = other.vim.or(self.vim);
        self.status_command = other.status_command.or(self.status_command.take());
    }
}
