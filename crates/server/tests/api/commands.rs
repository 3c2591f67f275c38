//! Lines of the chat grammar over the API: with the role of the token, once, in their project.

use codespar_channels::WEB;
use codespar_protocol::{
    AccessRole, Confinement, PermissionRequest, QuestionRequest, QuestionStatus, TaskId,
};
use codespar_server::create_token;
use codespar_store::NewQuestion;
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage, with_json};

const PATH: &str = "/api/v1/commands?wait=30";
const READ: AccessRole = AccessRole::Read;
const WRITE: AccessRole = AccessRole::Write;

fn line(stage: &Stage, text: &str) -> Value {
    json!({"text": text, "thread": "t", "project": stage.key("a")})
}

async fn say(stage: &Stage, role: AccessRole, text: &str) -> Value {
    let answer = stage.post(role, PATH, &line(stage, text)).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    answer.json()
}

async fn say_with_key(stage: &Stage, token: &str, key: &str, body: &Value) -> Answer {
    let request = stage.request("POST", PATH).bearer_auth(token);
    let request = request.header("idempotency-key", key);
    stage.send(with_json(request, body)).await
}

fn reply(receipt: &Value) -> &str {
    receipt["replies"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{receipt}"))
}

async fn dev_tasks(stage: &Stage) -> usize {
    let listed = stage.get(READ, "/api/v1/tasks?type=local_workflow").await;
    listed.json()["tasks"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_line_has_the_rights_of_its_token_and_of_nothing_else() {
    let stage = Stage::new().await;
    // Settings of channels give nothing here, and take nothing.
    let settings = json!({"channels": {"access": {WEB: {
        "everyone": "admin", "conversations": {stage.key("a"): "admin"}
    }}}});
    std::fs::write(
        stage.root("state").join("settings.json"),
        settings.to_string(),
    )
    .unwrap();
    for role in AccessRole::ALL {
        let said = say(&stage, role, "whoami").await;
        assert!(reply(&said).ends_with(&format!("role {role}")), "{said}");
    }
    let refused = say(&stage, READ, "fix the greeting").await;
    assert!(
        reply(&refused).contains("needs the role write"),
        "{refused}"
    );
    let refused = say(&stage, WRITE, "merge PR #1").await;
    assert!(
        reply(&refused).contains("needs the role merge"),
        "{refused}"
    );
    let refused = say(&stage, AccessRole::Merge, "link acme/api").await;
    assert!(
        reply(&refused).contains("needs the role admin"),
        "{refused}"
    );
    assert_eq!(dev_tasks(&stage).await, 0);
    stage.stop().await;
}

#[tokio::test]
async fn an_instruction_becomes_one_task_however_often_it_is_sent() {
    let stage = Stage::new().await;
    let token = stage.token(WRITE);
    let body = line(&stage, "fix the greeting");
    let first = say_with_key(&stage, token, "k1", &body).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text);
    let task = first.json()["message"]["task_id"].clone();
    assert!(task.is_string(), "{}", first.text);
    let path = format!("/api/v1/tasks/{}", task.as_str().unwrap());
    let shown = stage.get(READ, &path).await.json();
    assert_eq!(shown["instruction"], "fix the greeting");
    for _ in 0..3 {
        let again = say_with_key(&stage, token, "k1", &body).await;
        assert_eq!(again.json()["message"]["task_id"], task);
    }
    assert_eq!(dev_tasks(&stage).await, 1);
    let other = say_with_key(&stage, token, "k1", &line(&stage, "fix another thing")).await;
    assert_eq!(
        (other.status, other.code()),
        (StatusCode::CONFLICT, "key_reused".to_owned())
    );
    // Keys of others are theirs.
    let (_, foreign) = create_token(&**stage.store(), "other", READ).await.unwrap();
    let theirs = say_with_key(&stage, foreign.reveal(), "k1", &line(&stage, "whoami")).await;
    assert!(
        reply(&theirs.json()).contains("role read"),
        "{}",
        theirs.text
    );
    for wrong in ["", "a/b", "a b", &"x".repeat(101)] {
        let answer = say_with_key(&stage, token, wrong, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_thread_is_read_back_in_order_and_only_in_its_project() {
    let stage = Stage::new().await;
    say(&stage, READ, "whoami").await;
    say(&stage, READ, "explain `@codespar` correct-horse-battery").await;
    let path = |project: &str| format!("/api/v1/commands/t?project={}", stage.key(project));
    let shown = stage.get(READ, &path("a")).await.json();
    let messages = shown["messages"].as_array().unwrap();
    let from: Vec<&str> = messages
        .iter()
        .map(|one| one["from"].as_str().unwrap())
        .collect();
    assert_eq!(
        from,
        ["person", "codespar", "person", "codespar"],
        "{shown}"
    );
    assert_eq!(messages[0]["text"], "whoami");
    assert!(
        !shown.to_string().contains("correct-horse"),
        "secrets are not shown: {shown}"
    );
    for missing in [
        path("b"),
        "/api/v1/commands/other?project=".to_owned() + &stage.key("a"),
    ] {
        assert_eq!(
            stage.get(READ, &missing).await.status,
            StatusCode::NOT_FOUND,
            "{missing}"
        );
    }
    let several = stage.post(READ, PATH, &json!({"text": "whoami"})).await;
    assert_eq!(
        several.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        several.text
    );
    // Tasks of another project do not exist in a conversation.
    let task = stage.task("b", "of b").await.task_id;
    let status = say(&stage, AccessRole::Admin, &format!("status {task}")).await;
    assert!(reply(&status).contains("there is no task"), "{status}");
    let stop = say(&stage, AccessRole::Admin, &format!("stop {task}")).await;
    assert!(reply(&stop).contains("there is no task"), "{stop}");
    assert!(!stage.store().task(&task).await.unwrap().status.is_final());
    let here = stage.task("a", "of a").await.task_id;
    let status = say(&stage, READ, "status").await;
    assert!(reply(&status).contains(here.as_str()), "{status}");
    stage.stop().await;
}

#[tokio::test]
async fn nobody_lets_a_command_run_without_a_sandbox_by_a_line() {
    let stage = Stage::new().await;
    let said = say(&stage, WRITE, "fix the greeting").await;
    let task: TaskId = said["message"]["task_id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let ask = async |confinement: Confinement| {
        let session = stage.session(&stage.root("a")).await;
        let new = NewQuestion {
            session_id: session,
            task_id: Some(task.clone()),
            asked_under: None,
            project_root: stage.root("a"),
            key: session.to_string(),
            request: QuestionRequest::Permission(PermissionRequest {
                tool_use_id: "t".into(),
                tool: "Bash".to_owned(),
                summary: "make".to_owned(),
                input: json!({"command": "make"}),
                preview: None,
                change: None,
                confinement: Some(confinement),
                reason: "no rule".to_owned(),
                suggested_rules: Vec::new(),
            }),
            expires_at: Timestamp::now() + SignedDuration::from_hours(1),
        };
        stage.store().ask_question(new).await.unwrap().id
    };
    let open = ask(Confinement::Unavailable).await;
    let refused = say(&stage, AccessRole::Admin, "yes").await;
    assert!(reply(&refused).contains("without a sandbox"), "{refused}");
    let status = async |id| stage.store().question(id).await.unwrap().status;
    assert_eq!(status(&open).await, QuestionStatus::Open);
    say(&stage, WRITE, "no").await;
    assert_eq!(status(&open).await, QuestionStatus::Answered);
    let sandboxed = ask(Confinement::Sandboxed).await;
    let refused = say(&stage, READ, "yes").await;
    assert!(reply(&refused).contains("the role write"), "{refused}");
    assert_eq!(status(&sandboxed).await, QuestionStatus::Open);
    say(&stage, WRITE, "1").await;
    assert_eq!(status(&sandboxed).await, QuestionStatus::Answered);
    stage.stop().await;
}

#[tokio::test]
async fn what_is_asked_for_is_in_the_audit_log() {
    let stage = Stage::new().await;
    say(&stage, READ, "fix the greeting").await;
    let entries = stage.store().latest_audit(None, 10).await.unwrap();
    let entry = &entries[0].entry;
    assert_eq!(
        (
            entry.at.channel.as_str(),
            entry.role,
            entry.decision.as_str()
        ),
        (WEB, Some(READ), "refused")
    );
    let tokens = stage.store().tokens().await.unwrap();
    let reader = tokens.iter().find(|token| token.role == READ).unwrap();
    assert_eq!(entry.speaker, reader.id.to_string());
    stage.stop().await;
}
