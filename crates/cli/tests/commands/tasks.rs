//! Tasks, subagents and the coordinator, through the real binary.

use std::time::Duration;

use codespar_testkit::{AfterLast, Conversation, Gate, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, ended, json_lines, parsed, tool_results, wait_for};

fn create(bench: &Bench, args: &[&str]) -> Value {
    let finished = bench.run(&[&["task", "create", "--json", "--type"], args].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    parsed(&finished.stdout)
}

/// A shell task that does nothing.
const CREATE_SHELL: [&str; 8] = [
    "task",
    "create",
    "--type",
    "local_bash",
    "--subject",
    "x",
    "--command",
    "true",
];

fn worker(prompt: &str) -> Matcher {
    Matcher::first_user_contains(prompt)
}

#[test]
fn a_shell_task_runs_detached_and_is_seen_from_other_processes() {
    let bench = Bench::new(Script::new());
    let task = create(
        &bench,
        &[
            "local_bash",
            "--subject",
            "say",
            "--command",
            "echo hello; echo there; exit 3",
        ],
    );
    let id = task["task_id"].as_str().unwrap();
    assert!(id.starts_with("b-") && id.len() == 10, "{id}");
    let record = ended(&bench, id);
    assert_eq!(
        (&record["status"], &record["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!(bench.run(&["task", "output", id]).stdout, "hello\nthere\n");
    let list = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    assert_eq!(list["tasks"][0]["task_id"], id);
    assert_eq!(bench.run(&["task", "watch", id]).status.code(), Some(1));
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new(),
        "the runner stays"
    );
}

#[test]
fn a_stopped_task_leaves_no_process() {
    let bench = Bench::new(Script::new());
    let task = create(
        &bench,
        &[
            "local_bash",
            "--subject",
            "s",
            "--command",
            "touch begun; sleep 600 & sleep 601",
        ],
    );
    let id = task["task_id"].as_str().unwrap();
    wait_for("the command begins", || bench.work().join("begun").exists());
    let stopped = parsed(
        &bench
            .run(&["task", "stop", id, "--reason", "enough", "--json"])
            .stdout,
    );
    assert_eq!(
        (&stopped["status"], &stopped["error"]),
        (&json!("killed"), &json!("enough"))
    );
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
    let again = bench.run(&["task", "stop", id]);
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stderr.contains("killed"), "{}", again.stderr);
}

#[test]
fn a_watched_task_whose_runner_dies_is_settled() {
    let bench = Bench::new(Script::new());
    let command = "touch begun; sleep 600";
    let task = create(
        &bench,
        &["local_bash", "--subject", "s", "--command", command],
    );
    let id = task["task_id"].as_str().unwrap();
    wait_for("the command begins", || bench.work().join("begun").exists());
    let runners = codespar_testkit::process::processes_with_cmdline("worker --until-idle").unwrap();
    let ours = bench.room.alive().unwrap();
    for runner in runners.into_iter().filter(|pid| ours.contains(pid)) {
        codespar_testkit::process::kill_9(runner).unwrap();
    }
    let watched = bench.run(&["task", "watch", id]);
    assert_eq!(watched.status.code(), Some(1), "{}", watched.stderr);
    assert!(watched.stderr.contains("lost:"), "{}", watched.stderr);
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(left, Vec::<u32>::new());
}

#[test]
fn dependents_wait_and_fail_with_what_they_waited_for() {
    let bench = Bench::new(Script::new());
    let first = create(
        &bench,
        &[
            "local_bash",
            "--subject",
            "first",
            "--command",
            "sleep 0.3; echo 1 >> order",
        ],
    );
    let first = first["task_id"].as_str().unwrap();
    let second = create(
        &bench,
        &[
            "local_bash",
            "--subject",
            "second",
            "--command",
            "echo 2 >> order; false",
            "--blocked-by",
            first,
        ],
    );
    let second = second["task_id"].as_str().unwrap();
    let third = create(
        &bench,
        &[
            "local_bash",
            "--subject",
            "third",
            "--command",
            "echo 3 >> order",
            "--blocked-by",
            second,
        ],
    );
    let record = ended(&bench, third["task_id"].as_str().unwrap());
    assert_eq!(record["status"], "failed");
    assert!(
        record["error"].as_str().unwrap().contains(second),
        "{record}"
    );
    assert_eq!(
        std::fs::read_to_string(bench.work().join("order")).unwrap(),
        "1\n2\n"
    );
    let cycle = bench.run(&[&CREATE_SHELL[..], &["--blocked-by", "b-00000000"]].concat());
    assert_eq!(cycle.status.code(), Some(1));
    assert!(cycle.stderr.contains("b-00000000"), "{}", cycle.stderr);
}

#[test]
fn switched_off_tasks_say_so() {
    for settings in [
        "{}",
        r#"{"DISABLE_BACKGROUND_TASKS": true}"#,
        r#"{"disableBackgroundTasks": true}"#,
        r#"{"env": {"DISABLE_BACKGROUND_TASKS": "1"}}"#,
    ] {
        let bench = Bench::new(Script::new());
        let mut command = bench.command(&CREATE_SHELL);
        std::fs::create_dir_all(bench.room.codespar_home()).unwrap();
        std::fs::write(bench.room.codespar_home().join("settings.json"), settings).unwrap();
        if settings == "{}" {
            command.env("DISABLE_BACKGROUND_TASKS", "true");
        }
        let finished = codespar_testkit::process::spawn(&mut command)
            .unwrap()
            .wait(PATIENCE)
            .unwrap();
        assert_eq!(finished.status.code(), Some(1), "{settings}");
        let said = finished.stderr;
        assert!(said.contains("switched off"), "{settings}: {said}");
    }
}

#[test]
fn without_background_tasks_subagents_that_are_waited_for_still_work() {
    let task = |background: bool| {
        json!({
            "description": "look", "prompt": "child looks", "subagent_type": "general-purpose",
            "run_in_background": background,
        })
    };
    let script = Script::new()
        .turn(Turn::tool("Task", &task(false)))
        .turn(Turn::tool("Task", &task(true)))
        .turn(Turn::text("done"))
        .conversation(
            Conversation::new("child", Matcher::first_user_contains("child looks"))
                .turn(Turn::text("I looked.")),
        );
    let bench = Bench::new(script);
    let settings = r#"{"env": {"DISABLE_BACKGROUND_TASKS": "true"}}"#;
    std::fs::write(bench.room.codespar_home().join("settings.json"), settings).unwrap();
    let mut command = bench.command(&["-p", "go"]);
    let finished = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(finished.stdout, "done\n", "{}", finished.stderr);
    let requests = bench.server.requests();
    let main: Vec<_> = requests
        .iter()
        .filter(|request| request.messages()[0].to_string().contains("go"))
        .collect();
    let offered = main[0].tool_names();
    assert!(
        offered.contains(&"Task") && !offered.contains(&"TaskCreate"),
        "{offered:?}"
    );
    let results = main.last().unwrap().tool_results();
    assert!(results[0].text.contains("I looked."), "{results:?}");
    assert!(results[1].text.contains("switched off"), "{results:?}");
}

#[test]
fn subagents_of_one_message_run_at_once_and_their_messages_are_marked() {
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Task", &json!({"description": "one", "prompt": "child one", "subagent_type": "general-purpose"}))
                .and_tool("Task", &json!({"description": "two", "prompt": "child two", "subagent_type": "general-purpose"})),
        )
        .turn(Turn::text("both are done"))
        // Each waits for the other's file: one after the other they would never end.
        .conversation(
            Conversation::new("one", worker("child one"))
                .turn(Turn::tool("Bash", &json!({"command": "touch one; until [ -e two ]; do sleep 0.02; done"})))
                .turn(Turn::text("answer one")),
        )
        .conversation(
            Conversation::new("two", worker("child two"))
                .turn(Turn::tool("Bash", &json!({"command": "touch two; until [ -e one ]; do sleep 0.02; done"})))
                .turn(Turn::text("answer two")),
        );
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0), "{lines:?}");
    let marked: Vec<&Value> = lines
        .iter()
        .filter(|line| line["parent_tool_use_id"].is_string())
        .collect();
    assert_eq!(
        marked
            .iter()
            .filter(|line| line["type"] == "assistant")
            .count(),
        4
    );
    let started = lines
        .iter()
        .filter(|line| line["subtype"] == "task_started")
        .count();
    assert_eq!(started, 2);
    let progress = lines
        .iter()
        .filter(|line| line["subtype"] == "task_progress")
        .count();
    assert_eq!(progress, 2);
    let results: Vec<Value> = lines
        .iter()
        .filter(|line| line["type"] == "user" && line["parent_tool_use_id"].is_null())
        .flat_map(|line| line["message"]["content"].as_array().unwrap().clone())
        .map(|block| parsed(block["content"].as_str().unwrap()))
        .collect();
    let texts: Vec<&str> = results
        .iter()
        .map(|result| result["result"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["answer one", "answer two"]);
    assert!(
        results
            .iter()
            .all(|result| result["success"] == true && result["toolUses"] == 1)
    );
    // The sums are those of the whole tree.
    let last = lines.last().unwrap();
    assert_eq!(last["num_turns"], 2);
    assert!(last["usage"]["output_tokens"].as_u64().unwrap() > 0);
    assert_eq!(bench.server.request_count(), 6);
}

