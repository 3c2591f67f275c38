//! What a task runs, and by whose authority, through the real binary: each test is an attack.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use codespar_testkit::{AfterLast, Conversation, Matcher, Script, Turn, process::spawn};
use serde_json::{Value, json};

use crate::common::{
    Bench, PATIENCE, ended, git::git, json_lines, parsed, question, task, tool_results,
};

const GATE: &str = "touch waits; until [ -e open ]; do sleep 0.05; done";

fn child(prompt: &str) -> Conversation {
    Conversation::new(prompt, Matcher::first_user_contains(prompt))
}

fn tasks(bench: &Bench) -> Vec<Value> {
    let list = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    list["tasks"].as_array().unwrap().clone()
}

fn wait_for(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < PATIENCE, "no {}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Another project that shares the state directory.
fn other_project(bench: &Bench) -> PathBuf {
    let other = bench.room.home().join("other-project");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    other
}

/// The user makes a shell task and gets its id.
fn made_by_hand(bench: &Bench, command: &str) -> String {
    let base = ["task", "create", "--json", "--type", "local_bash"];
    let finished = bench.run(&[&base[..], &["--subject", "s", "--command", command]].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let record = parsed(&finished.stdout);
    record["task_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_task_runs_what_was_approved_whatever_its_metadata_says_later() {
    let create = |name: &str, command: &str, after: &[&str]| {
        json!({
            "task_type": "local_bash", "subject": name, "command": command,
            "blocked_by": after, "metadata": {"name": name},
        })
    };
    let home = tempfile_dir();
    let forged = json!({
        "task_id": "job",
        "metadata": {
            "command": "touch owned.txt", "root": home.path(), "cwd": home.path(),
            "builtin": "dev", "runner_only": "nobody", "on_dependency_failure": "run",
        },
    });
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &create("gate", GATE, &[])))
        .turn(Turn::tool(
            "TaskCreate",
            &create("job", "touch approved.txt", &["gate"]),
        ))
        .turn(Turn::tool("TaskUpdate", &forged))
        .turn(Turn::tool("Bash", &json!({"command": "touch open"})))
        .turn(Turn::text("over"))
        .after_last(AfterLast::Repeat);
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go", "--dangerously-skip-permissions"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(bench.work().join("approved.txt").exists(), "{lines:#?}");
    assert!(!home.path().join("owned.txt").exists());
    assert!(!bench.work().join("owned.txt").exists());
    let job = tasks(&bench).pop().unwrap();
    assert_eq!(job["status"], "completed", "{job:#}");
    assert_eq!(job["spec"]["command"], "touch approved.txt");
    assert_eq!(
        job["metadata"]["command"], "touch owned.txt",
        "kept as data"
    );
}

#[test]
fn a_task_update_is_asked_about_and_plan_mode_refuses_it() {
    let create = json!({
        "task_type": "local_agent", "subject": "mine", "prompt": "child of it",
        "metadata": {"name": "mine"},
    });
    let update = json!({"task_id": "a-00000000", "subject": "other words"});
    let script = Script::new()
        .turn(Turn::tool("TaskUpdate", &update))
        .turn(Turn::text("{{last_tool_result}}"))
        .conversation(child("child of it").turn(Turn::text("done")))
        .conversation(
            child("make one first")
                .turn(Turn::tool("TaskCreate", &create))
                .turn(Turn::tool(
                    "TaskUpdate",
                    &json!({"task_id": "{{task_id}}", "subject": "x"}),
                ))
                .turn(Turn::text("over"))
                .after_last(AfterLast::Repeat),
        );
    let bench = Bench::new(script);
    let plan = bench.run(&["-p", "go", "--permission-mode", "plan"]);
    assert!(
        plan.stdout.contains("plan mode is read-only"),
        "{}",
        plan.stdout
    );
    let allowed = ["--permission-mode", "plan", "--allowedTools", "TaskUpdate"];
    let plan = bench.run(&[&["-p", "go"][..], &allowed].concat());
    assert!(
        plan.stdout.contains("plan mode is read-only"),
        "{}",
        plan.stdout
    );
    let (lines, _) = bench.stream(&["-p", "make one first"]);
    let denials = &lines.last().unwrap()["permission_denials"];
    assert_eq!(denials[0]["tool_name"], "TaskUpdate", "{denials}");
}

#[test]
fn an_agent_changes_no_tasks_but_those_of_its_own_tree_and_reads_none_of_other_projects() {
    let bench = Bench::new(Script::new());
    let id = made_by_hand(&bench, GATE);
    wait_for(&bench.work().join("waits"));
    let calls = [
        ("TaskGet", json!({"task_id": id})),
        ("TaskGet", json!({"task_id": &id[..6]})),
        ("TaskOutput", json!({"task_id": id})),
        ("TaskList", json!({"scope": "project"})),
        ("TaskStop", json!({"task_id": id})),
        (
            "TaskUpdate",
            json!({"task_id": id, "subject": "taken over"}),
        ),
        ("SendMessage", json!({"to": id, "message": "hello"})),
        (
            "Task",
            json!({"description": "d", "prompt": "p", "resume": id}),
        ),
        (
            "TaskCreate",
            json!({"task_type": "local_bash", "subject": "s", "command": "true", "blocked_by": [id]}),
        ),
    ];
    let mut turn = Turn::new();
    for (tool, input) in &calls {
        turn = turn.and_tool(*tool, input);
    }
    let attacker = Bench {
        server: codespar_testkit::ScriptedModel::start_blocking(
            Script::new().turn(turn).turn(Turn::text("over")),
        )
        .unwrap(),
        room: bench.room,
    };
    let before = task(&attacker, &id);
    let output = before["output_file"].as_str().unwrap();
    let args = ["-p", "go", "--dangerously-skip-permissions"];
    let (lines, code) = attacker.stream(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    let results = tool_results(&lines);
    assert_eq!(results.len(), calls.len(), "{results:#?}");
    for (index, ((tool, input), result)) in calls.iter().zip(&results).enumerate() {
        if index < 4 {
            assert!(result.contains(&id), "{tool} {input}: {result}");
            continue;
        }
        let reason = "belongs to another session of this project";
        assert!(result.contains(reason), "{tool} {input}: {result}");
    }
    assert_eq!(task(&attacker, &id), before);
    // Of another project nothing is found at all.
    let elsewhere = attacker.room.home().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let mut command = attacker.command(&[&args[..], &["--output-format", "stream-json"]].concat());
    let finished = spawn(command.current_dir(&elsewhere)).unwrap();
    let finished = finished.wait(PATIENCE).unwrap();
    let results = tool_results(&json_lines(&finished.stdout));
    assert_eq!(results.len(), calls.len(), "{results:#?}");
    for ((tool, input), result) in calls.iter().zip(&results) {
        let is_nothing = result.contains("there is no ") || result == "no tasks";
        assert!(is_nothing, "{tool} {input}: {result}");
        assert!(!result.contains("until ["), "{tool} {input}: {result}");
    }
    assert_eq!(task(&attacker, &id), before);
    // Its output is not read past the tools either.
    let mut read = attacker.command(&["-p", "read it", "--output-format", "stream-json"]);
    let peeker = codespar_testkit::ScriptedModel::start_blocking(
        Script::new()
            .turn(Turn::tool("Read", &json!({"file_path": output})))
            .turn(Turn::text("over")),
    )
    .unwrap();
    let finished = spawn(read.env("ANTHROPIC_BASE_URL", peeker.url())).unwrap();
    let finished = finished.wait(PATIENCE).unwrap();
    let results = tool_results(&json_lines(&finished.stdout));
    assert!(results[0].starts_with("permission denied"), "{results:?}");
    // The user sees it, and says when it ends.
    attacker.file("open", "");
    assert_eq!(ended(&attacker, &id)["status"], "completed");
}

#[test]
fn metadata_of_a_workflow_does_not_start_the_dev_agent() {
    let victim = tempfile_dir();
    git(victim.path(), &["init", "--quiet", "-b", "main"]);
    let order = json!({
        "instruction": "own it", "repository": {"kind": "local", "path": victim.path()},
        "verify": {"command": "touch owned.txt"}, "on_failure": "draft", "draft": "withheld",
        "protected": "granted", "requested_by": "x", "engine": "generate", "task_model": "haiku",
        "picker_model": "haiku", "resumes": [],
        "limits": {"max_files": 5, "max_file_bytes": 100, "max_tokens": 10, "max_rounds": 1,
                   "repairs": 0, "verify_seconds": 5},
    });
    let create = json!({
        "task_type": "local_workflow", "subject": "w",
        "metadata": {"file": "w", "builtin": "dev", "dev": order, "kind": "dev"},
    });
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &create))
        .turn(Turn::text("over"))
        .after_last(AfterLast::Repeat);
    let bench = Bench::new(script);
    bench.file(
        ".codespar/workflows/w.toml",
        "name = \"w\"\n[[step]]\nid = \"a\"\ncommand = \"touch step.txt\"\n",
    );
    bench.trust();
    let (lines, code) = bench.stream(&["-p", "go", "--dangerously-skip-permissions"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let all = tasks(&bench);
    assert_eq!(all[0]["spec"]["kind"], "workflow", "{all:#?}");
    assert_eq!(all[0]["status"], "completed", "{all:#?}");
    assert!(bench.work().join("step.txt").exists());
    assert!(!victim.path().join("owned.txt").exists());
    assert_eq!(
        bench.server.request_count(),
        3,
        "nobody asked a model for it"
    );
}

/// An agent of default mode is left behind by a process that was killed.
fn left_behind() -> (Bench, String) {
    let script = Script::new()
        .turn(Turn::tool(
            "Task",
            &json!({"description": "d", "prompt": "child works", "run_in_background": true}),
        ))
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat)
        .conversation(
            child("child works")
                .turn(Turn::tool("Bash", &json!({"command": GATE})))
                .turn(Turn::tool(
                    "Write",
                    &json!({"file_path": "owned.txt", "content": "x"}),
                ))
                .turn(Turn::text("child is done")),
        )
        .conversation(
            // One that makes tasks looks for those of others too.
            child("another person")
                .turn(Turn::tool(
                    "TaskCreate",
                    &json!({"task_type": "local_bash", "subject": "s", "command": "true"}),
                ))
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": "touch there; until [ -e leave ]; do sleep 0.05; done"}),
                ))
                .turn(Turn::text("other is done")),
        );
    let bench = Bench::new(script);
    let running = bench.start(&["-p", "go", "--allowedTools", "Bash"]);
    wait_for(&bench.work().join("waits"));
    running.kill_9().unwrap();
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(left, Vec::<u32>::new(), "orphans");
    let id = tasks(&bench)[0]["task_id"].as_str().unwrap().to_owned();
    (bench, id)
}

