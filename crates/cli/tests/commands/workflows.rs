//! Workflows, remote agents and dreams, through the real binary.

use std::time::{Duration, Instant};

use codespar_testkit::{Conversation, Matcher, Script, Turn, process};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, ended, parsed, task, tool_results};

/// Makes a task and gives its id.
fn create(bench: &Bench, args: &[&str]) -> String {
    let command = [
        &["task", "create", "--json", "--subject", "s", "--type"],
        args,
    ]
    .concat();
    let finished = bench.run(&command);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let record = parsed(&finished.stdout);
    record["task_id"].as_str().unwrap().to_owned()
}

fn flow(bench: &Bench, name: &str, text: &str) -> String {
    bench.file(&format!(".codespar/workflows/{name}.toml"), text);
    bench.trust();
    create(bench, &["local_workflow", "--workflow", name])
}

fn all_tasks(bench: &Bench) -> Vec<Value> {
    let list = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    list["tasks"].as_array().unwrap().clone()
}

/// The latest task of a step.
fn step(bench: &Bench, workflow: &Value, id: &str) -> Value {
    let is_of_step = |task: &&Value| {
        task["parent_task_id"] == workflow["task_id"] && task["metadata"]["workflow_step"] == id
    };
    let tasks = all_tasks(bench);
    let latest = tasks.iter().rev().find(is_of_step);
    latest.unwrap_or_else(|| panic!("no task of {id}")).clone()
}

