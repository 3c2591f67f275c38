//! Cassettes: what was recorded can be replayed without the provider, and holds no secrets.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::{fs, path::Path, sync::Arc};

use codespar_model::{
    CassettePlayer, CassetteRecorder, Model, ModelError, ModelEvent, Redaction, Request, Response,
};
use codespar_protocol::{ContentBlock, Message, StopReason, Usage};
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use tokio_util::sync::CancellationToken;

/// A model that echoes the last message after a failed try.
struct Echo;

impl Model for Echo {
    fn stream(
        &self,
        request: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let said = request.messages.last().unwrap().text();
        let content = serde_json::from_str(&format!(
            r#"[{{"type":"thinking","thinking":"hm","signature":"s="}},{{"type":"text","text":"You said {said}"}},{{"type":"tool_use","id":"t1","name":"LS","input":{{"path" : "." }}}}]"#
        ));
        let response = Response {
            id: Some("m1".to_owned()),
            model: "claude-opus-5-5-20260101".to_owned(),
            message: Message::assistant(content.unwrap()),
            stop_reason: StopReason::ToolUse,
            usage: Usage {
                input_tokens: 3,
                cache_creation_1h_input_tokens: 2,
                ..Usage::default()
            },
        };
        let events = [
            ModelEvent::TextDelta("void".to_owned()),
            ModelEvent::Retrying {
                attempt: 1,
                delay: std::time::Duration::ZERO,
                reason: "Overloaded".to_owned(),
                may_be_charged: false,
            },
            ModelEvent::ThinkingDelta("hm".to_owned()),
            ModelEvent::TextDelta("You ".to_owned()),
            ModelEvent::TextDelta(format!("said {said}")),
            ModelEvent::Finished(response),
        ];
        stream::iter(events.map(Ok)).boxed()
    }

    fn provider(&self) -> &'static str {
        "echo"
    }
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        web_searches: 0,
        model: "opus".to_owned(),
        system: Arc::from("Today is Monday."),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        max_tokens: 10,
        temperature: None,
        effort: None,
        thinking: None,
        stop_sequences: Vec::new(),
    }
}

async fn events(model: &dyn Model, request: Request) -> Result<Vec<String>, ModelError> {
    let stream = model.stream(request, CancellationToken::new());
    stream
        .map_ok(|event| format!("{event:?}"))
        .try_collect()
        .await
}

async fn finished(model: &dyn Model, request: Request) -> Response {
    let stream = model.stream(request, CancellationToken::new());
    match stream.try_collect::<Vec<_>>().await.unwrap().pop() {
        Some(ModelEvent::Finished(response)) => response,
        other => panic!("{other:?}"),
    }
}

fn plain() -> Redaction {
    Arc::new(str::to_owned)
}

/// Takes out the secret and everything after it: on the text of a whole line that would take
/// the quotes and braces too.
fn hiding(secret: &'static str) -> Redaction {
    Arc::new(move |text: &str| match text.split_once(secret) {
        Some((before, _)) => format!("{before}[redacted]"),
        None => text.to_owned(),
    })
}

fn recorder(path: &Path, redact: Redaction) -> CassetteRecorder {
    CassetteRecorder::new(Arc::new(Echo), path, redact)
}

#[tokio::test]
async fn a_recorded_conversation_replays_exactly_under_another_system_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let recorder = recorder(&path, plain());
    let first = vec![Message::user("one")];
    let live = events(&recorder, request(first.clone())).await.unwrap();
    let answer = finished(&recorder, request(first.clone())).await;
    let second = [
        first.clone(),
        vec![answer.message.clone(), Message::user("two")],
    ]
    .concat();
    let then = finished(&recorder, request(second.clone())).await;

    let player = CassettePlayer::open(&path).unwrap();
    let tuesday = |messages| Request {
        system: Arc::from("Today is Tuesday."),
        model: "sonnet".to_owned(),
        ..request(messages)
    };
    // The failed try is not part of the recording.
    assert_eq!(
        events(&player, tuesday(first.clone())).await.unwrap(),
        live[2..]
    );
    assert_eq!(finished(&player, tuesday(first)).await, answer);
    assert_eq!(finished(&player, tuesday(second)).await, then);
    assert_eq!(player.provider(), "cassette");
}