#[test]
fn an_explorer_that_asks_for_write_is_refused_at_dispatch() {
    let script = Script::new()
        .turn(Turn::tool(
            "Task",
            &json!({"description": "look", "prompt": "child looks", "subagent_type": "Explore"}),
        ))
        .turn(Turn::text("ok"))
        .conversation(
            Conversation::new("child", worker("child looks"))
                .turn(Turn::tool(
                    "Write",
                    &json!({"file_path": "x.txt", "content": "x"}),
                ))
                .turn(Turn::text("{{last_tool_result}}")),
        );
    let bench = Bench::new(script);
    let (lines, _) = bench.stream(&["-p", "go", "--permission-mode", "bypassPermissions"]);
    let results = tool_results(&lines);
    assert!(
        results
            .iter()
            .any(|text| text.starts_with("there is no tool `Write` here")),
        "{results:?}"
    );
    assert!(!bench.work().join("x.txt").exists());
    let child = bench
        .server
        .requests()
        .into_iter()
        .find(|r| r.messages()[0].to_string().contains("child looks"))
        .unwrap();
    assert_eq!(child.model(), "claude-haiku-5-5");
    assert!(!child.tool_names().contains(&"Write"));
}

#[test]
fn an_agent_is_continued_by_its_id_in_a_later_process() {
    let script = Script::new()
        .turn(Turn::tool(
            "Task",
            &json!({"description": "first", "prompt": "remember the word plum", "name": "memory"}),
        ))
        .turn(Turn::text("started"))
        .turn(Turn::tool(
            "Task",
            &json!({"description": "again", "prompt": "which word?", "resume": "memory"}),
        ))
        .turn(Turn::text("{{last_tool_result}}"))
        .conversation(
            Conversation::new("child", worker("remember the word plum"))
                .turn(Turn::text("I will."))
                .turn(Turn::text("It was plum.")),
        );
    let bench = Bench::new(script);
    assert_eq!(bench.run(&["-p", "go"]).stdout, "started\n");
    let again = bench.run(&["-p", "and now", "--continue"]);
    assert!(
        again.stdout.contains("It was plum."),
        "{}{}",
        again.stdout,
        again.stderr
    );
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(tasks["tasks"][0]["attempt"], 2);
}

