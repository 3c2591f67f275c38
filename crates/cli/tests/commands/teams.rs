//! Teams through the real binary: a shared list, mailboxes, the end of a team, a crash.

use std::collections::BTreeSet;

use codespar_testkit::{AfterLast, Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, json_lines, parsed, tool_results, wait_for};

fn team(name: &str, members: &[Value]) -> Turn {
    Turn::tool("TeamCreate", &json!({"name": name, "members": members}))
}

fn item(turn: Turn, name: &str, after: &[&str]) -> Turn {
    let input = json!({
        "task_type": "in_process_teammate",
        "subject": format!("item {name}"),
        "blocked_by": after,
        "metadata": {"name": name},
    });
    turn.and_tool("TaskCreate", &input)
}

/// Six items: two after one, three after one, four after both, six after five.
fn six_items() -> Turn {
    let turn = item(Turn::new(), "one", &[]);
    let turn = item(turn, "two", &["one"]);
    let turn = item(turn, "three", &["one"]);
    let turn = item(turn, "four", &["two", "three"]);
    let turn = item(turn, "five", &[]);
    item(turn, "six", &["five"])
}

fn of_member(name: &str) -> Conversation {
    let matcher = Matcher::system_contains(format!("You are {name} of team red"));
    Conversation::new(name, matcher)
}

/// Does whatever item it is given: runs a command, marks it, says so. The command ends when the
/// members it is `beside` have begun theirs too, so that none of them does all the work.
fn diligent(name: &str, beside: &[&str]) -> Conversation {
    let mut member = of_member(name);
    let mut command = format!("echo {{{{task_id}}}} >> done.txt; touch at-{name}");
    for other in beside {
        command += &format!("; until [ -e at-{other} ]; do sleep 0.05; done");
    }
    for _ in 0..8 {
        member = member
            .turn(Turn::tool("Bash", &json!({"command": command})))
            .turn(Turn::tool(
                "TaskUpdate",
                &json!({"task_id": "{{task_id}}", "status": "completed"}),
            ))
            .turn(Turn::text(format!("{name} is done with {{{{task_id}}}}")));
    }
    member
}

fn tasks(bench: &Bench) -> Vec<Value> {
    let list = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    list["tasks"].as_array().unwrap().clone()
}

fn items(bench: &Bench) -> Vec<Value> {
    let mut all = tasks(bench);
    all.retain(|task| task["spec"]["kind"] == "team_item");
    all
}

