//! Settings files of another tool: its permissions are read, the rest is not ours to judge.
//!
//! Only `permissions` is read. Unknown keys elsewhere are ignored, since the other product may add
//! some at any time. Modes are taken over only if they are stricter than our default; a mode of the
//! other product must not loosen ours.

use std::{collections::BTreeMap, path::PathBuf};

use codespar_policy::Mode;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    Permissions, parse,
    rules::{Source, is_slip},
};
use crate::error::RuntimeError;

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

/// Values are kept as written, so that an error can name the place of a rule in the file.
type Keys<'a> = BTreeMap<String, &'a RawValue>;

/// Reads its permissions. A key that looks like a misspelt one is an error: deny rules may stand
/// under it.
pub(super) fn permissions<'a>(
    source: &Source<'a>,
    warnings: &mut Vec<String>,
) -> Result<Option<Permissions<'a>>, RuntimeError> {
    let Some(file) = parse::<Keys<'a>>(source.path, source.text)? else {
        return Ok(None);
    };
    let shown = source.path.display();
    let misspelt = |key: &str, known: &str| {
        RuntimeError::Usage(format!("{shown}: `{key}` looks like a misspelt `{known}`"))
    };
    if let Some(key) = file.keys().find(|key| is_slip(key, "permissions")) {
        return Err(misspelt(key, "permissions"));
    }
    let Some(raw) = file.get("permissions") else {
        return Ok(Some(Permissions::default()));
    };
    let keys: Keys<'a> = of(source, raw)?;
    for key in keys.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        match KNOWN.iter().find(|known| is_slip(key, known)) {
            Some(known) => return Err(misspelt(key, known)),
            None => warnings.push(format!(
                "{shown}: permissions.{key} is not known and left out"
            )),
        }
    }
    let list = |key: &str| -> Result<Vec<&'a RawValue>, RuntimeError> {
        keys.get(key).map_or(Ok(Vec::new()), |raw| of(source, raw))
    };
    let mode: Option<String> = keys.get("defaultMode").and_then(|raw| owned(raw));
    let dirs: Option<Vec<PathBuf>> = keys.get("additionalDirectories").and_then(|raw| owned(raw));
    Ok(Some(Permissions {
        allow: list("allow")?,
        ask: list("ask")?,
        deny: list("deny")?,
        // It may make us stricter, never looser; modes that only the other tool has say nothing.
        default_mode: mode
            .and_then(|mode| mode.parse().ok())
            .filter(|mode| matches!(mode, Mode::Plan | Mode::DontAsk)),
        additional_directories: dirs.unwrap_or_default(),
    }))
}

fn of<'a, T: serde::Deserialize<'a>>(
    source: &Source<'a>,
    raw: &'a RawValue,
) -> Result<T, RuntimeError> {
    serde_json::from_str(raw.get()).map_err(|error| {
        RuntimeError::Usage(format!("{}: permissions: {error}", source.path.display()))
    })
}

/// `None` for a value of another type: what is not a permission list is not worth an error.
fn owned<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
