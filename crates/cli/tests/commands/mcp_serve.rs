//! `codespar mcp serve` over standard streams.

use std::time::Duration;

use codespar_testkit::{Gate, Script, Turn};
use rmcp::model::CallToolRequestParams;
use serde_json::json;

use crate::{
    common::{PATIENCE, ended, parsed, task},
    mcp_serve_client::{connect, fine, names, refused},
    repository::{FIX, answer, greeting, script},
};

#[tokio::test(flavor = "multi_thread")]
async fn another_agent_has_a_change_made_and_merged_and_hears_of_the_steps() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (client, watcher, mut child) = connect(&bench, &[]).await;
    let order = json!({"instruction": "make it say hi"});
    let run = fine(&client, "dev", order).await;
    assert_eq!(run["status"], "completed", "{run}");
    let told = watcher.progress.lock().unwrap().clone();
    assert!(told.contains(&"locate".to_owned()), "{told:?}");
    let id = run["task_id"].as_str().unwrap();
    let shown = fine(&client, "task_show", json!({"task_id": id})).await;
    assert!(!shown["steps"].as_array().unwrap().is_empty(), "{shown}");
    let listed = fine(&client, "task_list", json!({"status": "completed"})).await;
    assert_eq!(listed["tasks"][0]["task_id"], id, "{listed}");
    let output = fine(&client, "task_output", json!({"task_id": id})).await;
    assert_eq!(output["status"], "completed", "{output}");
    let found = fine(
        &client,
        "locate",
        json!({"instruction": "greet.sh says hi"}),
    )
    .await;
    assert_eq!(found["files"][0]["path"], "greet.sh", "{found}");
    let merged = fine(&client, "merge", json!({"number": 1})).await;
    assert_eq!(merged["number"], 1, "{merged}");
    for (name, arguments) in [
        ("task_show", json!({"task_id": "w-00000000"})),
        ("task_stop", json!({"task_id": id})),
        ("merge", json!({"number": 99})),
        ("dev", json!({"instruction": ""})),
        ("dev", json!({"instruction": "x", "sandbox": "off"})),
        ("ask", json!({"question": " "})),
        ("ask", json!({"question": "x", "model": "no-such-model"})),
        ("locate", json!({"instruction": "x", "project": "../.."})),
    ] {
        refused(&client, name, arguments).await;
    }
    // What is no id reaches no path.
    let mut odd = CallToolRequestParams::new("task_show");
    odd.arguments = json!({"task_id": "../projects"}).as_object().cloned();
    assert!(client.call_tool(odd).await.is_err());
    client.cancel().await.unwrap();
    let left = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap();
    assert_eq!(left.unwrap().code(), Some(0));
    assert!(bench.room.wait_until_empty(PATIENCE).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_the_model() {
    let bench = greeting(Script::new().turn(Turn::text("forty-two")));
    let (client, _, _child) = connect(&bench, &["--role", "write"]).await;
    let reply = fine(&client, "ask", json!({"question": "how many?"})).await;
    assert_eq!(reply["answer"], "forty-two", "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_limits_what_a_client_may_do() {
    let bench = greeting(Script::new());
    let (client, _, _child) = connect(&bench, &["--role", "read"]).await;
    let offered = names(&client).await;
    assert!(offered.contains(&"locate".to_owned()), "{offered:?}");
    for (name, arguments) in [
        ("dev", json!({"instruction": "x"})),
        ("merge", json!({"number": 1})),
        ("ask", json!({"question": "x"})),
        ("task_stop", json!({"task_id": "w-00000000"})),
        (
            "task_answer",
            json!({"question_id": "q-00000000", "answer": "yes"}),
        ),
    ] {
        assert!(!offered.contains(&name.to_owned()), "{name}");
        let why = refused(&client, name, arguments).await;
        assert!(why.contains("needs the role"), "{why}");
    }
    assert_eq!(bench.server.request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_stops_its_run_and_a_client_that_leaves_does_not() {
    let gate = Gate::closed();
    let held = || answer("Say hi", FIX).held_by(&gate);
    let bench = greeting(script(&["greet.sh"], [held(), held()]));
    let (client, watcher, _child) = connect(&bench, &[]).await;
    let mut order = CallToolRequestParams::new("dev");
    order.arguments = json!({"instruction": "make it say hi"})
        .as_object()
        .cloned();
    let under_way = async {
        while !watcher
            .progress
            .lock()
            .unwrap()
            .contains(&"locate".to_owned())
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // Dropping the call tells the server that it is cancelled.
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            called = client.call_tool(order) => panic!("{called:?}"),
            () = under_way => {}
        }
    });
    waited.await.unwrap();
    let listed = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let id = listed["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&bench, &id)["status"], "killed");

    let order = json!({"instruction": "make it say hi", "wait": false});
    let run = fine(&client, "dev", order).await;
    let id = run["task_id"].as_str().unwrap().to_owned();
    drop(client);
    assert!(bench.room.wait_until_empty(PATIENCE).unwrap().is_empty());
    let status = task(&bench, &id)["status"].clone();
    assert!(status == "pending" || status == "running", "{status}");
}
