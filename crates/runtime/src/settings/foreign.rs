//! Settings files of another tool: what has the same meaning here is taken over.
//!
//! ```text
//! permissions, hooks     as in our own files
//! env, model, outputStyle, enabledMcpjsonServers, enableAllProjectMcpServers, enabledPlugins
//! everything else        not ours to judge
//! ```
//!
//! A mistake is a warning with file and line, and what it is about is left out: the file was written
//! for another program and may be right there. Where somebody may rely on it to forbid something, it
//! is an error: deny and ask rules, hooks, and keys that look like misspelt ones of these. Modes are
//! taken over only if they are stricter than our default; a mode of the other product must not
//! loosen ours.

use std::{collections::BTreeMap, path::PathBuf};

use codespar_policy::Mode;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    Permissions, parse,
    rules::{Source, is_slip},
};
use crate::{error::RuntimeError, provider::model_name};

/// Keys of `permissions` there; those we do not use change nothing that we do.
const KNOWN: [&str; 7] = [
    "allow",
    "ask",
    "deny",
    "defaultMode",
    "additionalDirectories",
    "disableBypassPermissionsMode",
    "skipDangerousModePermissionPrompt",
];

/// In a file that cannot be read, these words tell that it would forbid something.
const FORBIDDING: [&str; 3] = ["\"deny\"", "\"ask\"", "\"hooks\""];

/// Values are kept as written, so that an error can name the place of a rule in the file.
type Keys<'a> = BTreeMap<String, &'a RawValue>;

/// What is taken of such a file.
#[derive(Default)]
pub(super) struct ForeignFile<'a> {
    pub(super) permissions: Permissions<'a>,
    pub(super) hooks: Option<&'a RawValue>,
    pub(super) disable_all_hooks: Option<bool>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) model: Option<String>,
    pub(super) output_style: Option<String>,
    pub(super) enabled_servers: Vec<String>,
    pub(super) enable_all_servers: Option<bool>,
    /// By `NAME@MARKETPLACE`.
    pub(super) enabled_plugins: BTreeMap<String, bool>,
}

/// Reads it. A key that looks like a misspelt one is an error: deny rules or hooks that refuse
/// things may stand under it.
pub(super) fn read<'a>(
    source: &Source<'a>,
    warnings: &mut Vec<String>,
) -> Result<Option<ForeignFile<'a>>, RuntimeError> {
    let file = match parse::<Keys<'a>>(source.path, source.text) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(error) if FORBIDDING.iter().any(|word| source.text.contains(word)) => {
            return Err(error);
        }
        Err(error) => {
            warnings.push(format!("{error}; the file is ignored"));
            return Ok(None);
        }
    };
    for known in ["permissions", "hooks"] {
        if let Some(key) = file.keys().find(|key| is_slip(key, known)) {
            return Err(misspelt(source, key, known));
        }
    }
    let permissions = permissions(&file, source, warnings)?;
    let mut taking = Taking {
        file: &file,
        source,
        warnings,
    };
    let model: Option<String> = taking.value("model", "a text");
    Ok(Some(ForeignFile {
        permissions,
        hooks: file.get("hooks").copied(),
        disable_all_hooks: taking.value("disableAllHooks", "true or false"),
        env: taking.env(),
        model: model.and_then(|model| model_name(&model)),
        output_style: taking.value("outputStyle", "a text"),
        enabled_servers: taking
            .value("enabledMcpjsonServers", "a list of texts")
            .unwrap_or_default(),
        enable_all_servers: taking.value("enableAllProjectMcpServers", "true or false"),
        enabled_plugins: taking
            .value("enabledPlugins", "an object of true and false")
            .unwrap_or_default(),
    }))
}

/// Keys whose mistakes are warnings.
struct Taking<'f, 'a, 'w> {
    file: &'f Keys<'a>,
    source: &'f Source<'a>,
    warnings: &'w mut Vec<String>,
}

impl Taking<'_, '_, '_> {
    fn value<T: DeserializeOwned>(&mut self, key: &str, expected: &str) -> Option<T> {
        let raw = self.file.get(key).filter(|raw| raw.get() != "null")?;
        let value = owned(raw);
        if value.is_none() {
            let at = self.source.at(raw);
            self.warnings
                .push(format!("{at}: `{key}` is ignored: expected {expected}"));
        }
        value
    }

    /// Numbers and truth values count as the text they are written as.
    fn env(&mut self) -> BTreeMap<String, String> {
        let values: Option<BTreeMap<String, serde_json::Value>> =
            self.value("env", "an object of texts");
        let texts = values.into_iter().flatten().filter_map(|(name, value)| {
            let text = match value {
                serde_json::Value::String(text) => text,
                serde_json::Value::Number(_) | serde_json::Value::Bool(_) => value.to_string(),
                _ => return None,
            };
            Some((name, text))
        });
        texts.collect()
    }
}

