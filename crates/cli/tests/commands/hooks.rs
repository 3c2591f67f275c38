//! Hooks through the real binary: where they hold, what they are told, and what they cannot do.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use codespar_testkit::{
    Conversation, Matcher, Script, Turn,
    process::{Finished, processes_with_cmdline, spawn},
};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, one_command, parsed, session, tool_results};

/// Settings with one hook for an event.
fn hook(event: &str, matcher: &str, command: &str) -> Value {
    timed(event, matcher, command, 60)
}

fn timed(event: &str, matcher: &str, command: &str, timeout: u64) -> Value {
    let hook = json!({"type": "command", "command": command, "timeout": timeout});
    json!({"hooks": {event: [{"matcher": matcher, "hooks": [hook]}]}})
}

/// Settings of the user.
fn of_user(bench: &Bench, settings: &Value) {
    let home = bench.room.codespar_home();
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("settings.json"), settings.to_string()).unwrap();
}

/// Settings of the repository, which is trusted.
fn of_project(bench: &Bench, settings: &Value) {
    bench.file(".claude/settings.json", &settings.to_string());
    bench.trust();
}

fn prompt(bench: &Bench, args: &[&str]) -> (Vec<String>, Finished) {
    let args = [&["-p", "go", "--output-format", "stream-json"], args].concat();
    let finished = bench.run(&args);
    let lines = crate::common::json_lines(&finished.stdout);
    (tool_results(&lines), finished)
}

fn allowed(bench: &Bench) -> (Vec<String>, Finished) {
    prompt(bench, &["--allowedTools", "Bash"])
}

