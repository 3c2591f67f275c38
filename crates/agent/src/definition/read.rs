//! One definition: the fields of its frontmatter, what is wrong with them, and what is left out.

use std::path::Path;

use codespar_policy::{Mode, slips};
use codespar_protocol::Isolation;
use codespar_tools::frontmatter::{self, Fields};
use serde_json::Value;

use super::{AgentDefinition, DefinitionFile, DefinitionProblem, problem};

/// All keys that have a meaning here.
const KNOWN: [&str; 13] = [
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "permissionMode",
    "maxTurns",
    "maxWallSeconds",
    "skills",
    "isolation",
    "background",
    "color",
    "hooks",
];

/// Those that take something away: a misspelt one must not be passed over.
const RESTRICTING: [&str; 4] = ["tools", "disallowedTools", "permissionMode", "hooks"];

/// All that is wrong with the values is reported at once; an error of the parser comes alone.
pub(super) fn read(
    DefinitionFile { path, text }: &DefinitionFile,
    origin: &'static str,
    known_tools: &[&str],
) -> Result<(AgentDefinition, Vec<DefinitionProblem>), Vec<DefinitionProblem>> {
    let text = text
        .as_deref()
        .map_err(|error| vec![problem(path, 1, format!("cannot be read: {error}"))])?;
    let (fields, body, is_loose) = frontmatter::parse_loosely(text, &KNOWN)
        .map_err(|error| vec![problem(path, error.line, error.message)])?;
    let mut reading = Reading {
        path,
        text,
        fields,
        warnings: Vec::new(),
        problems: Vec::new(),
    };
    if is_loose {
        let told = "the frontmatter is not YAML; it was read line by line";
        reading.warnings.push(problem(path, 1, told.to_owned()));
    }
    reading.refuse_slips();
    let agent = AgentDefinition {
        name: reading.name(),
        description: reading.description(),
        permission_mode: reading.mode(),
        max_turns: reading.number("maxTurns"),
        max_wall_seconds: reading.number("maxWallSeconds"),
        model: reading.text("model").filter(|model| model != "inherit"),
        tools: reading.tools("tools", known_tools),
        disallowed_tools: reading
            .tools("disallowedTools", known_tools)
            .unwrap_or_default(),
        skills: reading.names("skills").unwrap_or_default(),
        isolation: reading.isolation(),
        background: reading.is_on("background"),
        color: reading.text("color"),
        hooks: reading.fields.get("hooks").cloned(),
        prompt: body.trim().to_owned(),
        path: path.clone(),
        origin,
    };
    reading.check(&agent);
    reading.unknown();
    match reading.problems.is_empty() {
        true => Ok((agent, reading.warnings)),
        false => Err(reading.problems),
    }
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    fields: Fields,
    warnings: Vec<DefinitionProblem>,
    problems: Vec<DefinitionProblem>,
}

