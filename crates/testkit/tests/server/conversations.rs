//! Which turn is played.

use codespar_testkit::{
    AfterLast, Conversation, Matcher, Script, ScriptedModel, Turn, tool_use_id,
};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::client::{Client, after, ask, assistant, user};

async fn start(script: Script) -> (ScriptedModel, Client) {
    let server = ScriptedModel::start(script).await.unwrap();
    let client = Client::new(&server);
    (server, client)
}

fn three() -> Script {
    Script::of(["first", "second", "third"].map(Turn::text))
}

#[tokio::test]
async fn the_number_of_assistant_messages_chooses_the_turn() {
    let (_server, client) = start(three()).await;
    let mut said = Vec::new();
    for answers in [2, 0, 1, 0] {
        said.push(client.messages(&ask(after("go", answers))).await.said());
    }
    assert_eq!(said, ["third", "first", "second", "first"]);
}

#[tokio::test]
async fn conversations_run_side_by_side() {
    let script = Script::of((1..=5).map(|_| Turn::text("{{turn}} of {{last_user_text}}")));
    let (server, client) = start(script).await;
    let runs = (0..40).map(|run| {
        let client = &client;
        async move {
            let mut messages = vec![user(&format!("run {run}"))];
            let mut said = Vec::new();
            for turn in 1..=5 {
                let reply = client.messages(&ask(json!(messages))).await.said();
                messages.push(assistant(&reply));
                messages.push(user(&format!("run {run} step {turn}")));
                said.push(reply);
            }
            said
        }
    });
    for (run, said) in join_all(runs).await.into_iter().enumerate() {
        let expected = [
            format!("1 of run {run}"),
            format!("2 of run {run} step 1"),
            format!("3 of run {run} step 2"),
            format!("4 of run {run} step 3"),
            format!("5 of run {run} step 4"),
        ];
        assert_eq!(said, expected);
    }
    assert_eq!(server.request_count(), 200);
}

#[tokio::test]
async fn the_first_conversation_that_matches_answers() {
    let script = three()
        .conversation(
            Conversation::new(
                "both",
                Matcher::first_user_contains("worker").and(Matcher::model("small")),
            )
            .turn(Turn::text("a small worker")),
        )
        .conversation(
            Conversation::new("workers", Matcher::first_user_contains("worker"))
                .turn(Turn::text("a worker")),
        )
        .conversation(
            Conversation::new("reviewers", Matcher::system_contains("You review"))
                .turn(Turn::text("a reviewer")),
        );
    let (_server, client) = start(script).await;
    let said = async |first: &str, system: Value, model: &str| {
        let mut body = ask(json!([user(first)]));
        body["system"] = system;
        body["model"] = json!(model);
        client.messages(&body).await.said()
    };
    let blocks = json!([{"type": "text", "text": "Hi."}, {"type": "text", "text": "You review."}]);
    assert_eq!(said("worker 1", json!(""), "small").await, "a small worker");
    assert_eq!(said("worker 1", json!(""), "large").await, "a worker");
    assert_eq!(said("hello", blocks, "large").await, "a reviewer");
    assert_eq!(said("hello", json!("You write."), "small").await, "first");
}

#[tokio::test]
async fn a_request_that_no_conversation_matches_is_refused() {
    let only = Conversation::new("only", Matcher::model("other")).turn(Turn::text("hi"));
    let (_server, client) = start(Script::new().conversation(only)).await;
    let refusal = client
        .messages(&ask(json!([user("hello")])))
        .await
        .refusal();
    assert_eq!(
        refusal,
        (
            400,
            "no conversation of the script matches, and there is no default one".to_owned()
        )
    );
}

#[tokio::test]
async fn after_the_last_turn_comes_what_the_script_says() {
    let beyond = ask(after("go", 3));
    let (_server, client) = start(three()).await;
    assert_eq!(
        client.messages(&beyond).await.refusal(),
        (
            400,
            "turn 4 was asked for, but the script of conversation `default` has 3 (set \
             `after_last` to `repeat` or `end` to go on)"
                .to_owned()
        )
    );
    let (_server, client) = start(three().after_last(AfterLast::Repeat)).await;
    assert_eq!(client.messages(&beyond).await.said(), "third");
    let (_server, client) = start(three().after_last(AfterLast::End)).await;
    assert_eq!(client.messages(&beyond).await.said(), "The script is over.");
}

/// Plays a client that answers every tool call with its input, until there is none.
async fn play_to_the_end(client: &Client, first: &str) -> Vec<Value> {
    let mut messages = vec![user(first)];
    loop {
        let answer = client.messages(&ask(json!(messages))).await.json();
        let content = answer["content"].as_array().unwrap().clone();
        messages.push(json!({"role": "assistant", "content": content}));
        let results: Vec<Value> = content
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|call| {
                json!({"type": "tool_result", "tool_use_id": call["id"],
                       "content": call["input"].to_string()})
            })
            .collect();
        if results.is_empty() {
            return messages;
        }
        messages.push(json!({"role": "user", "content": results}));
    }
}

#[tokio::test]
async fn a_tool_loop_calls_so_many_times_and_then_speaks() {
    let script = Script::tool_loop(3, "Bash", |turn| json!({"n": turn}), "done");
    let (_server, client) = start(script).await;
    let messages = play_to_the_end(&client, "go").await;
    let call = |turn| {
        let id = tool_use_id("go", turn, 1);
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"n": turn}}]})
    };
    let assistants: Vec<Value> = messages.into_iter().skip(1).step_by(2).collect();
    assert_eq!(assistants, [call(1), call(2), call(3), assistant("done")]);
}

#[tokio::test]
async fn ids_differ_between_conversations_calls_and_turns() {
    let twice = || {
        Turn::new()
            .and_tool("A", &json!({}))
            .and_tool("B", &json!({}))
            .and_tool_with_id("mine_{{turn}}", "C", &json!({}))
    };
    let (_server, client) = start(Script::of([twice(), twice(), Turn::text("end")])).await;
    let mut ids = Vec::new();
    for first in ["one", "two"] {
        for message in play_to_the_end(&client, first).await {
            for block in message["content"].as_array().unwrap_or(&Vec::new()) {
                if block["type"] == "tool_use" && block["name"] != "C" {
                    ids.push(block["id"].as_str().unwrap().to_owned());
                } else if block["name"] == "C" {
                    assert!(["mine_1", "mine_2"].contains(&block["id"].as_str().unwrap()));
                }
            }
        }
    }
    assert_eq!(ids.len(), 8);
    assert!(ids[0].starts_with("toolu_1_1_"), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8);
}

#[tokio::test]
async fn templates_speak_of_the_request() {
    let script = Script::of([
        Turn::tool("Echo", &json!({"text": "{{last_user_text}}"})),
        Turn::text("turn {{turn}}: {{last_tool_result}} / {{last_user_text}}"),
    ]);
    let (_server, client) = start(script).await;
    let messages = play_to_the_end(&client, "say \"hi\"\n").await;
    assert_eq!(
        messages[1]["content"][0]["input"],
        json!({"text": "say \"hi\"\n"})
    );
    assert_eq!(
        messages[3],
        assistant("turn 2: {\"text\":\"say \\\"hi\\\"\\n\"} / say \"hi\"\n")
    );
}
