//! What the fake remembers besides the git repository.
//!
//! All of it is under one lock, which a request holds from beginning to end. So requests happen one
//! after the other, and a handler may look and then change without a race.
//!
//! Ids are counted over all kinds of things from 1001, numbers of pull requests from 1. Pull
//! requests, reviews and comments are never removed.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

/// What someone may do in the repository. In order: each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: it is as if it were not there.
    None,
    /// Look and comment.
    Read,
    /// Push and merge.
    Write,
    /// Everything.
    Admin,
}

impl Level {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// Whose a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A person's.
    Person,
    /// Of an app's installation: it has no `/user`.
    App,
}

/// Someone with a token.
#[derive(Debug, Clone)]
pub struct User {
    pub login: String,
    pub token: String,
    /// What they may do.
    pub level: Level,
    /// Person or app.
    pub kind: TokenKind,
}

impl User {
    /// A person whose token is `<login>-token`.
    pub fn person(login: &str, level: Level) -> Self {
        Self {
            login: login.to_owned(),
            token: format!("{login}-token"),
            level,
            kind: TokenKind::Person,
        }
    }
}

/// What must hold before a merge into a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchRule {
    /// An approving review.
    Approval,
    /// The head has all of the base.
    UpToDate,
}

/// The ways of merging that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeMethods {
    /// A commit that joins the two.
    pub merge: bool,
    /// One commit.
    pub squash: bool,
    /// One by one.
    pub rebase: bool,
}

/// `head_sha` and `base_sha` follow the branches while it is open, and stay when it is closed.
pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) open: bool,
    pub(super) draft: bool,
    pub(super) head: String,
    pub(super) head_sha: String,
    pub(super) base: String,
    pub(super) base_sha: String,
    pub(super) author: String,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) closed_at: Option<Timestamp>,
    /// The commit on the base, and when.
    pub(super) merged: Option<(String, Timestamp)>,
    /// For which head and base it was last asked whether it can be merged, and how often.
    pub(super) judged: (String, String, u32),
}

pub(super) struct Review {
    pub(super) id: u64,
    pub(super) pull: u64,
    pub(super) author: String,
    pub(super) body: String,
    /// In the words of the API: `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `PENDING`.
    pub(super) state: String,
    pub(super) commit: String,
    pub(super) at: Timestamp,
    pub(super) comments: Vec<LineComment>,
}

pub(super) struct LineComment {
    pub(super) id: u64,
    pub(super) path: String,
    /// On the new side of the diff.
    pub(super) line: u64,
    pub(super) body: String,
}

/// Below an issue or a pull request; they share their numbers.
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) pull: u64,
    pub(super) author: String,
    pub(super) body: String,
    pub(super) at: Timestamp,
    pub(super) updated_at: Timestamp,
    /// What it said before its edits.
    pub(super) former: Vec<String>,
}

pub(super) struct Issue {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) author: String,
    pub(super) at: Timestamp,
    pub(super) updated_at: Timestamp,
}

/// Somebody put a label on an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelEvent {
    pub(super) id: u64,
    pub(super) issue: u64,
    pub(super) actor: String,
    pub(super) label: String,
    pub(super) at: Timestamp,
}

/// One of these for each user, thing and kind, as at GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reaction {
    pub(super) id: u64,
    /// `comments/7`, or the number of an issue.
    pub(super) to: String,
    pub(super) author: String,
    pub(super) content: String,
}

pub(super) struct CheckRun {
    pub(super) id: u64,
    pub(super) commit: String,
    pub(super) name: String,
    pub(super) title: Option<String>,
    /// None while it runs.
    pub(super) conclusion: Option<String>,
    /// What it printed.
    pub(super) output: Option<String>,
    pub(super) at: Timestamp,
}

pub(super) struct Status {
    pub(super) id: u64,
    pub(super) commit: String,
    pub(super) context: String,
    pub(super) state: String,
    pub(super) at: Timestamp,
}

/// One for all tokens, unlike at GitHub.
pub(super) struct RateLimit {
    pub(super) limit: u64,
    pub(super) left: u64,
    pub(super) reset: Timestamp,
}

impl RateLimit {
    pub(super) fn set(&mut self, left: u64, lifted_in: Duration) {
        self.left = left;
        let wait = SignedDuration::try_from(lifted_in).unwrap_or_default();
        self.reset = Timestamp::now() + wait;
    }

    /// A new hour, if the old one is over.
    pub(super) fn renew(&mut self) {
        if self.reset <= Timestamp::now() {
            self.left = self.limit;
            self.reset = Timestamp::now() + SignedDuration::from_hours(1);
        }
    }
}

