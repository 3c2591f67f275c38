//! What the `Task` tool accepts and gives back, limits of agents, and what agents are told, through
//! the real binary.

use codespar_testkit::{
    CapturedRequest, Conversation, Gate, Matcher, Script, Turn, process::processes_with_cmdline,
};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, ended, parsed, wait_for};

/// The conversation of an agent that was started with this prompt.
fn child(prompt: &str) -> Conversation {
    Conversation::new(prompt, Matcher::first_user_contains(prompt))
}

fn requests_of(bench: &Bench, prompt: &str) -> Vec<CapturedRequest> {
    let mut requests = bench.server.requests();
    requests.retain(|request| request.messages()[0].to_string().contains(prompt));
    requests
}

/// The results of all tool calls of the conversation that began with this prompt.
fn results_of(bench: &Bench, prompt: &str) -> Vec<String> {
    let requests = requests_of(bench, prompt);
    let results = requests.last().unwrap().tool_results();
    results.into_iter().map(|result| result.text).collect()
}

fn tasks(bench: &Bench) -> Vec<Value> {
    let listed = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    listed["tasks"].as_array().unwrap().clone()
}

#[test]
fn a_call_that_cannot_be_meant_is_refused_before_anything_is_recorded() {
    let call = |input: Value| Turn::tool("Task", &input);
    let script = Script::new()
        .turn(call(json!({"description": "d", "prompt": " \n"})))
        .turn(call(json!({"description": " ", "prompt": "p"})))
        .turn(call(
            json!({"description": "d", "prompt": "p", "model": "gpt-17"}),
        ))
        .turn(Turn::tool(
            "TeamCreate",
            &json!({"name": "red", "members": [{"name": "ann", "model": "gpt-17"}]}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let finished = bench.run(&["-p", "go", "--allowedTools", "TeamCreate"]);
    assert_eq!(finished.stdout, "done\n", "{}", finished.stderr);
    let unknown = "unknown model `gpt-17`: use one of haiku, opus, sonnet, an id that begins with \
                   `claude-`, or leave `model` out; others are added in models.toml";
    assert_eq!(
        results_of(&bench, "go"),
        [
            "`prompt` is empty: say what the agent is to do",
            "`description` is empty: give 3 to 5 words for people",
            unknown,
            unknown,
        ]
    );
    assert_eq!(tasks(&bench), Vec::<Value>::new());
    let sessions = parsed(&bench.run(&["session", "list", "--json"]).stdout);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_at_its_limit_on_turns_gives_what_it_found_and_goes_on_as_the_resume_says() {
    let look = |text: &str| Turn::text(text).and_tool("Bash", &json!({"command": "true"}));
    let start = json!({
        "description": "scout", "prompt": "child scouts", "name": "scout", "max_turns": 2,
    });
    let resume = |more: Value| {
        let mut input = json!({"description": "on", "prompt": "go on", "resume": "scout"});
        let more = more.as_object().unwrap().clone();
        input.as_object_mut().unwrap().extend(more);
        Turn::tool("Task", &input)
    };
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(resume(json!({"subagent_type": "Explore"})))
        .turn(resume(json!({"model": "opus", "max_turns": 1})))
        .turn(resume(json!({"max_turns": 5})))
        .turn(Turn::text("done"))
        .conversation(
            child("child scouts")
                .turn(look("The door is red."))
                .turn(look("The roof is blue."))
                .turn(look("The wall is grey."))
                .turn(Turn::text("That is all.")),
        );
    let bench = Bench::new(script);
    let finished = bench.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(finished.stdout, "done\n", "{}", finished.stderr);
    let all = tasks(&bench);
    let [task] = &all[..] else { panic!("{all:?}") };
    let id = task["task_id"].as_str().unwrap();

    let results = results_of(&bench, "go");
    let partial = |text: &str, turns: u32| {
        let answer = parsed(text);
        assert_eq!(
            (&answer["success"], &answer["partial"], &answer["agentId"]),
            (&json!(false), &json!(true), &json!(id))
        );
        let error = format!(
            "the limit on turns was reached: stopped after {turns} turns (--max-turns); its result \
             is partial, resume {id} to go on"
        );
        assert_eq!(answer["error"], error);
        answer["result"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        partial(&results[0], 2),
        "The door is red.\n\nThe roof is blue."
    );
    assert_eq!(
        results[1],
        format!(
            "{id} is of kind `general-purpose`, not `Explore`: resume it without `subagent_type`, \
             or start a new agent"
        )
    );
    assert_eq!(
        partial(&results[2], 1),
        "The door is red.\n\nThe roof is blue.\n\nThe wall is grey."
    );
    let whole = parsed(&results[3]);
    assert_eq!(
        (&whole["success"], &whole["result"]),
        (&json!(true), &json!("That is all."))
    );
    assert_eq!(whole.get("partial"), None, "{whole}");
    // The refused call began no attempt, and another model is that of one attempt alone.
    assert_eq!(
        (&task["attempt"], &task["status"]),
        (&json!(3), &json!("completed"))
    );
    assert_eq!(task["metadata"].get("partial"), None, "{task}");
    let models: Vec<String> = requests_of(&bench, "child scouts")
        .iter()
        .map(|request| request.model().to_owned())
        .collect();
    let (usual, other) = (&models[0], &models[2]);
    assert_eq!(models, [usual, usual, other, usual].map(String::clone));
    assert!(
        other.contains("opus") && usual.contains("sonnet"),
        "{models:?}"
    );
}

/// Runs a script whose only subagent sleeps longer than its time limit allows.
fn sleeper(script: Script, seconds: &str) -> Bench {
    let sleep = format!("echo begun; sleep {seconds}");
    let bench = Bench::new(
        script.conversation(
            child("child sleeps")
                .turn(
                    Turn::text("I begin.")
                        .and_tool("Bash", &json!({"command": sleep, "timeout": 600_000})),
                )
                .turn(Turn::text("I slept.")),
        ),
    );
    let finished = bench.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout, "the parent goes on\n");
    bench
}

#[test]
fn a_time_limit_ends_a_subagent_in_the_foreground_with_its_command_and_the_parent_goes_on() {
    let start = json!({
        "description": "sleep", "prompt": "child sleeps", "max_wall_seconds": 2,
    });
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(Turn::tool(
            "Bash",
            &json!({"command": "pgrep -f 'sleep [6]01.5' || echo gone"}),
        ))
        .turn(Turn::text("the parent goes on"));
    let bench = sleeper(script, "601.5");
    assert_eq!(
        processes_with_cmdline("sleep 601.5").unwrap(),
        Vec::<u32>::new()
    );
    let results = results_of(&bench, "go");
    let answer = parsed(&results[0]);
    assert_eq!(
        (&answer["success"], &answer["partial"], &answer["result"]),
        (&json!(false), &json!(true), &json!("I begin."))
    );
    let error = answer["error"].as_str().unwrap();
    assert!(
        error.starts_with("the time limit was reached: stopped after 2 s"),
        "{error}"
    );
    assert!(error.contains("resume a-"), "{error}");
    assert_eq!(requests_of(&bench, "child sleeps").len(), 1);
}

#[test]
fn a_time_limit_of_a_definition_ends_an_agent_in_the_background_and_its_parent_is_told() {
    let script = Script::new()
        .turn(Turn::tool(
            "Task",
            &json!({
                "description": "sleep", "prompt": "child sleeps", "subagent_type": "brief",
                "run_in_background": true, "name": "sam",
            }),
        ))
        .turn(Turn::text("waiting"))
        .turn(Turn::text("the parent goes on"));
    let definition =
        "---\nname: brief\ndescription: Works briefly\nmaxWallSeconds: 2\n---\nWork.\n";
    let sleep = json!({"command": "sleep 602.5", "timeout": 600_000});
    let bench =
        Bench::new(script.conversation(
            child("child sleeps").turn(Turn::text("I begin.").and_tool("Bash", &sleep)),
        ));
    let agents = bench.room.codespar_home().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("brief.md"), definition).unwrap();
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0), "{lines:?}");
    assert_eq!(
        processes_with_cmdline("sleep 602.5").unwrap(),
        Vec::<u32>::new()
    );
    let told = requests_of(&bench, "go")
        .last()
        .unwrap()
        .last_message()
        .to_string();
    let reason = "failed: the time limit was reached: stopped after 2 s";
    assert!(
        told.contains(&format!(r#"Agent \"sleep\" (sam) {reason}"#)),
        "{told}"
    );
    assert!(told.contains("<result>I begin.</result>"), "{told}");
    let notice = lines
        .iter()
        .find(|line| line["subtype"] == "task_notification")
        .unwrap();
    let summary = notice["summary"].as_str().unwrap();
    assert!(
        summary.starts_with(&format!("Agent \"sleep\" (sam) {reason}")),
        "{summary}"
    );
}

#[test]
fn a_time_limit_ends_tasks_that_were_created_with_one() {
    let sleep = json!({"command": "sleep 603.5", "timeout": 600_000});
    let script = Script::new()
        .conversation(child("child sleeps").turn(Turn::text("I begin.").and_tool("Bash", &sleep)));
    let bench = Bench::new(script);
    let create = |args: &[&str]| {
        let base = [
            "task",
            "create",
            "--json",
            "--subject",
            "s",
            "--max-wall-seconds",
            "2",
        ];
        let finished = bench.run(&[&base[..], args].concat());
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        let id = parsed(&finished.stdout)["task_id"].clone();
        ended(&bench, id.as_str().unwrap())
    };
    let command = "echo begun; sleep 604.5 & sleep 605.5";
    let command = create(&["--type", "local_bash", "--command", command]);
    assert_eq!(
        (
            &command["status"],
            &command["error"],
            &command["metadata"]["result"]
        ),
        (
            &json!("failed"),
            &json!("the time limit of 2 s was reached"),
            &json!("begun")
        )
    );
    let agent = create(&[
        "--type",
        "local_agent",
        "--prompt",
        "child sleeps",
        "--allowedTools",
        "Bash",
    ]);
    assert_eq!(
        (
            &agent["status"],
            &agent["metadata"]["partial"],
            &agent["metadata"]["result"]
        ),
        (&json!("failed"), &json!(true), &json!("I begin."))
    );
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
    let refused = bench.run(&[
        "task",
        "create",
        "--type",
        "local_workflow",
        "--subject",
        "s",
        "--workflow",
        "w",
        "--max-wall-seconds",
        "2",
    ]);
    assert!(
        refused
            .stderr
            .contains("--max-wall-seconds does not go with a local_workflow task"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_stopped_agent_that_goes_on_is_told_so_and_by_whom_the_message_is() {
    let gate = Gate::closed();
    let start = json!({
        "description": "work", "prompt": "child works", "name": "ann", "run_in_background": true,
    });
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(Turn::tool(
            "TaskStop",
            &json!({"task_id": "ann", "reason": "the plan changed"}),
        ))
        .turn(Turn::text("stopped"))
        .turn(Turn::tool(
            "SendMessage",
            &json!({"to": "ann", "message": "now do this"}),
        ))
        .turn(Turn::text("sent"))
        .turn(Turn::text("done"))
        .conversation(child("child works").turn(Turn::text("I did this.").held_by(&gate)));
    let bench = Bench::new(script);
    let first = bench.run(&["-p", "go"]);
    assert_eq!(first.status.code(), Some(0), "{}", first.stderr);
    let record = &tasks(&bench)[0];
    assert_eq!(
        (&record["status"], &record["error"]),
        (
            &json!("killed"),
            &json!("stopped by the main agent: the plan changed")
        )
    );
    gate.open();
    let second = bench.run(&["-p", "and now", "--continue"]);
    assert_eq!(second.stdout, "done\n", "{}", second.stderr);
    let requests = requests_of(&bench, "child works");
    let told = requests.last().unwrap().last_message().to_string();
    let note = "[Message from CodeSpar]\\nYou were stopped before you were done: stopped by the main \
                agent: the plan changed";
    assert!(told.contains(note), "{told}");
    assert!(
        told.contains("[Message from the main agent]\\nnow do this"),
        "{told}"
    );
    assert!(!told.contains("The user interrupted"), "{told}");
    assert!(!told.contains("the coordinator"), "{told}");
    let parent = requests_of(&bench, "go");
    let told = parent
        .iter()
        .map(|request| request.json().to_string())
        .find(|text| text.contains("was stopped"))
        .unwrap();
    assert!(
        told.contains(r#"<summary>Agent \"work\" (ann) was stopped</summary>"#),
        "{told}"
    );
    assert!(
        told.contains("<reason>stopped by the main agent: the plan changed</reason>"),
        "{told}"
    );
    wait_for("nothing is left", || bench.room.alive().unwrap().is_empty());
}

#[test]
fn what_the_list_shows_can_be_read_and_what_can_be_read_is_shown() {
    let bench = Bench::new(Script::new());
    let made = bench.run(&[
        "task",
        "create",
        "--json",
        "--type",
        "local_bash",
        "--subject",
        "by hand",
        "--command",
        "echo printed",
    ]);
    let by_hand = parsed(&made.stdout)["task_id"].as_str().unwrap().to_owned();
    ended(&bench, &by_hand);
    let own = json!({
        "task_type": "local_bash", "subject": "own", "command": "true", "active_form": "Working",
    });
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &own))
        .turn(Turn::tool("TaskList", &json!({})))
        .turn(Turn::tool("TaskList", &json!({"scope": "project"})))
        .turn(Turn::tool("TaskGet", &json!({"task_id": by_hand})))
        .turn(Turn::tool("TaskOutput", &json!({"task_id": by_hand})))
        .turn(Turn::tool("TaskStop", &json!({"task_id": by_hand})))
        .turn(Turn::text("done"))
        .turn(Turn::text("done"));
    let bench = Bench {
        server: codespar_testkit::ScriptedModel::start_blocking(script).unwrap(),
        room: bench.room,
    };
    let allowed = ["--allowedTools", "Bash,TaskCreate"];
    let finished = bench.run(&[&["-p", "go"][..], &allowed].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let requests = requests_of(&bench, "go");
    let results = requests.last().unwrap().tool_results();
    let results: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    let made = parsed(results[0]);
    assert_eq!(made["active_form"], "Working");
    let own = made["task_id"].as_str().unwrap();
    assert!(
        results[1].contains(own) && !results[1].contains(&by_hand),
        "{results:?}"
    );
    assert!(
        results[2].contains(own) && results[2].contains(&by_hand),
        "{results:?}"
    );
    assert_eq!(parsed(results[3])["subject"], "by hand");
    assert!(results[4].contains("printed"), "{results:?}");
    assert!(
        results[5].contains("it can be read, not changed from here"),
        "{results:?}"
    );
    let told = requests.last().unwrap().json().to_string();
    let summary = r#"<summary>Command \"own\" completed (exit code 0)</summary>"#;
    assert!(told.contains(summary), "{told}");
}

#[test]
fn records_have_a_description_an_owner_an_active_form_and_times_in_both_forms() {
    let bench =
        Bench::new(Script::new().conversation(child("child works").turn(Turn::text("I worked."))));
    let create = |args: &[&str]| {
        let finished = bench.run(&[&["task", "create", "--json", "--subject", "s"], args].concat());
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        parsed(&finished.stdout)
    };
    let command = create(&[
        "--type",
        "local_bash",
        "--command",
        "true",
        "--active-form",
        "Building",
    ]);
    assert_eq!(
        (
            &command["description"],
            &command["active_form"],
            &command["owner"]
        ),
        (&json!(""), &json!("Building"), &Value::Null)
    );
    let id = command["task_id"].as_str().unwrap();
    let changed = bench.run(&["task", "update", id, "--active-form", "Testing", "--json"]);
    assert_eq!(
        parsed(&changed.stdout)["active_form"],
        "Testing",
        "{}",
        changed.stderr
    );
    let agent = create(&["--type", "local_agent", "--prompt", "child works"]);
    assert_eq!(agent["owner"], "general-purpose");
    let agent = ended(&bench, agent["task_id"].as_str().unwrap());
    for time in ["created_at", "updated_at", "started_at", "ended_at"] {
        let text = agent[time].as_str().unwrap();
        let seconds = text.parse::<jiff::Timestamp>().unwrap().as_second();
        assert_eq!(agent[format!("{time}_unix")], seconds, "{agent}");
    }
    let teammate = bench.run(&[
        "task",
        "create",
        "--type",
        "in_process_teammate",
        "--subject",
        "s",
    ]);
    assert_eq!(teammate.status.code(), Some(2));
    assert!(
        teammate.stderr.contains("use --type local_agent"),
        "{}",
        teammate.stderr
    );
}
