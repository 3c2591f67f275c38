//! All rules in force, and which of them speaks of what.
//!
//! Entries come from settings, flags, a task's authority and answers of the user, and are only ever
//! added. Lists are searched from the front and the first rule that applies is named in the reason;
//! since a deny rule beats an ask rule and an ask rule beats an allow rule, the order within a list
//! changes the reason but never the answer.
//!
//! Matching is asymmetric on purpose. Rules that permit are taken as written; rules that forbid or
//! ask are taken as widely as their author may have meant them ([`Reach`]).

use std::{fmt, path::Path, path::PathBuf, sync::Arc};

use url::Url;

use crate::{
    Rule, RuleError, Scope,
    path_pattern::{PatternBase, Reach},
    rule::Specifier,
};

/// Where a rule comes from; named in reasons, and decides what relative paths start from. Two rules
/// with equal sources share one copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// As a person would say it: `.codespar/settings.json`, `--allowedTools`.
    pub name: String,
    /// Where relative paths in its rules start; the project root when `None`.
    pub base: Option<PathBuf>,
}

impl RuleSource {
    /// A source whose relative paths start at the project root.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base: None,
        }
    }
}

/// Which list a rule is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    Allow,
    Ask,
    Deny,
}

/// All rules in force.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    entries: Vec<Entry>,
}

/// A rule in its place. Shown as in reasons: "`Bash(ls *)` in .codespar/settings.json".
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    kind: RuleKind,
    pub(crate) rule: Rule,
    source: Arc<RuleSource>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in {}", self.rule, self.source.name)
    }
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Write,
}

impl RuleSet {
    /// Adds to the end of its list. Duplicates are kept; they change nothing.
    pub fn add(&mut self, kind: RuleKind, rule: Rule, source: &RuleSource) {
        let known = self.entries.iter().find(|entry| *entry.source == *source);
        let source = match known {
            Some(entry) => Arc::clone(&entry.source),
            None => Arc::new(source.clone()),
        };
        self.entries.push(Entry { kind, rule, source });
    }

    /// Takes back what was added from this source.
    pub fn remove(&mut self, source: &RuleSource) {
        self.entries.retain(|entry| *entry.source != *source);
    }

