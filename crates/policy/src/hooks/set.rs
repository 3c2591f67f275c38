//! Hooks as they are configured, and which of them an event concerns.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use crate::hooks::{HookEventKind, HookMatcher};

/// Whose a hook is. It decides whether it is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOrigin {
    /// The user's own files.
    User,
    /// Files of a repository that the user trusts.
    Project,
}

impl HookOrigin {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Where a hook comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSource {
    /// The file, as it is shown to people.
    pub file: String,
    pub origin: HookOrigin,
    /// The directory of the plugin it belongs to, for `CLAUDE_PLUGIN_ROOT`.
    pub plugin: Option<PathBuf>,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// Runs a shell command, which reads the event on its standard input.
    Command { command: String },
    /// Posts the event to an address; the answer is its body.
    Http {
        url: String,
        /// `$NAME` in a value stands for a variable of the environment that `variables` names.
        headers: BTreeMap<String, String>,
        variables: Vec<String>,
    },
    /// Asks a model, which answers whether to go on.
    Prompt {
        prompt: String,
        /// An id or an alias; a small one if absent.
        model: Option<String>,
    },
    /// It is written in a way that nothing can be done with; this is why. It counts as a hook that
    /// cannot be run.
    Broken { reason: String },
}

/// What is to be done at an event that the matcher fits.
#[derive(Debug, Clone)]
pub struct Hook {
    pub event: HookEventKind,
    pub matcher: HookMatcher,
    pub action: HookAction,
    /// How long it may take, if it says so.
    pub timeout: Option<Duration>,
    pub source: HookSource,
}

/// How much of a command is shown in a message.
const SHOWN: usize = 120;

impl Hook {
    /// What it does, in one line.
    pub fn summary(&self) -> String {
        let text = match &self.action {
            HookAction::Command { command } => command,
            HookAction::Http { url, .. } => url,
            HookAction::Prompt { prompt, .. } => prompt,
            HookAction::Broken { reason } => reason,
        };
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(SHOWN) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }

    /// The name of what it does in settings.
    pub fn kind(&self) -> &'static str {
        match self.action {
            HookAction::Command { .. } => "command",
            HookAction::Http { .. } => "http",
            HookAction::Prompt { .. } => "prompt",
            HookAction::Broken { .. } => "broken",
        }
    }
}

/// As messages name it: what, where.
impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (event, file) = (self.event, &self.source.file);
        write!(f, "{event} hook `{}` of {file}", self.summary())
    }
}

/// All hooks in force, in the order of the files.
#[derive(Debug, Clone, Default)]
pub struct HookSet(Vec<Hook>);

impl HookSet {
    /// Adds the hooks of a file after those there are.
    pub fn add(&mut self, hooks: impl IntoIterator<Item = Hook>) {
        self.0.extend(hooks);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any hook listens to the event at all.
    pub fn listens(&self, event: HookEventKind) -> bool {
        self.0.iter().any(|hook| hook.event == event)
    }

    /// The hooks that an event concerns, in order; of identical ones only the first, so that a
    /// script that several files name runs once. One of the user and one of a project are not
    /// identical: they run differently.
    pub fn matching<'a>(&'a self, event: HookEventKind, subjects: &[String]) -> Vec<&'a Hook> {
        let mut found: Vec<&Hook> = Vec::new();
        for hook in self.0.iter().filter(|hook| hook.event == event) {
            let subjects = subjects.iter().map(String::as_str);
            let is_meant = !event.has_subject() || hook.matcher.is_about(subjects);
            let is_known = found.iter().any(|known| {
                known.action == hook.action
                    && known.source.origin == hook.source.origin
                    && known.source.plugin == hook.source.plugin
            });
            if is_meant && !is_known {
                found.push(hook);
            }
        }
        found
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Hook> {
        self.0.iter()
    }
}