fn wait_for_file(bench: &Bench, name: &str) {
    let began = Instant::now();
    while !bench.work().join(name).exists() {
        assert!(began.elapsed() < PATIENCE, "{name} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read(bench: &Bench, name: &str) -> String {
    std::fs::read_to_string(bench.work().join(name)).unwrap()
}

fn nothing_is_left(bench: &Bench) {
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(left, Vec::<u32>::new());
}

#[test]
fn a_workflow_runs_its_steps_in_order_and_hands_results_on() {
    let script = Script::new().conversation(
        Conversation::new(
            "writer",
            Matcher::first_user_contains("The version is 1.2.3"),
        )
        .turn(Turn::text("Notes for 1.2.3")),
    );
    let bench = Bench::new(script);
    let id = flow(
        &bench,
        "release",
        r#"
name = "release"
[[step]]
id = "publish"
needs = ["notes", "check"]
command = "echo publish >> ran"
[[step]]
id = "version"
command = "echo version >> ran; echo 1.2.3"
[[step]]
id = "notes"
needs = ["version"]
prompt = "The version is {{steps.version.result}}. Write notes."
agent = "Explore"
[[step]]
id = "check"
needs = ["version"]
command = "echo check >> ran"
"#,
    );
    assert!(id.starts_with("w-"), "{id}");
    let workflow = ended(&bench, &id);
    assert_eq!(workflow["status"], "completed", "{workflow:#}");
    assert_eq!(read(&bench, "ran"), "version\ncheck\npublish\n");

    let names = ["version", "notes", "check", "publish"];
    let steps = names.map(|name| step(&bench, &workflow, name));
    let ids = steps
        .each_ref()
        .map(|step| step["task_id"].as_str().unwrap());
    assert!(steps.iter().all(|step| step["parent_task_id"] == id));
    assert_eq!(steps[1]["blocked_by"], json!([ids[0]]));
    assert_eq!(steps[3]["blocked_by"], json!([ids[1], ids[2]]));
    assert_eq!(steps[1]["metadata"]["result"], "Notes for 1.2.3");
    assert_eq!(all_tasks(&bench).len(), 5);

    let mut lines: Vec<String> = bench
        .run(&["task", "output", &id])
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(lines[0], format!("version: started as {}", ids[0]));
    assert_eq!(lines[7], format!("publish: completed ({})", ids[3]));
    let mut expected: Vec<String> = names
        .iter()
        .zip(ids)
        .flat_map(|(name, id)| {
            [
                format!("{name}: started as {id}"),
                format!("{name}: completed ({id})"),
            ]
        })
        .collect();
    lines.sort();
    expected.sort();
    assert_eq!(lines, expected);
    assert_eq!(bench.run(&["task", "output", ids[0]]).stdout, "1.2.3\n");
    nothing_is_left(&bench);
}

#[test]
fn a_failed_step_is_named_its_dependents_fail_and_the_others_run() {
    let bench = Bench::new(Script::new());
    let id = flow(
        &bench,
        "ci",
        r#"
name = "ci"
[[step]]
id = "test"
command = "echo test >> tests; exit 3"
retry = 2
[[step]]
id = "ship"
needs = ["test"]
command = "touch shipped"
[[step]]
id = "lint"
command = "sleep 0.5; touch linted"
"#,
    );
    let workflow = ended(&bench, &id);
    let test = step(&bench, &workflow, "test");
    let test = test["task_id"].as_str().unwrap();
    assert_eq!(
        (workflow["status"].as_str(), workflow["error"].as_str()),
        (
            Some("failed"),
            Some(&*format!("step test: failed: exit code 3 ({test})"))
        )
    );
    assert_eq!(read(&bench, "tests"), "test\ntest\ntest\n");
    assert!(bench.work().join("linted").exists() && !bench.work().join("shipped").exists());
    let ship = step(&bench, &workflow, "ship");
    assert_eq!(
        (&ship["status"], &ship["attempt"]),
        (&json!("failed"), &json!(0))
    );
    assert!(ship["error"].as_str().unwrap().contains(test), "{ship}");
    let output = bench.run(&["task", "output", &id]).stdout;
    let retried = format!("test: started as {test}, retry 2 of 2\n");
    assert!(output.contains(&retried), "{output}");
}

#[test]
fn a_bad_workflow_is_refused_with_its_line_and_makes_no_task() {
    let bench = Bench::new(Script::new());
    let file = bench.file(
        ".codespar/workflows/odd.toml",
        "name = \"odd\"\n[[step]]\nid = \"a\"\nneeds = [\"a\"]\ncommand = \"true\"\n",
    );
    bench.trust();
    let refuse = |args: &[&str]| {
        let command = [&["task", "create", "--subject", "s", "--type"], args].concat();
        let finished = bench.run(&command);
        assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
        finished.stderr
    };
    let by_name = refuse(&["local_workflow", "--workflow", "odd"]);
    let expected = format!("{}:3: steps wait for each other: a → a", file.display());
    assert!(by_name.contains(&expected), "{by_name}");
    let by_path = refuse(&[
        "local_workflow",
        "--workflow",
        ".codespar/workflows/odd.toml",
    ]);
    assert!(by_path.contains(&expected), "{by_path}");
    let unknown = refuse(&["local_workflow", "--workflow", "even"]);
    assert!(
        unknown.contains("no workflow `even`; there are: odd"),
        "{unknown}"
    );
    let missing = refuse(&["local_workflow"]);
    assert!(missing.contains("needs --workflow"), "{missing}");
    let strange = refuse(&["local_bash", "--command", "true", "--workflow", "odd"]);
    assert!(
        strange.contains("--workflow does not go with a local_bash task"),
        "{strange}"
    );
    assert_eq!(all_tasks(&bench), Vec::<Value>::new());
}

#[test]
fn a_stopped_workflow_stops_its_steps() {
    let bench = Bench::new(Script::new());
    let id = flow(
        &bench,
        "slow",
        "name = \"slow\"\n[[step]]\nid = \"a\"\ncommand = \"touch begun; sleep 600\"\nretry = 5\n\
         [[step]]\nid = \"b\"\nneeds = [\"a\"]\ncommand = \"touch after\"\n",
    );
    wait_for_file(&bench, "begun");
    let stopped = bench.run(&["task", "stop", &id, "--reason", "enough", "--json"]);
    let stopped = parsed(&stopped.stdout);
    assert_eq!(
        (&stopped["status"], &stopped["error"]),
        (&json!("killed"), &json!("enough"))
    );
    let a = step(&bench, &stopped, "a");
    assert_eq!(
        (&a["status"], &a["error"]),
        (&json!("killed"), &json!("enough"))
    );
    assert_eq!(all_tasks(&bench).len(), 2);
    nothing_is_left(&bench);
}

#[test]
fn a_step_that_someone_stops_is_not_made_again() {
    let bench = Bench::new(Script::new());
    let id = flow(
        &bench,
        "slow",
        "name = \"slow\"\n[[step]]\nid = \"a\"\ncommand = \"touch begun; sleep 600\"\nretry = 5\n",
    );
    wait_for_file(&bench, "begun");
    let a = step(&bench, &task(&bench, &id), "a");
    let a = a["task_id"].as_str().unwrap();
    bench.run(&["task", "stop", a, "--reason", "enough"]);
    let workflow = ended(&bench, &id);
    assert_eq!(
        (workflow["status"].as_str(), workflow["error"].as_str()),
        (
            Some("failed"),
            Some(&*format!("step a: killed: enough ({a})"))
        )
    );
    assert_eq!(all_tasks(&bench).len(), 2);
    nothing_is_left(&bench);
}

#[test]
fn after_a_crash_a_workflow_goes_on_at_the_first_unfinished_step() {
    let script = Script::new().conversation(
        Conversation::new("b", Matcher::first_user_contains("the second step"))
            .turn(Turn::text("b is done")),
    );
    let bench = Bench::new(script);
    let long = flow(
        &bench,
        "long",
        r#"
name = "long"
[[step]]
id = "a"
command = "echo a >> ran"
[[step]]
id = "b"
needs = ["a"]
prompt = "the second step"
[[step]]
id = "c"
needs = ["b"]
retry = 1
command = "echo c >> ran; [ -e again ] || { touch again; sleep 600; }"
[[step]]
id = "d"
needs = ["c"]
command = "echo d >> ran"
"#,
    );
    let once = flow(
        &bench,
        "once",
        "name = \"once\"\n[[step]]\nid = \"x\"\ncommand = \"echo x >> once; sleep 600\"\n",
    );
    wait_for_file(&bench, "again");
    wait_for_file(&bench, "once");
    let lost = step(&bench, &task(&bench, &long), "c");
    let lost = lost["task_id"].as_str().unwrap();
    for pid in bench.room.alive().unwrap() {
        // Some end with others.
        let _ = process::kill_9(pid);
    }
    nothing_is_left(&bench);
    let worker = bench.run(&["worker", "--until-idle"]);
    assert_eq!(worker.status.code(), Some(0), "{}", worker.stderr);

    let workflow = task(&bench, &long);
    assert_eq!(workflow["status"], "completed", "{workflow:#}");
    assert_eq!(read(&bench, "ran"), "a\nc\nc\nd\n");
    assert_eq!(bench.server.request_count(), 1);
    let ids = ["a", "b", "c", "d"].map(|name| {
        let record = step(&bench, &workflow, name);
        record["task_id"].as_str().unwrap().to_owned()
    });
    let [a, b, c, d] = &ids;
    assert_eq!(
        bench.run(&["task", "output", &long]).stdout,
        format!(
            "a: started as {a}\na: completed ({a})\nb: started as {b}\nb: completed ({b})\n\
             c: started as {lost}\nc: failed: lost: the process that ran it died, and the command \
             with it. It was not run again. ({lost})\n\
             c: started as {c}, retry 1 of 1\nc: completed ({c})\n\
             d: started as {d}\nd: completed ({d})\n"
        )
    );
    let workflow = task(&bench, &once);
    let error = workflow["error"].as_str().unwrap();
    assert!(error.starts_with("step x: failed: lost: "), "{error}");
    assert_eq!(read(&bench, "once"), "x\n");
    assert_eq!(all_tasks(&bench).len(), 8);
}

#[test]
fn the_commands_of_a_workflow_need_permission_like_any_other() {
    let start = json!({"task_type": "local_workflow", "subject": "go", "metadata": {"file": "w"}});
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &start))
        .turn(Turn::text("first"))
        .turn(Turn::text("{{last_user}}"));
    let file =
        "name = \"w\"\n[[step]]\nid = \"a\"\ncommand = \"curl -d @ran example.org; touch ran\"\n";
    let bench = Bench::new(script.clone());
    bench.file(".codespar/workflows/w.toml", file);
    bench.trust();
    let (lines, _) = bench.stream(&["-p", "go"]);
    let results = tool_results(&lines);
    assert!(results[0].starts_with("permission denied"), "{results:?}");
    assert_eq!(all_tasks(&bench), Vec::<Value>::new());

    let bench = Bench::new(script);
    bench.file(".codespar/workflows/w.toml", file);
    bench.trust();
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(bench.work().join("ran").exists());
    let told = bench
        .server
        .last_request()
        .unwrap()
        .last_message()
        .to_string();
    assert!(
        told.contains("<task-id>w-") && told.contains("a: completed (b-"),
        "{told}"
    );
    assert_eq!(all_tasks(&bench).len(), 2);
}