fn misspelt(source: &Source<'_>, key: &str, known: &str) -> RuntimeError {
    let shown = source.path.display();
    RuntimeError::Usage(format!("{shown}: `{key}` looks like a misspelt `{known}`"))
}

fn permissions<'a>(
    file: &Keys<'a>,
    source: &Source<'a>,
    warnings: &mut Vec<String>,
) -> Result<Permissions<'a>, RuntimeError> {
    let shown = source.path.display();
    let Some(raw) = file.get("permissions") else {
        return Ok(Permissions::default());
    };
    let keys: Keys<'a> = of(source, raw)?;
    for key in keys.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        match KNOWN.iter().find(|known| is_slip(key, known)) {
            Some(known) => return Err(misspelt(source, key, known)),
            None => warnings.push(format!(
                "{shown}: permissions.{key} is not known and left out"
            )),
        }
    }
    let list = |key: &str| -> Result<Vec<&'a RawValue>, RuntimeError> {
        keys.get(key).map_or(Ok(Vec::new()), |raw| of(source, raw))
    };
    let allow = list("allow").unwrap_or_else(|error| {
        warnings.push(format!("{error}; permissions.allow is ignored"));
        Vec::new()
    });
    let mut taking = Taking {
        file: &keys,
        source,
        warnings,
    };
    let mode: Option<String> = taking.value("defaultMode", "a text");
    let dirs: Option<Vec<PathBuf>> = taking.value("additionalDirectories", "a list of texts");
    Ok(Permissions {
        allow,
        ask: list("ask")?,
        deny: list("deny")?,
        // It may make us stricter, never looser; modes that only the other tool has say nothing.
        default_mode: mode
            .and_then(|mode| mode.parse().ok())
            .filter(|mode| matches!(mode, Mode::Plan | Mode::DontAsk)),
        additional_directories: dirs.unwrap_or_default(),
    })
}

fn of<'a, T: serde::Deserialize<'a>>(
    source: &Source<'a>,
    raw: &'a RawValue,
) -> Result<T, RuntimeError> {
    serde_json::from_str(raw.get())
        .map_err(|error| RuntimeError::Usage(format!("{}: permissions: {error}", source.at(raw))))
}

/// `None` for a value of another type.
fn owned<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{super::Author, *};

    fn read(text: &str) -> (Result<Option<ForeignFile<'_>>, RuntimeError>, Vec<String>) {
        let source = Source {
            path: Path::new("settings.json"),
            text,
            author: Author::Foreign,
        };
        let mut warnings = Vec::new();
        let read = super::read(&source, &mut warnings);
        (read, warnings)
    }

    #[test]
    fn what_means_the_same_here_is_taken_over() {
        let text = r#"{"model": "opus[1m]", "env": {"A": "b", "N": 1}, "outputStyle": "Terse",
            "enabledMcpjsonServers": ["db"], "statusLine": {"type": "command"}, "alwaysThinkingEnabled": true}"#;
        let (file, warnings) = read(text);
        let file = file.unwrap().unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(file.model.as_deref(), Some("opus"));
        assert_eq!(file.env.get("N").map(String::as_str), Some("1"));
        assert_eq!(file.output_style.as_deref(), Some("Terse"));
        assert_eq!(file.enabled_servers, ["db"]);
        assert_eq!(
            read(r#"{"model": "default"}"#).0.unwrap().unwrap().model,
            None
        );
    }

    #[test]
    fn a_mistake_is_a_warning_with_its_line_unless_it_would_forbid_something() {
        let text = "{\n  \"model\": 7,\n  \"permissions\": {\"allow\": 1, \"defaultMode\": []}\n}";
        let (file, warnings) = read(text);
        assert!(file.unwrap().unwrap().permissions.allow.is_empty());
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(
            warnings[0].starts_with("settings.json:3:28: permissions: "),
            "{warnings:?}"
        );
        assert!(
            warnings[1].starts_with("settings.json:3:46: `defaultMode` is ignored"),
            "{warnings:?}"
        );
        assert_eq!(
            warnings[2],
            "settings.json:2:12: `model` is ignored: expected a text"
        );
        let (file, warnings) = read("{\"model\": \"opus\",\n}");
        assert!(file.unwrap().is_none());
        assert!(
            warnings[0].starts_with("settings.json:2:1: "),
            "{warnings:?}"
        );
        assert!(
            warnings[0].ends_with("; the file is ignored"),
            "{warnings:?}"
        );
        for text in [
            r#"{"permissions": {"deny": ["Bash"],}}"#,
            r#"{"permissions": {"deny": "Bash"}}"#,
            r#"{"permisions": {}}"#,
            r#"{"permissions": {"dney": []}}"#,
        ] {
            assert!(read(text).0.is_err(), "{text}");
        }
    }
}
