//! What a file of a project would grant, in words. A file that grants nothing needs no trust.
//!
//! Lists what is shown to the user before a decision, and decides whether one is needed. The two
//! are the same list on purpose: a key that grants something cannot be missing from what is shown.
//! Unknown keys count as grants.

use serde_json::{Map, Value};

use super::files::ProjectFileKind;
use crate::command_files::granted_by;
use codespar_policy::printable;

/// What the file would grant, one line each, in full: what is not shown cannot be judged.
/// Everything that is not known to be harmless counts.
pub(super) fn of(kind: ProjectFileKind, text: &str) -> Vec<String> {
    match kind {
        ProjectFileKind::Settings => json(text, of_settings),
        ProjectFileKind::Foreign => json(text, of_foreign),
        ProjectFileKind::Servers => json(text, of_servers),
        ProjectFileKind::Agent => of_agent(text),
        ProjectFileKind::Workflow => vec!["a workflow".to_owned()],
        ProjectFileKind::Command => granted_by(text)
            .map(|tools| one_line(&format!("a command that allows {tools}")))
            .into_iter()
            .collect(),
    }
}

/// What cannot be read here counts as a grant: another reader, which skips what it does not need,
/// may still read it.
fn json(text: &str, grants: fn(&Map<String, Value>) -> Vec<String>) -> Vec<String> {
    let text = text.trim_start_matches('\u{feff}');
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => grants(&map),
        _ if text.trim().is_empty() => Vec::new(),
        _ => vec!["something that cannot be read as JSON".to_owned()],
    }
}

/// Deny and ask rules, plan mode, protected files, a verify command (the sandbox confines it) and
/// switching the network off count without trust, and so do limits; nothing else does.
fn of_settings(map: &Map<String, Value>) -> Vec<String> {
    let mut grants = Vec::new();
    for (key, value) in map {
        match (key.as_str(), value) {
            // Limits of a project only lower those of the user.
            ("$schema" | "maxTokens" | "maxWallSeconds" | "questionTimeoutSeconds", _) => {}
            ("permissions", Value::Object(permissions)) => {
                grants.extend(of_permissions(permissions));
            }
            ("verify" | "dev" | "sandbox", Value::Object(inner)) => {
                let is_free = |inner_key: &str, value: &Value| {
                    matches!(
                        (key.as_str(), inner_key),
                        ("verify", "command" | "setup") | ("dev", "protected")
                    ) || (matches!(inner_key, "network" | "allowPackageHosts")
                        && value == &Value::Bool(false))
                };
                let named = inner.iter().filter(|(name, value)| !is_free(name, value));
                grants
                    .extend(named.filter_map(|(name, value)| say(&format!("{key}.{name}"), value)));
            }
            ("hooks", value) => grants.extend(of_hooks(value)),
            _ => grants.extend(say(key, value)),
        }
    }
    grants
}

/// Each hook with all that it would run. What has another shape is shown as it is.
fn of_hooks(value: &Value) -> Vec<String> {
    let Value::Object(events) = value else {
        return say("hooks", value).into_iter().collect();
    };
    let mut shown = Vec::new();
    for (event, groups) in events {
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            for hook in group["hooks"].as_array().into_iter().flatten() {
                let what = ["command", "url", "prompt"];
                let what = what.iter().find_map(|key| hook[*key].as_str());
                let what = what.map_or_else(|| hook.to_string(), str::to_owned);
                shown.push(one_line(&format!("hook {event} {matcher}: {what}")));
            }
        }
    }
    shown
}

fn of_permissions(map: &Map<String, Value>) -> Vec<String> {
    let granting = map.iter().filter_map(|(key, value)| match key.as_str() {
        "deny" | "ask" => None,
        "allow" => say("allow rules", value),
        "defaultMode" if value == "plan" => None,
        "defaultMode" => say("permission mode", value),
        other => say(other, value),
    });
    granting.collect()
}

/// Of another tool's settings only allow rules, a mode, hooks, variables, a model, an output style and
/// enabled plugins are taken over. Everything else of such a file is not read at all.
fn of_foreign(map: &Map<String, Value>) -> Vec<String> {
    let mut hooks = map.get("hooks").map(of_hooks).unwrap_or_default();
    let others = ["env", "model", "outputStyle", "enabledPlugins"];
    let others = others.iter().filter_map(|key| say(key, map.get(*key)?));
    hooks.extend(others);
    let Some(Value::Object(permissions)) = map.get("permissions") else {
        return hooks;
    };
    let mode = permissions
        .get("defaultMode")
        .filter(|mode| *mode == "dontAsk");
    let allow = permissions
        .get("allow")
        .and_then(|rules| say("allow rules", rules));
    allow
        .into_iter()
        .chain(mode.and_then(|mode| say("permission mode", mode)))
        .chain(hooks)
        .collect()
}

