//! The `hooks` object of a settings file.
//!
//! ```text
//! {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "…", "timeout": 60}]}]}
//! ```
//!
//! What is written wrongly is never passed over in silence. A matcher that is no pattern, a
//! misspelt event and a shape that is none are errors; a kind of hook that is not known here stays
//! as a hook that cannot be run; fields that are not known are warnings.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::{
    hooks::{Hook, HookAction, HookEventKind, HookMatcher, HookSource},
    slips,
};

/// The longest time that a hook may ask for. In seconds.
const LONGEST_TIMEOUT: f64 = 24.0 * 3600.0;

/// The object cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hooks.{place}: {message}")]
pub struct HookConfigError {
    pub place: String,
    pub message: String,
}

/// Reads the hooks of one file; the second part are warnings.
pub fn read_hooks(
    value: &Value,
    source: &HookSource,
) -> Result<(Vec<Hook>, Vec<String>), HookConfigError> {
    let mut reading = Reading {
        source,
        hooks: Vec::new(),
        warnings: Vec::new(),
    };
    match value {
        Value::Null => {}
        Value::Object(events) => {
            for (name, groups) in events {
                reading.event(name, groups)?;
            }
        }
        _ => return Err(wrong("", "expected an object with events as its keys")),
    }
    Ok((reading.hooks, reading.warnings))
}

fn wrong(place: impl Into<String>, message: impl Into<String>) -> HookConfigError {
    HookConfigError {
        place: place.into(),
        message: message.into(),
    }
}

struct Reading<'a> {
    source: &'a HookSource,
    hooks: Vec<Hook>,
    warnings: Vec<String>,
}

impl Reading<'_> {
    fn warn(&mut self, place: &str, message: &str) {
        let file = &self.source.file;
        self.warnings
            .push(format!("{file}: hooks.{place}: {message}"));
    }

    fn event(&mut self, name: &str, groups: &Value) -> Result<(), HookConfigError> {
        let Some(event) = HookEventKind::by_name(name) else {
            if let Some(meant) = HookEventKind::ALL
                .into_iter()
                .find(|event| slips(name, event.as_str()) <= 1)
            {
                return Err(wrong(name, format!("did you mean `{meant}`?")));
            }
            self.warn(name, "there is no such event here; its hooks never run");
            return Ok(());
        };
        let Value::Array(groups) = groups else {
            return Err(wrong(name, "expected a list"));
        };
        for (number, group) in groups.iter().enumerate() {
            self.group(event, &format!("{name}[{number}]"), group)?;
        }
        Ok(())
    }

    fn group(
        &mut self,
        event: HookEventKind,
        place: &str,
        group: &Value,
    ) -> Result<(), HookConfigError> {
        let Value::Object(fields) = group else {
            return Err(wrong(
                place,
                "expected an object with `matcher` and `hooks`",
            ));
        };
        let matcher = match fields.get("matcher") {
            None | Some(Value::Null) => HookMatcher::default(),
            Some(Value::String(text)) => {
                HookMatcher::parse(text).map_err(|error| wrong(place, error.to_string()))?
            }
            Some(_) => return Err(wrong(place, "`matcher` must be a string")),
        };
        let Some(Value::Array(hooks)) = fields.get("hooks") else {
            return Err(wrong(place, "`hooks` must be a list"));
        };
        for key in fields.keys() {
            if !matches!(key.as_str(), "matcher" | "hooks" | "description") {
                self.warn(place, &format!("`{key}` is not known and left out"));
            }
        }
        for (number, hook) in hooks.iter().enumerate() {
            let place = format!("{place}.hooks[{number}]");
            let Value::Object(fields) = hook else {
                return Err(wrong(place, "expected an object with `type`"));
            };
            let timeout = timeout(fields).map_err(|message| wrong(&place, message))?;
            self.other_fields(&place, fields);
            self.hooks.push(Hook {
                event,
                matcher: matcher.clone(),
                action: action(fields),
                timeout,
                source: self.source.clone(),
            });
        }
        Ok(())
    }

    /// Fields that change when or how a hook runs, and have no such effect here.
    fn other_fields(&mut self, place: &str, fields: &Map<String, Value>) {
        const KNOWN: [&str; 11] = [
            "type",
            "command",
            "timeout",
            "url",
            "headers",
            "allowedEnvVars",
            "prompt",
            "model",
            "statusMessage",
            "description",
            "shell",
        ];
        for key in fields.keys() {
            let told = match key.as_str() {
                key if KNOWN.contains(&key) => continue,
                "async" | "asyncRewake" => "the hook is waited for like any other".to_owned(),
                "if" => "the hook runs for everything that the matcher names".to_owned(),
                _ => "not known and left out".to_owned(),
            };
            self.warn(place, &format!("`{key}`: {told}"));
        }
    }
}

/// Seconds, with a fraction if wanted.
fn timeout(fields: &Map<String, Value>) -> Result<Option<Duration>, String> {
    match fields.get("timeout") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_TIMEOUT => {
                Ok(Some(Duration::from_secs_f64(seconds)))
            }
            _ => Err("`timeout` must be a number of seconds, more than 0".to_owned()),
        },
    }
}