    /// Reads what a command-line option was given: rules separated by commas or blanks, such as
    /// `Bash(git log *),Read Edit`.
    ///
    /// Separators inside parentheses belong to the rule. The first piece that is not a rule fails
    /// the whole list: a flag with a mistake in it must not apply in part.
    pub fn parse_list(text: &str) -> Result<Vec<Rule>, RuleError> {
        let mut depth = 0_usize;
        let pieces = text.split(|c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (c == ',' || c.is_whitespace())
        });
        pieces
            .filter(|piece| !piece.is_empty())
            .map(Rule::parse)
            .collect()
    }

    /// The rules of one list, in the order they were added, each with the name of its source.
    pub fn list(&self, kind: RuleKind) -> impl Iterator<Item = (&Rule, &str)> {
        self.entries
            .iter()
            .filter(move |entry| entry.kind == kind)
            .map(|entry| (&entry.rule, entry.source.name.as_str()))
    }

    /// All rules in the order they were added, each with its list and source.
    pub fn iter(&self) -> impl Iterator<Item = (RuleKind, &Rule, &RuleSource)> {
        self.entries
            .iter()
            .map(|entry| (entry.kind, &entry.rule, &*entry.source))
    }

    /// Why this file may not be read, if a rule says so. For tools that search below a directory
    /// and have to leave out what is forbidden in it.
    pub fn read_denied(&self, path: &Path, scope: &Scope) -> Option<String> {
        self.about_path(RuleKind::Deny, "Read", Verb::Read, path, scope)
            .map(|entry| format!("denied by {entry}"))
    }

    /// Whether a rule forbids reading some files, or asks about it. Every ask or deny rule with a
    /// path counts, including one about `Edit`. That can make a free command an asked one, never
    /// the reverse.
    pub(crate) fn restricts_reading(&self) -> bool {
        self.entries.iter().any(|entry| {
            entry.kind != RuleKind::Allow && matches!(entry.rule.specifier, Specifier::Path(_))
        })
    }

    fn find(&self, kind: RuleKind, speaks: impl Fn(&Entry) -> bool) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.kind == kind && speaks(entry))
    }

    /// The rule about a path. A rule that forbids reading forbids writing; one that permits editing
    /// permits reading. `tool` adds rules that name the calling tool itself, such as
    /// `Grep(src/**)`. The path must be absolute.
    pub(crate) fn about_path(
        &self,
        kind: RuleKind,
        tool: &str,
        verb: Verb,
        path: &Path,
        scope: &Scope,
    ) -> Option<&Entry> {
        let reach = match kind {
            RuleKind::Allow => Reach::AsWritten,
            RuleKind::Ask | RuleKind::Deny => Reach::Wide,
        };
        self.find(kind, |entry| {
            let applies = match (entry.rule.tool.as_str(), verb) {
                ("Read", Verb::Read) | ("Edit", Verb::Write) => true,
                ("Read", Verb::Write) => kind != RuleKind::Allow,
                ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Verb::Read) => {
                    kind == RuleKind::Allow
                }
                _ => false,
            };
            (applies || entry.rule.names(tool))
                && match &entry.rule.specifier {
                    Specifier::Any => true,
                    Specifier::Path(pattern) => {
                        pattern.matches(path, pattern_base(entry, scope), reach)
                    }
                    _ => false,
                }
        })
    }

    /// The rule about every use of a tool. Only rules without a specifier qualify: `Bash(ls *)` is
    /// no answer to a question about `Bash` as a whole.
    pub(crate) fn about_tool(&self, kind: RuleKind, tool: &str) -> Option<&Entry> {
        self.find(kind, |entry| {
            matches!(entry.rule.specifier, Specifier::Any) && entry.rule.names(tool)
        })
    }

    /// Whether a rule allows every use of a tool, or the mode does, and none denies or asks about
    /// it. For a tool that is used without a decision about each use.
    pub fn allows_tool(&self, tool: &str, mode: crate::Mode) -> bool {
        let has = |kind| self.about_tool(kind, tool).is_some();
        let is_bypassed = mode == crate::Mode::BypassPermissions;
        !has(RuleKind::Deny) && (is_bypassed || (has(RuleKind::Allow) && !has(RuleKind::Ask)))
    }

    /// The rule about something with a name.
    pub(crate) fn about_name(&self, kind: RuleKind, tool: &str, name: &str) -> Option<&Entry> {
        self.find(kind, |entry| {
            entry.rule.names(tool)
                && match &entry.rule.specifier {
                    Specifier::Any => true,
                    Specifier::Name(pattern) => pattern.matches(name),
                    _ => false,
                }
        })
    }

    /// Domain rules apply to whichever tool fetches. The host is compared in lower case and without
    /// a trailing dot, because both forms reach the same server. An address without a host matches
    /// no domain rule.
    pub(crate) fn about_address(&self, kind: RuleKind, tool: &str, url: &Url) -> Option<&Entry> {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let host = host.trim_end_matches('.');
        self.find(kind, |entry| match &entry.rule.specifier {
            Specifier::Any => entry.rule.names(tool) || entry.rule.names("WebFetch"),
            Specifier::Domain(pattern) => !host.is_empty() && pattern.matches(host),
            _ => false,
        })
    }

    /// The rule about a command, by a test of its pattern. The caller decides what to compare the
    /// pattern with: the parts for rules that permit, every disguise for rules that forbid.
    pub(crate) fn about_command(
        &self,
        kind: RuleKind,
        test: impl Fn(&crate::text_pattern::TextPattern) -> bool,
    ) -> Option<&Entry> {
        self.find(kind, |entry| match &entry.rule.specifier {
            Specifier::Command(pattern) => test(pattern),
            _ => false,
        })
    }
}

fn pattern_base<'a>(entry: &'a Entry, scope: &'a Scope) -> PatternBase<'a> {
    PatternBase {
        base: entry.source.base.as_deref().unwrap_or(&scope.root),
        cwd: &scope.cwd,
        home: scope.home.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_outside_parentheses() {
        let rules = RuleSet::parse_list("Bash(git log *),Read Edit(a, b), mcp__x").unwrap();
        let texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["Bash(git log *)", "Read", "Edit(a, b)", "mcp__x"]);
        assert_eq!(RuleSet::parse_list(" , ").unwrap(), Vec::new());
        assert!(RuleSet::parse_list("Read,Bash(ls").is_err());
    }

    #[test]
    fn a_list_is_shown_with_its_sources() {
        let mut rules = RuleSet::default();
        let source = RuleSource::named("--allowedTools");
        rules.add(RuleKind::Allow, Rule::parse("Read").unwrap(), &source);
        let listed: Vec<(String, &str)> = rules
            .list(RuleKind::Allow)
            .map(|(rule, source)| (rule.to_string(), source))
            .collect();
        assert_eq!(listed, [("Read".to_owned(), "--allowedTools")]);
        assert_eq!(rules.list(RuleKind::Deny).count(), 0);
    }
}