/// A script of the repository that can be executed.
fn script(bench: &Bench, name: &str, text: &str) -> PathBuf {
    let path = bench.file(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

const NO_RM: &str = r#"#!/bin/sh
command=$(cat | sed 's/.*"command":"//; s/".*//')
case "$command" in *touch*) echo "touching is not done here" >&2; exit 2;; esac
"#;

const REFUSED: &str = "permission denied: a PreToolUse hook refused it: touching is not done here";

#[test]
fn a_hook_of_the_user_that_exits_with_2_blocks_a_call_in_a_headless_run() {
    let bench = Bench::new(one_command("touch made"));
    let check = script(&bench, "check.sh", NO_RM);
    of_user(&bench, &hook("PreToolUse", "Bash", check.to_str().unwrap()));
    let (results, finished) = prompt(&bench, &["--dangerously-skip-permissions"]);
    assert_eq!(results, [REFUSED], "{}", finished.stderr);
    assert!(!bench.work().join("made").exists());
}

#[test]
fn a_hook_of_a_trusted_repository_blocks_in_the_sandbox_and_an_untrusted_one_does_not_run() {
    let bench = Bench::new(one_command("touch made"));
    let outside = bench.room.home().join("outside");
    let body = NO_RM.replace(
        "command=",
        &format!(
            "touch {} ran-in-project 2>/dev/null\ncommand=",
            outside.display()
        ),
    );
    script(&bench, "tools/check.sh", &body);
    let settings = hook(
        "PreToolUse",
        "Bash|Edit",
        "\"$CLAUDE_PROJECT_DIR\"/tools/check.sh",
    );
    bench.file(".claude/settings.json", &settings.to_string());
    let (results, finished) = allowed(&bench);
    assert!(bench.work().join("made").exists(), "{results:?}");
    assert!(
        finished
            .stderr
            .contains("hook PreToolUse Bash|Edit: \"$CLAUDE_PROJECT_DIR\"/tools/check.sh"),
        "{}",
        finished.stderr
    );
    assert!(!bench.work().join("ran-in-project").exists());

    bench.trust();
    fs::remove_file(bench.work().join("made")).unwrap();
    let (results, _) = allowed(&bench);
    assert_eq!(results, [REFUSED]);
    assert!(!bench.work().join("made").exists());
    // It ran, confined.
    assert!(bench.work().join("ran-in-project").exists());
    assert!(!outside.exists());

    // A change of the file asks again.
    bench.file(
        ".claude/settings.json",
        &hook("PreToolUse", "Bash", "true").to_string(),
    );
    let (_, finished) = allowed(&bench);
    assert!(
        finished.stderr.contains("has changed since you decided"),
        "{}",
        finished.stderr
    );
}

#[test]
fn only_the_users_own_settings_let_hooks_of_a_repository_out_of_the_sandbox() {
    let bench = Bench::new(one_command("true"));
    let outside = bench.room.home().join("outside");
    of_project(
        &bench,
        &hook("PreToolUse", "", &format!("touch {}", outside.display())),
    );
    allowed(&bench);
    assert!(!outside.exists());
    of_user(&bench, &json!({"projectHooks": "off"}));
    let (results, _) = allowed(&bench);
    assert_eq!(results, ["(no output)"]);
    of_user(&bench, &json!({"projectHooks": "outside"}));
    allowed(&bench);
    assert!(outside.exists());
    bench.file(".codespar/settings.json", r#"{"projectHooks": "outside"}"#);
    let finished = bench.run(&["-p", "go", "--trust"]);
    assert!(
        finished
            .stderr
            .contains("projectHooks cannot be set by a project"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_hook_is_told_what_happens_and_finds_the_project_in_its_environment() {
    let bench = Bench::new(one_command("echo hello"));
    let seen = bench.work().join("seen");
    let command = format!(
        "cat >> {0}.json; echo \"$CLAUDE_PROJECT_DIR $CODESPAR_PROJECT_DIR $CODESPAR_HOOK_EVENT ${{ANTHROPIC_API_KEY-none}}\" >> {0}.env",
        seen.display()
    );
    let mut hooks = serde_json::Map::new();
    for event in [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ] {
        hooks.insert(
            event.to_owned(),
            hook(event, "", &command)["hooks"][event].clone(),
        );
    }
    of_user(&bench, &json!({"hooks": hooks}));
    let (results, finished) = allowed(&bench);
    assert_eq!(results, ["hello"], "{}", finished.stderr);
    let told = crate::common::json_lines(&fs::read_to_string(seen.with_extension("json")).unwrap());
    let events: Vec<&str> = told
        .iter()
        .map(|one| one["hook_event_name"].as_str().unwrap())
        .collect();
    assert_eq!(
        events,
        [
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "Stop",
            "SessionEnd"
        ]
    );
    let work = bench.work().canonicalize().unwrap();
    for one in &told {
        assert_eq!(one["cwd"], work.to_str().unwrap());
        assert_eq!(one["permission_mode"], "default");
        assert!(
            one["session_id"].as_str().is_some_and(|id| id.len() > 10),
            "{one}"
        );
    }
    assert_eq!(told[0]["source"], "startup");
    assert_eq!(told[1]["prompt"], "go");
    assert_eq!(told[2]["tool_name"], "Bash");
    assert_eq!(told[2]["tool_input"], json!({"command": "echo hello"}));
    assert_eq!(told[3]["tool_response"]["stdout"], "hello");
    assert_eq!(told[4]["stop_hook_active"], false);
    assert_eq!(told[4]["last_assistant_message"], "done");
    assert_eq!(told[5]["reason"], "other");
    let transcript = fs::read_to_string(told[4]["transcript_path"].as_str().unwrap()).unwrap();
    let lines = crate::common::json_lines(&transcript);
    assert_eq!(lines[0]["message"]["role"], "user");
    assert_eq!(lines.last().unwrap()["type"], "assistant");
    let env = fs::read_to_string(seen.with_extension("env")).unwrap();
    let work = work.display();
    assert!(
        env.contains(&format!("{work} {work} PreToolUse none\n")),
        "{env}"
    );
}

#[test]
fn what_a_hook_says_about_the_model_reaches_it_marked_as_such() {
    let bench = Bench::new(one_command("echo hello"));
    let context = |event: &str, text: &str| {
        let answer =
            json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}});
        hook(event, "", &format!("echo '{answer}'"))["hooks"][event].clone()
    };
    of_user(
        &bench,
        &json!({"hooks": {
            "SessionStart": hook("SessionStart", "startup", "echo plain words")["hooks"]["SessionStart"],
            "UserPromptSubmit": context("UserPromptSubmit", "about the prompt"),
            "PostToolUse": context("PostToolUse", "about the call"),
        }}),
    );
    let (results, _) = allowed(&bench);
    assert_eq!(
        results,
        ["hello\n\n<hook event=\"PostToolUse\">\nabout the call\n</hook>"]
    );
    let first = bench.server.requests()[0].json()["messages"].to_string();
    for text in [
        r#"<hook event=\"SessionStart\">\nplain words\n</hook>"#,
        r#"<hook event=\"UserPromptSubmit\">\nabout the prompt\n</hook>"#,
    ] {
        assert!(first.contains(text), "{first}");
    }
}

#[test]
fn a_prompt_that_a_hook_refuses_is_not_sent() {
    let bench = Bench::new(one_command("true"));
    of_user(
        &bench,
        &hook("UserPromptSubmit", "", "echo not today >&2; exit 2"),
    );
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.status.code(), Some(1));
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(
        said.contains("a UserPromptSubmit hook refused the prompt: not today"),
        "{said}"
    );
    assert_eq!(bench.server.requests().len(), 0);
}

#[test]
fn a_stop_hook_makes_the_agent_go_on_and_not_for_ever() {
    let turns = (0..40).map(|number| Turn::text(format!("answer {number}")));
    let bench = Bench::new(Script::of(turns));
    let once =
        "grep -q '\"stop_hook_active\":true' && exit 0; echo run the tests first >&2; exit 2";
    of_user(&bench, &hook("Stop", "", once));
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.stdout, "answer 1\n", "{}", finished.stderr);
    let last = bench.server.last_request().unwrap().json()["messages"].to_string();
    assert!(
        last.contains(r#"<hook event=\"Stop\">\nrun the tests first\n</hook>"#),
        "{last}"
    );
    of_user(
        &bench,
        &hook(
            "Stop",
            "",
            r#"echo '{"decision": "block", "reason": "again"}'"#,
        ),
    );
    let before = bench.server.requests().len();
    bench.run(&["-p", "go"]);
    assert_eq!(bench.server.requests().len() - before, 9);
}

#[test]
fn a_hook_can_end_the_whole_run() {
    let bench = Bench::new(one_command("touch made"));
    let answer = r#"{"continue": false, "stopReason": "budget of the day is used up"}"#;
    of_user(&bench, &hook("PreToolUse", "", &format!("echo '{answer}'")));
    let finished = bench.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(finished.status.code(), Some(1));
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(
        said.contains("stopped by a PreToolUse hook: budget of the day is used up"),
        "{said}"
    );
    assert!(!bench.work().join("made").exists());
    assert_eq!(bench.server.requests().len(), 1);
}

fn decide(decision: &str, more: &Value) -> Value {
    let mut answer = json!({"hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": "by the hook"});
    for (key, value) in more.as_object().unwrap() {
        answer[key] = value.clone();
    }
    let answer = json!({ "hookSpecificOutput": answer });
    hook(
        "PreToolUse",
        "Bash",
        &format!("cat > /dev/null; echo '{answer}'"),
    )
}

#[test]
fn a_hook_that_allows_a_call_stands_for_an_allow_rule_and_never_for_more() {
    let bench = Bench::new(one_command("touch made"));
    of_user(&bench, &decide("allow", &json!({})));
    let (results, _) = prompt(&bench, &[]);
    assert_eq!(results, ["(no output)"]);
    let refused = |args: &[&str], why: &str| {
        let (results, finished) = prompt(&bench, args);
        assert!(results[0].starts_with("permission denied"), "{results:?}");
        assert!(results[0].contains(why), "{results:?} {}", finished.stderr);
    };
    refused(
        &["--disallowedTools", "Bash(touch *)"],
        "denied by `Bash(touch *)`",
    );
    refused(&["--permission-mode", "plan"], "plan mode is read-only");
    refused(&["--permission-mode", "dontAsk"], "dontAsk mode");
    bench.file(
        ".codespar/settings.json",
        r#"{"permissions": {"ask": ["Bash(touch *)"]}}"#,
    );
    refused(&[], "asked about because of `Bash(touch *)`");
}

#[test]
fn a_hook_that_asks_makes_an_allowed_call_a_question() {
    let bench = Bench::new(one_command("touch made"));
    of_user(&bench, &decide("ask", &json!({})));
    let (results, _) = allowed(&bench);
    assert!(
        results[0].contains("a PreToolUse hook: by the hook; nobody is there"),
        "{results:?}"
    );
    assert!(!bench.work().join("made").exists());
}

#[test]
fn a_changed_input_is_run_and_told_and_checked_by_the_rules_again() {
    let bench = Bench::new(one_command("echo first"));
    of_user(
        &bench,
        &decide(
            "allow",
            &json!({"updatedInput": {"command": "echo second"}}),
        ),
    );
    let (results, _) = allowed(&bench);
    assert!(results[0].starts_with("second\n"), "{results:?}");
    assert!(
        results[0].contains("A hook changed the input of this call to"),
        "{results:?}"
    );
    let (results, _) = prompt(
        &bench,
        &[
            "--allowedTools",
            "Bash",
            "--disallowedTools",
            "Bash(echo second*)",
        ],
    );
    assert!(
        results[0].contains("denied by `Bash(echo second*)`"),
        "{results:?}"
    );
    of_user(
        &bench,
        &decide("allow", &json!({"updatedInput": {"order": 66}})),
    );
    let (results, _) = allowed(&bench);
    assert!(
        results[0].contains("changed its input, which cannot be used"),
        "{results:?}"
    );
}

#[test]
fn a_permission_request_hook_answers_in_place_of_the_user() {
    let bench = Bench::new(one_command("touch made"));
    let answer = |behavior: &str| {
        let answer = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
            "decision": {"behavior": behavior, "message": "ask me tomorrow"}}});
        hook("PermissionRequest", "Bash", &format!("echo '{answer}'"))
    };
    of_user(&bench, &answer("deny"));
    let (results, _) = prompt(&bench, &[]);
    assert!(
        results[0].contains("a PermissionRequest hook refused it: ask me tomorrow"),
        "{results:?}"
    );
    of_user(&bench, &answer("allow"));
    let (results, _) = prompt(&bench, &[]);
    assert_eq!(results, ["(no output)"]);
}