#[tokio::test]
async fn a_request_that_is_not_on_the_tape_is_refused_by_file_and_turn() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    finished(
        &recorder(&path, plain()),
        request(vec![Message::user("one")]),
    )
    .await;
    let player = CassettePlayer::open(&path).unwrap();
    let other = vec![
        Message::user("one"),
        Message::assistant(vec![ContentBlock::text("x")]),
        Message::user("three"),
    ];
    let error = events(&player, request(other)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cassette {}: no answer for turn 2 of this conversation; its messages differ from \
             the recorded ones (record it anew, or match by turn)",
            path.display()
        )
    );
}

#[tokio::test]
async fn secrets_do_not_reach_the_file_and_the_conversation_is_still_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let prompt = || request(vec![Message::user("hunter2")]);
    let redact = hiding("hunter2");
    let live = finished(&recorder(&path, redact.clone()), prompt()).await;
    assert_eq!(live.message.text(), "You said hunter2");
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("You said [redacted]"), "{text}");

    let player = CassettePlayer::open(&path).unwrap().with_redaction(redact);
    let replayed = finished(&player, prompt()).await;
    assert_eq!(replayed.message.text(), "You said [redacted]");
    assert_eq!(replayed.usage, live.usage);
}

#[tokio::test]
async fn a_cassette_written_by_hand_answers_by_turn() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("demo.jsonl");
    let lines = [
        r#"{"cassette":1,"match":"turn"}"#,
        "",
        r#"{"response":{"content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"t1","name":"LS","input":{}}]}}"#,
        r#"{"response":{"content":[{"type":"text","text":"Done."}],"usage":{"output_tokens":5}}}"#,
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let player = CassettePlayer::open(&path).unwrap();
    let first = finished(&player, request(vec![Message::user("anything")])).await;
    assert_eq!(first.stop_reason, StopReason::ToolUse);
    assert_eq!(first.model, "opus");
    let conversation = vec![
        Message::user("anything"),
        first.message,
        Message::user("result"),
    ];
    let second = events(&player, request(conversation)).await.unwrap();
    assert_eq!(second[0], r#"TextDelta("Done.")"#);
    assert!(
        second[1].contains("EndTurn") && second[1].contains("output_tokens: 5"),
        "{second:?}"
    );
}

#[tokio::test]
async fn a_cancelled_replay_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let prompt = || request(vec![Message::user("one")]);
    finished(&recorder(&path, plain()), prompt()).await;
    let cancel = CancellationToken::new();
    let mut replay = CassettePlayer::open(&path)
        .unwrap()
        .stream(prompt(), cancel.clone());
    assert!(matches!(replay.next().await, Some(Ok(_))));
    cancel.cancel();
    assert!(matches!(
        replay.next().await,
        Some(Err(ModelError::Cancelled))
    ));
    assert!(replay.next().await.is_none());
}

#[tokio::test]
async fn a_bad_cassette_is_refused_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        let error = CassettePlayer::open(&path).unwrap_err().to_string();
        error.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(refused("a", ""), "is empty");
    assert_eq!(
        refused("b", "{\"cassette\":9}\n"),
        "line 1: format 9 is not known (this version reads 1)"
    );
    assert!(refused("c", "{\"cassette\":1}\n\n{\"resp").starts_with("line 3: EOF"));
    assert!(
        refused("d", "{\"cassette\":1}\n{\"response\":{\"content\":[]}}")
            .starts_with("line 2: missing field `digest`")
    );
    let missing = CassettePlayer::open(dir.path().join("none")).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}

#[tokio::test]
async fn a_cassette_that_cannot_be_written_is_an_error_not_a_lost_recording() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(&dir.path().join("no/such/dir.jsonl"), plain());
    let error = events(&recorder, request(vec![Message::user("one")]))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
}
