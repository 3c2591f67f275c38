//! The one function that decides.
//!
//! The steps, in order:
//!
//! 1. Deny rules, over every access and through every disguise of a command. They hold in all
//!    modes.
//! 2. [`Mode::BypassPermissions`] allows what is left.
//! 3. [`Mode::Plan`] denies whatever may change something.
//! 4. Each access is judged on its own: protected paths, ask rules, allow rules, free directories,
//!    then the mode. The strictest verdict wins and the reasons are joined.
//! 5. [`Mode::DontAsk`] turns a question into a denial.
//!
//! Nothing is cached and nothing fails. What is not understood is asked about.

use std::path::Path;

use url::Url;

use crate::{
    Access, AccessRequest, Lifetime, Mode, Rule, RuleKind, RuleSet, Scope,
    command::Command,
    paths::{is_inside, normalise},
    protected::{Protection, is_home_dot_file, protected},
    rule::canonical,
    rule_set::Verb,
    suggest,
};

/// May the call be made?
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Yes.
    Allow {
        /// Why, in words: "allowed by `Bash(git log *)` in .codespar/settings.json".
        reason: String,
    },
    /// The user decides. The caller shows the reason to the user, or denies the call where there is
    /// no user.
    Ask {
        /// Why it is asked.
        reason: String,
        /// Rules that would make it allowed from now on; empty when none should be offered.
        suggested: Vec<Rule>,
    },
    /// No.
    Deny {
        /// Why not.
        reason: String,
    },
}

/// Decides a call. The strictest answer over all of its accesses wins; deny before ask before
/// allow.
///
/// A call of an MCP tool is also judged by its name, whatever accesses it reports: the report comes
/// from a server that is not trusted.
pub fn decide(request: &AccessRequest<'_>, rules: &RuleSet, mode: Mode, scope: &Scope) -> Decision {
    let case = Case {
        tool: canonical(request.tool),
        read_only: request.read_only,
        rules,
        mode,
        scope,
    };
    let mut aims: Vec<Aim<'_>> = match request.access {
        [] => vec![Aim::Other(&Access::Nothing)],
        some => some.iter().map(Aim::new).collect(),
    };
    if case.is_mcp() {
        // Whatever it says it touches, the tool itself must be allowed.
        aims.push(Aim::Other(&Access::Nothing));
    }
    if let Some(reason) = aims.iter().find_map(|aim| case.denied(aim)) {
        return Decision::Deny { reason };
    }
    if mode == Mode::BypassPermissions {
        return Decision::Allow {
            reason: "allowed by bypassPermissions mode".to_owned(),
        };
    }
    if mode == Mode::Plan && !case.changes_nothing(&aims) {
        return Decision::Deny {
            reason: format!(
                "plan mode is read-only and {} may change things; leave plan mode to use it",
                request.tool
            ),
        };
    }
    let mut verdict = Verdict::allow(String::new());
    for aim in &aims {
        verdict = verdict.and(case.judge(aim));
    }
    match verdict {
        Verdict::Allow(reason) => Decision::Allow { reason },
        Verdict::Ask { reason, .. } if mode == Mode::DontAsk => Decision::Deny {
            reason: format!("dontAsk mode asks nobody, and this would be asked about: {reason}"),
        },
        Verdict::Ask { reason, suggested } => Decision::Ask {
            reason,
            suggested: suggested.unwrap_or_default(),
        },
    }
}

