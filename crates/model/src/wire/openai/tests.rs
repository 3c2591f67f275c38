//! What goes to a chat completions API and what comes of its chunks.

use std::{collections::VecDeque, sync::Arc};

use codespar_protocol::{
    ContentBlock, Image, Message, RawObject, Role, StopReason, ToolResult, ToolResultContent, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};

use super::{LimitField, OpenAiAnswer, body};
use crate::{Effort, ModelError, ModelEvent, Request, Response, ToolSpec, wire::Accumulator};

fn feed(chunks: &[&str]) -> Result<(Vec<String>, Response), ModelError> {
    feed_after(Vec::new(), chunks)
}

/// The answer to a conversation that has these messages.
fn feed_after(
    earlier: Vec<Arc<Message>>,
    chunks: &[&str],
) -> Result<(Vec<String>, Response), ModelError> {
    let mut answer = OpenAiAnswer::new("asked".to_owned(), earlier);
    let mut out = VecDeque::new();
    for data in chunks {
        answer.accept(None, data, &mut out)?;
    }
    if !matches!(out.back(), Some(ModelEvent::Finished(_))) {
        out.push_back(answer.end()?);
    }
    let Some(ModelEvent::Finished(response)) = out.pop_back() else {
        panic!("not finished: {out:?}");
    };
    let pieces = out.into_iter().map(|event| match event {
        ModelEvent::TextDelta(text) => format!("text {text}"),
        ModelEvent::ThinkingDelta(text) => format!("thinking {text}"),
        other => panic!("{other:?}"),
    });
    Ok((pieces.collect(), response))
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        web_searches: 0,
        model: "gpt".to_owned(),
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

fn sent(request: &Request) -> Value {
    let bytes = body(request, LimitField::MaxTokens).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

const TWO_CALLS: &[&str] = &[
    r#"{"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"Let me"},"finish_reason":null}],"usage":null}"#,
    r#"{"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"content":"Both "}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"now."}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"Read","arguments":""}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"file_path\": "}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"LS","arguments":""}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64}}}"#,
    "[DONE]",
];

#[test]
fn two_parallel_calls_go_round() {
    let (pieces, response) = feed(TWO_CALLS).unwrap();
    assert_eq!(pieces, ["thinking Let me", "text Both ", "text now."]);
    assert_eq!(
        serde_json::to_string(&response.message.content).unwrap(),
        concat!(
            r#"[{"type":"text","text":"Both now."},"#,
            r#"{"type":"tool_use","id":"a","name":"Read","input":{"file_path": "x"}},"#,
            r#"{"type":"tool_use","id":"b","name":"LS","input":{}}]"#,
        )
    );
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    assert_eq!(
        (response.id.as_deref(), response.model.as_str()),
        (Some("c1"), "gpt-x")
    );
    let expected = Usage {
        input_tokens: 36,
        output_tokens: 20,
        cache_read_input_tokens: 64,
        ..Usage::default()
    };
    assert_eq!(response.usage, expected);

    let results = Message {
        role: Role::User,
        content: vec![
            ContentBlock::tool_result("a".into(), "text of x", false),
            ContentBlock::tool_result("b".into(), "no such directory", true),
            ContentBlock::text("Go on."),
        ],
    };
    let body = sent(&request(vec![
        Message::user("look"),
        response.message,
        results,
    ]));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": "Both now.", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "Read", "arguments": "{\"file_path\": \"x\"}"}},
                {"id": "b", "type": "function", "function": {"name": "LS", "arguments": "{}"}},
            ]},
            {"role": "tool", "content": "text of x", "tool_call_id": "a"},
            {"role": "tool", "content": "Error: no such directory", "tool_call_id": "b"},
            {"role": "user", "content": "Go on."},
        ])
    );
}

