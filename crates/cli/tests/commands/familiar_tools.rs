//! Calls as models know them from other agents: commands in the background, BashOutput, KillShell,
//! MultiEdit, NotebookEdit. What rules say of the tools they stand for holds for them.

use codespar_testkit::{Script, Turn, process::spawn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, json_lines, parsed, tool_results};

fn background(command: &str) -> Turn {
    Turn::tool(
        "Bash",
        &json!({"command": command, "run_in_background": true, "description": "Say some words"}),
    )
}

fn settings(bench: &Bench, settings: &Value) {
    let home = bench.room.codespar_home();
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
}

/// The results of all calls of a run.
fn results(bench: &Bench, args: &[&str]) -> Vec<String> {
    let (lines, code) = bench.stream(&[&["-p", "go"], args].concat());
    assert_eq!(code, Some(0), "{lines:?}");
    tool_results(&lines)
}

#[test]
fn a_command_in_the_background_is_a_task_whose_output_is_read_on_and_whose_end_is_told() {
    let wait = "echo one; touch started; until [ -e go ]; do sleep 0.02; done; echo two; echo three; exit 3";
    let until = "until [ -e started ]; do sleep 0.02; done; echo {{result_task_id}}";
    let read = json!({"bash_id": "{{result_task_id}}"});
    let script = Script::new()
        .turn(background(wait))
        .turn(Turn::tool("Bash", &json!({"command": until})))
        .turn(Turn::tool("BashOutput", &read))
        .turn(Turn::tool(
            "Bash",
            &json!({"command": "touch go; echo {{result_task_id}}"}),
        ))
        .turn(Turn::tool(
            "TaskOutput",
            &json!({"task_id": "{{result_task_id}}", "block": true}),
        ))
        .turn(Turn::tool(
            "BashOutput",
            &json!({"bash_id": "{{result_task_id}}", "filter": "^(one|two)$"}),
        ))
        .turn(Turn::tool("BashOutput", &read))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let results = results(&bench, &["--allowedTools", "Bash"]);
    let started = &results[0];
    let id = started
        .split(' ')
        .find(|word| word.starts_with("b-"))
        .unwrap();
    let id = id.trim_end_matches('.');
    let record = parsed(&bench.run(&["task", "get", id, "--json"]).stdout);
    assert_eq!(record["task_type"], "local_bash");
    assert_eq!(record["subject"], "Say some words");
    assert_eq!(record["exit_code"], 3);
    let file = record["output_file"].as_str().unwrap();
    assert!(
        started.contains(file) && started.contains("notification"),
        "{started}"
    );
    // What was written before the first call is in the first answer or in the second, once.
    let read = format!("{}\n{}", results[2], results[5]);
    assert_eq!(
        read.lines().filter(|line| *line == "one").count(),
        1,
        "{results:?}"
    );
    assert!(results[5].ends_with("\ntwo"), "{results:?}");
    assert!(
        results[6].contains("exit code 3") && results[6].ends_with("no new output"),
        "{results:?}"
    );
    let told = bench.server.last_request().unwrap().json().to_string();
    assert!(told.contains("notification") && told.contains(id), "{told}");
}