fn done(bench: &Bench) -> Vec<String> {
    let text = std::fs::read_to_string(bench.work().join("done.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn requests_of(bench: &Bench, member: &str) -> Vec<String> {
    let system = format!("You are {member} of team");
    bench
        .server
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(request.body()).into_owned())
        .filter(|body| body.contains(&system))
        .collect()
}

#[test]
fn teammates_do_each_item_of_the_shared_list_once_and_in_order() {
    let script = Script::new()
        .turn(team(
            "red",
            &[json!({"name": "ann"}), json!({"name": "bob"})],
        ))
        .turn(six_items())
        .turn(Turn::text("the team is done"))
        .after_last(AfterLast::Repeat)
        .conversation(diligent("ann", &["bob"]))
        .conversation(diligent("bob", &["ann"]));
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash,TaskUpdate"]);
    assert_eq!(code, Some(0), "{lines:#?}");

    let items = items(&bench);
    let id = |name: &str| {
        let named = |item: &&Value| item["metadata"]["name"] == name;
        items.iter().find(named).unwrap()["task_id"]
            .as_str()
            .unwrap()
    };
    assert!(
        items.iter().all(|item| item["status"] == "completed"),
        "{items:#?}"
    );
    let owners: BTreeSet<&str> = items
        .iter()
        .map(|item| item["owner"].as_str().unwrap())
        .collect();
    assert_eq!(owners, BTreeSet::from(["ann", "bob"]));
    let done = done(&bench);
    assert_eq!(done.len(), 6, "{done:?}");
    let place = |name: &str| done.iter().position(|line| line == id(name)).unwrap();
    for (first, then) in [
        ("one", "two"),
        ("one", "three"),
        ("two", "four"),
        ("three", "four"),
        ("five", "six"),
    ] {
        assert!(
            place(first) < place(then),
            "{first} before {then}: {done:?}"
        );
    }
    // Three calls for each item and none for waiting.
    let (ann, bob) = (requests_of(&bench, "ann"), requests_of(&bench, "bob"));
    assert_eq!(ann.len() + bob.len(), 18);
    for tool in ["\"SendMessage\"", "\"TaskUpdate\"", "\"Bash\""] {
        assert!(ann[0].contains(tool), "{tool}");
    }
    for tool in ["\"TeamCreate\"", "\"TeamDelete\""] {
        assert!(!ann[0].contains(tool), "{tool}");
        assert!(lines[0]["tools"].to_string().contains(tool), "{tool}");
    }
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(left, Vec::<u32>::new());
}

#[test]
fn a_message_to_all_reaches_every_other_member_once_under_the_senders_name() {
    let members = [
        json!({"name": "ann", "prompt": "tell the others"}),
        json!({"name": "bob", "subagent_type": "Explore"}),
        json!({"name": "cid"}),
    ];
    let script = Script::new()
        .turn(team("red", &members))
        .turn(Turn::tool(
            "SendMessage",
            &json!({"to": "all", "message": "the lead greets"}),
        ))
        .turn(Turn::tool(
            "SendMessage",
            &json!({"to": "dan", "message": "who are you"}),
        ))
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat)
        .conversation(
            of_member("ann")
                .turn(Turn::tool(
                    "SendMessage",
                    &json!({"to": "zed", "message": "x"}),
                ))
                .turn(Turn::tool(
                    "SendMessage",
                    &json!({"to": "all", "message": "hello from ann"}),
                ))
                .turn(Turn::text("told them"))
                .after_last(AfterLast::Repeat),
        )
        .conversation(
            of_member("bob")
                .turn(Turn::text("heard"))
                .after_last(AfterLast::Repeat),
        )
        .conversation(
            of_member("cid")
                .turn(Turn::text("heard"))
                .after_last(AfterLast::Repeat),
        );
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let results = tool_results(&lines).join("\n");
    let refused = "there is no `zed` in team red; with you: bob (t-";
    assert!(results.contains(refused), "{results}");
    assert!(
        results.contains("there is no agent `dan`; known here: t-"),
        "{results}"
    );
    for name in ["bob", "cid"] {
        let last = requests_of(&bench, name).pop().unwrap();
        for message in [
            "[Message from ann]\\nhello from ann",
            "[Message from the lead]\\nthe lead greets",
        ] {
            assert_eq!(
                last.matches(message).count(),
                1,
                "{name}: {message} in {last}"
            );
        }
    }
    let last = requests_of(&bench, "ann").pop().unwrap();
    assert!(!last.contains("[Message from ann]"), "{last}");
    assert_eq!(last.matches("the lead greets").count(), 1, "{last}");
}