fn action(fields: &Map<String, Value>) -> HookAction {
    let text = |key: &str| match fields.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(format!("its `{key}` is missing")),
    };
    let read = match fields.get("type").and_then(Value::as_str) {
        Some("command") => text("command").map(|command| HookAction::Command { command }),
        Some("http") => text("url").and_then(|url| http(url, fields)),
        Some("prompt") => text("prompt").map(|prompt| HookAction::Prompt {
            prompt,
            model: text("model").ok(),
        }),
        Some(other) => Err(format!("a hook of type `{other}` cannot be run here")),
        None => Err("its `type` is missing".to_owned()),
    };
    read.unwrap_or_else(|reason| HookAction::Broken { reason })
}

fn http(url: String, fields: &Map<String, Value>) -> Result<HookAction, String> {
    let headers = fields.get("headers").cloned().unwrap_or_default();
    let headers = match headers {
        Value::Null => Some(std::collections::BTreeMap::new()),
        value => serde_json::from_value(value).ok(),
    };
    let variables = fields.get("allowedEnvVars").cloned().unwrap_or_default();
    let variables = match variables {
        Value::Null => Some(Vec::new()),
        value => serde_json::from_value(value).ok(),
    };
    Ok(HookAction::Http {
        url,
        headers: headers.ok_or("its `headers` must be an object of strings")?,
        variables: variables.ok_or("its `allowedEnvVars` must be a list of names")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hooks::{HookOrigin, HookSet};

    fn source() -> HookSource {
        HookSource {
            file: "settings.json".to_owned(),
            origin: HookOrigin::User,
            plugin: None,
        }
    }

    fn read(value: &Value) -> Result<(Vec<Hook>, Vec<String>), String> {
        read_hooks(value, &source()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_kind_of_hook_is_read_with_its_matcher_and_time_limit() {
        let value = json!({
            "PreToolUse": [{"matcher": "Bash|Edit", "hooks": [
                {"type": "command", "command": "check.sh", "timeout": 1.5},
                {"type": "http", "url": "http://localhost:1/x", "headers": {"A": "$B"}, "allowedEnvVars": ["B"]},
            ]}],
            "Stop": [{"hooks": [{"type": "prompt", "prompt": "done?", "model": "haiku"}]}],
        });
        let (hooks, warnings) = read(&value).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let shown: Vec<_> = hooks
            .iter()
            .map(|hook| (hook.event.as_str(), hook.matcher.as_str(), hook.kind()))
            .collect();
        assert_eq!(
            shown,
            [
                ("PreToolUse", "Bash|Edit", "command"),
                ("PreToolUse", "Bash|Edit", "http"),
                ("Stop", "", "prompt"),
            ]
        );
        assert_eq!(hooks[0].timeout, Some(Duration::from_millis(1500)));
        assert_eq!(
            hooks[0].to_string(),
            "PreToolUse hook `check.sh` of settings.json"
        );
    }

    #[test]
    fn a_mistake_is_an_error_that_names_its_place() {
        let refused = |value: Value| read(&value).unwrap_err();
        assert_eq!(
            refused(json!({"PreToolUs": []})),
            "hooks.PreToolUs: did you mean `PreToolUse`?"
        );
        assert_eq!(
            refused(json!({"pretooluse": []})),
            "hooks.pretooluse: did you mean `PreToolUse`?"
        );
        let error = refused(json!({"Stop": [{"hooks": []}, {"matcher": "(", "hooks": []}]}));
        assert!(
            error.starts_with("hooks.Stop[1]: the matcher `(` is not"),
            "{error}"
        );
        assert_eq!(
            refused(json!({"Stop": [{"matcher": "x"}]})),
            "hooks.Stop[0]: `hooks` must be a list"
        );
        assert_eq!(refused(json!({"Stop": {}})), "hooks.Stop: expected a list");
        let forever =
            json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 0}]}]});
        assert!(refused(forever).contains("hooks.Stop[0].hooks[0]: `timeout` must be"));
    }

    #[test]
    fn what_cannot_be_run_stays_and_what_has_no_effect_is_told() {
        let value = json!({
            "PreToolUse": [{"hooks": [{"type": "agent", "prompt": "x"}, {"type": "command", "async": true, "command": "y"}]}],
            "WorktreeCreate": [],
        });
        let (hooks, warnings) = read(&value).unwrap();
        assert_eq!(
            hooks[0].action,
            HookAction::Broken {
                reason: "a hook of type `agent` cannot be run here".to_owned()
            }
        );
        assert_eq!(
            warnings,
            [
                "settings.json: hooks.PreToolUse[0].hooks[1]: `async`: the hook is waited for like any other",
                "settings.json: hooks.WorktreeCreate: there is no such event here; its hooks never run",
            ]
        );
    }

    #[test]
    fn identical_hooks_run_once_and_matchers_choose() {
        let group = |matcher: &str, command: &str| json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}]});
        let value = json!({
            "PreToolUse": [group("Bash", "a"), group("*", "a"), group("Edit", "b"), group("", "c")],
            "Stop": [group("ignored", "d")],
        });
        let mut set = HookSet::default();
        set.add(read(&value).unwrap().0);
        let matching = |event, subject: &str| {
            let found = set.matching(event, &[subject.to_owned()]);
            found.iter().map(|hook| hook.summary()).collect::<Vec<_>>()
        };
        assert_eq!(matching(HookEventKind::PreToolUse, "Bash"), ["a", "c"]);
        assert_eq!(matching(HookEventKind::PreToolUse, "Edit"), ["a", "b", "c"]);
        assert_eq!(matching(HookEventKind::Stop, ""), ["d"]);
        assert!(!set.listens(HookEventKind::SessionStart));
    }
}