/// An access, with its command taken apart if it is one. Parsing happens once here, because several
/// steps of [`decide`] examine the same command.
enum Aim<'a> {
    Command(Command<'a>),
    Other(&'a Access),
}

impl<'a> Aim<'a> {
    fn new(access: &'a Access) -> Self {
        match access {
            Access::Command(text) => Self::Command(Command::read(text)),
            other => Self::Other(other),
        }
    }
}

/// An answer on the way to a decision. There is no `Deny` here: deny rules are applied to all
/// accesses before the first verdict is made, and the mode is applied to the final one.
#[derive(Debug)]
pub(crate) enum Verdict {
    Allow(String),
    Ask {
        reason: String,
        /// `None` when no rule could or should make it allowed.
        suggested: Option<Vec<Rule>>,
    },
}

impl Verdict {
    pub(crate) fn allow(reason: impl Into<String>) -> Self {
        Self::Allow(reason.into())
    }

    /// A question without an offer: no rule that could be suggested would change the answer, as for
    /// protected paths and commands that cannot be analysed.
    pub(crate) fn ask(reason: impl Into<String>) -> Self {
        Self::Ask {
            reason: reason.into(),
            suggested: None,
        }
    }

    /// A question with the rule that would answer it from now on. With `None` it is the same as
    /// [`Verdict::ask`].
    pub(crate) fn offer(reason: impl Into<String>, rule: Option<Rule>) -> Self {
        Self::Ask {
            reason: reason.into(),
            suggested: rule.map(|rule| vec![rule]),
        }
    }

    /// Both must hold. Rules are suggested only if both sides have some: adding one of two
    /// necessary rules would not allow the call. An empty reason is the neutral element, from which
    /// the loops start.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Allow(one), Self::Allow(other)) => Self::Allow(join(one, &other)),
            (Self::Allow(_), ask) | (ask, Self::Allow(_)) => ask,
            (
                Self::Ask {
                    reason: one,
                    suggested: first,
                },
                Self::Ask {
                    reason: other,
                    suggested: second,
                },
            ) => Self::Ask {
                reason: join(one, &other),
                suggested: first.zip(second).map(|(mut all, more)| {
                    for rule in more {
                        if !all.contains(&rule) {
                            all.push(rule);
                        }
                    }
                    all
                }),
            },
        }
    }
}

/// Long commands give long reasons; what a person reads stays short.
const LONGEST_REASON: usize = 2_000;

/// Joins two reasons with a semicolon. A reason that is already there is not repeated, and one that
/// would exceed the limit is left out.
fn join(mut one: String, other: &str) -> String {
    if one.is_empty() {
        return other.to_owned();
    }
    if !one.contains(other) && one.len() + other.len() < LONGEST_REASON {
        one.push_str("; ");
        one.push_str(other);
    }
    one
}

/// What a decision is made on. The arguments of [`decide`] in one place, with the tool under its
/// canonical name.
pub(crate) struct Case<'a> {
    pub(crate) tool: &'a str,
    read_only: bool,
    pub(crate) rules: &'a RuleSet,
    mode: Mode,
    pub(crate) scope: &'a Scope,
}