/// The whole story of a coordinator: research in parallel, a follow-up, a stop and a continue, a
/// fresh verifier; every notification once.
#[test]
fn a_coordinator_directs_workers_and_hears_of_each_end_once() {
    let gate = Gate::closed();
    let start = |name: &str, prompt: &str| json!({"description": name, "prompt": prompt, "name": name, "subagent_type": "worker"});
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Agent", &start("r1", "research the parser"))
                .and_tool("Agent", &start("r2", "research the tests"))
                .and_tool("Agent", &start("slow", "do a slow thing")),
        )
        // When the two quick ones are done: their notifications come together.
        .turn(Turn::text("Three workers are at it.").held_by(&gate))
        .turn(Turn::tool(
            "TaskStop",
            &json!({"task_id": "slow", "reason": "not needed now"}),
        ))
        .turn(
            Turn::new()
                .and_tool(
                    "SendMessage",
                    &json!({"to": "r1", "message": "Change parser.rs line 3: use u64."}),
                )
                .and_tool(
                    "SendMessage",
                    &json!({"to": "slow", "message": "Go on, but quickly."}),
                ),
        )
        .turn(Turn::text("Two go on."))
        .turn(Turn::tool("Agent", &start("verify", "prove that it works")))
        .turn(Turn::text("All is verified."))
        .turn(Turn::text("All is verified."))
        .turn(Turn::text("All is verified."))
        .after_last(AfterLast::Repeat)
        .conversation(
            Conversation::new("r1", worker("research the parser"))
                .turn(Turn::text("parser found"))
                .turn(Turn::text("parser changed")),
        )
        .conversation(
            Conversation::new("r2", worker("research the tests")).turn(Turn::text("tests found")),
        )
        .conversation(
            Conversation::new("slow", worker("do a slow thing"))
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": "touch begun; sleep 600"}),
                ))
                .turn(Turn::text("quick after all")),
        )
        .conversation(
            Conversation::new("verify", worker("prove that it works")).turn(Turn::text("proved")),
        );
    let bench = Bench::new(script);
    let running = bench.start(&[
        "-p",
        "improve it",
        "--coordinator",
        "--allowedTools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    wait_for("two are done and one is at it", || {
        let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
        let tasks = tasks["tasks"].as_array().unwrap().iter();
        let done = tasks.filter(|task| task["status"] == "completed").count();
        done == 2 && bench.work().join("begun").exists()
    });
    gate.open();
    let finished = running.wait(PATIENCE).unwrap();
    let lines = json_lines(&finished.stdout);
    assert_eq!(finished.status.code(), Some(0), "{lines:#?}");
    assert_eq!(
        lines[0]["tools"],
        json!([
            "Agent",
            "SendMessage",
            "TaskStop",
            "TeamCreate",
            "TeamDelete"
        ])
    );
    let session = lines[0]["session_id"].as_str().unwrap();
    let entries = json_lines(&bench.run(&["session", "export", session]).stdout);
    let told: String = entries
        .iter()
        .filter(|entry| entry["body"]["user"]["synthetic"] == true)
        .map(|entry| {
            entry["body"]["user"]["message"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect::<Vec<_>>()
        .join("\n");
    for (result, times) in [
        ("parser found", 1),
        ("tests found", 1),
        ("parser changed", 1),
        ("quick after all", 1),
        ("proved", 1),
    ] {
        assert_eq!(told.matches(result).count(), times, "{result} in {told}");
    }
    assert_eq!(told.matches("<status>killed</status>").count(), 1, "{told}");
    assert_eq!(told.matches("<task-notification>").count(), 6, "{told}");
    assert_eq!(lines.last().unwrap()["result"], "All is verified.");
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
    // A session remembers that it is a coordinator's.
    let resumed = bench.run(&[
        "-p",
        "more",
        "--resume",
        session,
        "--output-format",
        "stream-json",
    ]);
    assert!(
        resumed.stdout.contains("coordinator mode is on"),
        "{}",
        resumed.stdout
    );
}

const AGENTS: usize = 20;
const SHELLS: usize = 5;
const STEPS: usize = 6;

/// Numbers that look random and come again with the same seed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let named = std::env::var("CODESPAR_TEST_SEED").ok();
        let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = named.map_or_else(
            || u64::from(clock().unwrap().subsec_nanos()),
            |seed| seed.parse().unwrap(),
        );
        eprintln!("CODESPAR_TEST_SEED={seed}");
        Self(seed)
    }

    fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = mixed ^ (mixed >> 31);
        Duration::from_millis(range.start + mixed % (range.end - range.start))
    }
}

