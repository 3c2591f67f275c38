//! Agents that a caller gives as JSON: on the command line, or in the request that opens a session.
//!
//! ```text
//! {"reviewer": {"description": "…", "prompt": "…", "tools": ["Read"], "model": "haiku"}}
//! ```
//!
//! The fields are those of definition files. What is not known is left out with a warning: clients
//! send fields for versions to come. A field that restricts and cannot be read is an error.

use std::path::PathBuf;

use codespar_agent::{AgentDefinition, field_left_out};
use codespar_policy::Mode;
use codespar_protocol::Isolation;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    description: String,
    prompt: String,
    tools: Option<Vec<String>>,
    #[serde(default)]
    disallowed_tools: Vec<String>,
    model: Option<String>,
    max_turns: Option<u32>,
    max_wall_seconds: Option<u64>,
    permission_mode: Option<String>,
    #[serde(default)]
    skills: Vec<String>,
    isolation: Option<String>,
    #[serde(default)]
    background: bool,
    color: Option<String>,
    hooks: Option<Value>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The agents, and what of them is left out.
pub(crate) fn read(agents: &Value) -> Result<(Vec<AgentDefinition>, Vec<String>), String> {
    let Value::Object(agents) = agents else {
        return Err("expected an object of agents by name".to_owned());
    };
    let mut warnings = Vec::new();
    let mut read = |(name, value): (&String, &Value)| {
        let mut written: Written =
            serde_json::from_value(value.clone()).map_err(|error| format!("{name}: {error}"))?;
        // A client names each field that it knows, most of them empty.
        let given = std::mem::take(&mut written.other).into_iter();
        let given = given.filter(|(_, value)| !value.is_null());
        warnings.extend(given.map(|(key, _)| format!("agent {name}: {}", field_left_out(&key))));
        definition(name, written).map_err(|error| format!("{name}: {error}"))
    };
    let found: Result<Vec<_>, String> = agents.iter().map(&mut read).collect();
    Ok((found?, warnings))
}

fn definition(name: &str, written: Written) -> Result<AgentDefinition, String> {
    if name.trim().is_empty() {
        return Err("the name is empty".to_owned());
    }
    if written.description.trim().is_empty() {
        return Err("the description is empty: say when to use this agent".to_owned());
    }
    let isolation = match written.isolation.as_deref() {
        None => None,
        Some("worktree") => Some(Isolation::Worktree),
        Some(other) => {
            return Err(format!(
                "`{other}` is not known as isolation, only `worktree` is"
            ));
        }
    };
    Ok(AgentDefinition {
        name: name.to_owned(),
        description: written.description,
        tools: written.tools,
        disallowed_tools: written.disallowed_tools,
        model: written.model.filter(|model| model != "inherit"),
        // A mode of another program says nothing; an agent is never looser than its parent.
        permission_mode: written
            .permission_mode
            .and_then(|mode| mode.parse::<Mode>().ok()),
        max_turns: written.max_turns.filter(|turns| *turns > 0),
        max_wall_seconds: written.max_wall_seconds.filter(|seconds| *seconds > 0),
        skills: written.skills,
        isolation,
        background: written.background,
        color: written.color,
        hooks: written.hooks.filter(|hooks| !hooks.is_null()),
        prompt: written.prompt,
        path: PathBuf::from("--agents"),
        origin: "caller",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_has_the_fields_of_a_definition_file() {
        let agents = json!({"reviewer": {
            "description": "Reviews", "prompt": "You review.", "tools": ["Read"],
            "disallowedTools": ["Bash"], "model": "inherit", "maxTurns": 3,
            "permissionMode": "plan", "isolation": "worktree", "hooks": {"Stop": []},
            "memory": "user", "effort": "high", "mcpServers": ["a"], "initialPrompt": null,
        }});
        let (agents, warnings) = read(&agents).unwrap();
        let [agent] = agents.try_into().unwrap();
        assert_eq!(agent.isolation, Some(Isolation::Worktree));
        assert_eq!(agent.hooks, Some(json!({"Stop": []})));
        let named = ["memory", "effort", "mcpServers"];
        assert_eq!(warnings.len(), named.len(), "{warnings:?}");
        for (told, key) in warnings.iter().zip(named) {
            let start = format!("agent reviewer: `{key}` is ");
            assert!(told.starts_with(&start), "{told}");
        }
        assert_eq!(agent.tools.as_deref(), Some(&["Read".to_owned()][..]));
        assert_eq!(agent.disallowed_tools, ["Bash"]);
        assert_eq!((agent.model, agent.max_turns), (None, Some(3)));
        assert_eq!(agent.permission_mode, Some(Mode::Plan));
    }

    #[test]
    fn a_restriction_that_cannot_be_read_is_an_error_that_names_the_agent() {
        for wrong in [
            json!({"a": {"description": "d", "prompt": "p", "tools": "Read"}}),
            json!({"a": {"prompt": "p"}}),
            json!({"a": {"description": " ", "prompt": "p"}}),
            json!({"a": {"description": "d", "prompt": "p", "isolation": "container"}}),
        ] {
            assert!(read(&wrong).unwrap_err().starts_with("a: "), "{wrong}");
        }
        assert!(read(&json!([])).is_err());
    }
}