#[test]
fn a_hook_that_cannot_be_run_denies_and_names_its_file() {
    let bench = Bench::new(one_command("touch made"));
    bench.file("not-executable.sh", "exit 0\n");
    for (command, why) in [
        (
            "./missing.sh",
            "it cannot be run: the command was not found",
        ),
        (
            "./not-executable.sh",
            "it cannot be run: the command is not executable",
        ),
        ("echo '{\"decision\": '", "its answer cannot be read"),
    ] {
        of_user(&bench, &hook("PreToolUse", "", command));
        let (results, finished) = allowed(&bench);
        assert!(results[0].starts_with("permission denied"), "{results:?}");
        assert!(results[0].contains(why), "{results:?}");
        assert!(results[0].contains("settings.json"), "{results:?}");
        let told = format!("{}{}", finished.stdout, finished.stderr);
        assert!(told.contains("PreToolUse hook `"), "{told}");
    }
    of_project(&bench, &hook("PreToolUse", "", "./missing.sh"));
    of_user(&bench, &json!({}));
    let (results, _) = allowed(&bench);
    assert!(
        results[0].contains("`./missing.sh` of .claude/settings.json"),
        "{results:?}"
    );
    // After the fact it is told and stops nothing.
    of_project(&bench, &hook("PostToolUse", "", "./missing.sh"));
    let (results, _) = allowed(&bench);
    assert_eq!(results, ["(no output)"]);
    assert!(bench.work().join("made").exists());
}