/// The whole command line or address of each server. A file without `mcpServers` can be the map of
/// servers itself.
fn of_servers(map: &Map<String, Value>) -> Vec<String> {
    let (servers, is_flat) = match map.get("mcpServers") {
        Some(Value::Object(servers)) => (servers, false),
        None | Some(Value::Null) => (map, true),
        Some(_) => return Vec::new(),
    };
    let servers = servers
        .iter()
        .filter(|(_, entry)| !is_flat || entry.is_object());
    let described = servers.map(|(name, entry)| {
        let parts = entry["args"].as_array().into_iter().flatten();
        let parts = std::iter::once(&entry["command"])
            .chain(parts)
            .chain(std::iter::once(&entry["url"]));
        let parts: Vec<&str> = parts.filter_map(Value::as_str).collect();
        one_line(&format!("MCP server {name}: {}", parts.join(" ")))
    });
    described.collect()
}

/// An agent always needs trust: its prompt is an instruction, and it may name tools.
fn of_agent(text: &str) -> Vec<String> {
    let head = text.lines().skip(1).take_while(|line| line.trim() != "---");
    let told = head.filter(|line| {
        ["name:", "tools:", "permissionMode:", "model:"]
            .iter()
            .any(|key| line.starts_with(key))
    });
    let told: Vec<&str> = told.collect();
    vec![one_line(&format!("an agent ({})", told.join(", ")))]
}

/// `None` for a value that is empty and so grants nothing.
fn say(key: &str, value: &Value) -> Option<String> {
    let shown = match value {
        Value::Null => return None,
        Value::Array(list) if list.is_empty() => return None,
        Value::Object(map) if map.is_empty() => return None,
        Value::Array(list) => {
            let items = list.iter().map(|item| match item {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            items.collect::<Vec<_>>().join(", ")
        }
        Value::Object(map) => {
            let items = map.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            });
            items.collect::<Vec<_>>().join(", ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(one_line(&format!("{key}: {shown}")))
}

/// Without anything that a terminal would obey. The text was written by whoever wrote the
/// repository, and is printed before anybody trusts it.
pub(super) fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_makes_things_stricter_grants_nothing() {
        for text in [
            "{}",
            "",
            r#"{"$schema": "x", "permissions": {"deny": ["Bash"], "ask": ["Read"], "defaultMode": "plan", "allow": []}}"#,
            r#"{"verify": {"command": "make test"}, "dev": {"protected": ["*.sql"]}, "sandbox": {"network": false, "allowPackageHosts": false}, "maxWallSeconds": 9}"#,
        ] {
            assert_eq!(
                of(ProjectFileKind::Settings, text),
                Vec::<String>::new(),
                "{text}"
            );
        }
        let foreign =
            r#"{"permissions": {"deny": ["Bash"]}, "hooks": {"x": []}, "statusLine": {"A": "b"}}"#;
        assert_eq!(of(ProjectFileKind::Foreign, foreign), Vec::<String>::new());
    }

    #[test]
    fn what_another_reader_would_skip_does_not_hide_a_grant() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for odd in [deep.as_str(), "1e999", r#""\ud800""#] {
            let text = format!(r#"{{"$schema": {odd}, "permissions": {{"allow": ["Bash"]}}}}"#);
            for kind in [
                ProjectFileKind::Settings,
                ProjectFileKind::Foreign,
                ProjectFileKind::Servers,
            ] {
                assert_eq!(of(kind, &text).len(), 1, "{odd}");
            }
        }
    }

    #[test]
    fn everything_else_is_named() {
        let text = r#"{"permissions": {"allow": ["Bash", "Read(//**)"], "defaultMode": "acceptEdits"},
            "env": {"LD_PRELOAD": "x"}, "model": "m", "verify": {"network": true}, "sandbox": {"mode": "off"},
            "later": 1}"#;
        assert_eq!(
            of(ProjectFileKind::Settings, text),
            [
                "allow rules: Bash, Read(//**)",
                "permission mode: acceptEdits",
                "env: LD_PRELOAD=x",
                "model: m",
                "verify.network: true",
                "sandbox.mode: off",
                "later: 1",
            ]
        );
        let servers =
            r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "x\u001b[2J\ny"]}}}"#;
        assert_eq!(
            of(ProjectFileKind::Servers, servers),
            ["MCP server a: sh -c x\\u{1b}[2J\\ny"]
        );
        let flat = r#"{"$schema": "x", "a": {"command": "sh"}}"#;
        assert_eq!(of(ProjectFileKind::Servers, flat), ["MCP server a: sh"]);
        let agent = "---\nname: a\ndescription: d\npermissionMode: acceptEdits\n---\nmodel: no\n";
        assert_eq!(
            of(ProjectFileKind::Agent, agent),
            ["an agent (name: a, permissionMode: acceptEdits)"]
        );
    }
}
