//! Permission rules as they stand in a settings file. A deny or ask rule that cannot be understood
//! is an error, because somebody relies on it; an allow rule that cannot be is left out with a
//! warning.

use std::path::Path;

use codespar_policy::{Rule, RuleKind, slips};
use serde_json::value::RawValue;

use super::Author;
use crate::{configuration::tool_names, error::RuntimeError};

/// A settings file with its place, for messages.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    pub(super) author: Author,
}

/// Names that differ in no more than this are taken for a slip of the finger.
const SLIP: usize = 2;

impl Source<'_> {
    /// Reads the rules of one list.
    ///
    /// Order is kept. Entries are raw JSON slices of the file, so their address gives line and
    /// column.
    pub(super) fn rules(
        &self,
        kind: RuleKind,
        entries: &[&RawValue],
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Rule>, RuntimeError> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let ours = tool_names();
        let mut rules = Vec::new();
        for entry in entries {
            let problem = match serde_json::from_str::<String>(entry.get()) {
                Err(_) => Problem::Mistake("a rule is a string".to_owned()),
                Ok(text) => match Rule::parse(&text) {
                    Err(error) => Problem::Mistake(error.to_string()),
                    Ok(rule) if rule.names_known_tool(&ours) => {
                        rules.push(rule);
                        continue;
                    }
                    Ok(rule) => self.unknown_tool(&rule, &ours),
                },
            };
            let shown = format!("{}: {}", self.at(entry), problem.message());
            match (kind, problem) {
                (RuleKind::Deny | RuleKind::Ask, Problem::Mistake(_)) => {
                    return Err(RuntimeError::Usage(shown));
                }
                _ => warnings.push(format!("{shown}; the rule is left out")),
            }
        }
        Ok(rules)
    }

    /// Another product has tools that are not here: only what looks like a slip is a mistake there.
    /// Tools of MCP servers are known by their form and do not come here.
    fn unknown_tool(&self, rule: &Rule, ours: &[String]) -> Problem {
        let tool = rule.tool();
        let ours = ours.iter().cloned();
        let known = ours.chain(Rule::known_tools().map(str::to_owned));
        let nearest = known
            .map(|name| (slips(tool, &name), name))
            .min()
            .filter(|(count, _)| *count <= SLIP)
            .map(|(_, name)| name);
        let said = format!("`{rule}`: there is no tool `{tool}`");
        match (nearest, self.author) {
            (Some(name), _) => Problem::Mistake(format!("{said}; did you mean `{name}`?")),
            (None, Author::Foreign) => Problem::OtherTool(said),
            (None, _) => Problem::Mistake(said),
        }
    }

    /// File, line and column of an entry.
    pub(super) fn at(&self, entry: &RawValue) -> String {
        let start = (entry.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        format!("{}:{line}:{column}", self.path.display())
    }
}

/// `Mistake` is an error in a deny or ask list; `OtherTool` is a warning in all lists.
enum Problem {
    Mistake(String),
    OtherTool(String),
}

impl Problem {
    fn message(&self) -> &str {
        match self {
            Self::Mistake(message) | Self::OtherTool(message) => message,
        }
    }
}

/// Whether two words are the same but for a slip.
pub(super) fn is_slip(word: &str, known: &str) -> bool {
    word != known && slips(word, known) <= SLIP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_were_probably_meant_are_found() {
        assert!(is_slip("permisions", "permissions"));
        assert!(!is_slip("hooks", "permissions"));
    }
}
