//! What a client is told at the end of its turns, and messages that it takes back.

use codespar_testkit::{Gate, Script, SdkClient, Turn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, wait_for};

fn client(bench: &Bench) -> SdkClient {
    let args = [
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
    ];
    let mut client = SdkClient::start(&mut bench.command(&args)).unwrap();
    let hello = client.request(&json!({"subtype": "initialize"}));
    hello.unwrap().unwrap();
    client
}

fn send(client: &mut SdkClient, uuid: &str, text: &str) {
    let message = json!({"role": "user", "content": text});
    let line = json!({"type": "user", "uuid": uuid, "message": message});
    client.send(&line).unwrap();
}

fn result(client: &mut SdkClient) -> Value {
    client.turn().unwrap().pop().unwrap()
}

const FIRST: &str = "0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e50";
const SECOND: &str = "0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e51";

#[test]
fn costs_are_sums_of_the_session_tokens_are_those_of_the_turn() {
    let script = Script::new()
        .turn(Turn::text("one"))
        .turn(Turn::text("two"))
        .turn(Turn::text("three"));
    let bench = Bench::new(script);
    let mut client = client(&bench);
    send(&mut client, FIRST, "a");
    let first = result(&mut client);
    assert_eq!(first["user_message_uuid"], FIRST, "{first}");
    send(&mut client, SECOND, "b");
    let second = result(&mut client);
    assert_eq!(second["user_message_uuid"], SECOND, "{second}");
    assert_eq!(second["user_message_uuids"], json!([SECOND]), "{second}");
    let cost = |result: &Value| result["total_cost_usd"].as_f64().unwrap();
    assert!(cost(&first) > 0.0, "{first}");
    assert!(cost(&second) > cost(&first), "{second}");
    let output = |result: &Value| {
        let models = result["modelUsage"].as_object().unwrap().values();
        models
            .map(|one| one["outputTokens"].as_u64().unwrap())
            .sum::<u64>()
    };
    let own = |result: &Value| result["usage"]["output_tokens"].as_u64().unwrap();
    assert_eq!(output(&first), own(&first), "{first}");
    assert_eq!(output(&second), own(&first) + own(&second), "{second}");
    // Another session begins with nothing.
    client.prompt("/clear").unwrap();
    assert_eq!(cost(&result(&mut client)), 0.0);
    client.prompt("c").unwrap();
    let third = result(&mut client);
    assert_eq!(output(&third), own(&third), "{third}");
}

#[test]
fn a_message_that_waits_can_be_taken_back_and_one_under_way_cannot() {
    let gate = Gate::closed();
    let script = Script::new()
        .turn(Turn::text("one").held_by(&gate))
        .turn(Turn::text("two"));
    let bench = Bench::new(script);
    let mut client = client(&bench);
    send(&mut client, FIRST, "a");
    wait_for("the request", || bench.server.request_count() == 1);
    send(&mut client, SECOND, "b");
    let withdraw = |client: &mut SdkClient, uuid: &str| {
        let request = json!({"subtype": "cancel_async_message", "message_uuid": uuid});
        client.request(&request).unwrap().unwrap()["cancelled"].clone()
    };
    assert_eq!(withdraw(&mut client, FIRST), false);
    assert_eq!(withdraw(&mut client, SECOND), true);
    assert_eq!(withdraw(&mut client, SECOND), false);
    gate.open();
    let (status, lines) = client.finish().unwrap();
    assert_eq!(status.code(), Some(0));
    let results = lines.iter().filter(|line| line["type"] == "result");
    let answered: Vec<&Value> = results.map(|line| &line["user_message_uuid"]).collect();
    assert_eq!(answered, [FIRST]);
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_title_is_the_beginning_of_what_a_session_is_about() {
    let bench = Bench::new(Script::new());
    let mut client = client(&bench);
    let mut title = |description: Value| {
        let request = json!({"subtype": "generate_session_title", "description": description});
        client.request(&request).unwrap()
    };
    let long = "long ".repeat(30);
    assert_eq!(
        title(json!("\n  fix the login \nand more")).unwrap()["title"],
        "fix the login"
    );
    let cut = title(json!(long)).unwrap()["title"].clone();
    assert_eq!(cut.as_str().unwrap().chars().count(), 61, "{cut}");
    for nothing in [json!(""), json!(null)] {
        assert!(title(nothing).is_err());
    }
    assert_eq!(bench.server.request_count(), 0);
}