pub(super) struct State {
    pub(super) users: Vec<User>,
    pub(super) pulls: Vec<Pull>,
    pub(super) reviews: Vec<Review>,
    pub(super) comments: Vec<Comment>,
    pub(super) issues: Vec<Issue>,
    pub(super) label_events: Vec<LabelEvent>,
    pub(super) reactions: Vec<Reaction>,
    /// Branches that are in a fork, by the number of the pull request.
    pub(super) forks: HashMap<u64, String>,
    /// Everybody may read it.
    pub(super) public: bool,
    pub(super) app: Option<super::apps::App>,
    /// Files that comments show, by their names.
    pub(super) attachments: HashMap<String, Vec<u8>>,
    pub(super) check_runs: Vec<CheckRun>,
    pub(super) statuses: Vec<Status>,
    pub(super) rules: HashMap<String, BranchRule>,
    pub(super) merge_methods: MergeMethods,
    pub(super) tree_limit: usize,
    pub(super) diff_limit: usize,
    /// How many looks at a pull request tell nothing about merging.
    pub(super) mergeable_delay: u32,
    pub(super) drafts_refused: bool,
    /// Answers are JSON, whatever is asked for.
    pub(super) json_only: bool,
    /// The status of requests for checks and statuses.
    pub(super) checks_refused: Option<u16>,
    /// Requests to this name are redirected: 301 for `GET`, 307 for others.
    pub(super) former_name: Option<String>,
    pub(super) limit: RateLimit,
    last_id: u64,
}

impl State {
    pub(super) fn new(users: Vec<User>) -> Self {
        Self {
            users,
            pulls: Vec::new(),
            reviews: Vec::new(),
            comments: Vec::new(),
            issues: Vec::new(),
            label_events: Vec::new(),
            reactions: Vec::new(),
            forks: HashMap::new(),
            public: false,
            app: None,
            attachments: HashMap::new(),
            check_runs: Vec::new(),
            statuses: Vec::new(),
            rules: HashMap::new(),
            merge_methods: MergeMethods {
                merge: true,
                squash: true,
                rebase: true,
            },
            tree_limit: 100_000,
            diff_limit: 1_000_000,
            mergeable_delay: 1,
            drafts_refused: false,
            json_only: false,
            checks_refused: None,
            former_name: None,
            limit: RateLimit {
                limit: 5000,
                left: 5000,
                reset: Timestamp::now() + SignedDuration::from_hours(1),
            },
            last_id: 1000,
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Issues and pull requests are counted together.
    pub(super) fn next_number(&self) -> u64 {
        (self.pulls.len() + self.issues.len()) as u64 + 1
    }

    pub(super) fn level_of(&self, login: &str) -> Option<Level> {
        let user = self.users.iter().find(|user| user.login == login);
        user.map(|user| user.level)
    }

    pub(super) fn set_level(&mut self, login: &str, level: Level) {
        match self.users.iter_mut().find(|user| user.login == login) {
            Some(user) => user.level = level,
            None => self.users.push(User::person(login, level)),
        }
    }

    pub(super) fn pull(&mut self, number: u64) -> Option<&mut Pull> {
        self.pulls.iter_mut().find(|pull| pull.number == number)
    }

    /// The next one, by default ready and with the branch as its title.
    pub(super) fn new_pull(
        &self,
        author: &str,
        head: (&str, String),
        base: (&str, String),
    ) -> Pull {
        Pull {
            number: self.next_number(),
            title: head.0.to_owned(),
            body: None,
            open: true,
            draft: false,
            head: head.0.to_owned(),
            head_sha: head.1,
            base: base.0.to_owned(),
            base_sha: base.1,
            author: author.to_owned(),
            created_at: now(),
            updated_at: now(),
            closed_at: None,
            merged: None,
            judged: Default::default(),
        }
    }

    pub(super) fn set_check_run(&mut self, commit: &str, name: &str, conclusion: Option<&str>) {
        self.check_runs
            .retain(|run| run.commit != commit || run.name != name);
        let run = CheckRun {
            id: self.next_id(),
            title: None,
            commit: commit.to_owned(),
            name: name.to_owned(),
            conclusion: conclusion.map(str::to_owned),
            output: None,
            at: now(),
        };
        self.check_runs.push(run);
    }

    pub(super) fn set_check_output(&mut self, commit: &str, name: &str, text: &str) {
        let is_it = |run: &&mut CheckRun| run.commit == commit && run.name == name;
        if let Some(run) = self.check_runs.iter_mut().find(is_it) {
            run.output = Some(text.to_owned());
        }
    }

    pub(super) fn set_status(&mut self, commit: &str, context: &str, state: &str) {
        self.statuses
            .retain(|status| status.commit != commit || status.context != context);
        let status = Status {
            id: self.next_id(),
            commit: commit.to_owned(),
            context: context.to_owned(),
            state: state.to_owned(),
            at: now(),
        };
        self.statuses.push(status);
    }

    pub(super) fn add_comment(&mut self, pull: u64, author: &str, body: &str) -> u64 {
        let comment = Comment {
            id: self.next_id(),
            pull,
            author: author.to_owned(),
            body: body.to_owned(),
            at: now(),
            updated_at: now(),
            former: Vec::new(),
        };
        let id = comment.id;
        self.comments.push(comment);
        id
    }

    pub(super) fn close(&mut self, number: u64) {
        if let Some(pull) = self.pull(number) {
            pull.open = false;
            pull.closed_at = Some(now());
            pull.updated_at = now();
        }
    }
}

/// GitHub's times have no fractions.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default()
}