#[test]
fn a_deleted_team_is_stopped_and_its_work_is_free_for_the_next() {
    let endless = Turn::tool("Bash", &json!({"command": "touch begun; sleep 600"}));
    let script = Script::new()
        .turn(team(
            "red",
            &[json!({"name": "ann"}), json!({"name": "bob"})],
        ))
        .turn(item(Turn::new(), "one", &[]))
        .turn(Turn::tool(
            "Bash",
            &json!({"command": "until [ -e begun ]; do sleep 0.05; done"}),
        ))
        .turn(Turn::tool("TeamDelete", &json!({"name": "red"})))
        .turn(Turn::tool("TaskGet", &json!({"task_id": "one"})))
        .turn(team("red", &[json!({"name": "dan"})]))
        .turn(Turn::text("over"))
        .after_last(AfterLast::Repeat)
        // Either may be the first to wait for work.
        .conversation(of_member("ann").turn(endless.clone()))
        .conversation(of_member("bob").turn(endless))
        .conversation(diligent("dan", &[]));
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash,TaskUpdate"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let results = tool_results(&lines);
    let gone = "team red (ann, bob) is gone; stopped at work: t-";
    assert!(
        results.iter().any(|text| text.starts_with(gone)),
        "{results:?}"
    );
    let freed = results
        .iter()
        .rfind(|text| text.contains("\"item one\""))
        .unwrap();
    let freed = parsed(freed);
    assert_eq!(
        (&freed["status"], &freed["owner"]),
        (&json!("pending"), &Value::Null)
    );
    let one = &items(&bench)[0];
    assert_eq!(
        (&one["status"], &one["owner"]),
        (&json!("completed"), &json!("dan"))
    );
    let tasks = tasks(&bench);
    let stopped: Vec<&Value> = tasks
        .iter()
        .filter(|task| task["status"] == "killed")
        .collect();
    assert_eq!(stopped.len(), 1, "{tasks:#?}");
    assert_eq!(stopped[0]["error"], "team red was deleted");
    let who = stopped[0]["subject"].as_str().unwrap();
    assert!(["ann", "bob"].contains(&who), "{tasks:#?}");
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(left, Vec::<u32>::new());
}

