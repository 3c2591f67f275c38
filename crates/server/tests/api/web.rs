//! The pages: what they show to whom, and that nothing from outside becomes markup.

use codespar_protocol::{
    AccessRole, ClarificationRequest, ContentBlock, ElicitationRequest, EntryBody, Message,
    PermissionRequest, QuestionRequest, StopReason, TaskRecord,
};
use codespar_store::NewQuestion;
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage};

pub(crate) const ATTACK: &str =
    "<script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\" onclick=\"x";

async fn page(stage: &Stage, role: AccessRole, path: &str) -> Answer {
    let answer = stage.get(role, path).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
    assert!(answer.text.starts_with("<!DOCTYPE html>"), "{path}");
    answer
}

/// Nothing of the attack is markup, and no page has script or style of its own.
pub(crate) fn check_is_text(path: &str, page: &str) {
    for markup in [
        "<script>",
        "<img src=x",
        "\u{202e}",
        "\" onclick=\"",
        " style=",
        "<style",
    ] {
        assert!(!page.contains(markup), "{markup} in {path}:\n{page}");
    }
}

async fn ask(stage: &Stage, task: &TaskRecord, request: QuestionRequest) -> String {
    let session = stage.session(&stage.root("a")).await;
    let new = NewQuestion {
        session_id: session,
        task_id: Some(task.task_id.clone()),
        asked_under: None,
        project_root: stage.root("a"),
        key: format!("{session}"),
        request,
        expires_at: Timestamp::now() + SignedDuration::from_hours(1),
    };
    let asked = stage.store().ask_question(new).await.unwrap();
    asked.id.to_string()
}

fn permission(confinement: Option<codespar_protocol::Confinement>) -> QuestionRequest {
    QuestionRequest::Permission(PermissionRequest {
        tool_use_id: "t".into(),
        tool: format!("Bash{ATTACK}"),
        summary: ATTACK.to_owned(),
        input: json!({"command": format!("make {ATTACK}")}),
        preview: Some(ATTACK.to_owned()),
        change: None,
        confinement,
        reason: ATTACK.to_owned(),
        suggested_rules: vec![format!("Bash({ATTACK})")],
    })
}

