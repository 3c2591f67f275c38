//! The tools there are, by name.
//!
//! An agent gets a filtered copy of a registry. A call of a tool that is not in it fails, whatever
//! the model was told before.
//!
//! Descriptions are part of every request. Tools that are of no use yet are held back: the model is
//! not told of them, but a call by someone who knows them is made like any other.

use std::sync::Arc;

use crate::{
    Tool, bash::Bash, edit::Edit, glob::Glob, grep::Grep, ls::Ls, read::Read, skill::UseSkill,
    todo_write::TodoWrite, web_fetch::WebFetch, write::Write,
};

/// Tools by name, in the order the model sees them.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
    aliases: Vec<(String, String)>,
    /// Names of tools that are not described yet.
    held_back: Vec<String>,
}

/// The tools every agent starts from.
pub fn standard_tools() -> Registry {
    let mut registry = Registry::default();
    registry.add(Arc::new(Read));
    registry.add(Arc::new(Write));
    registry.add(Arc::new(Edit));
    registry.add(Arc::new(Ls));
    registry.add(Arc::new(Glob));
    registry.add(Arc::new(Grep));
    registry.add(Arc::new(Bash::new()));
    registry.add(Arc::new(WebFetch::new()));
    registry.add(Arc::new(TodoWrite));
    registry.add(Arc::new(UseSkill));
    registry
}

impl Registry {
    /// Adds a tool; one of the same name gives way to it, in the same place.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        match self
            .tools
            .iter_mut()
            .find(|known| known.name() == tool.name())
        {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// Lets a tool be called by another name too; the model is not told of it. A tool's own name
    /// wins over an alias. An alias of a tool that was filtered out finds nothing.
    pub fn alias(&mut self, alias: impl Into<String>, name: impl Into<String>) {
        self.aliases.push((alias.into(), name.into()));
    }

    /// The tool of that name or alias.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let by_name = |name: &str| self.tools.iter().find(|tool| tool.name() == name);
        let by_alias = || {
            let (_, name) = self.aliases.iter().find(|(alias, _)| alias == name)?;
            by_name(name)
        };
        by_name(name).or_else(by_alias).cloned()
    }

    /// The names, aliases left out.
    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name()).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// Leaves these undescribed until [`Registry::offer_all`].
    pub fn hold_back<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.held_back.extend(names.into_iter().map(str::to_owned));
    }

    /// Describes every tool from now on. False if they all were already.
    pub fn offer_all(&mut self) -> bool {
        let held_back = std::mem::take(&mut self.held_back);
        self.tools
            .iter()
            .any(|tool| held_back.iter().any(|name| name == tool.name()))
    }

    pub fn holds_back(&self) -> bool {
        !self.held_back.is_empty()
    }

    /// The tools that the model is told of.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        let is_held_back = |name: &str| self.held_back.iter().any(|held| held == name);
        self.tools
            .iter()
            .filter(move |tool| !is_held_back(tool.name()))
    }

    /// Whether the model is told of the tool of that name or alias.
    pub fn offers(&self, name: &str) -> bool {
        let tool = self.get(name);
        tool.is_some_and(|tool| self.offered().any(|offered| offered.name() == tool.name()))
    }

    /// Only the tools that `allow` names (all without it), less those that `deny` names. Both
    /// are lists of rules: `Bash(git *)` allows the tool Bash, but as a denial it is about some
    /// commands only and takes no tool away. `mcp__server` and a `*` at the end stand for every
    /// tool that starts so.
    pub fn filtered(&self, allow: Option<&[String]>, deny: &[String]) -> Self {
        let allowed = |name: &str| {
            allow.is_none_or(|rules| {
                let mut rules = rules.iter().map(|rule| bare(rule));
                rules.any(|rule| self.covers(rule, name))
            })
        };
        let denied = |name: &str| {
            let mut rules = deny.iter().filter(|rule| !rule.contains('('));
            rules.any(|rule| self.covers(rule.trim(), name))
        };
        let kept = self.tools.iter();
        let kept = kept.filter(|tool| allowed(tool.name()) && !denied(tool.name()));
        Self {
            tools: kept.cloned().collect(),
            aliases: self.aliases.clone(),
            held_back: self.held_back.clone(),
        }
    }

    /// Whether a rule without its parentheses speaks of the tool: by name, by alias, by a prefix
    /// with `*`, or as a whole MCP server (`mcp__server` covers `mcp__server__tool`).
    fn covers(&self, rule: &str, name: &str) -> bool {
        let alias_of = |rule: &str| self.aliases.iter().find(|(alias, _)| alias == rule);
        rule == name
            || rule
                .strip_suffix('*')
                .is_some_and(|start| name.starts_with(start))
            || (rule.starts_with("mcp__")
                && name
                    .strip_prefix(rule)
                    .is_some_and(|rest| rest.starts_with("__")))
            || alias_of(rule).is_some_and(|(_, tool)| tool == name)
    }
}