#[test]
fn a_process_of_another_project_does_not_take_an_agent() {
    let (bench, id) = left_behind();
    let other = other_project(&bench);
    let mut command = bench.command(&["-p", "another person", "--dangerously-skip-permissions"]);
    let session = spawn(command.current_dir(&other)).unwrap();
    wait_for(&other.join("there"));
    // Long enough to have looked for work several times: it looks twice a second.
    std::thread::sleep(Duration::from_secs(3));
    let before = task(&bench, &id);
    assert_eq!(before["attempt"], 1, "{before:#}");
    std::fs::write(other.join("leave"), "").unwrap();
    let finished = session.wait(PATIENCE).unwrap();
    assert_eq!(finished.stdout, "other is done\n", "{}", finished.stderr);
    assert_eq!(task(&bench, &id)["ended_at"], Value::Null);
    let asked = |text: &str| {
        let requests = bench.server.requests();
        let of =
            |r: &&codespar_testkit::CapturedRequest| r.messages()[0].to_string().contains(text);
        requests.iter().filter(of).count()
    };
    assert_eq!(asked("child works"), 1, "the agent was not asked to go on");
}

#[test]
fn an_agent_that_another_run_takes_up_keeps_its_own_mode_and_its_own_account() {
    let (bench, id) = left_behind();
    let args = [
        "-p",
        "another person",
        "--dangerously-skip-permissions",
        "--output-format",
        "stream-json",
    ];
    let session = bench.start(&args);
    let record = ended(&bench, &id);
    bench.file("leave", "");
    let finished = session.wait(PATIENCE).unwrap();
    assert_eq!(record["status"], "completed", "{record:#}");
    let result = record["metadata"]["result"].as_str().unwrap();
    assert!(result.contains("Write was denied"), "{result}");
    assert!(!bench.work().join("owned.txt").exists());
    let lines = json_lines(&finished.stdout);
    let last = lines.last().unwrap();
    assert_eq!(last["result"], "other is done");
    // Its own calls; those of the agent are on the account of whoever started it.
    let own: u64 = lines
        .iter()
        .filter(|line| line["type"] == "assistant" && line["parent_tool_use_id"].is_null())
        .map(|line| line["message"]["usage"]["output_tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(last["usage"]["output_tokens"], own, "{last:#}");
    assert_eq!(last["permission_denials"], json!([]), "{last:#}");
}

/// A definition of the user's own, so that nobody need trust a repository.
fn agent_file(bench: &Bench, name: &str, fields: &str) {
    let dir = bench.room.codespar_home().join("agents");
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!("---\nname: {name}\ndescription: d\n{fields}---\nYou are {name}.\n");
    std::fs::write(dir.join(format!("{name}.md")), text).unwrap();
}

#[test]
fn an_agent_file_does_not_loosen_plan_mode() {
    let start = json!({"description": "d", "prompt": "child works", "subagent_type": "loose"});
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(Turn::text("over"))
        .conversation(
            child("child works")
                .turn(Turn::tool(
                    "Write",
                    &json!({"file_path": "owned.txt", "content": "x"}),
                ))
                .turn(Turn::text("child is done")),
        );
    for mode in ["default", "acceptEdits", "bypassPermissions"] {
        let bench = Bench::new(script.clone());
        agent_file(&bench, "loose", &format!("permissionMode: {mode}\n"));
        let plan = ["--permission-mode", "plan", "--allowedTools", "Task,Write"];
        let (lines, _) = bench.stream(&[&["-p", "go"][..], &plan].concat());
        let asked = bench.server.requests();
        let child = asked
            .iter()
            .filter(|r| r.messages()[0].to_string().contains("child works"));
        assert!(
            !bench.work().join("owned.txt").exists(),
            "{mode}: {lines:#?}"
        );
        // Either the agent is not started at all, or it works by the rules of plan mode.
        if child.count() > 0 {
            let results = tool_results(&lines).join("\n");
            assert!(
                results.contains("plan mode is read-only"),
                "{mode}: {results}"
            );
        }
    }
}

#[test]
fn an_agent_below_a_stricter_agent_is_no_looser() {
    let start = |kind: &str, prompt: &str| json!({"description": "d", "prompt": prompt, "subagent_type": kind});
    let script = Script::new()
        .turn(Turn::tool("Task", &start("strict", "child plans")))
        .turn(Turn::text("over"))
        .conversation(
            child("child plans")
                .turn(Turn::tool(
                    "TaskCreate",
                    &json!({"task_type": "local_agent", "subject": "s", "prompt": "grandchild works"}),
                ))
                .turn(Turn::text("child is done"))
                .after_last(AfterLast::Repeat),
        )
        .conversation(
            child("grandchild works")
                .turn(Turn::tool(
                    "Write",
                    &json!({"file_path": "owned.txt", "content": "x"}),
                ))
                .turn(Turn::text("grandchild is done")),
        );
    let bench = Bench::new(script);
    agent_file(&bench, "strict", "permissionMode: plan\n");
    let (lines, code) = bench.stream(&["-p", "go", "--dangerously-skip-permissions"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(!bench.work().join("owned.txt").exists());
    let all = tasks(&bench);
    assert_eq!(all[0]["authority"]["mode"], "bypassPermissions");
    assert_eq!(all[1]["authority"]["mode"], "plan", "{all:#?}");
    assert_eq!(all[1]["authority"]["tree"], all[0]["authority"]["tree"]);
}

#[test]
fn a_custom_agent_runs_in_the_background_with_its_skills_where_its_file_says() {
    let start = json!({"description": "d", "prompt": "child works", "subagent_type": "apart"});
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(Turn::text("over"))
        .after_last(AfterLast::Repeat)
        .conversation(
            child("child works")
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": "pwd; touch made.txt"}),
                ))
                .turn(Turn::text("{{last_tool_result}}")),
        );
    let bench = Bench::new(script);
    let work = bench.work();
    std::fs::remove_dir(work.join(".git")).unwrap();
    bench.file("a.txt", "a\n");
    git(&work, &["init", "--quiet", "-b", "main"]);
    git(&work, &["add", "--all", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    agent_file(
        &bench,
        "apart",
        "isolation: worktree\nbackground: true\nskills: [plums]\n",
    );
    let skill = bench.room.codespar_home().join("skills/plums");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(
        skill.join("SKILL.md"),
        "---\ndescription: about plums\n---\nPlums are picked at noon.\n",
    )
    .unwrap();
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let results = tool_results(&lines);
    assert!(
        results[0].contains("running in the background"),
        "{results:#?}"
    );
    let task = tasks(&bench).pop().unwrap();
    assert_eq!(task["spec"]["isolation"], "worktree", "{task:#}");
    let result = task["metadata"]["result"].as_str().unwrap();
    let id = task["task_id"].as_str().unwrap();
    assert!(result.contains(&format!("worktrees/{id}")), "{result}");
    assert!(!work.join("made.txt").exists());
    let asked = bench.server.requests();
    let child = asked
        .iter()
        .find(|r| r.messages()[0].to_string().contains("child works"))
        .unwrap();
    let system = child.system_text();
    assert!(system.contains("Plums are picked at noon."), "{system}");
}

#[test]
fn an_agent_whose_skill_is_missing_says_so() {
    let start = json!({"description": "d", "prompt": "child works", "subagent_type": "apart"});
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(Turn::text("{{last_tool_result}}"));
    let bench = Bench::new(script);
    agent_file(&bench, "apart", "skills: [plums]\n");
    let finished = bench.run(&["-p", "go"]);
    let expected = "agent `apart`: there is no skill `plums`";
    assert!(finished.stdout.contains(expected), "{}", finished.stdout);
}

#[test]
fn a_worker_does_not_give_a_task_more_than_its_maker_did() {
    let script = Script::new().conversation(
        child("child works")
            .turn(Turn::tool(
                "Write",
                &json!({"file_path": "owned.txt", "content": "x"}),
            ))
            .turn(Turn::text("child is done")),
    );
    let create = [
        "task",
        "create",
        "--json",
        "--type",
        "remote_agent",
        "--subject",
        "s",
        "--prompt",
        "child works",
    ];
    for (mode, is_written) in [("default", false), ("acceptEdits", true)] {
        let bench = Bench::new(script.clone());
        let settings = bench.room.codespar_home().join("settings.json");
        std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
        let loose = json!({"permissions": {"defaultMode": "bypassPermissions"}});
        std::fs::write(settings, loose.to_string()).unwrap();
        let worker = bench.start(&["worker"]);
        let began = Instant::now();
        while !worker.stderr_so_far().contains("taking tasks") {
            assert!(began.elapsed() < PATIENCE, "no worker");
            std::thread::sleep(Duration::from_millis(20));
        }
        let made = parsed(
            &bench
                .run(&[&create[..], &["--permission-mode", mode]].concat())
                .stdout,
        );
        let id = made["task_id"].as_str().unwrap();
        if !is_written {
            let question = question(&bench);
            assert_eq!(question["task_id"], id, "{question:#}");
            let asked = question["id"].as_str().unwrap();
            let answered = bench.run(&["task", "answer", asked, "no"]);
            assert!(answered.status.success(), "{}", answered.stderr);
        }
        let record = ended(&bench, id);
        assert_eq!(record["status"], "completed", "{record:#}");
        assert_eq!(
            bench.work().join("owned.txt").exists(),
            is_written,
            "{record:#}"
        );
        worker.terminate().unwrap();
        worker.wait(PATIENCE).unwrap();
    }
}

fn tempfile_dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