#[test]
fn a_mistake_in_the_settings_of_hooks_is_an_error_that_names_file_and_hook() {
    let bench = Bench::new(Script::new());
    for (settings, why) in [
        (
            hook("PreToolUse", "Bash(", "true"),
            "hooks.PreToolUse[0]: the matcher `Bash(`",
        ),
        (
            hook("PreToolUze", "", "true"),
            "hooks.PreToolUze: did you mean `PreToolUse`?",
        ),
        (json!({"hook": {}}), "hook"),
    ] {
        of_user(&bench, &settings);
        let finished = bench.run(&["-p", "go"]);
        assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains(why), "{}", finished.stderr);
        assert!(
            finished.stderr.contains("settings.json"),
            "{}",
            finished.stderr
        );
    }
    of_user(&bench, &json!({}));
    bench.file(".claude/settings.json", r#"{"hoks": {}}"#);
    let finished = bench.run(&["-p", "go"]);
    assert!(
        finished
            .stderr
            .contains("`hoks` looks like a misspelt `hooks`"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_failing_hook_that_does_not_refuse_is_a_warning() {
    let bench = Bench::new(one_command("echo hello"));
    of_user(&bench, &hook("PreToolUse", "", "echo boom >&2; exit 1"));
    let finished = bench.run(&["-p", "go", "--allowedTools", "Bash", "--verbose"]);
    assert_eq!(finished.stdout, "done\n");
    assert!(
        finished.stderr.contains("it ended with exit code 1: boom"),
        "{}",
        finished.stderr
    );
}

#[test]
fn hooks_that_never_end_leave_daemons_or_flood_are_ended() {
    let bench = Bench::new(one_command("echo hello"));
    // In and outside of the sandbox.
    for place in ["sandbox", "outside"] {
        of_user(&bench, &json!({"projectHooks": place}));
        of_project(&bench, &timed("PreToolUse", "", "sleep 6021.5", 2));
        let (results, _) = allowed(&bench);
        assert!(
            results[0].contains("it did not end within 2 s"),
            "{place}: {results:?}"
        );
        let daemon = "setsid sleep 6022.5 > /dev/null 2>&1 & (setsid sleep 6022.5 &) ; echo x";
        of_project(&bench, &hook("PreToolUse", "", daemon));
        let (results, _) = allowed(&bench);
        assert_eq!(results, ["hello"], "{place}");
        let flood = "head -c 200000000 /dev/zero; head -c 200000000 /dev/zero >&2; exit 0";
        of_project(&bench, &hook("PostToolUse", "", flood));
        let (results, _) = allowed(&bench);
        assert_eq!(results, ["hello"], "{place}");
    }
    for left in ["sleep 6021.5", "sleep 6022.5"] {
        assert_eq!(processes_with_cmdline(left).unwrap(), Vec::<u32>::new());
    }
}

#[test]
fn secrets_in_what_a_hook_says_are_redacted() {
    let bench = Bench::new(one_command("echo hello"));
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    of_user(
        &bench,
        &hook(
            "PreToolUse",
            "",
            &format!("echo the token is {secret} >&2; exit 2"),
        ),
    );
    let (results, finished) = allowed(&bench);
    assert!(results[0].contains("the token is [redacted"), "{results:?}");
    for text in [&finished.stdout, &finished.stderr] {
        assert!(!text.contains(secret), "{text}");
    }
    let sent = bench.server.last_request().unwrap().json().to_string();
    assert!(!sent.contains(secret), "{sent}");
}

#[test]
fn several_hooks_run_at_once_identical_ones_once_and_the_strictest_wins() {
    let bench = Bench::new(one_command("echo hello"));
    // Each waits for the other, so they end only if they run side by side.
    let meet = |own: &str, other: &str| {
        format!("echo x >> {own}; while [ ! -e {other} ]; do sleep 0.05; done")
    };
    let one = json!({"type": "command", "command": meet("a", "b"), "timeout": 60});
    let other = json!({"type": "command", "command": meet("b", "a"), "timeout": 60});
    let deny = json!({"type": "command", "command": "echo no >&2; exit 2"});
    let groups = |last: &[Value]| {
        let hooks = [&[one.clone(), other.clone(), one.clone()], last].concat();
        json!({"hooks": {"PreToolUse": [{"hooks": hooks}, {"matcher": "Bash", "hooks": [one]}]}})
    };
    of_user(&bench, &groups(&[]));
    let (results, _) = allowed(&bench);
    assert_eq!(results, ["hello"]);
    assert_eq!(fs::read_to_string(bench.work().join("a")).unwrap(), "x\n");
    of_user(&bench, &groups(&[deny]));
    let (results, _) = allowed(&bench);
    assert_eq!(
        results,
        ["permission denied: a PreToolUse hook refused it: no"]
    );
}

fn with_subagent(background: bool) -> Script {
    let task =
        json!({"description": "d", "prompt": "child works", "run_in_background": background});
    let main = Conversation::new("main", Matcher::first_user_contains("go"))
        .turn(Turn::tool("Task", &task))
        .turn(Turn::text("done"))
        .turn(Turn::text("done"));
    let child = Conversation::new("child", Matcher::first_user_contains("child works"))
        .turn(Turn::tool("Bash", &json!({"command": "touch made"})))
        .turn(Turn::text("child done"));
    Script::new().conversation(main).conversation(child)
}

#[test]
fn hooks_hold_for_subagents_in_the_foreground_and_in_the_background() {
    for background in [false, true] {
        let bench = Bench::new(with_subagent(background));
        let check = script(&bench, "check.sh", NO_RM);
        let log = bench.work().join("log");
        let told = format!("cat >> {}", log.display());
        let mut settings = hook("PreToolUse", "Bash", check.to_str().unwrap());
        for event in ["SubagentStart", "SubagentStop"] {
            settings["hooks"][event] =
                hook(event, "general-purpose", &told)["hooks"][event].clone();
        }
        of_user(&bench, &settings);
        let finished = bench.run(&["-p", "go", "--allowedTools", "Bash"]);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        let requests = bench.server.requests();
        let child = requests
            .iter()
            .rev()
            .find(|request| request.messages()[0].to_string().contains("child works"));
        let results = child.unwrap().tool_results();
        assert_eq!(results[0].text, REFUSED, "background: {background}");
        assert!(!bench.work().join("made").exists());
        let told = crate::common::json_lines(&fs::read_to_string(log).unwrap());
        let events: Vec<&Value> = told.iter().map(|one| &one["hook_event_name"]).collect();
        assert_eq!(events, ["SubagentStart", "SubagentStop"]);
        assert_eq!(told[1]["agent_type"], "general-purpose");
        assert_eq!(told[1]["last_assistant_message"], "child done");
    }
}

#[test]
fn hooks_hold_in_a_session_which_lists_them() {
    let bench = Bench::new(one_command("touch made"));
    let check = script(&bench, "check.sh", NO_RM);
    let mut settings = hook("PreToolUse", "Bash", check.to_str().unwrap());
    settings["permissions"] = json!({"allow": ["Bash"]});
    let left = bench.work().join("left");
    let end = format!("cat > {}", left.display());
    settings["hooks"]["SessionEnd"] = hook("SessionEnd", "", &end)["hooks"]["SessionEnd"].clone();
    of_user(&bench, &settings);
    let shown = session(
        &bench,
        &[
            ("›", "/hooks"),
            ("outside the sandbox", "go"),
            ("done", "/quit"),
        ],
    );
    assert!(
        shown.contains("PreToolUse") && shown.contains("check.sh"),
        "{shown}"
    );
    let last = bench.server.last_request().unwrap();
    assert_eq!(last.tool_results()[0].text, REFUSED);
    assert!(!bench.work().join("made").exists());
    let left = parsed(&fs::read_to_string(left).unwrap());
    assert_eq!(left["reason"], "prompt_input_exit");
}

#[test]
fn the_list_shows_every_hook_with_its_source() {
    let bench = Bench::new(Script::new());
    of_user(&bench, &hook("Stop", "", "notify-send done"));
    bench.file(
        ".codespar/settings.json",
        &hook("PreToolUse", "Bash", "./check.sh").to_string(),
    );
    let listed = |bench: &Bench| parsed(&bench.run(&["hooks", "list", "--json"]).stdout);
    assert_eq!(listed(&bench)["hooks"].as_array().unwrap().len(), 1);
    bench.trust();
    let listed = listed(&bench);
    let files: Vec<&Value> = listed["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| &hook["origin"])
        .collect();
    assert_eq!(files, ["user", "project"]);
    assert_eq!(
        listed["hooks"][1],
        json!({"event": "PreToolUse", "matcher": "Bash", "type": "command", "runs": "./check.sh",
            "timeout": 60.0, "file": ".codespar/settings.json", "origin": "project",
            "place": "sandbox", "is_active": true})
    );
    of_user(
        &bench,
        &json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "agent"}]}]}}),
    );
    let finished = bench.run(&["hooks", "list"]);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
    assert!(
        finished.stdout.contains("cannot be run"),
        "{}",
        finished.stdout
    );
}

