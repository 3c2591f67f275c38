//! Settings files with anything in them: read or refused by name, and without trust they grant
//! nothing.

use std::path::Path;

use codespar_policy::Mode;
use proptest::prelude::*;

use super::{File, parse};
use crate::error::RuntimeError;

const KEYS: &[&str] = &[
    "$schema",
    "permissions",
    "allow",
    "deny",
    "ask",
    "defaultMode",
    "additionalDirectories",
    "env",
    "sandbox",
    "mode",
    "network",
    "allowedDomains",
    "allowPackageHosts",
    "allowWrite",
    "passEnv",
    "mcpServers",
    "enabledMcpServers",
    "enableAllProjectMcpServers",
    "maxTokens",
    "cleanupPeriodDays",
    "verify",
    "command",
    "dev",
    "protected",
    "forge",
    "model",
];

const VALUES: &[&str] = &[
    "true",
    "false",
    "null",
    "1",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"Bash\"",
    "\"bypassPermissions\"",
    "\"acceptEdits\"",
    "\"plan\"",
    "\"off\"",
    "\"*\"",
    "\"\\ud800\"",
    "[\"Bash\", \"Read(//**)\"]",
    "[\"localhost:80\"]",
    "[1, null]",
    "{\"x\": {\"command\": \"touch\"}}",
    "{\"LD_PRELOAD\": \"x\"}",
];

/// Objects of known keys, nested, with keys that stand twice.
fn object() -> impl Strategy<Value = String> {
    let value = prop::sample::select(VALUES).prop_map(str::to_owned);
    value.prop_recursive(4, 64, 6, |inner| {
        let entry = (prop::sample::select(KEYS), inner);
        prop::collection::vec(entry, 0..6).prop_map(|entries| {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("\"{key}\": {value}"));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        })
    })
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let file = match parse::<File<'_>>(Path::new("x.json"), text) {
        Ok(Some(file)) => file.without_grants(),
        Ok(None) => return Ok(()),
        Err(RuntimeError::Usage(message)) => {
            prop_assert!(message.starts_with("x.json:"), "{message}");
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    prop_assert!(file.permissions.allow.is_empty());
    prop_assert!(file.permissions.additional_directories.is_empty());
    prop_assert!(matches!(
        file.permissions.default_mode,
        None | Some(Mode::Plan)
    ));
    prop_assert!(file.env.is_empty() && file.mcp_servers.is_empty());
    prop_assert!(file.enabled_mcp_servers.is_empty());
    prop_assert!(file.enable_all_project_mcp_servers.is_none());
    prop_assert!(file.sandbox.mode.is_none() && file.sandbox.network != Some(true));
    prop_assert!(file.refuse_widening(Path::new("x.json")).is_ok());
    Ok(())
}

proptest! {
    #[test]
    fn any_text_is_settings_or_a_named_error(text in "\\PC{0,200}") {
        check(&text)?;
        check(&format!("{{{text}"))?;
    }

    #[test]
    fn no_settings_of_an_untrusted_project_grant_anything(text in object()) {
        check(&text)?;
    }
}