/// Twenty agents of six steps each and five commands that never end.
fn busy_script() -> Script {
    let mut turn = Turn::new();
    for n in 0..AGENTS {
        let input = json!({"description": format!("agent {n}"), "prompt": format!("child {n} works"), "run_in_background": true});
        turn = turn.and_tool("Task", &input);
    }
    for n in 0..SHELLS {
        let input = json!({"task_type": "local_bash", "subject": format!("shell {n}"), "command": format!("touch shell{n}; sleep 600")});
        turn = turn.and_tool("TaskCreate", &input);
    }
    let mut script = Script::new()
        .turn(turn)
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat);
    for n in 0..AGENTS {
        let mut child =
            Conversation::new(format!("child {n}"), worker(&format!("child {n} works")));
        for step in 0..STEPS {
            let command = format!("echo {n}.{step} >> ran.txt");
            let turn = Turn::tool("Bash", &json!({"command": command}));
            child = child.turn(turn.latency(Duration::from_millis(250)));
        }
        script = script.conversation(child.turn(Turn::text(format!("child {n} is done"))));
    }
    script
}

/// Killed while all of it is under way, killed again while the next process waits for the dead
/// one's leases, and once more when it has taken over.
#[test]
fn killed_again_and_again_with_twenty_agents_and_five_shells_nothing_is_lost_or_doubled() {
    let mut dice = Dice::new();
    let bench = Bench::new(busy_script());
    let flags = ["--allowedTools", "Bash", "--output-format", "stream-json"];
    let orphans = || bench.room.wait_until_empty(PATIENCE).unwrap();

    let running = bench.start(&[&["-p", "go"][..], &flags].concat());
    let has_begun = |n: usize| bench.work().join(format!("shell{n}")).exists();
    wait_for("all shells begin", || (0..SHELLS).all(has_begun));
    std::thread::sleep(dice.millis(0..800));
    let killed = running.kill_9().unwrap();
    let first = killed.stdout.split_inclusive('\n').next().unwrap();
    let session = json_lines(first)[0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(orphans(), Vec::<u32>::new(), "orphans");

    let resume = [&["-p", "--resume", &session][..], &flags].concat();
    for pause in [dice.millis(50..1_500), dice.millis(8_500..11_000)] {
        let mut running = bench.start(&resume);
        std::thread::sleep(pause);
        if running.has_ended().unwrap() {
            break;
        }
        running.kill_9().unwrap();
        assert_eq!(orphans(), Vec::<u32>::new(), "orphans");
    }
    let finished = bench.run(&resume);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stdout);
    assert_eq!(orphans(), Vec::<u32>::new(), "orphans");

    let export = bench.run(&["session", "export", &session]).stdout;
    assert_eq!(
        export.matches("<task-notification>").count(),
        AGENTS + SHELLS
    );
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let tasks = tasks["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), AGENTS + SHELLS);
    for task in tasks {
        let id = task["task_id"].as_str().unwrap();
        let told = format!("<task-id>{id}</task-id>");
        assert_eq!(export.matches(&told).count(), 1, "{id}");
        if task["task_type"] == "local_bash" {
            assert_eq!(task["status"], "failed", "{task:#}");
            assert!(task["error"].as_str().unwrap().starts_with("lost:"));
            continue;
        }
        let n = task["subject"].as_str().unwrap().replace("agent ", "");
        let text = format!("child {n} is done");
        assert_eq!(task["status"], "completed", "{task:#}");
        assert_eq!(task["metadata"]["result"], text);
        assert_eq!(export.matches(&format!("<result>{text}<")).count(), 1);
        let output = std::fs::read_to_string(task["output_file"].as_str().unwrap()).unwrap();
        assert_eq!(output.matches(&text).count(), 1, "{output}");
    }
    let ran = std::fs::read_to_string(bench.work().join("ran.txt")).unwrap();
    let mut steps: Vec<&str> = ran.lines().collect();
    let all = steps.len();
    steps.sort_unstable();
    steps.dedup();
    assert_eq!(steps.len(), all, "a step ran twice: {ran}");
}

#[test]
fn a_dream_can_be_asked_for_by_the_model() {
    let input = json!({"task_type": "dream", "subject": "think", "prompt": "what did we learn?"});
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &input))
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat)
        .conversation(
            Conversation::new("dream", worker("what did we learn?"))
                .turn(Turn::text("We learnt to look twice.")),
        );
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let dream = &tasks["tasks"][0];
    assert_eq!(
        (&dream["task_type"], &dream["status"]),
        (&json!("dream"), &json!("completed")),
        "{dream:#}"
    );
    let note = std::fs::read_to_string(dream["metadata"]["memory_file"].as_str().unwrap()).unwrap();
    assert!(note.contains("We learnt to look twice."), "{note}");
    let request = bench
        .server
        .requests()
        .into_iter()
        .find(|request| {
            request.messages()[0]
                .to_string()
                .contains("what did we learn?")
        })
        .unwrap();
    assert_eq!(request.tool_names(), ["Read", "LS", "Glob", "Grep"]);
}