#[test]
fn a_prompt_hook_asks_a_small_model_and_a_model_can_refuse() {
    let judge = |command: &str, answer: &str| {
        let matcher = Matcher::system_contains("You decide for a hook");
        let matcher = matcher.and(Matcher::first_user_contains(format!("echo {command}")));
        Conversation::new(command, matcher).turn(Turn::text(answer))
    };
    let refusal = "```json\n{\"ok\": false, \"reason\": \"that deletes work\"}\n```";
    let calls = ["one", "two", "three"]
        .map(|word| Turn::tool("Bash", &json!({"command": format!("echo {word}")})));
    let main = Conversation::new("main", Matcher::first_user_contains("go"))
        .turns(calls.into_iter().chain([Turn::text("done")]));
    let script = Script::new()
        .conversation(judge("one", refusal))
        .conversation(judge("two", "{\"ok\": true}"))
        .conversation(judge("three", "Looks fine to me."))
        .conversation(main);
    let bench = Bench::new(script);
    let ask = json!({"type": "prompt", "prompt": "Is this command safe? $ARGUMENTS"});
    of_user(
        &bench,
        &json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [ask]}]}}),
    );
    let (results, finished) = allowed(&bench);
    assert_eq!(results.len(), 3, "{}", finished.stdout);
    assert!(
        results[0].contains("a PreToolUse hook refused it: that deletes work"),
        "{results:?}"
    );
    assert_eq!(results[1], "two");
    assert!(
        results[2].contains("its answer cannot be read"),
        "{results:?}"
    );
    let requests = bench.server.requests();
    let judged = requests
        .iter()
        .find(|request| request.system_text().contains("You decide for a hook"));
    let judged = judged.unwrap();
    assert!(judged.model().contains("haiku"), "{}", judged.model());
    assert!(
        judged
            .last_message()
            .to_string()
            .contains("Is this command safe? {"),
        "{:?}",
        judged.last_message()
    );
}

