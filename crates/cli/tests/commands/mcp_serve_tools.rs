//! The tools of `codespar mcp serve` about reviews, tasks and their questions.

use codespar_testkit::{Conversation, Gate, Matcher, Script, Turn, process::Running as Process};
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, ended, parsed, wait_for},
    mcp_serve_client::{Running, connect, fine, refused},
    repository::{FIX, answer, dev, greeting, pull, script},
};

/// Answers of a reviewer, after a change to review.
fn reviewed(turns: impl IntoIterator<Item = Turn>) -> Bench {
    let reviewer = Conversation::new(
        "reviewer",
        Matcher::system_contains("You review a pull request"),
    );
    let script = script(&["greet.sh"], [answer("Say hi", FIX)]);
    let bench = greeting(script.conversation(reviewer.turns(turns)));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    bench
}

fn remark() -> Turn {
    let finding = json!({"path": "greet.sh", "line": 2, "severity": "high", "text": "hi is rude"});
    Turn::text(json!({"summary": "One thing.", "findings": [finding]}).to_string())
}

fn arguments(value: &Value) -> Option<rmcp::model::JsonObject> {
    value.as_object().cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_posted_once_and_what_cannot_be_reviewed_is_refused() {
    let bench = reviewed([remark()]);
    let (client, _, _child) = connect(&bench, &["--role", "write"]).await;
    for (wrong, why) in [
        (json!({"number": 99}), "99"),
        (json!({"number": 1, "max_budget_usd": 0}), "max_budget_usd"),
        (json!({"number": 1, "model": "no-such-model"}), "model"),
        (json!({"number": 1, "project": "elsewhere"}), "project"),
    ] {
        let said = refused(&client, "review", wrong).await;
        assert!(said.contains(why), "{said}");
    }
    for malformed in [
        json!({}),
        json!({"number": "1"}),
        json!({"number": 1, "x": 1}),
    ] {
        let mut request = CallToolRequestParams::new("review");
        request.arguments = arguments(&malformed);
        assert!(client.call_tool(request).await.is_err(), "{malformed}");
    }
    let posted = fine(&client, "review", json!({"number": 1})).await;
    assert_eq!(posted["findings"][0]["text"], "hi is rude", "{posted}");
    let asked = bench.server.request_count();
    let again = fine(&client, "review", json!({"number": 1})).await;
    assert_eq!(again["findings"], posted["findings"]);
    assert_eq!(bench.server.request_count(), asked);
    let reviews = pull(&bench, 1)["reviews"].clone();
    assert_eq!(reviews.as_array().unwrap().len(), 1, "{reviews}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_review_posts_nothing() {
    let gate = Gate::closed();
    let bench = reviewed([remark().held_by(&gate), remark()]);
    let before = bench.server.request_count();
    let (client, _, _child) = connect(&bench, &["--role", "write"]).await;
    let mut request = CallToolRequestParams::new("review");
    request.arguments = arguments(&json!({"number": 1}));
    // Dropping the call tells the server that it is cancelled.
    tokio::select! {
        called = client.call_tool(request) => panic!("{called:?}"),
        asked = bench.server.wait_for_requests(before + 1) => assert!(asked.is_ok()),
    }
    // Answered after the cancellation was taken: both come on one stream, in order.
    fine(&client, "task_list", json!({})).await;
    gate.open();
    let reviews = || pull(&bench, 1)["reviews"].as_array().unwrap().len();
    assert_eq!(reviews(), 0);
    fine(&client, "review", json!({"number": 1})).await;
    assert_eq!(reviews(), 1);
}

fn worker(bench: &Bench) -> Process {
    let worker = bench.start(&["worker"]);
    wait_for("the worker", || {
        worker.stderr_so_far().contains("taking tasks")
    });
    worker
}

fn background(bench: &Bench) -> String {
    let made = bench.run(&[
        "task",
        "create",
        "--json",
        "--type",
        "remote_agent",
        "--subject",
        "s",
        "--prompt",
        "child works",
    ]);
    let record = parsed(&made.stdout);
    record["task_id"].as_str().unwrap().to_owned()
}

fn writer() -> Script {
    let write = |name: &str| Turn::tool("Write", &json!({"file_path": name, "content": "x"}));
    let child = |name: &str| {
        Conversation::new(name, Matcher::first_user_contains("child works"))
            .turn(write("a.txt"))
            .turn(write("b.txt"))
            .turn(Turn::text("{{last_tool_result}}"))
    };
    Script::new().conversation(child("child"))
}

/// Waits for the question of a task.
async fn question(client: &Running, task: &str) -> Value {
    let waiting = async {
        loop {
            let listed = fine(client, "task_questions", json!({"task_id": task})).await;
            if let [one] = listed["questions"].as_array().unwrap().as_slice() {
                return one.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_an_agent_are_listed_and_answered_once() {
    let bench = Bench::new(writer());
    let worker = worker(&bench);
    let id = background(&bench);
    let (client, _, _child) = connect(&bench, &["--role", "write"]).await;
    let first = question(&client, &id).await;
    assert_eq!(first["kind"], "permission", "{first}");
    assert_eq!(first["request"]["input"]["file_path"], "a.txt", "{first}");
    let all = fine(&client, "task_questions", json!({})).await;
    assert_eq!(all["questions"][0]["id"], first["id"], "{all}");
    let other = fine(&client, "task_questions", json!({"task_id": "a-00000000"})).await;
    assert_eq!(other["questions"], json!([]), "{other}");
    let asked = first["id"].as_str().unwrap().to_owned();
    for (id, said) in [(asked.as_str(), "maybe"), ("q-00000000", "yes")] {
        refused(
            &client,
            "task_answer",
            json!({"question_id": id, "answer": said}),
        )
        .await;
    }
    let yes = json!({"question_id": asked, "answer": "yes"});
    fine(&client, "task_answer", yes.clone()).await;
    refused(&client, "task_answer", yes).await;
    let second = loop {
        let second = question(&client, &id).await;
        if second["id"] != first["id"] {
            break second;
        }
    };
    assert!(bench.work().join("a.txt").exists());
    let no = json!({"question_id": second["id"], "answer": "no, use c.txt"});
    fine(&client, "task_answer", no).await;
    let record = ended(&bench, &id);
    assert_eq!(record["status"], "completed", "{record}");
    assert!(!bench.work().join("b.txt").exists());
    let output = fine(&client, "task_output", json!({"task_id": id, "offset": 0})).await;
    assert!(output.to_string().contains("use c.txt"), "{output}");
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_is_stopped_with_its_reason() {
    let bench = Bench::new(writer());
    let worker = worker(&bench);
    let id = background(&bench);
    let (client, _, _child) = connect(&bench, &["--role", "write"]).await;
    question(&client, &id).await;
    let stop = json!({"task_id": id, "reason": "not needed"});
    fine(&client, "task_stop", stop.clone()).await;
    let record = ended(&bench, &id);
    assert_eq!(record["status"], "killed", "{record}");
    let shown = fine(&client, "task_show", json!({"task_id": id})).await;
    assert!(shown.to_string().contains("not needed"), "{shown}");
    let open = fine(&client, "task_questions", json!({})).await;
    assert_eq!(open["questions"], json!([]), "{open}");
    refused(&client, "task_stop", stop).await;
    refused(&client, "task_stop", json!({"task_id": "a-00000000"})).await;
    assert!(!bench.work().join("a.txt").exists());
    drop(worker);
}
