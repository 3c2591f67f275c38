//! The first word of a command, with its usage.
//!
//! A verb is known by its first word in any case. Its usage and description are the source of all
//! help, on the command line, in a chat and in a session, and the word itself is the beginning of
//! its usage, so the three cannot disagree.

use std::fmt;

/// What a command begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Fix,
    Implement,
    Refactor,
    Add,
    Instruct,
    Ask,
    Plan,
    Approve,
    Review,
    Merge,
    Watch,
    Resolve,
    Schedule,
    Schedules,
    Unschedule,
    Prs,
    Status,
    Logs,
    Cost,
    Stop,
    Retry,
    Link,
    Unlink,
    Whoami,
    Help,
}

/// How the text after a verb is read.
pub(super) enum Rest {
    FreeText,
    Pull,
    Task,
    Schedule,
    Words,
}

impl Verb {
    /// In the order of the help.
    pub const ALL: [Self; 25] = [
        Self::Fix,
        Self::Implement,
        Self::Refactor,
        Self::Add,
        Self::Instruct,
        Self::Ask,
        Self::Plan,
        Self::Approve,
        Self::Review,
        Self::Merge,
        Self::Watch,
        Self::Resolve,
        Self::Schedule,
        Self::Schedules,
        Self::Unschedule,
        Self::Prs,
        Self::Status,
        Self::Logs,
        Self::Cost,
        Self::Stop,
        Self::Retry,
        Self::Link,
        Self::Unlink,
        Self::Whoami,
        Self::Help,
    ];

    pub fn as_str(self) -> &'static str {
        let usage = self.usage();
        usage.split_once(' ').map_or(usage, |(word, _)| word)
    }

    /// Case does not matter, nor does a colon after it.
    pub fn find(word: &str) -> Option<Self> {
        let word = word.trim_end_matches(':');
        Self::ALL
            .into_iter()
            .find(|verb| verb.as_str().eq_ignore_ascii_case(word))
    }

    /// The verb that a word was probably meant to be. Transposed letters count as one mistake.
    pub fn nearest(word: &str) -> Option<Self> {
        let word = word.to_lowercase();
        let distance = |verb: Self| strsim::damerau_levenshtein(&word, verb.as_str());
        let nearest = Self::ALL.into_iter().min_by_key(|verb| distance(*verb))?;
        let most = if nearest.as_str().len() <= 4 { 1 } else { 2 };
        (word.len() > 2 && distance(nearest) <= most).then_some(nearest)
    }

    /// Verb and arguments, as the help shows them.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Fix => "fix <text>",
            Self::Implement => "implement <text>",
            Self::Refactor => "refactor <text>",
            Self::Add => "add <text>",
            Self::Instruct => "instruct <text>",
            Self::Ask => "ask <question>",
            Self::Plan => "plan <feature>",
            Self::Approve => "approve [steps]",
            Self::Review => "review PR #n",
            Self::Merge => "merge PR #n [squash|rebase|merge]",
            Self::Watch => "watch PR #n [on|off]",
            Self::Resolve => "resolve PR #n",
            Self::Schedule => "schedule <when> <command>",
            Self::Schedules => "schedules",
            Self::Unschedule => "unschedule <id>",
            Self::Prs => "prs [open|closed|all]",
            Self::Status => "status [id]",
            Self::Logs => "logs <id>",
            Self::Cost => "cost [id]",
            Self::Stop => "stop [id]",
            Self::Retry => "retry <id>",
            Self::Link => "link <owner/repo>",
            Self::Unlink => "unlink",
            Self::Whoami => "whoami",
            Self::Help => "help [command]",
        }
    }

    /// What it does, in a line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Fix | Self::Implement | Self::Refactor | Self::Add | Self::Instruct => {
                "change the repository and open a pull request"
            }
            Self::Ask => "answer a question; nothing is changed",
            Self::Plan => "propose numbered steps for a feature",
            Self::Approve => "run the steps of the plan, or some of them",
            Self::Review => "review a pull request and post the findings",
            Self::Merge => "merge a pull request if nothing blocks it",
            Self::Watch => "fix the failing checks of a pull request as they come",
            Self::Resolve => "resolve the conflicts of a pull request with its base",
            Self::Schedule => {
                "run a command at a time or regularly: every day at 9:00, every 2 hours, tomorrow 9:00, cron"
            }
            Self::Schedules => "list the schedules",
            Self::Unschedule => "remove a schedule",
            Self::Prs => "list pull requests",
            Self::Status => "show the tasks, or one of them",
            Self::Logs => "show the output of a task",
            Self::Cost => "show what was spent, in all or on one task",
            Self::Stop => "stop a task, or that of this thread",
            Self::Retry => "run a failed or stopped task again",
            Self::Link => "link a repository to this channel",
            Self::Unlink => "unlink the repository of this channel",
            Self::Whoami => "show who you are to the forge",
            Self::Help => "show the commands, or one of them",
        }
    }

    pub(super) fn rest(self) -> Rest {
        match self {
            Self::Fix
            | Self::Implement
            | Self::Refactor
            | Self::Add
            | Self::Instruct
            | Self::Ask
            | Self::Plan => Rest::FreeText,
            Self::Review | Self::Merge | Self::Watch | Self::Resolve => Rest::Pull,
            Self::Status
            | Self::Logs
            | Self::Cost
            | Self::Stop
            | Self::Retry
            | Self::Unschedule => Rest::Task,
            Self::Schedule => Rest::Schedule,
            Self::Approve
            | Self::Schedules
            | Self::Prs
            | Self::Link
            | Self::Unlink
            | Self::Whoami
            | Self::Help => Rest::Words,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
