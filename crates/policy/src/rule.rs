//! Rules as people write them in settings: `Tool` or `Tool(specifier)`.
//!
//! ```text
//! Read                         every use of a tool
//! Bash(git log *)              a command; ` *` or `:*` at the end also matches no arguments
//! Edit(src/**)                 a path pattern, see `path_pattern`
//! WebFetch(domain:*.example.com)
//! Agent(Explore)               something with a name
//! mcp__server                  all tools of an MCP server
//! mcp__server__tool            one of them; `*` is possible in these names
//! *                            every tool
//! ```
//!
//! Parsing checks the syntax and the case of known tool names. Whether the tool exists is a
//! separate question ([`Rule::names_known_tool`]), since rules may mention tools of MCP servers
//! that are not connected.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{path_pattern::PathPattern, shell::tidy, text_pattern::TextPattern};

/// One rule, with its text as written. It is compared, displayed and serialised by that text, so a
/// rule survives being written back to a settings file. Two spellings of the same rule are
/// therefore not equal.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    pub(crate) tool: String,
    pub(crate) specifier: Specifier,
}

/// What a rule says beyond the tool. Which variant is possible follows from the tool;
/// [`Rule::parse`] refuses the other combinations. A pattern over text that matches everything
/// becomes `Any`, so that `Bash(*)` and `Bash` mean the same.
#[derive(Debug, Clone)]
pub(crate) enum Specifier {
    /// Nothing: every use of the tool.
    Any,
    Command(TextPattern),
    Path(PathPattern),
    Domain(TextPattern),
    Name(TextPattern),
}

/// The text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a permission rule: {message}")]
pub struct RuleError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub message: String,
}

/// Tools whose specifier is a path.
const PATH_TOOLS: &[&str] = &[
    "Read",
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "LS",
    "Glob",
    "Grep",
];

/// Tools whose names people get the case wrong of. Others may come from MCP servers and plugins.
const OTHER_TOOLS: &[&str] = &[
    "Bash",
    "WebFetch",
    "WebSearch",
    "TodoWrite",
    "Skill",
    "Agent",
    "Task",
    "SendMessage",
    "TeamCreate",
    "TeamDelete",
];

/// The name under which rules know a tool. `Task` and `Agent` are one tool; rules written for
/// either apply to both.
pub(crate) fn canonical(tool: &str) -> &str {
    if tool == "Task" { "Agent" } else { tool }
}

impl Rule {
    /// Space around the text is ignored. The error says what is wrong and how the rule could be
    /// written.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let wrong = |message: String| RuleError {
            text: text.to_owned(),
            message,
        };
        let (tool, specifier) = halves(text).map_err(wrong)?;
        check_tool(tool).map_err(wrong)?;
        let specifier = match specifier {
            None => Specifier::Any,
            Some(specifier) => read_specifier(tool, specifier).map_err(wrong)?,
        };
        Ok(Self {
            text: text.to_owned(),
            tool: canonical(tool).to_owned(),
            specifier,
        })
    }

    /// The tool that it names.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether it can speak of a tool of ours or of an MCP server: a rule about any other name
    /// does nothing.
    pub fn names_known_tool(&self, ours: &[String]) -> bool {
        let tool = self.tool.as_str();
        tool == "*"
            || tool.starts_with("mcp__")
            || Self::known_tools().any(|name| name == tool)
            || ours.iter().any(|name| name == tool)
    }

    /// Tools that rules may name in every version.
    pub fn known_tools() -> impl Iterator<Item = &'static str> {
        PATH_TOOLS.iter().chain(OTHER_TOOLS).copied()
    }

    /// Whether the rule is about every use of this tool or of a group it is in.
    pub(crate) fn names(&self, tool: &str) -> bool {
        let tool = canonical(tool);
        if self.tool == "*" || self.tool == tool {
            return true;
        }
        let Some(server) = self.tool.strip_prefix("mcp__") else {
            return false;
        };
        if server.contains('*') {
            return TextPattern::name(&self.tool).matches(tool);
        }
        // `mcp__server` alone stands for all of its tools.
        !server.contains("__")
            && tool
                .strip_prefix(self.tool.as_str())
                .is_some_and(|rest| rest.starts_with("__"))
    }
}

/// The tool and the text inside the outermost parentheses. The closing parenthesis must be the last
/// character, so that `Bash(echo (a))` keeps its inner pair.
fn halves(text: &str) -> Result<(&str, Option<&str>), String> {
    if text.is_empty() {
        return Err("it is empty; write `Tool` or `Tool(specifier)`".into());
    }
    let Some((tool, rest)) = text.split_once('(') else {
        if text.contains(')') {
            return Err("it has `)` without `(`; write `Tool(specifier)`".into());
        }
        return Ok((text, None));
    };
    let Some(specifier) = rest.strip_suffix(')') else {
        return Err(match rest.rsplit_once(')') {
            Some((_, after)) => {
                format!("`{after}` follows the closing `)`; write `{tool}(specifier)`")
            }
            None => format!("the `(` is not closed; write `{tool}({rest})`"),
        });
    };
    if specifier.trim().is_empty() {
        return Err(format!(
            "the parentheses are empty; write `{tool}` for every use of it"
        ));
    }
    Ok((tool, Some(specifier)))
}