impl Reading<'_> {
    fn at(&self, key: &str, message: String) -> DefinitionProblem {
        problem(self.path, line_of(self.text, key), message)
    }

    fn warn(&mut self, key: &str, message: String) {
        let warning = self.at(key, message);
        self.warnings.push(warning);
    }

    fn left_out(&mut self, key: &str, why: &str) {
        self.warn(key, format!("`{key}` is left out: {why}"));
    }

    fn complain(&mut self, key: &str, message: String) {
        let complaint = self.at(key, message);
        self.problems.push(complaint);
    }

    /// A text; other values are as they were written.
    fn text(&mut self, key: &str) -> Option<String> {
        match self.fields.get(key)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Array(_) | Value::Object(_) => {
                self.left_out(key, "it must be a text");
                None
            }
            other => Some(other.to_string()),
        }
    }

    /// In the form that names have; that of the file if there is none.
    fn name(&mut self) -> String {
        let written = self.text("name").unwrap_or_default();
        let stem = self.path.file_stem().unwrap_or_default();
        let wanted = match written.trim() {
            "" => stem.to_string_lossy().into_owned(),
            name => name.to_owned(),
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let lower = wanted.to_lowercase();
        let words = lower.split(|c| !plain(c)).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("-");
        if name.is_empty() {
            let told = "use lower-case letters, digits and hyphens";
            self.complain("name", format!("`{wanted}` is not a name: {told}"));
        } else if name != written {
            let told = "names have lower-case letters, digits and hyphens";
            self.warn("name", format!("the agent is called `{name}`: {told}"));
        }
        name
    }

    fn description(&mut self) -> String {
        let description = self.text("description").unwrap_or_default();
        if description.trim().is_empty() {
            let told = "the description is empty: say when to use this agent";
            self.complain("description", told.to_owned());
        }
        description
    }

    /// Modes that only other tools have say nothing: an agent is never looser than its parent.
    fn mode(&mut self) -> Option<Mode> {
        let text = self.text("permissionMode")?;
        let mode = text.parse().ok();
        if mode.is_none() {
            let told = "default, acceptEdits, plan, dontAsk, bypassPermissions";
            self.left_out("permissionMode", &format!("`{text}` is not one of {told}"));
        }
        mode
    }

    fn number<T: TryFrom<u64>>(&mut self, key: &str) -> Option<T> {
        let value = self.fields.get(key)?;
        // Where the head is read line by line, it is a text.
        let text = || value.as_str()?.trim().parse().ok();
        let number = value.as_u64().or_else(text);
        let number = number.filter(|number: &u64| *number > 0);
        let number = number.and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            self.left_out(key, "it must be a number, at least 1");
        }
        number
    }

    /// A list, or names with commas between them.
    fn names(&mut self, key: &str) -> Option<Vec<String>> {
        match self.fields.get(key)? {
            Value::Null => None,
            value @ Value::String(_) => Some(frontmatter::names(value)),
            value @ Value::Array(list) if list.iter().all(Value::is_string) => {
                Some(frontmatter::names(value))
            }
            _ => {
                self.complain(key, format!("`{key}` must be a list of names"));
                None
            }
        }
    }

    /// Those of a list that there are. Tools of MCP servers are not looked up: their servers may
    /// not be connected yet.
    fn tools(&mut self, key: &str, known: &[&str]) -> Option<Vec<String>> {
        let mut names = self.names(key)?;
        let mut unknown = Vec::new();
        names.retain(|name| {
            let bare = name.split('(').next().unwrap_or_default().trim();
            let is_known = known.contains(&bare) || bare.starts_with("mcp__") || bare == "*";
            if !is_known {
                unknown.push(bare.to_owned());
            }
            is_known
        });
        for bare in unknown {
            self.warn(key, format!("there is no tool `{bare}`; it is left out"));
        }
        Some(names)
    }

    fn isolation(&mut self) -> Option<Isolation> {
        match self.text("isolation")?.as_str() {
            "worktree" => Some(Isolation::Worktree),
            other => {
                let told = format!("`{other}` is not known here, only `worktree` is");
                self.complain("isolation", told);
                None
            }
        }
    }

    fn is_on(&mut self, key: &str) -> bool {
        match self.fields.get(key) {
            Some(Value::Bool(is_on)) => *is_on,
            Some(Value::String(text)) if matches!(text.trim(), "true" | "false") => {
                text.trim() == "true"
            }
            None | Some(Value::Null) => false,
            Some(_) => {
                self.left_out(key, "it must be true or false");
                false
            }
        }
    }

    fn check(&mut self, agent: &AgentDefinition) {
        if agent.prompt.is_empty() {
            let told = "there is no text below the frontmatter: it is the agent's prompt";
            self.complain("---", told.to_owned());
        }
    }

    /// What looks like a key that takes something away, and is none.
    fn refuse_slips(&mut self) {
        let keys: Vec<String> = self.fields.keys().cloned().collect();
        for key in keys.iter().filter(|key| !KNOWN.contains(&key.as_str())) {
            if let Some(meant) = RESTRICTING.iter().find(|meant| slips(key, meant) <= 1) {
                self.complain(key, format!("there is no `{key}`; did you mean `{meant}`?"));
            }
        }
    }

    fn unknown(&mut self) {
        let keys: Vec<String> = self.fields.keys().cloned().collect();
        for key in keys.iter().filter(|key| !KNOWN.contains(&key.as_str())) {
            self.warn(key, field_left_out(key));
        }
    }
}

/// What is said of a field that has no meaning here.
pub fn field_left_out(key: &str) -> String {
    match key {
        "effort" => "`effort` is left out: an agent has the effort of its session".to_owned(),
        "mcpServers" => {
            let told = "an agent has the MCP servers of its session, as far as `tools` names them";
            format!("`mcpServers` is left out: {told}")
        }
        _ => format!("`{key}` is not known and left out"),
    }
}

/// The line on which a key of the frontmatter stands; the first if it cannot be found.
fn line_of(text: &str, key: &str) -> usize {
    let wanted = if key == "---" {
        key.to_owned()
    } else {
        format!("{key}:")
    };
    text.lines()
        .position(|line| line.trim_start().starts_with(&wanted))
        .map_or(1, |at| at + 1)
}