#[test]
fn killed_a_team_goes_on_in_the_next_process_and_no_item_is_told_twice() {
    let script = Script::new()
        .turn(team(
            "red",
            &[json!({"name": "ann"}), json!({"name": "bob"})],
        ))
        .turn(six_items())
        .turn(Turn::text("the team is done"))
        .after_last(AfterLast::Repeat)
        // Both are in the middle of a command when the process is killed.
        .conversation(diligent("ann", &["bob", "kill"]))
        .conversation(diligent("bob", &["ann", "kill"]));
    let bench = Bench::new(script);
    let args = [
        "-p",
        "go",
        "--allowedTools",
        "Bash,TaskUpdate",
        "--output-format",
        "stream-json",
    ];
    let running = bench.start(&args);
    wait_for("two items are done", || done(&bench).len() >= 2);
    let killed = running.kill_9().unwrap();
    bench.file("at-kill", "");
    let first = killed.stdout.split_inclusive('\n').next().unwrap();
    let session = json_lines(first)[0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(left, Vec::<u32>::new(), "orphans");

    let (lines, code) = bench.stream(&[
        "-p",
        "--resume",
        &session,
        "--allowedTools",
        "Bash,TaskUpdate",
    ]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let items = items(&bench);
    assert_eq!(items.len(), 6);
    assert!(
        items.iter().all(|item| item["status"] == "completed"),
        "{items:#?}"
    );
    let done = done(&bench);
    let once: BTreeSet<&String> = done.iter().collect();
    assert_eq!(once.len(), done.len(), "an item was done twice: {done:?}");
    let mut told = String::new();
    for member in tasks(&bench) {
        if let Some(conversation) = member["spec"]["agent"]["agent_session"].as_str() {
            told.push_str(&bench.run(&["session", "export", conversation]).stdout);
        }
    }
    for item in &items {
        let notice = format!("{} is yours", item["task_id"].as_str().unwrap());
        assert_eq!(told.matches(&notice).count(), 1, "{notice}");
    }
}

#[test]
fn what_is_wrong_with_a_team_is_said_and_nothing_is_made() {
    let ann = || json!({"name": "ann"});
    let script = Script::new()
        .turn(Turn::tool(
            "TaskCreate",
            &json!({"task_type": "in_process_teammate", "subject": "x"}),
        ))
        .turn(team("red", &[]))
        .turn(team("red", &[ann(), ann()]))
        .turn(team("red", &[json!({"name": "all"})]))
        .turn(team(
            "red",
            &[json!({"name": "ann", "subagent_type": "wizard"})],
        ))
        .turn(team("red", &[ann()]))
        .turn(team("red", &[json!({"name": "bob"})]))
        .turn(team("blue", &[ann()]))
        .turn(Turn::tool("TeamDelete", &json!({"name": "green"})))
        .turn(item(Turn::new(), "one", &["missing"]))
        .turn(Turn::tool(
            "TaskCreate",
            &json!({"task_type": "in_process_teammate", "subject": "x", "prompt": "do"}),
        ))
        .turn(Turn::text("over"))
        .after_last(AfterLast::Repeat);
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let results = tool_results(&lines);
    let expected = [
        "there is no team yet: TeamCreate makes one",
        "a team needs at least one member",
        "two members are called `ann`",
        "`all` is no name for a team or a member",
        "there is no kind of agent `wizard`",
        "\"team\": \"red\"",
        "there already is a team `red` in this session",
        "team red has a member `ann` already",
        "there is no team `green` in this session; it has red",
        "there is no agent `missing`",
        "has no `prompt` or `command`",
    ];
    assert_eq!(results.len(), expected.len(), "{results:#?}");
    for (result, text) in results.iter().zip(expected) {
        assert!(result.contains(text), "{text} in {result}");
    }
    let made = tasks(&bench);
    assert_eq!(made.len(), 1, "{made:#?}");
    // It waits without a call of the model.
    assert_eq!(made[0]["status"], "completed");
    assert_eq!(bench.server.request_count(), 12);
}

#[test]
fn a_member_works_on_what_is_its_own_and_the_lead_hands_out() {
    let update = |value: Value| Turn::tool("TaskUpdate", &value);
    let script = Script::new()
        .turn(team(
            "red",
            &[
                json!({"name": "ann", "prompt": "look around"}),
                json!({"name": "bob", "prompt": "look around"}),
            ],
        ))
        .turn(Turn::tool(
            "TaskCreate",
            &json!({"task_type": "local_bash", "subject": "gate", "command": "until [ -e open ]; do sleep 0.05; done", "metadata": {"name": "gate"}}),
        ))
        .turn(item(item(Turn::new(), "one", &["gate"]), "two", &["one"]))
        .turn(update(json!({"task_id": "two", "owner": "bob"})))
        .turn(update(json!({"task_id": "one", "owner": "eve"})))
        .turn(Turn::tool("Bash", &json!({"command": "touch open"})))
        .turn(Turn::text("over"))
        .after_last(AfterLast::Repeat)
        .conversation(
            of_member("ann")
                .turn(Turn::text("looked"))
                .turn(Turn::tool("Bash", &json!({"command": "touch taken"})))
                .turn(update(json!({"task_id": "{{task_id}}", "owner": "bob"})))
                .turn(Turn::text("I forget to mark it"))
                .turn(update(json!({"task_id": "{{task_id}}", "status": "completed"})))
                .turn(Turn::text("marked"))
                .turn(update(json!({"task_id": "{{task_id}}", "status": "completed"})))
                .turn(Turn::text("marked too"))
                .after_last(AfterLast::Repeat),
        )
        .conversation(
            // Busy until the other has taken the first item.
            of_member("bob")
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": "until [ -e taken ]; do sleep 0.05; done"}),
                ))
                .turn(Turn::text("looked"))
                .turn(update(json!({"task_id": "{{task_id}}", "status": "failed"})))
                .turn(Turn::text("could not"))
                .after_last(AfterLast::Repeat),
        );
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash,TaskUpdate"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let results = tool_results(&lines).join("\n");
    assert!(results.contains(" waits for t-"), "{results}");
    assert!(
        results.contains("there is no member `eve`; there are: ann, bob"),
        "{results}"
    );
    let items = items(&bench);
    assert_eq!(items[0]["owner"], "ann", "{items:#?}");
    assert_eq!(items[0]["status"], "completed", "{items:#?}");
    let ann = requests_of(&bench, "ann").pop().unwrap();
    assert!(ann.contains("you are ann: take t-"), "{ann}");
    let reminder = format!("You still have {}.", items[0]["task_id"].as_str().unwrap());
    assert_eq!(ann.matches(&reminder).count(), 1, "{ann}");
    assert!(items[1]["status"] == "completed" || items[1]["status"] == "failed");
}