#[test]
fn what_a_subagent_was_denied_is_in_the_result() {
    let script = Script::new()
        .turn(Turn::tool(
            "Task",
            &json!({"description": "write", "prompt": "child writes"}),
        ))
        .turn(Turn::text("ok"))
        .conversation(
            Conversation::new("child", worker("child writes"))
                .turn(Turn::tool(
                    "Write",
                    &json!({"file_path": "x.txt", "content": "x"}),
                ))
                .turn(Turn::text("I could not")),
        );
    let bench = Bench::new(script);
    let (lines, _) = bench.stream(&["-p", "go"]);
    let denials = &lines.last().unwrap()["permission_denials"];
    assert_eq!(denials.as_array().unwrap().len(), 1, "{denials}");
    assert_eq!(denials[0]["tool_name"], "Write");
}

#[test]
fn a_session_says_who_takes_a_remote_agent_when_no_worker_lives() {
    let input = json!({"task_type": "remote_agent", "subject": "far", "prompt": "child far away"});
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &input))
        .turn(Turn::text("over"))
        .after_last(AfterLast::Repeat)
        .conversation(
            Conversation::new("child", worker("child far away")).turn(Turn::text("far and done")),
        );
    let bench = Bench::new(script);
    let allowed = ["--allowedTools", "TaskCreate"];
    let finished = bench.run(&[&["-p", "go"][..], &allowed].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let expected = "no worker lives to take r-";
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("codespar worker"),
        "{}",
        finished.stderr
    );
    // With a worker there is an end to wait for.
    let worker = bench.start(&["worker"]);
    wait_for("the worker lives", || {
        !bench.room.alive().unwrap().is_empty()
    });
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    ended(&bench, tasks["tasks"][0]["task_id"].as_str().unwrap());
    let finished = bench.run(&[&["-p", "go"][..], &allowed].concat());
    assert!(!finished.stderr.contains(expected), "{}", finished.stderr);
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    assert_eq!(tasks["tasks"][1]["status"], "completed", "{tasks:#}");
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();
}