impl Case<'_> {
    fn is_mcp(&self) -> bool {
        self.tool.starts_with("mcp__")
    }

    /// Whether plan mode lets the call through: it touches nothing outside the conversation, it is
    /// of a read-only tool, or all of it is commands that only read. MCP tools never qualify.
    fn changes_nothing(&self, aims: &[Aim<'_>]) -> bool {
        let talk_only = !self.is_mcp()
            && aims
                .iter()
                .all(|aim| matches!(aim, Aim::Other(Access::Nothing)));
        let acts = aims.iter().any(|aim| match aim {
            Aim::Command(command) => !command.only_reads(self),
            Aim::Other(access) => matches!(access, Access::Write(_)),
        });
        let commands = aims.iter().all(|aim| matches!(aim, Aim::Command(_)));
        // A server's word about its own tool is not proof.
        talk_only || ((self.read_only || commands) && !acts && !self.is_mcp())
    }

    fn denied(&self, aim: &Aim<'_>) -> Option<String> {
        let kind = RuleKind::Deny;
        let entry = match aim {
            Aim::Command(command) => return command.forbidden(self, kind),
            Aim::Other(access) => self.speaks(kind, access),
        };
        entry.map(|entry| format!("denied by {entry}"))
    }

    /// The first rule of this kind about an access that is not a command, in the form used in
    /// reasons.
    fn speaks(&self, kind: RuleKind, access: &Access) -> Option<String> {
        let entry = match access {
            Access::Read(path) => {
                self.rules
                    .about_path(kind, self.tool, Verb::Read, path, self.scope)
            }
            Access::Write(path) => {
                self.rules
                    .about_path(kind, self.tool, Verb::Write, path, self.scope)
            }
            Access::Fetch(url) => self.rules.about_address(kind, self.tool, url),
            Access::Named(name) => self.rules.about_name(kind, self.tool, name),
            Access::Nothing | Access::Command(_) => self.rules.about_tool(kind, self.tool),
        };
        entry.map(ToString::to_string)
    }

    fn judge(&self, aim: &Aim<'_>) -> Verdict {
        let access = match aim {
            Aim::Command(command) => return command.judge(self),
            Aim::Other(access) => *access,
        };
        match access {
            Access::Read(path) => self.judge_read(self.tool, path),
            Access::Write(path) => self.judge_write(self.tool, path),
            _ => {
                if let Some(entry) = self.speaks(RuleKind::Ask, access) {
                    return Verdict::ask(format!("{entry} asks about it"));
                }
                if let Some(entry) = self.speaks(RuleKind::Allow, access) {
                    return Verdict::allow(format!("allowed by {entry}"));
                }
                self.judge_unruled(access)
            }
        }
    }

    /// Skills, agents and teams are free to start: what they do is decided call by call. A fetch,
    /// any MCP tool and every other named use by a tool that is not read-only is asked about.
    fn judge_unruled(&self, access: &Access) -> Verdict {
        let tool = self.tool;
        match access {
            _ if self.is_mcp() => {
                Verdict::offer(format!("no rule allows `{tool}`"), Rule::parse(tool).ok())
            }
            Access::Fetch(url) => Verdict::offer(
                format!("no rule allows fetching from {}", host(url)),
                suggest::fetch(url),
            ),
            // An agent's own calls are decided one by one; a skill is text.
            Access::Named(name)
                if !self.read_only && !matches!(tool, "Skill" | "Agent" | "TeamCreate") =>
            {
                Verdict::offer(
                    format!("no rule allows `{tool}` of `{name}`"),
                    suggest::named(tool, name),
                )
            }
            _ => Verdict::allow(format!("{tool} changes nothing outside the conversation")),
        }
    }

    /// Decides reading a path, for the tool named. `tool` is the name that rules are compared with.
    /// A command that reads a file passes `Read` here, so that one rule covers both.
    pub(crate) fn judge_read(&self, tool: &str, path: &Path) -> Verdict {
        let path = &normalise(path);
        let about = |kind| {
            self.rules
                .about_path(kind, tool, Verb::Read, path, self.scope)
        };
        if let Some(entry) = about(RuleKind::Ask) {
            return Verdict::ask(format!("{entry} asks about it"));
        }
        if let Some(entry) = about(RuleKind::Allow) {
            return Verdict::allow(format!("allowed by {entry}"));
        }
        if self.in_workspace(path) || self.is_free(path) {
            return Verdict::allow("reading in the workspace is free");
        }
        Verdict::offer(
            format!("{} is outside the workspace", path.display()),
            suggest::read(tool, path, self.scope),
        )
    }

    /// Decides writing a path, for the tool named. Protected paths are examined before the rules,
    /// so that `Edit(**)` does not include them. `tool` is as in [`Case::judge_read`].
    pub(crate) fn judge_write(&self, tool: &str, path: &Path) -> Verdict {
        let path = &normalise(path);
        if let Some(why) = self.protection(path) {
            return Verdict::ask(format!("{} is protected: {why}", path.display()));
        }
        let about = |kind| {
            self.rules
                .about_path(kind, tool, Verb::Write, path, self.scope)
        };
        if let Some(entry) = about(RuleKind::Ask) {
            return Verdict::ask(format!("{entry} asks about it"));
        }
        if let Some(entry) = about(RuleKind::Allow) {
            return Verdict::allow(format!("allowed by {entry}"));
        }
        if self.is_free(path) {
            return Verdict::allow("writing temporary files is free");
        }
        let inside = self.in_workspace(path);
        if inside && self.mode == Mode::AcceptEdits {
            return Verdict::allow("allowed by acceptEdits mode");
        }
        if inside && self.scope.lifetime == Lifetime::ThrowAway {
            return Verdict::allow("writing in a throw-away tree is free");
        }
        let reason = match inside {
            true => format!("no rule allows writing {}", path.display()),
            false => format!("{} is outside the workspace", path.display()),
        };
        Verdict::offer(reason, suggest::write(path, self.scope))
    }

    /// Why a write to the path is always asked about. Hidden files of the home directory count only
    /// if the workspace contains the home directory, and not inside free directories.
    pub(crate) fn protection(&self, path: &Path) -> Option<Protection> {
        let home = self.scope.home.as_deref();
        let in_home = || {
            let home = home?;
            let hidden = is_home_dot_file(path, home, &self.scope.workspace);
            (hidden && !self.is_free(path)).then_some(Protection::HomeDotFile)
        };
        protected(path, home).or_else(in_home)
    }

    pub(crate) fn in_workspace(&self, path: &Path) -> bool {
        self.scope.workspace.iter().any(|dir| is_inside(path, dir))
    }

    pub(crate) fn is_free(&self, path: &Path) -> bool {
        self.scope.free.iter().any(|dir| is_inside(path, dir))
    }
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or("an address without a host")
}
