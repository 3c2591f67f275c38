//! Agents that a caller gives as JSON: on the command line, or in the request that opens a session.
//!
//! ```text
//! {"reviewer": {"description": "…", "prompt": "…", "tools": ["Read"], "model": "haiku"}}
//! ```
//!
//! The fields are those of definition files. What is not known is left out: clients send fields for
//! versions to come. A field that restricts and cannot be read is an error.

use std::path::PathBuf;

use codespar_agent::AgentDefinition;
use codespar_policy::Mode;
use serde::Deserialize;
use serde_json::Value;

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
    permission_mode: Option<String>,
    #[serde(default)]
    skills: Vec<String>,
    #[serde(default)]
    background: bool,
}

pub(crate) fn read(agents: &Value) -> Result<Vec<AgentDefinition>, String> {
    let Value::Object(agents) = agents else {
        return Err("expected an object of agents by name".to_owned());
    };
    let read = |(name, value): (&String, &Value)| {
        let written: Written =
            serde_json::from_value(value.clone()).map_err(|error| format!("{name}: {error}"))?;
        definition(name, written).map_err(|error| format!("{name}: {error}"))
    };
    agents.iter().map(read).collect()
}

fn definition(name: &str, written: Written) -> Result<AgentDefinition, String> {
    if name.trim().is_empty() {
        return Err("the name is empty".to_owned());
    }
    if written.description.trim().is_empty() {
        return Err("the description is empty: say when to use this agent".to_owned());
    }
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
        max_wall_seconds: None,
        skills: written.skills,
        isolation: None,
        background: written.background,
        color: None,
        hooks: None,
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
            "permissionMode": "plan", "memory": "user",
        }});
        let [agent] = read(&agents).unwrap().try_into().unwrap();
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
        ] {
            assert!(read(&wrong).unwrap_err().starts_with("a: "), "{wrong}");
        }
        assert!(read(&json!([])).is_err());
    }
}
