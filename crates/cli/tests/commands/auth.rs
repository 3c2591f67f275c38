//! `codespar auth status`: where the key comes from, without the key.

use codespar_testkit::{Script, process::spawn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE};

/// The exit code and what is printed, with these variables and no other key.
fn status(vars: &[(&str, &str)], args: &[&str]) -> (Option<i32>, String) {
    let bench = Bench::new(Script::new());
    let mut command = bench.command(&[&["auth", "status"], args].concat());
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    for (name, value) in vars {
        command.env(name, value);
    }
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    for (_, value) in vars.iter().filter(|(_, value)| value.starts_with("sk-")) {
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(!said.contains(value), "{said}");
    }
    (finished.status.code(), finished.stdout)
}

#[test]
fn the_variable_of_the_key_and_the_provider_are_named() {
    let json = |vars: &[(&str, &str)]| {
        let (code, text) = status(vars, &["--json"]);
        (code, serde_json::from_str::<Value>(&text).unwrap())
    };
    assert_eq!(
        json(&[("ANTHROPIC_API_KEY", "sk-ant-1234567890")]),
        (
            Some(0),
            json!({"loggedIn": true, "authMethod": "api_key", "apiProvider": "firstParty", "apiKeySource": "ANTHROPIC_API_KEY"})
        )
    );
    assert_eq!(
        json(&[("ANTHROPIC_AUTH_TOKEN", "sk-token-1234567890")]),
        (
            Some(0),
            json!({"loggedIn": true, "authMethod": "oauth_token", "apiProvider": "firstParty", "apiKeySource": "ANTHROPIC_AUTH_TOKEN"})
        )
    );
    assert_eq!(
        json(&[("OPENAI_API_KEY", "sk-oai-1234567890")]),
        (
            Some(0),
            json!({"loggedIn": true, "authMethod": "api_key", "apiProvider": "openai", "apiKeySource": "OPENAI_API_KEY"})
        )
    );
    assert_eq!(
        json(&[("OPENAI_BASE_URL", "http://127.0.0.1:1")]),
        (
            Some(0),
            json!({"loggedIn": true, "authMethod": "none", "apiProvider": "openai"})
        )
    );
    assert_eq!(
        json(&[]),
        (
            Some(1),
            json!({"loggedIn": false, "authMethod": "none", "apiProvider": "firstParty"})
        )
    );
}

#[test]
fn people_are_told_in_one_line() {
    let (code, text) = status(&[("ANTHROPIC_API_KEY", "sk-ant-1234567890")], &[]);
    assert_eq!(
        (code, text.trim()),
        (Some(0), "anthropic: the key of ANTHROPIC_API_KEY")
    );
    let (code, text) = status(&[], &[]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("no key is set; set ANTHROPIC_API_KEY"),
        "{text}"
    );
}