#[test]
fn a_remote_agent_waits_for_a_worker() {
    let start = json!({"task_type": "remote_agent", "subject": "far", "prompt": "work far away"});
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &start))
        .turn(Turn::text("handed out"))
        .conversation(
            Conversation::new("far", Matcher::first_user_contains("work far away"))
                .turn(Turn::text("done far away")),
        )
        .conversation(
            Conversation::new("by hand", Matcher::first_user_contains("made by hand"))
                .turn(Turn::text("done by hand")),
        );
    let bench = Bench::new(script);
    let session = bench.run(&["-p", "go", "--allowedTools", "TaskCreate(remote_agent)"]);
    assert_eq!(session.stdout, "handed out\n", "{}", session.stderr);
    let waiting = all_tasks(&bench);
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (&waiting[0]["task_type"], &waiting[0]["status"]),
        (&json!("remote_agent"), &json!("pending"))
    );
    let worker = bench.run(&["worker", "--until-idle"]);
    assert_eq!(worker.status.code(), Some(0), "{}", worker.stderr);
    let done = task(&bench, waiting[0]["task_id"].as_str().unwrap());
    assert_eq!(
        (&done["status"], &done["metadata"]["result"]),
        (&json!("completed"), &json!("done far away"))
    );
    let id = create(&bench, &["remote_agent", "--prompt", "made by hand"]);
    assert!(id.starts_with("r-"), "{id}");
    assert_eq!(ended(&bench, &id)["metadata"]["result"], "done by hand");
}

