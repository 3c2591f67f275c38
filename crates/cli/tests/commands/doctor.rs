//! `codespar doctor`: which provider, where, and whether it answers.

use std::process::Command;

use codespar_testkit::{Fault, Script, Turn, process::spawn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, parsed};

/// Runs it and gives the findings that are about the provider, and the exit code.
fn doctor(command: &mut Command) -> (Vec<Value>, Option<i32>) {
    let finished = spawn(command).unwrap().wait(PATIENCE).unwrap();
    let report = parsed(&finished.stdout);
    let findings = report["findings"].as_array().unwrap().iter();
    let about = |finding: &&Value| finding["name"] == "base URL" || finding["name"] == "online";
    let findings = findings.filter(about).cloned().collect();
    (findings, finished.status.code())
}

/// What `--online` says about a model that answers so, and the exit code.
fn online(bench: &Bench, args: &[&str]) -> (String, Option<i32>) {
    let args = [&["doctor", "--json", "--online"], args].concat();
    let (findings, code) = doctor(&mut bench.command(&args));
    let says = findings[1]["says"].as_str().unwrap();
    (says.to_owned(), code)
}

fn failing(fault: Fault) -> Bench {
    Bench::new(Script::new().turn(Turn::text("OK").fault(fault)))
}

#[test]
fn the_base_url_is_shown_without_credentials_and_nothing_is_requested() {
    let bench = Bench::new(Script::new().turn(Turn::text("OK")));
    let secret = "hunter2-hunter2-hunter2";
    let url = bench.server.url();
    let with_login = url.replace("http://", &format!("http://ada:{secret}@"));
    let mut command = bench.command(&["doctor", "--json"]);
    command.env("ANTHROPIC_BASE_URL", format!("{with_login}/?key={secret}"));
    let (findings, code) = doctor(&mut command);
    let shown = format!("{}/", url.trim_end_matches('/'));
    assert_eq!(
        (findings, code),
        (
            vec![json!({"name": "base URL", "health": "ok", "says": shown})],
            Some(0)
        )
    );
    let mut command = bench.command(&["doctor"]);
    command.env("ANTHROPIC_BASE_URL", &with_login);
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    let line = format!("✓ base URL  {shown}");
    assert!(
        finished.stdout.lines().any(|shown| shown == line),
        "{}",
        finished.stdout
    );
    assert!(!finished.stdout.contains(secret), "{}", finished.stdout);
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn online_makes_one_small_request_and_says_who_answered() {
    let bench = Bench::new(Script::new().turn(Turn::text("OK")));
    let (says, code) = online(&bench, &[]);
    assert_eq!(code, Some(0), "{says}");
    assert!(says.contains(" answered in "), "{says}");
    assert_eq!(bench.server.request_count(), 1);
    let request = bench.server.last_request().unwrap();
    assert_eq!(request.json()["max_tokens"], 16);
}

#[test]
fn online_says_what_is_wrong_and_what_to_do_after_one_try() {
    let status = |status, kind: &str, message: &str| -> Fault {
        Fault::status(status).error(kind, message).into()
    };
    for (fault, expected) in [
        (
            status(401, "authentication_error", "invalid x-api-key"),
            "anthropic answered 401: invalid x-api-key; set ANTHROPIC_API_KEY (or \
             ANTHROPIC_AUTH_TOKEN for a bearer token) to a valid key",
        ),
        (
            status(403, "permission_error", "not allowed"),
            "anthropic answered 403: not allowed; check that the key may use this API and this \
             model",
        ),
        (
            status(404, "not_found_error", "model: no-such-model"),
            "anthropic answered 404: model: no-such-model; check the name of the model \
             `no-such-model` (--model, CODESPAR_MODEL or `model` in the settings)",
        ),
        (
            status(529, "overloaded_error", "overloaded"),
            "anthropic answered 529: overloaded; the provider has a problem; try again later",
        ),
    ] {
        let bench = failing(fault);
        let mut command = bench.command(&["doctor", "--json", "--online"]);
        command.env("CODESPAR_MODEL", "no-such-model");
        let (findings, code) = doctor(&mut command);
        assert_eq!(
            (&findings[1], code),
            (
                &json!({"name": "online", "health": "error", "says": expected}),
                Some(1)
            )
        );
        assert_eq!(bench.server.request_count(), 1, "{expected}");
    }
}

#[test]
fn online_says_when_nobody_listens_or_answers_and_when_there_is_no_key() {
    let bench = Bench::new(Script::new());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let mut command = bench.command(&["doctor", "--json", "--online"]);
    command.env("ANTHROPIC_BASE_URL", format!("http://{address}"));
    let (findings, code) = doctor(&mut command);
    let says = findings[1]["says"].as_str().unwrap();
    assert_eq!(code, Some(1), "{says}");
    for expected in [
        &format!("cannot reach anthropic at http://{address}/v1/messages: "),
        "Connection refused",
        "check ANTHROPIC_BASE_URL, that the server runs, and the network or proxy",
    ] {
        assert!(says.contains(expected), "{expected} is not in {says}");
    }

    let silent = failing(Fault::HangBeforeHeaders);
    let url = format!("{}/", silent.server.url().trim_end_matches('/'));
    assert_eq!(
        online(&silent, &["--timeout", "1"]),
        (
            format!(
                "no answer from {url} within 1 s; check ANTHROPIC_BASE_URL and the network, or \
                 give more time with --timeout"
            ),
            Some(1)
        )
    );

    let mut command = bench.command(&["doctor", "--json", "--online"]);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    let (findings, code) = doctor(&mut command);
    assert_eq!(
        (findings, code),
        (
            vec![json!({
                "name": "online", "health": "error",
                "says": "nothing was requested: no key is set; set ANTHROPIC_API_KEY, or \
                         OPENAI_API_KEY / OPENAI_BASE_URL",
            })],
            Some(1)
        )
    );
}