#[test]
fn a_failed_call_is_told_to_hooks_and_what_they_add_reaches_the_model() {
    let bench = Bench::new(one_command("cat missing; exit 3"));
    let log = bench.work().join("log");
    let context = json!({"hookSpecificOutput": {
        "hookEventName": "PostToolUseFailure", "additionalContext": "look in the attic"}});
    let command = format!("cat > {}; echo '{context}'", log.display());
    of_user(&bench, &hook("PostToolUseFailure", "Bash", &command));
    let (results, finished) = allowed(&bench);
    assert!(
        results[0].contains("look in the attic"),
        "{results:?} {}",
        finished.stderr
    );
    let told = parsed(&fs::read_to_string(log).unwrap());
    assert_eq!(told["hook_event_name"], "PostToolUseFailure");
    assert_eq!(told["tool_input"]["command"], "cat missing; exit 3");
    assert_eq!(told["is_interrupt"], false);
    assert!(
        told["error"].as_str().unwrap().contains("No such file"),
        "{told}"
    );
}

#[test]
fn a_question_to_the_user_is_a_notification_for_hooks() {
    let bench = Bench::new(one_command("touch made"));
    let log = bench.work().join("log");
    let told = format!("cat > {}", log.display());
    of_user(&bench, &hook("Notification", "permission_prompt", &told));
    session(
        &bench,
        &[("›", "go"), ("touch made", "y"), ("done", "/quit")],
    );
    crate::common::wait_for("the hook was told", || {
        fs::read_to_string(&log).is_ok_and(|text| text.ends_with('\n'))
    });
    let told = parsed(&fs::read_to_string(log).unwrap());
    assert_eq!(told["notification_type"], "permission_prompt");
    assert!(told["message"].as_str().unwrap().contains("Bash"), "{told}");
}