#[tokio::test]
async fn every_view_is_a_page_and_needs_a_sign_in() {
    let stage = Stage::new().await;
    let (task, session) = stage.agent("a").await;
    let paths = [
        "/".to_owned(),
        "/board".to_owned(),
        "/pulls".to_owned(),
        "/usage".to_owned(),
        "/health".to_owned(),
        format!("/tasks/{}", task.task_id),
        format!("/sessions/{session}"),
    ];
    for path in &paths {
        let shown = page(&stage, AccessRole::Read, path).await;
        check_is_text(path, &shown.text);
        let policy = shown.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let stranger = stage.send(stage.request("GET", path)).await;
        assert_eq!(stranger.status, StatusCode::SEE_OTHER, "{path}");
        let to = stranger.headers["location"].to_str().unwrap();
        assert!(to.starts_with("/login"), "{to}");
    }
    for path in ["/tasks/w-00000000", "/sessions/x", "/projects/0/pulls/1"] {
        let missing = stage.get(AccessRole::Read, path).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND, "{path}");
        assert!(
            missing.text.contains("<h1>Not found</h1>"),
            "{}",
            missing.text
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn names_and_questions_are_text_in_every_view() {
    let stage = Stage::new().await;
    let task = stage.task("a", ATTACK).await;
    ask(&stage, &task, permission(None)).await;
    ask(
        &stage,
        &task,
        QuestionRequest::Clarification(ClarificationRequest {
            text: format!("{ATTACK} [a](javascript:alert(1))"),
        }),
    )
    .await;
    ask(
        &stage,
        &task,
        QuestionRequest::Elicitation(ElicitationRequest {
            server: ATTACK.to_owned(),
            message: ATTACK.to_owned(),
            schema: json!({"type": "object", "properties": {
                ATTACK: {"type": "string", "enum": [ATTACK, "b"]},
            }}),
        }),
    )
    .await;
    for path in ["/", "/board", &format!("/tasks/{}", task.task_id)] {
        let shown = page(&stage, AccessRole::Admin, path).await;
        assert!(shown.text.contains("&lt;script&gt;"), "{path}");
        assert!(!shown.text.contains("href=\"javascript"), "{path}");
        // Values of choices and names of fields go back as they are; they are quoted and escaped.
        let text = shown.text.replace("value=\"&lt;script&gt;", "");
        for markup in ["<script>", "<img src=x", "\" onclick=\""] {
            assert!(!text.contains(markup), "{markup} in {path}:\n{text}");
        }
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_conversation_is_text_and_results_go_with_their_calls() {
    let stage = Stage::new().await;
    let (task, session) = stage.agent("a").await;
    stage
        .say(
            session,
            0,
            &format!("# Hello\n\n{ATTACK} correct-horse-battery"),
        )
        .await;
    let block = |value: Value| serde_json::from_value::<ContentBlock>(value).unwrap();
    let said: Message = serde_json::from_value(json!({"role": "assistant", "content": [
        {"type": "text", "text": format!("**bold** {ATTACK}")},
        {"type": "tool_use", "id": "u1", "name": "Edit", "input": {
            "file_path": "a.rs", "old_string": ATTACK, "new_string": "new"}},
    ]}))
    .unwrap();
    let entries = vec![
        EntryBody::Assistant {
            message: said,
            message_id: None,
            model: ATTACK.to_owned(),
            stop_reason: StopReason::ToolUse,
            usage: Default::default(),
            cost: Default::default(),
        },
        EntryBody::ToolResult {
            result: block(json!({"type": "tool_result", "tool_use_id": "u1",
                "content": format!("result {ATTACK}"), "is_error": true})),
            files: Vec::new(),
        },
    ];
    stage.store().append(session, 1, entries).await.unwrap();
    for path in [
        format!("/tasks/{}", task.task_id),
        format!("/sessions/{session}"),
    ] {
        let shown = page(&stage, AccessRole::Read, &path).await;
        check_is_text(&path, &shown.text);
        assert!(!shown.text.contains("correct-horse-battery"), "{path}");
        assert!(
            shown.text.contains("<strong>bold</strong>"),
            "{}",
            shown.text
        );
        assert!(shown.text.contains("class=\"l del\""), "{}", shown.text);
        // The result is in the call and nowhere else.
        assert_eq!(shown.text.matches("result &lt;script&gt;").count(), 1);
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_long_conversation_is_shown_in_parts() {
    let stage = Stage::new().await;
    let session = stage.session(&stage.root("a")).await;
    let said = |n: u64| EntryBody::User {
        message: Message::user(format!("message {n} of many")),
        synthetic: false,
    };
    let entries = (1..=1_001).map(said).collect();
    stage.store().append(session, 0, entries).await.unwrap();
    let path = format!("/sessions/{session}");
    let shown = page(&stage, AccessRole::Read, &path).await.text;
    assert!(
        shown.contains("message 1001 of many"),
        "the latest are shown"
    );
    assert!(!shown.contains("message 500 of many"), "and no others");
    assert_eq!(shown.matches("class=\"chunk\"").count(), 3);
    let chunk = stage
        .get(AccessRole::Read, &format!("{path}/chunks/9"))
        .await;
    assert!(chunk.text.contains("data-last=\"20\""), "{}", chunk.text);
    assert!(chunk.text.contains("message 451 of many"));
    assert!(chunk.text.contains("message 500 of many"));
    assert!(!chunk.text.contains("message 501 of many"));
    let beyond = stage
        .get(AccessRole::Read, &format!("{path}/chunks/21"))
        .await;
    assert_eq!(beyond.status, StatusCode::NOT_FOUND);
    let earlier = page(&stage, AccessRole::Read, &format!("{path}?chunk=0"))
        .await
        .text;
    assert!(earlier.contains("message 1 of many"));
    stage.stop().await;
}

#[tokio::test]
async fn nobody_is_shown_a_button_for_what_they_may_not_do() {
    use codespar_protocol::Confinement;
    let stage = Stage::new().await;
    let task = stage.task("a", "waits").await;
    ask(&stage, &task, permission(Some(Confinement::Sandboxed))).await;
    let path = format!("/tasks/{}", task.task_id);
    let shows = async |role: AccessRole, path: &str, part: &str| {
        page(&stage, role, path).await.text.contains(part)
    };
    for path in ["/", &path, "/board"] {
        assert!(!shows(AccessRole::Read, path, "data-api=").await, "{path}");
        assert!(shows(AccessRole::Write, path, "data-api=").await, "{path}");
    }
    assert!(!shows(AccessRole::Merge, "/", "value=\"always\"").await);
    assert!(shows(AccessRole::Admin, "/", "value=\"always\"").await);
    // Enter in a field uses the first button of its form: that must not be one that allows.
    let inbox = page(&stage, AccessRole::Admin, "/").await.text;
    let refusing = inbox
        .split("<form")
        .find(|form| form.contains("name=\"reason\""));
    assert!(!refusing.unwrap().contains("value=\"yes\""), "{inbox}");
    // Nothing without a sandbox is allowed from a page.
    let other = stage.task("b", "waits").await;
    ask(&stage, &other, permission(Some(Confinement::SwitchedOff))).await;
    let path = format!("/tasks/{}", other.task_id);
    assert!(!shows(AccessRole::Admin, &path, "value=\"yes\"").await);
    assert!(shows(AccessRole::Admin, &path, "value=\"no\"").await);
    stage.stop().await;
}

#[tokio::test]
async fn other_projects_are_not_shown() {
    let stage = Stage::new().await;
    stage.task("elsewhere", "hidden work").await;
    stage.task("a", "own work").await;
    let board = page(&stage, AccessRole::Read, "/board").await.text;
    assert!(board.contains("own work"), "{board}");
    assert!(!board.contains("hidden work"), "{board}");
    let key = stage.key("b");
    let filtered = page(&stage, AccessRole::Read, &format!("/board?project={key}"))
        .await
        .text;
    assert!(!filtered.contains("own work"), "{filtered}");
    let wrong = stage.get(AccessRole::Read, "/board?project=nowhere").await;
    assert_eq!(wrong.status, StatusCode::NOT_FOUND);
    stage.stop().await;
}

#[tokio::test]
async fn signing_in_leads_back_to_the_page_and_to_no_other_site() {
    let stage = Stage::new().await;
    let asked = stage
        .send(stage.request("GET", "/board?state=running"))
        .await;
    assert_eq!(
        asked.headers["location"],
        "/login?next=%2Fboard%3Fstate%3Drunning"
    );
    let sign_in = async |next: &str| {
        let token = stage.token(AccessRole::Read);
        let request = stage
            .request("POST", "/login")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("origin", stage.url(""))
            .body(format!("token={token}&next={next}"));
        let answer = stage.send(request).await;
        answer.headers["location"].to_str().unwrap().to_owned()
    };
    assert_eq!(
        sign_in("%2Fboard%3Fstate%3Drunning").await,
        "/board?state=running"
    );
    assert_eq!(sign_in("%2F%2Fevil.example").await, "/");
    assert_eq!(sign_in("https%3A%2F%2Fevil.example").await, "/");
    stage.stop().await;
}

#[tokio::test]
async fn assets_are_served_to_anybody_and_nothing_else_is() {
    let stage = Stage::new().await;
    for name in ["style.css", "app.js", "theme.js", "icon.svg"] {
        let asset = stage
            .send(stage.request("GET", &format!("/assets/{name}")))
            .await;
        assert_eq!(asset.status, StatusCode::OK, "{name}");
        let tag = asset.headers["etag"].to_str().unwrap().to_owned();
        let again = stage
            .request("GET", &format!("/assets/{name}"))
            .header("if-none-match", tag);
        assert_eq!(stage.send(again).await.status, StatusCode::NOT_MODIFIED);
    }
    for name in ["..%2f..%2fCargo.toml", "x", "style.css%00"] {
        let asset = stage
            .send(stage.request("GET", &format!("/assets/{name}")))
            .await;
        assert_eq!(asset.status, StatusCode::NOT_FOUND, "{name}");
    }
    stage.stop().await;
}