/// The tool a rule speaks of.
fn bare(rule: &str) -> &str {
    rule.split('(').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_tools_are_found_by_name_and_by_alias() {
        let mut tools = standard_tools();
        assert_eq!(
            tools.names(),
            [
                "Read",
                "Write",
                "Edit",
                "LS",
                "Glob",
                "Grep",
                "Bash",
                "WebFetch",
                "TodoWrite",
                "Skill"
            ]
        );
        tools.alias("View", "Read");
        let name = |name: &str| tools.get(name).map(|tool| tool.name().to_owned());
        assert_eq!(name("View").as_deref(), Some("Read"));
        assert_eq!(name("Grep").as_deref(), Some("Grep"));
        assert_eq!(name("grep"), None);
    }

    #[test]
    fn rules_leave_some_tools_and_take_others_away() {
        let tools = standard_tools();
        let rules = |rules: &[&str]| {
            rules
                .iter()
                .map(|rule| (*rule).to_owned())
                .collect::<Vec<_>>()
        };
        let left = |allow: Option<&[&str]>, deny: &[&str]| {
            let allow = allow.map(rules);
            let left = tools.filtered(allow.as_deref(), &rules(deny));
            left.names().join(" ")
        };
        assert_eq!(left(Some(&["Read", "Bash(git *)"]), &[]), "Read Bash");
        assert_eq!(
            left(Some(&["Read", "Bash"]), &["Bash", "Read(./secrets/**)"]),
            "Read"
        );
        assert_eq!(
            left(Some(&["*"]), &["Web*", "Bash(rm *)", "Skill", "TodoWrite"]),
            "Read Write Edit LS Glob Grep Bash"
        );
        assert_eq!(left(Some(&[]), &[]), "");
    }

    #[test]
    fn a_tool_that_is_held_back_can_be_called_and_is_described_later() {
        let mut tools = standard_tools();
        tools.alias("Browse", "WebFetch");
        tools.hold_back(["WebFetch", "Skill"]);
        let mut tools = tools.filtered(None, &["Skill".to_owned()]);
        assert!(tools.get("WebFetch").is_some());
        assert!(!tools.offers("WebFetch") && !tools.offers("Browse") && tools.offers("Read"));
        let offered = |tools: &Registry| tools.offered().count();
        assert_eq!(offered(&tools), 8);
        assert!(tools.holds_back() && tools.offer_all());
        assert!(!tools.holds_back() && !tools.offer_all() && tools.offers("Browse"));
        assert_eq!(offered(&tools), 9);
    }

    #[test]
    fn descriptions_and_schemas_stay_small() {
        let sizes: Vec<(String, usize)> = standard_tools()
            .iter()
            .map(|tool| {
                let size = tool.description().len() + tool.input_schema().get().len();
                (tool.name().to_owned(), size)
            })
            .collect();
        let total: usize = sizes.iter().map(|(_, size)| size).sum();
        assert!(total <= 7_000, "{total}: {sizes:?}");
    }
}
