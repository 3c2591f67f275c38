//! The request that opens a session: what the client brings along, and what it is told of us.
//!
//! What the client brings is added to the options of the command line before the project is read,
//! so that both are checked in one place and the settings are read once. A field that is known and
//! malformed ends the session with an error: a system prompt or hook that is silently left out
//! would change what the program relies on.

use std::{path::PathBuf, sync::Arc};

use codespar_runtime::{OutputStyle, Project, ProjectCommands, ProjectOptions, ServerText};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{client::Client, hooks::ClientHooks};
use crate::{
    args::ManagedSettings,
    headless::{
        hook_lines::HookLines,
        init::{COMPATIBLE_VERSION, account},
    },
    slash,
};

/// The fields that have a meaning here; others are for other versions.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    hooks: Value,
    agents: Value,
    system_prompt: Option<SystemPrompt>,
    append_system_prompt: Option<String>,
    sdk_mcp_servers: Vec<String>,
    json_schema: Option<Value>,
    skills: Option<Vec<String>>,
    plugins: Vec<WrittenPlugin>,
    managed_settings: Option<Value>,
}

/// A plugin on this machine; there are no others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPlugin {
    path: PathBuf,
    #[serde(default)]
    skip_mcp_discovery: bool,
}

/// One text, or several that follow each other.
#[derive(Deserialize)]
#[serde(untagged)]
enum SystemPrompt {
    One(String),
    Parts(Vec<String>),
}

/// What the client brings besides options.
#[derive(Default)]
pub(super) struct ClientParts {
    pub(super) hooks: Option<ClientHooks>,
    pub(super) schema: Option<Value>,
}

/// Adds what the client wants to the options. The error names the field.
pub(super) fn read(
    request: Value,
    options: &mut ProjectOptions,
    client: &Client,
    lines: &Arc<HookLines>,
) -> Result<ClientParts, String> {
    let written: Written = serde_json::from_value(request).map_err(|error| error.to_string())?;
    if !written.agents.is_null() {
        options
            .add_agents(&written.agents)
            .map_err(|error| format!("agents: {error}"))?;
    }
    match written.system_prompt {
        Some(SystemPrompt::One(text)) => options.system_prompt = Some(text),
        Some(SystemPrompt::Parts(parts)) => options.system_prompt = Some(parts.join("\n\n")),
        None => {}
    }
    if let Some(text) = written.append_system_prompt {
        options.append_to_prompt(&text);
    }
    if !written.sdk_mcp_servers.is_empty() {
        let servers = written.sdk_mcp_servers.into_iter();
        let servers: Map<String, Value> = servers
            .map(|name| (name, json!({ "type": "sdk" })))
            .collect();
        let text = json!({ "mcpServers": servers }).to_string();
        options.mcp_config.push(ServerText::Json(text));
    }
    if written.skills.is_some() {
        options.skills = written.skills;
    }
    for plugin in written.plugins {
        match plugin.skip_mcp_discovery {
            true => options.plugin_dirs_without_servers.push(plugin.path),
            false => options.plugin_dirs.push(plugin.path),
        }
    }
    if let Some(settings) = written.managed_settings {
        let managed = ManagedSettings::read(settings);
        let managed = managed.map_err(|error| format!("managedSettings: {error}"))?;
        managed.apply(options);
    }
    Ok(ClientParts {
        hooks: ClientHooks::read(&written.hooks, client, lines)?,
        schema: written.json_schema,
    })
}

/// What the client is told: commands, agents, models, who pays.
pub(super) fn reply(project: &Project, commands: &ProjectCommands) -> Value {
    let built_in = slash::COMMANDS.iter().filter(|one| is_understood(one.name));
    let built_in = built_in.map(
        |one| json!({ "name": one.name, "description": one.help, "argumentHint": one.arguments }),
    );
    let own = commands.iter().map(|(name, one)| {
        json!({
            "name": name, "description": one.description, "argumentHint": one.argument_hint,
        })
    });
    let commands: Vec<Value> = built_in.chain(own).collect();
    let agents = project.hub.kinds().iter().map(|kind| {
        let mut agent = json!({ "name": kind.name, "description": kind.description });
        if let Some(model) = &kind.model {
            agent["model"] = json!(model);
        }
        agent
    });
    let agents: Vec<Value> = agents.collect();
    json!({
        "commands": commands,
        "agents": agents,
        "output_style": project.style_name(),
        "available_output_styles": OutputStyle::names(&project.dir, &project.options),
        "models": models(project),
        "account": account(project),
        "hooks_applied": true,
        "hook_on_failure_supported": true,
        "claude_code_version": COMPATIBLE_VERSION,
        "pid": std::process::id(),
    })
}

/// Commands that a message of a client can be.
pub(super) fn is_understood(name: &str) -> bool {
    matches!(name, "compact" | "clear")
}

/// Those with a short name, and the one in use.
fn models(project: &Project) -> Vec<Value> {
    let current = &project.provider.choice.id;
    let entries = project.provider.catalogue.entries().iter();
    let mut models = vec![json!({
        "value": "default", "resolvedModel": current, "displayName": "Default",
        "description": current,
    })];
    models.extend(entries.flat_map(|entry| {
        entry.aliases.iter().map(|alias| {
            json!({
                "value": alias, "resolvedModel": entry.id, "displayName": alias,
                "description": entry.id,
            })
        })
    }));
    models
}