#[test]
fn the_whole_body_has_what_was_asked_for_and_nothing_else() {
    let schema = RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap();
    let request = Request {
        system: Arc::from("Be brief."),
        tools: Arc::from([ToolSpec {
            name: "LS".to_owned(),
            description: "Lists.".to_owned(),
            input_schema: Arc::from(schema),
        }]),
        temperature: Some(0.5),
        effort: Some(Effort::Low),
        thinking: None,
        stop_sequences: vec!["END".to_owned()],
        ..request(vec![Message::user("hi")])
    };
    assert_eq!(
        sent(&request),
        json!({
            "model": "gpt",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
            ],
            "tools": [{"type": "function", "function": {"name": "LS", "description": "Lists.", "parameters": {"type": "object"}}}],
            "max_tokens": 9,
            "temperature": 0.5,
            "reasoning_effort": "low",
            "stop": ["END"],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn only_openai_itself_gets_the_new_name_of_the_limit() {
    let limit = |host| {
        let bytes = body(&request(Vec::new()), LimitField::for_host(host)).unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        (
            body.get("max_tokens").cloned(),
            body.get("max_completion_tokens").cloned(),
        )
    };
    assert_eq!(limit("localhost"), (Some(json!(9)), None));
    assert_eq!(limit("api.openai.com"), (None, Some(json!(9))));
}

#[test]
fn pictures_in_results_move_to_the_user_message_after_all_results() {
    let picture = || ContentBlock::Image(Image::base64("image/png", "AA==").unwrap());
    let shot = ContentBlock::ToolResult(ToolResult {
        tool_use_id: "a".into(),
        content: ToolResultContent::Blocks(vec![picture()]),
        is_error: false,
        extra: RawObject::default(),
    });
    let message = Message {
        role: Role::User,
        content: vec![
            shot,
            ContentBlock::tool_result("b".into(), "fine", false),
            ContentBlock::text("And this:"),
            picture(),
        ],
    };
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    assert_eq!(
        sent(&request(vec![message]))["messages"],
        json!([
            {"role": "tool", "content": "(a picture, shown in the next message)", "tool_call_id": "a"},
            {"role": "tool", "content": "fine", "tool_call_id": "b"},
            {"role": "user", "content": [
                {"type": "text", "text": "Picture from the result of call a:"},
                url,
                {"type": "text", "text": "And this:"},
                url,
            ]},
        ])
    );
}

#[test]
fn reasoning_stays_behind_and_a_call_alone_has_no_text() {
    let content = serde_json::from_str(
        r#"[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"LS","input":"{\"cut"}]"#,
    );
    let messages = vec![Message::assistant(content.unwrap())];
    assert_eq!(
        sent(&request(messages))["messages"],
        json!([{"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "LS", "arguments": "{\"cut_off_input\":\"{\\\"cut\"}"}},
        ]}])
    );
}

#[test]
fn every_finish_reason_is_understood() {
    for (word, expected) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("tool_calls", StopReason::ToolUse),
        ("content_filter", StopReason::Refusal),
        ("lunch", StopReason::Other("lunch".to_owned())),
    ] {
        let chunk = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": word}]});
        // Some servers end without `[DONE]`.
        let (_, response) = feed(&[&chunk.to_string()]).unwrap();
        assert_eq!(response.stop_reason, expected);
        assert_eq!(response.model, "asked");
    }
}

#[test]
fn calls_without_numbers_or_ids_are_told_apart() {
    let (_, response) = feed(&[
        r#"{"id":"c9","choices":[{"delta":{"tool_calls":[{"function":{"name":"A","arguments":"{\"n\":1}"}},{"function":{"name":"B","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]},"finish_reason":"stop"}]}"#,
    ])
    .unwrap();
    assert_eq!(
        serde_json::to_string(&response.message.content).unwrap(),
        r#"[{"type":"tool_use","id":"call_c9_0","name":"A","input":{"n":1}},{"type":"tool_use","id":"call_c9_1","name":"B","input":{}}]"#
    );
    assert_eq!(response.stop_reason, StopReason::ToolUse);

    let (_, response) = feed(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"A","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"y","function":{"name":"A","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ])
    .unwrap();
    let ids: Vec<_> = response
        .message
        .tool_uses()
        .map(|call| call.id.0.as_str())
        .collect();
    assert_eq!(ids, ["x", "y"]);
}

#[test]
fn two_calls_with_one_id_are_no_answer() {
    let error = feed(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"A","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"x","function":{"name":"B","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ])
    .unwrap_err();
    assert!(
        error.to_string().ends_with("two calls have the id `x`"),
        "{error}"
    );
}

#[test]
fn a_cut_stream_is_an_error_not_a_short_answer() {
    for cut in 0..7 {
        let error = feed(&TWO_CALLS[..cut]).unwrap_err();
        assert!(
            matches!(error, ModelError::BrokenStream { .. }),
            "{cut}: {error}"
        );
    }
    let done = feed(&[TWO_CALLS[1], "[DONE]"]).unwrap_err();
    assert!(matches!(done, ModelError::BrokenStream { .. }), "{done}");
}

#[test]
fn errors_and_garbage_in_the_stream_are_errors() {
    let error = feed(&[r#"{"error":{"code":502,"message":"upstream"}}"#]).unwrap_err();
    assert!(
        matches!(&error, ModelError::Api { kind, .. } if kind == "502"),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "openai answered 200: upstream");
    let garbage = feed(&["{nope"]).unwrap_err();
    assert!(
        garbage.to_string().contains("chunk: key must be a string"),
        "{garbage}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_input_makes_the_reader_panic(
        chunks in proptest::collection::vec("\\PC{0,40}", 0..6),
        broken in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut answer = OpenAiAnswer::new(String::new(), Vec::new());
        let mut real = TWO_CALLS.to_vec();
        let place = broken.index(real.len());
        real[place] = real[place].get(..at.index(real[place].len())).unwrap_or_default();
        for data in chunks.iter().map(String::as_str).chain(real) {
            let _ = answer.accept(None, data, &mut VecDeque::new());
        }
        let _ = answer.end();
    }
}

#[test]
fn an_id_that_an_earlier_call_has_is_replaced_by_a_free_one() {
    // Some servers number the calls of every answer anew, and some their answers as well.
    const CALL: &[&str] = &[
        r#"{"id":"0","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"LS","arguments":"{}"}}]}}]}"#,
        r#"{"id":"0","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    ];
    let mut earlier = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (_, response) = feed_after(earlier.clone(), CALL).unwrap();
        ids.extend(response.message.tool_uses().map(|call| call.id.0.clone()));
        earlier.push(Arc::new(response.message));
    }
    assert_eq!(ids, ["call_0", "call_0_0", "call_0_0_2"]);
}
