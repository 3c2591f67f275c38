//! What goes to the Messages API and what comes of its events.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use codespar_protocol::{ContentBlock, Message, RawObject, Role, StopReason, Text, Usage};
use futures::{StreamExt, stream};
use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};

use super::{AnthropicAnswer, PROVIDER, body};
use crate::{
    Effort, ModelError, ModelEvent, Request, Response, ToolSpec,
    endpoint::{Break, decode},
    wire::Accumulator,
};

/// Thinking, text with citations, two calls (one without input), and a kind of block that we do
/// not know, with odd spacing and escapes in what must be replayed.
const RICH: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":7,"cache_read_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4},"output_tokens":1,"service_tier":"standard"}}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm,\n"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"naïve \u00e9."}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB/+=="}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"b3Bh"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Grüße "}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"page", "n":1.50}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"🦀"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"sparkle_delta","sparkle":1}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"Edit","input":{},"caller":{"type":"direct"}}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"z\": 1.0,  \"a\""}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":":\"\\u00e9\\n\"}"}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t2","name":"LS","input":{}}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_stop","index":4}"#,
    r#"{"type":"content_block_start","index":5,"content_block":{"type":"server_tool_use","id":"s1","name":"web","input":{}}}"#,
    r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"q\" :[1,  2]}"}}"#,
    r#"{"type":"content_block_stop","index":5}"#,
    r#"{"type":"shiny_new_event","x":{}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":40}}"#,
    r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":42,"input_tokens":12}}"#,
    r#"{"type":"message_stop"}"#,
];

const RICH_CONTENT: &str = concat!(
    r#"[{"type":"thinking","thinking":"Hm,\nnaïve é.","signature":"EqQB/+=="},"#,
    r#"{"type":"redacted_thinking","data":"b3Bh"},"#,
    r#"{"type":"text","text":"Grüße 🦀","citations":[{"type":"page", "n":1.50}]},"#,
    r#"{"type":"tool_use","id":"t1","name":"Edit","input":{"z": 1.0,  "a":"\u00e9\n"},"caller":{"type":"direct"}},"#,
    r#"{"type":"tool_use","id":"t2","name":"LS","input":{}},"#,
    r#"{"type":"server_tool_use","id":"s1","name":"web","input":{"q" :[1,  2]}}]"#,
);

fn feed(events: &[&str]) -> (VecDeque<ModelEvent>, Result<(), ModelError>) {
    let mut answer = AnthropicAnswer::new("asked".to_owned(), Vec::new());
    let mut out = VecDeque::new();
    for data in events {
        if let Err(error) = answer.accept(None, data, &mut out) {
            return (out, Err(error));
        }
        if matches!(out.back(), Some(ModelEvent::Finished(_))) {
            return (out, Ok(()));
        }
    }
    let end = answer.end().map(|_| ());
    (out, end)
}

fn response(events: &[&str]) -> Response {
    let (mut out, end) = feed(events);
    end.unwrap();
    match out.pop_back() {
        Some(ModelEvent::Finished(response)) => response,
        other => panic!("{other:?}"),
    }
}

fn fault(events: &[&str]) -> String {
    feed(events).1.unwrap_err().to_string()
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        web_searches: 0,
        model: "m".to_owned(),
        system: Arc::from(""),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        max_tokens: 9,
        temperature: None,
        effort: None,
        thinking: None,
        stop_sequences: Vec::new(),
    }
}

fn tool(name: &str) -> ToolSpec {
    let schema = RawValue::from_string(r#"{"type": "object"}"#.to_owned()).unwrap();
    ToolSpec {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        input_schema: Arc::from(schema),
    }
}

fn sent(request: &Request) -> String {
    String::from_utf8(body(request).unwrap()).unwrap()
}

fn sent_json(request: &Request) -> Value {
    serde_json::from_str(&sent(request)).unwrap()
}

fn start() -> &'static str {
    r#"{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":1}}}"#
}

#[test]
fn a_whole_answer_has_its_blocks_its_reason_and_the_last_of_each_count() {
    let response = response(RICH);
    let message = serde_json::to_string(&response.message.content).unwrap();
    assert_eq!(message, RICH_CONTENT);
    assert_eq!(response.id.as_deref(), Some("msg_1"));
    assert_eq!(response.model, "claude-opus-5-5");
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    assert_eq!(
        response.usage,
        Usage {
            web_search_requests: 0,
            input_tokens: 12,
            output_tokens: 42,
            cache_creation_input_tokens: 7,
            cache_read_input_tokens: 5,
            cache_creation_1h_input_tokens: 4,
        }
    );
}

