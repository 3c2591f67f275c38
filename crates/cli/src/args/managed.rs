//! Settings by which a host restricts the sessions that it starts.
//!
//! Deny rules count, like those of the command line. What else there may be is named on standard
//! error: whoever relies on it has to know.

use codespar_runtime::ProjectOptions;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::printer;

/// What of them has a meaning here, and the names of the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ManagedSettings {
    deny: Vec<String>,
    left_out: Vec<String>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    permissions: Permissions,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct Permissions {
    #[serde(default)]
    deny: Vec<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl ManagedSettings {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Self::read(value)
    }

    /// From an object, or a text that holds one.
    pub(crate) fn read(value: Value) -> Result<Self, String> {
        if let Value::String(text) = &value {
            return Self::parse(text);
        }
        let written: Written = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let permissions = written.permissions.others.into_iter();
        let permissions = permissions.map(|(name, _)| format!("permissions.{name}"));
        let others = written.others.into_iter().map(|(name, _)| name);
        Ok(Self {
            deny: written.permissions.deny,
            left_out: permissions.chain(others).collect(),
        })
    }

    /// Adds them to the options of a project.
    pub(crate) fn apply(self, options: &mut ProjectOptions) {
        options.disallowed_tools.extend(self.deny);
        if !self.left_out.is_empty() {
            printer::err(format_args!(
                "codespar: of managed settings only permissions.deny counts here; left out: {}",
                self.left_out.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_rules_are_taken_and_the_rest_is_named() {
        let text = r#"{"permissions": {"deny": ["Bash"], "ask": ["Read"]}, "model": "opus"}"#;
        let managed = ManagedSettings::parse(text).unwrap();
        let expected = ManagedSettings {
            deny: vec!["Bash".to_owned()],
            left_out: vec!["permissions.ask".to_owned(), "model".to_owned()],
        };
        assert_eq!(managed, expected);
        assert_eq!(
            ManagedSettings::read(Value::String(text.to_owned())),
            Ok(expected)
        );
        assert!(ManagedSettings::parse(r#"{"permissions": {"deny": "Bash"}}"#).is_err());
    }
}