#[test]
fn a_remote_agent_gets_a_worker_when_only_a_session_lives() {
    let command = "touch begun; until [ -e open ]; do sleep 0.05; done";
    let script = Script::new()
        .turn(Turn::tool("Bash", &json!({"command": command})))
        .turn(Turn::text("over"))
        .conversation(
            Conversation::new("child", worker("child far away")).turn(Turn::text("far and done")),
        );
    let bench = Bench::new(script);
    let session = bench.start(&["-p", "go", "--allowedTools", "Bash"]);
    wait_for("the command begins", || bench.work().join("begun").exists());
    let args = [
        "remote_agent",
        "--subject",
        "far",
        "--prompt",
        "child far away",
    ];
    let task = create(&bench, &args);
    let record = ended(&bench, task["task_id"].as_str().unwrap());
    assert_eq!(record["metadata"]["result"], "far and done", "{record:#}");
    bench.file("open", "");
    assert_eq!(session.wait(PATIENCE).unwrap().stdout, "over\n");
}

#[test]
fn a_task_is_named_by_the_beginning_of_its_id() {
    let bench = Bench::new(Script::new());
    let mut ids = Vec::new();
    // Among seventeen, two begin with the same digit.
    for _ in 0..17 {
        let args = ["local_bash", "--subject", "s", "--command", "true"];
        ids.push(
            create(&bench, &args)["task_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    for id in &ids {
        let record = crate::common::task(&bench, &id[..9]);
        assert_eq!(record["task_id"], id.as_str());
    }
    let shared = ids
        .iter()
        .map(|id| &id[..3])
        .find(|start| ids.iter().filter(|id| id.starts_with(start)).count() > 1)
        .unwrap();
    let many = bench.run(&["task", "get", shared]);
    assert_eq!(many.status.code(), Some(2));
    let expected = format!("`{shared}` begins several ids: b-");
    assert!(many.stderr.contains(&expected), "{}", many.stderr);
    let none = bench.run(&["task", "get", "nonsense"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(
        none.stderr.contains("`nonsense` is not a task id"),
        "{}",
        none.stderr
    );
}