/// A known name in the wrong case is an error rather than a rule that never applies. Unknown names
/// pass if they are built of name characters; `*` inside one is accepted for MCP tools only.
fn check_tool(tool: &str) -> Result<(), String> {
    let known = || PATH_TOOLS.iter().chain(OTHER_TOOLS);
    if tool == "*" || known().any(|name| *name == tool) {
        return Ok(());
    }
    if let Some(name) = known().find(|name| name.eq_ignore_ascii_case(tool)) {
        return Err(format!("the tool is called `{name}`"));
    }
    let star_is_fine = tool.starts_with("mcp__");
    let proper =
        |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c) || (c == '*' && star_is_fine);
    if tool.is_empty() || !tool.chars().all(proper) {
        return Err(format!(
            "`{tool}` cannot be the name of a tool; write `Tool` or `Tool(specifier)`, \
             such as `Bash(git log *)`"
        ));
    }
    Ok(())
}

/// The meaning of the parentheses depends on the tool: a path for file tools, a command for `Bash`,
/// a domain for `WebFetch`, a name for all others. Commands are brought to the normal form in which
/// they are compared later (one space between words).
fn read_specifier(tool: &str, specifier: &str) -> Result<Specifier, String> {
    let trimmed = specifier.trim();
    if tool == "*" || tool.starts_with("mcp__") {
        return Err(format!("`{tool}` takes no parentheses"));
    }
    if PATH_TOOLS.contains(&tool) {
        return PathPattern::parse(trimmed).map(Specifier::Path);
    }
    match tool {
        "Bash" => {
            let pattern = TextPattern::command(&tidy(specifier));
            if pattern.is_everything() {
                return Ok(Specifier::Any);
            }
            if pattern.is_blank() {
                return Err(
                    "no command is named before `*`; write `Bash` for every command".into(),
                );
            }
            Ok(Specifier::Command(pattern))
        }
        "WebFetch" => match trimmed.strip_prefix("domain:").map(str::trim) {
            _ if trimmed == "*" => Ok(Specifier::Any),
            Some(domain) => read_domain(domain).map(Specifier::Domain),
            None => Err("write the host as `WebFetch(domain:example.com)`".into()),
        },
        _ => Ok(match TextPattern::name(trimmed) {
            pattern if pattern.is_everything() => Specifier::Any,
            pattern => Specifier::Name(pattern),
        }),
    }
}

/// The host is parsed as in a URL, so that upper case and non-ASCII hosts compare equal to the
/// hosts of requests. `*` is accepted as the whole host or as its front, before a dot:
/// `*.example.com` does not match `evil-example.com`.
fn read_domain(domain: &str) -> Result<TextPattern, String> {
    let hint = "write a host alone, such as `WebFetch(domain:example.com)` or \
                `WebFetch(domain:*.example.com)`";
    if domain.is_empty() || domain.contains(['/', '@', ' ']) {
        return Err(hint.into());
    }
    if domain == "*" {
        return Ok(TextPattern::name(domain));
    }
    let (stars, host) = match domain.strip_prefix("*.") {
        Some(host) => ("*.", host),
        None => ("", domain),
    };
    if host.contains('*') {
        return Err(format!("`*` stands only for the front of a host; {hint}"));
    }
    let host = host.trim_end_matches('.');
    let host = url::Host::parse(host).map_err(|_| hint.to_owned())?;
    Ok(TextPattern::name(&format!("{stars}{host}")))
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "it is empty")]
    #[case("Bash(ls", "the `(` is not closed; write `Bash(ls)`")]
    #[case("Bash)", "it has `)` without `(`")]
    #[case("Bash(ls) x", "follows the closing `)`")]
    #[case("Bash()", "write `Bash` for every use of it")]
    #[case("Bash( )", "write `Bash` for every use of it")]
    #[case("Bash(:*)", "no command is named")]
    #[case("bash(ls)", "the tool is called `Bash`")]
    #[case("READ", "the tool is called `Read`")]
    #[case("webfetch(domain:x.y)", "the tool is called `WebFetch`")]
    #[case("git log", "cannot be the name of a tool")]
    #[case("Web*", "cannot be the name of a tool")]
    #[case("mcp__a__b(x)", "takes no parentheses")]
    #[case("WebFetch(https://example.com)", "WebFetch(domain:example.com)")]
    #[case("WebFetch(domain:a.*.com)", "only for the front of a host")]
    #[case("Read(../x)", "`..` is not possible")]
    fn a_bad_rule_says_what_is_wrong_and_how_to_write_it(#[case] text: &str, #[case] says: &str) {
        let error = Rule::parse(text).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains(&format!("`{}`", text.trim())));
    }

    #[rstest]
    #[case("Bash(npm run test *)")]
    #[case("Bash(echo (a))")]
    #[case("Agent(Explore)")]
    #[case("mcp__server")]
    #[case("mcp__server__*")]
    #[case("mcp__server__tool")]
    #[case("SomePluginTool")]
    #[case("*")]
    fn a_rule_is_written_as_it_was_read(#[case] text: &str) {
        let rule = Rule::parse(text).unwrap();
        assert_eq!(rule.to_string(), text);
        let json = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Rule>(&json).unwrap(), rule);
    }

    #[rstest]
    #[case("mcp__a", "mcp__a__b", true)]
    #[case("mcp__a", "mcp__ab__c", false)]
    #[case("mcp__a__*", "mcp__a__b", true)]
    #[case("mcp__a__b", "mcp__a__bc", false)]
    #[case("mcp__*", "mcp__a__b", true)]
    #[case("Task", "Agent", true)]
    #[case("Agent", "Task", true)]
    #[case("*", "anything", true)]
    fn a_rule_names_a_tool_or_its_group(#[case] rule: &str, #[case] tool: &str, #[case] is: bool) {
        assert_eq!(Rule::parse(rule).unwrap().names(tool), is);
    }
}