#[test]
fn kill_shell_stops_it_and_a_timeout_does_too() {
    let script = Script::new()
        .turn(background("sleep 1000"))
        .turn(Turn::tool(
            "KillShell",
            &json!({"shell_id": "{{result_task_id}}"}),
        ))
        .turn(Turn::tool(
            "Bash",
            &json!({"command": "sleep 1000", "run_in_background": true, "timeout": 50}),
        ))
        .turn(Turn::tool(
            "TaskOutput",
            &json!({"task_id": "{{result_task_id}}", "block": true, "timeout_ms": 120_000}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let results = results(&bench, &["--allowedTools", "Bash"]);
    assert!(results[1].contains(" killed "), "{results:?}");
    assert!(
        results[3].contains("the time limit of 0.05 s was reached"),
        "{results:?}"
    );
}

#[test]
fn rules_about_commands_hold_in_the_background() {
    let rules = json!({"permissions": {"deny": ["Bash(touch:*)"]}});
    for (command, args) in [
        (
            "touch evil",
            &["--permission-mode", "bypassPermissions"][..],
        ),
        (
            "true && touch evil",
            &["--permission-mode", "bypassPermissions"],
        ),
        (
            "sh -c 'touch evil'",
            &["--permission-mode", "bypassPermissions"],
        ),
        // Nobody is there to be asked, and nothing allows it.
        ("cp seed evil", &[]),
        ("cp seed evil", &["--permission-mode", "dontAsk"]),
        ("cp seed evil", &["--permission-mode", "plan"]),
    ] {
        let bench = Bench::new(
            Script::new()
                .turn(background(command))
                .turn(Turn::text("done")),
        );
        settings(&bench, &rules);
        bench.file("seed", "x");
        let results = results(&bench, args);
        assert!(
            results[0].contains("permission denied"),
            "{command}: {results:?}"
        );
        assert!(!bench.work().join("evil").exists(), "{command}");
        let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
        assert_eq!(tasks, json!({"tasks": []}), "{command}");
    }
}

#[test]
fn a_read_that_is_denied_is_hidden_from_commands_in_the_background() {
    let script = Script::new()
        .turn(background("cat secret/key; true"))
        .turn(Turn::tool(
            "TaskOutput",
            &json!({"task_id": "{{result_task_id}}", "block": true}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    settings(
        &bench,
        &json!({"permissions": {"allow": ["Bash"], "deny": ["Read(secret/**)"]}}),
    );
    bench.file("secret/key", "the-value-nobody-sees\n");
    let results = results(&bench, &[]);
    assert!(
        !results.concat().contains("the-value-nobody-sees"),
        "{results:?}"
    );
}

#[test]
fn without_background_tasks_the_field_is_not_offered_and_a_call_is_refused() {
    let schema = |bench: &Bench| {
        let requests = bench.server.requests();
        let tools = requests[0].json()["tools"].as_array().unwrap().clone();
        let bash = tools.iter().find(|tool| tool["name"] == "Bash").unwrap();
        bash["input_schema"]["properties"].clone()
    };
    let script = || {
        Script::new()
            .turn(background("touch evil"))
            .turn(Turn::text("done"))
    };
    let bench = Bench::new(script());
    let mut command = bench.command(&[
        "-p",
        "go",
        "--allowedTools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    command.env("DISABLE_BACKGROUND_TASKS", "1");
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    let results = tool_results(&json_lines(&finished.stdout));
    assert!(
        results[0].contains("run_in_background") && results[0].contains("switched off"),
        "{results:?}"
    );
    assert!(!bench.work().join("evil").exists());
    assert!(schema(&bench).get("run_in_background").is_none());
    let bench = Bench::new(script());
    bench.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert!(schema(&bench).get("run_in_background").is_some());
}

const NOTEBOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 1,\n   \"id\": \"a1\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"1\"\n   ]\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

fn multi_edit(path: &str) -> Turn {
    let edits = json!([
        {"old_string": "one", "new_string": "1"},
        {"old_string": "two", "new_string": "2"},
    ]);
    Turn::tool("MultiEdit", &json!({"file_path": path, "edits": edits}))
}

fn notebook_edit(path: &str) -> Turn {
    let input = json!({"notebook_path": path, "cell_id": "a1", "new_source": "2"});
    Turn::tool("NotebookEdit", &input)
}

fn read(path: &str) -> Turn {
    Turn::tool("Read", &json!({"file_path": path}))
}

#[test]
fn several_edits_and_cells_of_notebooks_are_written() {
    let script = Script::new()
        .turn(notebook_edit("n.ipynb"))
        .turn(multi_edit("a.txt"))
        .turn(read("a.txt"))
        .turn(read("n.ipynb"))
        .turn(notebook_edit("n.ipynb"))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    bench.file("a.txt", "one\ntwo\n");
    bench.file("n.ipynb", NOTEBOOK);
    let results = results(&bench, &["--permission-mode", "acceptEdits"]);
    assert!(results[0].contains("not edited"), "{results:?}");
    assert!(
        results[3].contains("call Edit with notebook_path"),
        "{results:?}"
    );
    let text = |name: &str| std::fs::read_to_string(bench.work().join(name)).unwrap();
    assert_eq!(text("a.txt"), "1\n2\n");
    let expected = NOTEBOOK
        .replace("\"execution_count\": 1", "\"execution_count\": null")
        .replace("    \"1\"\n", "    \"2\"\n");
    assert_eq!(text("n.ipynb"), expected);
}

#[test]
fn rules_about_edits_hold_for_calls_by_another_name() {
    let deny = |rule: &str| json!({"permissions": {"deny": [rule]}});
    let bypass: &[&str] = &["--permission-mode", "bypassPermissions"];
    let accept: &[&str] = &["--permission-mode", "acceptEdits"];
    for (rules, path, args) in [
        (deny("Edit(kept/**)"), "kept/a.ipynb", bypass),
        (deny("Edit(kept/**)"), "b/../kept/a.ipynb", bypass),
        // By a link to it.
        (deny("Edit(kept/**)"), "link/a.ipynb", bypass),
        (deny("Edit"), "kept/a.ipynb", bypass),
        (json!({}), "kept/a.ipynb", &["--permission-mode", "plan"]),
        (json!({}), "kept/a.ipynb", &[]),
        // Protected, whatever the mode for edits.
        (json!({}), ".git/a.ipynb", accept),
        (json!({}), ".codespar/settings.json", accept),
    ] {
        for call in [multi_edit, notebook_edit] {
            let script = Script::new()
                .turn(read(path))
                .turn(call(path))
                .turn(Turn::text("done"));
            let bench = Bench::new(script);
            settings(&bench, &rules);
            std::fs::create_dir(bench.work().join("b")).unwrap();
            for name in ["kept/a.ipynb", ".git/a.ipynb", ".codespar/settings.json"] {
                bench.file(name, "{}");
            }
            std::os::unix::fs::symlink("kept", bench.work().join("link")).unwrap();
            let results = results(&bench, args);
            assert!(
                results[1].contains("permission denied") || results[1].contains("there is no tool"),
                "{rules} {path}: {results:?}"
            );
        }
    }
}

#[test]
fn a_rule_about_the_other_name_alone_denies_calls_by_it() {
    let script = Script::new()
        .turn(read("a.txt"))
        .turn(multi_edit("a.txt"))
        .turn(Turn::tool(
            "Edit",
            &json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    settings(&bench, &json!({"permissions": {"deny": ["MultiEdit"]}}));
    bench.file("a.txt", "one\ntwo\n");
    let results = results(&bench, &["--permission-mode", "acceptEdits"]);
    assert!(results[1].contains("permission denied"), "{results:?}");
    let text = std::fs::read_to_string(bench.work().join("a.txt")).unwrap();
    assert_eq!(text, "1\ntwo\n");
}