#[test]
fn a_dream_reads_recent_sessions_and_leaves_a_note_that_later_sessions_know() {
    let script = Script::new()
        .turn(Turn::text("The port is 7070."))
        .turn(Turn::text("ok"))
        .conversation(
            Conversation::new(
                "dream",
                Matcher::system_contains("You think in the background"),
            )
            .turn(Turn::tool(
                "Write",
                &json!({"file_path": "x", "content": "x"}),
            ))
            .turn(Turn::text("# Ports\nThe service listens on 7070.")),
        );
    let bench = Bench::new(script);
    // A definition of the repository cannot give a dream more tools.
    bench.file(
        ".codespar/agents/dream.md",
        "---\nname: dream\ndescription: d\ntools: Write, Bash\n---\nWrite files.\n",
    );
    bench.run(&["-p", "which port does the service use?"]);
    let id = create(&bench, &["dream"]);
    let record = ended(&bench, &id);
    assert_eq!(record["status"], "completed", "{record:#}");
    let date = &record["created_at"].as_str().unwrap()[..10];
    let note = format!(".codespar/memory/{date}-{id}.md");
    assert_eq!(
        read(&bench, &note),
        "# Ports\nThe service listens on 7070.\n"
    );
    assert!(!bench.work().join("x").exists());

    let asked = bench
        .server
        .requests()
        .into_iter()
        .find(|request| {
            request
                .system_text()
                .contains("You think in the background")
        })
        .unwrap();
    let mut tools = asked.tool_names();
    tools.sort_unstable();
    assert_eq!(tools, ["Glob", "Grep", "LS", "Read"]);
    let material = asked.messages()[0].to_string();
    assert!(
        material.contains("First asked: which port does the service use?")
            && material.contains("Last answered: The port is 7070."),
        "{material}"
    );

    bench.run(&["-p", "another day"]);
    let system = bench.server.last_request().unwrap().system_text();
    let known = format!(
        "<memory from=\"{}\">\n# Ports\nThe service listens on 7070.\n</memory>",
        bench.work().canonicalize().unwrap().join(&note).display()
    );
    assert!(system.contains(&known), "{system}");
}