#[test]
fn what_came_in_goes_back_out_byte_for_byte() {
    let answer = response(RICH).message;
    let body = sent(&request(vec![Message::user("go"), answer]));
    let expected = format!(r#"{{"role":"assistant","content":{RICH_CONTENT}}}"#);
    assert!(body.contains(&expected), "{body}");
}

#[test]
fn text_and_thinking_are_passed_on_as_they_come() {
    let (out, _) = feed(RICH);
    let pieces: Vec<String> = out
        .into_iter()
        .filter_map(|event| match event {
            ModelEvent::TextDelta(text) => Some(format!("text {text}")),
            ModelEvent::ThinkingDelta(text) => Some(format!("thinking {text}")),
            _ => None,
        })
        .collect();
    assert_eq!(
        pieces,
        [
            "thinking Hm,\n",
            "thinking naïve é.",
            "text Grüße ",
            "text 🦀"
        ]
    );
}

#[test]
fn every_stop_reason_is_understood_and_a_new_one_is_kept_by_name() {
    let cases = [
        ("end_turn", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("tool_use", StopReason::ToolUse),
        ("pause_turn", StopReason::PauseTurn),
        ("refusal", StopReason::Refusal),
        (
            "model_context_window_exceeded",
            StopReason::ContextWindowExceeded,
        ),
        ("lunch", StopReason::Other("lunch".to_owned())),
    ];
    for (word, expected) in cases {
        let delta = json!({"type":"message_delta","delta":{"stop_reason":word}}).to_string();
        let stop = r#"{"type":"message_stop"}"#;
        assert_eq!(response(&[start(), &delta, stop]).stop_reason, expected);
    }
}

#[test]
fn a_stream_cut_after_any_event_is_an_error_not_a_short_answer() {
    for cut in 0..RICH.len() {
        let error = feed(&RICH[..cut]).1.unwrap_err();
        assert!(
            matches!(error, ModelError::BrokenStream { .. }),
            "{cut}: {error}"
        );
    }
}

#[test]
fn an_error_event_is_an_error_with_the_providers_words() {
    let event = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let events = [&RICH[..12], &[event]].concat();
    match feed(&events).1.unwrap_err() {
        ModelError::Api {
            status,
            kind,
            message,
            ..
        } => {
            assert_eq!(
                (status, kind.as_str(), message.as_str()),
                (200, "overloaded_error", "Overloaded")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn garbage_is_refused_by_the_name_of_its_event() {
    let mut answer = AnthropicAnswer::new(String::new(), Vec::new());
    let error = answer
        .accept(Some("message_start"), "{\"type\":", &mut VecDeque::new())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "anthropic sent something that is not its wire format: message_start: \
         EOF while parsing a value at line 1 column 8"
    );
    for (events, expected) in [
        (
            vec![
                start(),
                r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}"#,
            ],
            "content_block_delta: block 3 never started",
        ),
        (
            vec![start(), r#"{"type":"content_block_start","index":0}"#],
            "content_block_start: missing field `content_block`",
        ),
        (
            vec![
                start(),
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x"}}"#,
            ],
            "content_block_delta: `thinking_delta` for block 0 of another kind",
        ),
        (
            vec![r#"{"type":"message_stop"}"#],
            "message_stop: the message never started",
        ),
        (vec!["[1]"], "event: invalid type"),
    ] {
        let error = fault(&events);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_call_that_was_cut_off_is_kept_as_what_arrived_and_sent_back_inside_an_object() {
    let answer = response(&[
        start(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Write","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\": \"b"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let call = answer.message.tool_uses().next().unwrap();
    assert_eq!(call.input.get(), r#""{\"a\": \"b""#);
    let body = sent_json(&request(vec![answer.message]));
    let input = &body["messages"][0]["content"][0]["input"];
    assert_eq!(input, &json!({"cut_off_input": "{\"a\": \"b"}));
}

#[test]
fn servers_that_leave_out_what_is_empty_are_understood() {
    let answer = response(&[
        r#"{"type":"message_start","message":{}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"LS"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"u","name":"LS","input":""}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(
        serde_json::to_string(&answer.message.content).unwrap(),
        r#"[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"LS","input":{}},{"type":"tool_use","id":"u","name":"LS","input":{}}]"#
    );
    assert_eq!(answer.model, "asked");
    assert_eq!(answer.stop_reason, StopReason::ToolUse);
}

#[test]
fn the_smallest_request_has_no_settings_that_were_not_asked_for() {
    assert_eq!(
        sent(&request(vec![Message::user("hi")])),
        r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"stream":true}"#
    );
}

#[test]
fn every_setting_goes_out_when_it_is_set() {
    let request = Request {
        system: Arc::from("Be brief."),
        tools: Arc::from([tool("A"), tool("B")]),
        temperature: Some(0.7),
        effort: Some(Effort::High),
        thinking: None,
        stop_sequences: vec!["END".to_owned()],
        ..request(vec![Message::user("hi")])
    };
    assert_eq!(
        sent(&request),
        concat!(
            r#"{"model":"m","max_tokens":9,"#,
            r#""system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"#,
            r#""tools":[{"name":"A","description":"Does it.","input_schema":{"type": "object"}},"#,
            r#"{"name":"B","description":"Does it.","input_schema":{"type": "object"},"cache_control":{"type":"ephemeral"}}],"#,
            r#""messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"#,
            r#""stop_sequences":["END"],"temperature":0.7,"output_config":{"effort":"high"},"stream":true}"#,
        )
    );
}

fn user(content: Vec<ContentBlock>) -> Message {
    Message {
        role: Role::User,
        content,
    }
}

/// The places with a mark: message and block.
fn marked(request: &Request) -> Vec<(usize, usize)> {
    let body = sent_json(request);
    let mut places = Vec::new();
    for (m, message) in body["messages"].as_array().unwrap().iter().enumerate() {
        for (b, block) in message["content"].as_array().unwrap().iter().enumerate() {
            if block.get("cache_control").is_some() {
                places.push((m, b));
            }
        }
    }
    places
}

#[test]
fn the_two_latest_user_messages_are_marked_on_their_last_block() {
    let call = || Message::assistant(vec![ContentBlock::text("ok")]);
    let results = user(vec![
        ContentBlock::tool_result("a".into(), "1", false),
        ContentBlock::tool_result("b".into(), "2", true),
    ]);
    let messages = vec![
        Message::user("one"),
        call(),
        results,
        call(),
        Message::user("three"),
        call(),
    ];
    assert_eq!(marked(&request(messages)), [(2, 1), (4, 0)]);
}

#[test]
fn reasoning_and_blank_text_are_never_marked() {
    let thinking = serde_json::from_str(r#"{"type":"thinking","thinking":"t"}"#).unwrap();
    let messages = vec![user(vec![
        ContentBlock::text("one"),
        thinking,
        ContentBlock::text(" "),
    ])];
    assert_eq!(marked(&request(messages)), [(0, 0)]);
}

#[test]
fn a_block_that_carries_a_mark_keeps_its_own_and_four_is_the_most() {
    let own = |text: &str| {
        let mut extra = RawObject::default();
        extra
            .push("cache_control", &json!({"type":"ephemeral","ttl":"1h"}))
            .unwrap();
        ContentBlock::Text(Text {
            text: text.to_owned(),
            extra,
        })
    };
    let messages = vec![
        user(vec![own("a"), ContentBlock::text("b")]),
        Message::user("c"),
        user(vec![own("d")]),
    ];
    let request = Request {
        system: Arc::from("s"),
        ..request(messages)
    };
    assert_eq!(marked(&request), [(0, 0), (1, 0), (2, 0)]);
    let body = sent(&request);
    assert_eq!(body.matches("cache_control").count(), 4);
    assert_eq!(body.matches(r#""ttl":"1h""#).count(), 2);
    let with_tools = Request {
        tools: Arc::from([tool("A")]),
        ..request
    };
    assert_eq!(marked(&with_tools), [(0, 0), (2, 0)]);
}

#[test]
fn what_the_provider_refuses_is_left_out() {
    let messages = vec![
        Message::user("a"),
        Message::assistant(Vec::new()),
        Message::assistant(vec![ContentBlock::text("\n\n"), ContentBlock::text("b")]),
    ];
    let body = sent_json(&request(messages));
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        body["messages"][1]["content"],
        json!([{"type":"text","text":"b"}])
    );
}

/// The same events as bytes of a stream, with the line endings given.
fn as_bytes(ending: &str) -> Vec<u8> {
    let mut text = format!(": hello{ending}");
    for data in RICH {
        let kind: Value = serde_json::from_str(data).unwrap();
        let kind = kind["type"].as_str().unwrap();
        text.push_str(&format!(
            "event: {kind}{ending}data: {data}{ending}{ending}"
        ));
    }
    text.into_bytes()
}

fn decoded(chunks: Vec<Bytes>) -> Response {
    let bytes = stream::iter(chunks.into_iter().map(Ok::<_, Break>));
    let mut events = decode(PROVIDER, bytes).boxed();
    let mut answer = AnthropicAnswer::new(String::new(), Vec::new());
    let mut out = VecDeque::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        while let Some(event) = events.next().await {
            let event = event.unwrap();
            let data = event.data.unwrap_or_default();
            answer
                .accept(event.event.as_deref(), &data, &mut out)
                .unwrap();
        }
    });
    match out.pop_back() {
        Some(ModelEvent::Finished(response)) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_that_comes_byte_by_byte_gives_the_same_answer() {
    for ending in ["\n", "\r\n"] {
        let chunks = as_bytes(ending)
            .chunks(1)
            .map(Bytes::copy_from_slice)
            .collect();
        assert_eq!(decoded(chunks), response(RICH));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_cut_anywhere_gives_the_same_answer(
        mut cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let bytes = as_bytes("\n");
        let mut places: Vec<usize> = cuts.drain(..).map(|cut| cut.index(bytes.len())).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let chunks = places
            .windows(2)
            .map(|pair| Bytes::copy_from_slice(&bytes[pair[0]..pair[1]]))
            .collect();
        prop_assert_eq!(decoded(chunks), response(RICH));
    }

    #[test]
    fn no_input_makes_the_reader_panic(
        events in proptest::collection::vec("\\PC{0,40}", 0..6),
        broken in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
    ) {
        let _ = feed(&events.iter().map(String::as_str).collect::<Vec<_>>());
        // A real stream with one event cut short.
        let mut real = RICH.to_vec();
        let place = broken.index(real.len());
        let cut = at.index(real[place].len());
        real[place] = real[place].get(..cut).unwrap_or_default();
        let _ = feed(&real);
    }
}
