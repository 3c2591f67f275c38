//! Views that look across tasks: search, the audit log, the chat.

use codespar_protocol::AccessRole;
use codespar_store::TaskChange;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::Stage;

const ATTACK: &str = "<img src=x onerror=alert(2)>";
const ADMIN: AccessRole = AccessRole::Admin;
const READ: AccessRole = AccessRole::Read;

async fn text_of(stage: &Stage, role: AccessRole, path: &str) -> String {
    let answer = stage.get(role, path).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
    answer.text
}

async fn say(stage: &Stage, role: AccessRole, text: &str) -> Value {
    let body = json!({"text": text, "thread": "t", "project": stage.key("a")});
    let said = stage.post(role, "/api/v1/commands?wait=30", &body).await;
    assert_eq!(said.status, StatusCode::ACCEPTED, "{}", said.text);
    said.json()
}

#[tokio::test]
async fn a_search_finds_what_was_said_and_tells_nothing_of_secrets_and_other_projects() {
    let stage = Stage::new().await;
    let (_, agent) = stage.agent("a").await;
    stage
        .say(agent, 0, "where is the Needle in 100% of the hay_stack?")
        .await;
    stage
        .say(agent, 1, "the password is correct-horse-battery, keep it")
        .await;
    let elsewhere = stage.session(&stage.root("elsewhere")).await;
    stage.say(elsewhere, 0, "another needle").await;
    let found = text_of(&stage, READ, "/search?q=needle").await;
    assert!(found.contains("<mark>Needle</mark>"), "{found}");
    assert!(!found.contains("another"), "{found}");
    assert_eq!(found.matches("<mark>").count(), 1);
    // Characters with a meaning in patterns are texts.
    assert!(
        text_of(&stage, READ, "/search?q=100%25+of")
            .await
            .contains("<mark>")
    );
    assert!(
        !text_of(&stage, READ, "/search?q=100%25the")
            .await
            .contains("<mark>")
    );
    assert!(
        !text_of(&stage, READ, "/search?q=hay.stack")
            .await
            .contains("<mark>")
    );
    // A guess at a secret finds nothing, whether or not it is right.
    for guess in ["correct-horse", "correct-horse-battery", "horse-bat"] {
        let page = text_of(&stage, ADMIN, &format!("/search?q={guess}")).await;
        assert!(!page.contains("<mark>"), "{guess}: {page}");
    }
    let shown = text_of(&stage, READ, "/search?q=password").await;
    assert!(
        shown.contains("<mark>password</mark>") && !shown.contains("correct-horse"),
        "{shown}"
    );
    for odd in ["", "x", "%00", "%3Cscript%3E", &"x".repeat(400)] {
        let page = text_of(&stage, READ, &format!("/search?q={odd}")).await;
        assert!(
            !page.contains("<script>") && !page.contains("<mark>"),
            "{odd}"
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn the_audit_log_is_for_admins_and_what_is_in_it_is_text() {
    let stage = Stage::new().await;
    say(&stage, READ, &format!("fix {ATTACK} correct-horse-battery")).await;
    let page = text_of(&stage, ADMIN, "/audit").await;
    assert!(
        page.contains("refused") && page.contains("&lt;img src=x"),
        "{page}"
    );
    assert!(
        !page.contains(ATTACK) && !page.contains("correct-horse"),
        "{page}"
    );
    let listed = stage.get(ADMIN, "/api/v1/audit").await.json();
    assert_eq!(listed["entries"][0]["decision"], "refused", "{listed}");
    assert_eq!(listed["next"], Value::Null);
    let exported = stage.get(ADMIN, "/api/v1/audit/export").await;
    assert_eq!(exported.headers["content-type"], "application/x-ndjson");
    let lines: Vec<Value> = exported
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["role"], "read");
    assert!(
        !exported.text.contains("correct-horse"),
        "{}",
        exported.text
    );
    for path in ["/audit", "/api/v1/audit", "/api/v1/audit/export"] {
        for role in [READ, AccessRole::Write, AccessRole::Merge] {
            assert_eq!(
                stage.get(role, path).await.status,
                StatusCode::FORBIDDEN,
                "{path}"
            );
        }
    }
    // The navigation does not offer what would be refused.
    assert!(
        !text_of(&stage, READ, "/board")
            .await
            .contains("href=\"/audit\"")
    );
    stage.stop().await;
}

#[tokio::test]
async fn the_chat_shows_a_thread_with_its_buttons_and_nothing_as_markup() {
    let stage = Stage::new().await;
    say(
        &stage,
        AccessRole::Write,
        &format!("fix the greeting {ATTACK}"),
    )
    .await;
    let path = format!("/chat?project={}&thread=t", stage.key("a"));
    let page = text_of(&stage, READ, &path).await;
    assert!(
        page.contains("&lt;img src=x") && !page.contains(ATTACK),
        "{page}"
    );
    assert!(page.contains("data-state=\"progress\""), "{page}");
    assert!(
        page.contains("option value=\"merge \""),
        "verbs are completed: {page}"
    );
    let other = text_of(
        &stage,
        READ,
        &format!("/chat?project={}&thread=t", stage.key("b")),
    )
    .await;
    assert!(!other.contains("greeting"), "{other}");
    for wrong in ["/chat?project=000000000000", "/chat?thread=a%2Fb"] {
        let answer = stage.get(READ, wrong).await;
        assert!(
            answer.status.is_client_error(),
            "{wrong}: {}",
            answer.status
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn the_board_filters_by_person_and_offers_to_stop_several() {
    let stage = Stage::new().await;
    say(&stage, AccessRole::Write, "fix the greeting").await;
    let task = stage.task("a", "a command").await.task_id;
    let writer = text_of(&stage, AccessRole::Write, "/board").await;
    assert!(
        writer.contains(&format!("data-select=\"{task}\"")),
        "{writer}"
    );
    assert!(
        writer.contains("<option value=\"write\">write</option>"),
        "{writer}"
    );
    let reader = text_of(&stage, READ, "/board").await;
    assert!(
        !reader.contains("data-select") && !reader.contains("data-bulk"),
        "{reader}"
    );
    let hers = text_of(&stage, READ, "/board?person=write").await;
    assert!(
        hers.contains("fix the greeting") && !hers.contains("a command"),
        "{hers}"
    );
    let nobody = text_of(&stage, READ, "/board?person=%3Cscript%3E").await;
    assert!(
        !nobody.contains("fix the greeting") && !nobody.contains("<script>"),
        "{nobody}"
    );
    stage.stop().await;
}

#[tokio::test]
async fn dependencies_are_drawn() {
    let stage = Stage::new().await;
    let first = stage.task("a", "first").await.task_id;
    let second = stage.task("a", "second").await.task_id;
    let change = TaskChange {
        add_blocked_by: vec![first.clone()],
        ..TaskChange::default()
    };
    stage.store().change_task(&second, change).await.unwrap();
    let page = text_of(&stage, READ, &format!("/tasks/{second}")).await;
    assert!(page.contains("svg class=\"graph\""), "{page}");
    assert!(
        page.contains(&format!("<a href=\"/tasks/{first}\"><rect")),
        "{page}"
    );
    stage.stop().await;
}