#[test]
fn a_hook_keeps_older_turns_from_being_summarised() {
    let script = Script::of([Turn::text("one"), Turn::text("two"), Turn::text("SUMMARY")]);
    let bench = Bench::new(script);
    of_user(
        &bench,
        &hook("PreCompact", "manual", "echo keep it all >&2; exit 2"),
    );
    let shown = session(
        &bench,
        &[
            ("›", "first"),
            ("one", "second"),
            ("two", "/compact"),
            ("keep it all", "/quit"),
        ],
    );
    assert!(shown.contains("older turns are not summarised"), "{shown}");
    assert_eq!(bench.server.request_count(), 2);
}

/// Answers requests with these bodies, one after the other, and gives what was asked.
fn http_server(
    answers: Vec<(&'static str, String)>,
) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (send, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut part = [0; 4096];
            loop {
                let text = String::from_utf8_lossy(&request).into_owned();
                if let Some((head, sent)) = text.split_once("\r\n\r\n") {
                    let length = head.to_lowercase();
                    let length = length.split("content-length: ").nth(1).unwrap();
                    let length: usize = length.lines().next().unwrap().parse().unwrap();
                    if sent.len() >= length {
                        break;
                    }
                }
                let count = stream.read(&mut part).unwrap();
                assert!(count > 0, "half a request");
                request.extend_from_slice(&part[..count]);
            }
            send.send(String::from_utf8_lossy(&request).into_owned())
                .unwrap();
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    (url, asked)
}

#[test]
fn an_http_hook_of_the_user_decides_and_one_that_fails_refuses() {
    let script = Script::of([
        Turn::tool("Bash", &json!({"command": "echo one"})),
        Turn::tool("Bash", &json!({"command": "echo two"})),
        Turn::tool("Bash", &json!({"command": "echo three"})),
        Turn::text("done"),
    ]);
    let bench = Bench::new(script);
    let denial = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "not today"}});
    let (url, asked) = http_server(vec![
        ("200 OK", denial.to_string()),
        ("200 OK", String::new()),
        ("500 Internal Server Error", "{}".to_owned()),
    ]);
    let http = json!({"type": "http", "url": url,
        "headers": {"authorization": "Bearer $HOOK_WORD", "x-other": "$HOME"},
        "allowedEnvVars": ["HOOK_WORD"]});
    of_user(
        &bench,
        &json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [http]}]}}),
    );
    let mut command = bench.command(&[
        "-p",
        "go",
        "--allowedTools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    command.env("HOOK_WORD", "swordfish");
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    let results = tool_results(&crate::common::json_lines(&finished.stdout));
    assert!(results[0].contains("not today"), "{results:?}");
    assert_eq!(results[1], "two");
    assert!(results[2].contains("permission denied"), "{results:?}");
    let first = asked.recv_timeout(PATIENCE).unwrap();
    assert!(first.contains("Bearer swordfish"), "{first}");
    let other = first.lines().find(|line| line.starts_with("x-other:"));
    assert_eq!(other.unwrap().trim(), "x-other:");
    let body = first.split("\r\n\r\n").nth(1).unwrap();
    assert_eq!(parsed(body)["tool_input"]["command"], "echo one");
}

#[test]
fn an_http_hook_of_a_repository_cannot_reach_this_machine() {
    let bench = Bench::new(one_command("touch made"));
    let (url, asked) = http_server(vec![("200 OK", String::new())]);
    let http = json!({"type": "http", "url": url});
    of_project(
        &bench,
        &json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [http]}]}}),
    );
    let (results, finished) = allowed(&bench);
    assert!(
        results[0].contains("permission denied"),
        "{results:?} {}",
        finished.stderr
    );
    assert!(!bench.work().join("made").exists());
    assert!(asked.try_recv().is_err(), "the server was asked");
}

#[test]
fn without_hooks_the_request_is_the_same_as_with_hooks_that_say_nothing() {
    let body = |settings: &Value| {
        let bench = Bench::new(one_command("echo hello"));
        of_user(&bench, settings);
        let mut command = bench.command(&["-p", "go", "--allowedTools", "Bash"]);
        spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        let body = bench.server.last_request().unwrap().body().to_vec();
        let base = bench.room.work();
        let base = base.parent().unwrap().to_str().unwrap().to_owned();
        String::from_utf8(body).unwrap().replace(&base, "")
    };
    assert_eq!(body(&json!({})), body(&hook("PreToolUse", "", "true")));
}
