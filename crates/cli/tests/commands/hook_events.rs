//! `--include-hook-events`: lines about the hooks that run, of settings and of clients.

use std::fs;

use codespar_testkit::{Script, SdkClient, Turn};
use serde_json::{Value, json};

use crate::common::{Bench, one_command};

/// A hook of the user when a session begins, and one that refuses commands.
fn bench(script: Script) -> Bench {
    let bench = Bench::new(script);
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {
        "SessionStart": hook("echo the tests need a database"),
        "PreToolUse": hook("echo not here >&2; exit 2"),
    }});
    let home = bench.room.codespar_home();
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    bench
}

/// Event, name and end of each hook that ended.
fn ended(lines: &[Value]) -> Vec<(&str, &str, &str)> {
    let ended = lines
        .iter()
        .filter(|line| line["subtype"] == "hook_response");
    let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    ended
        .map(|line| {
            let started = lines.iter().find(|other| {
                other["subtype"] == "hook_started" && other["hook_id"] == line["hook_id"]
            });
            let started = started.unwrap();
            assert_eq!(word(started, "hook_name"), word(line, "hook_name"));
            assert_eq!(word(started, "session_id"), word(&lines[0], "session_id"));
            (
                line["hook_event"].as_str().unwrap(),
                line["hook_name"].as_str().unwrap(),
                line["outcome"].as_str().unwrap(),
            )
        })
        .collect()
}

const START: (&str, &str, &str) = ("SessionStart", "SessionStart:startup", "success");

#[test]
fn all_hooks_of_settings_are_told_in_a_run_that_asks_for_it() {
    let bench = bench(one_command("echo hi"));
    let (lines, code) = bench.stream(&["-p", "go", "--include-hook-events"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        ended(&lines),
        [START, ("PreToolUse", "PreToolUse:Bash", "error")]
    );
    let refused = lines.iter().find(|line| line["exit_code"] == 2).unwrap();
    assert_eq!(refused["stderr"].as_str().unwrap().trim(), "not here");
    let began = lines.iter().find(|line| line["exit_code"] == 0).unwrap();
    assert_eq!(
        began["output"].as_str().unwrap().trim(),
        "the tests need a database"
    );
}

#[test]
fn the_start_of_a_session_is_told_in_any_case() {
    let bench = bench(one_command("echo hi"));
    let (lines, code) = bench.stream(&["-p", "go"]);
    assert_eq!((code, ended(&lines)), (Some(0), vec![START]));
    let finished = bench.run(&["-p", "go", "--include-hook-events"]);
    assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("--output-format stream-json"));
}

#[test]
fn a_client_is_told_of_hooks_of_settings_besides_its_own() {
    let bench = bench(Script::new().turn(Turn::text("done")));
    let args = [
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--include-hook-events",
    ];
    let mut client = SdkClient::start(&mut bench.command(&args)).unwrap();
    let hooks = json!({"UserPromptSubmit": [{"hookCallbackIds": ["hook_0"]}]});
    let initialize = json!({"subtype": "initialize", "hooks": hooks});
    client.request(&initialize).unwrap().unwrap();
    client.prompt("go").unwrap();
    let mut lines = client
        .until(|line| line["request"]["subtype"] == "hook_callback")
        .unwrap();
    let asked = lines.pop().unwrap();
    client.answer(&asked, &json!({})).unwrap();
    lines.extend(client.turn().unwrap());
    lines.retain(|line| line["type"] == "system");
    let own = ("UserPromptSubmit", "UserPromptSubmit:callback", "success");
    let lines_of_hooks: Vec<Value> = lines
        .iter()
        .filter(|line| line["session_id"].is_string())
        .cloned()
        .collect();
    assert_eq!(ended(&lines_of_hooks), [START, own]);
}
