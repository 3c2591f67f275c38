//! What the resources show and do, and that they keep to the projects of the server.

use std::fs;

use codespar_protocol::{
    AccessRole, ClarificationRequest, PermissionRequest, QuestionRequest, SessionId, TaskId,
};
use codespar_store::NewQuestion;
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::Stage;

const READ: AccessRole = AccessRole::Read;
const WRITE: AccessRole = AccessRole::Write;

#[tokio::test]
async fn tasks_are_listed_in_pages_by_project_type_and_state() {
    let stage = Stage::new().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(
            stage
                .task("a", &format!("task {number}"))
                .await
                .task_id
                .to_string(),
        );
    }
    let other = stage.task("b", "of b").await.task_id.to_string();
    stage.task("elsewhere", "not served").await;
    ids.reverse();
    let list = async |query: &str| {
        let answer = stage.get(READ, &format!("/api/v1/tasks{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let page = answer.json();
        let tasks = page["tasks"].as_array().unwrap();
        let listed: Vec<String> = tasks
            .iter()
            .map(|task| task["task_id"].as_str().unwrap().to_owned())
            .collect();
        (listed, page["next"].as_str().map(str::to_owned))
    };
    let (all, next) = list("").await;
    assert_eq!(
        (all.len(), next),
        (6, None),
        "what is not served does not exist"
    );
    assert_eq!(all[0], other);
    let of_a = format!("?project={}&limit=2", stage.key("a"));
    let (first, next) = list(&of_a).await;
    assert_eq!(first, ids[..2]);
    let (second, next) = list(&format!("{of_a}&cursor={}", next.unwrap())).await;
    assert_eq!(second, ids[2..4]);
    let (third, next) = list(&format!("{of_a}&cursor={}", next.unwrap())).await;
    assert_eq!((third, next), (ids[4..].to_vec(), None));
    assert_eq!(list("?status=running").await.0, [""; 0]);
    assert_eq!(list("?type=local_bash&status=pending").await.0.len(), 6);
    assert_eq!(list("?type=dream").await.0, [""; 0]);
    stage.stop().await;
}

#[tokio::test]
async fn what_belongs_to_another_project_does_not_exist() {
    let stage = Stage::new().await;
    let task = stage.task("elsewhere", "secret plans").await.task_id;
    let session = stage.session(&stage.root("elsewhere")).await;
    stage.say(session, 0, "secret plans").await;
    let question = clarification(&stage, "elsewhere", None).await;
    for path in [
        format!("/api/v1/tasks/{task}"),
        format!("/api/v1/tasks/{task}/output"),
        format!("/api/v1/tasks/{task}/steps"),
        format!("/api/v1/sessions/{session}"),
        format!("/api/v1/sessions/{session}/entries"),
        format!("/api/v1/questions/{question}"),
        format!("/api/v1/events?task={task}"),
        format!("/api/v1/events?session={session}"),
    ] {
        let answer = stage.get(AccessRole::Admin, &path).await;
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            answer.text
        );
        assert!(!answer.text.contains("secret plans"), "{path}");
    }
    for (path, body) in [
        (format!("/api/v1/tasks/{task}/stop"), json!({})),
        (
            format!("/api/v1/tasks/{task}/messages"),
            json!({"message": "x"}),
        ),
        (
            format!("/api/v1/questions/{question}/answer"),
            json!({"answer": "x"}),
        ),
    ] {
        let answer = stage.post(AccessRole::Admin, &path, &body).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
    for path in ["/api/v1/tasks", "/api/v1/sessions", "/api/v1/questions"] {
        let answer = stage.get(AccessRole::Admin, path).await;
        assert!(
            !answer.text.contains("secret plans"),
            "{path}: {}",
            answer.text
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn output_is_read_by_bytes_and_from_outputs_alone() {
    let stage = Stage::new().await;
    let task = stage.task("a", "prints").await;
    fs::write(task.output_file.as_ref().unwrap(), "0123456789").unwrap();
    let read = async |query: &str| {
        let path = format!("/api/v1/tasks/{}/output{query}", task.task_id);
        let page = stage.get(READ, &path).await.json();
        (
            page["output"].as_str().unwrap().to_owned(),
            page["next_offset"].as_u64().unwrap(),
        )
    };
    assert_eq!(read("").await, ("0123456789".to_owned(), 10));
    assert_eq!(read("?offset=2&limit=3").await, ("234".to_owned(), 5));
    assert_eq!(read("?offset=10").await, (String::new(), 10));
    assert_eq!(read("?offset=99").await, (String::new(), 99));
    // A link out of the directory is not followed.
    let file = task.output_file.as_ref().unwrap();
    fs::remove_file(file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", file).unwrap();
    assert_eq!(read("").await, (String::new(), 0));
    stage.stop().await;
}

#[tokio::test]
async fn transcripts_come_in_pages_without_secrets() {
    let stage = Stage::new().await;
    let session = stage.session(&stage.root("a").join("sub")).await;
    for (after, text) in ["one", "key correct-horse-battery", "three"]
        .iter()
        .enumerate()
    {
        stage.say(session, after as u64, text).await;
    }
    let listed = stage.get(READ, "/api/v1/sessions").await.json();
    assert_eq!(listed["sessions"][0]["session_id"], session.to_string());
    assert_eq!(listed["sessions"][0]["project"], stage.key("a"));
    let page = async |query: &str| {
        let path = format!("/api/v1/sessions/{session}/entries{query}");
        stage.get(READ, &path).await.json()
    };
    let all = page("").await;
    assert_eq!(all["entries"].as_array().unwrap().len(), 3);
    assert_eq!(all["next"], Value::Null);
    assert!(!all.to_string().contains("correct-horse"), "{all}");
    assert!(all.to_string().contains("[redacted:SECRET_TOKEN]"), "{all}");
    let second = page("?from=2&limit=1").await;
    assert_eq!(second["entries"][0]["seq"], 2);
    assert_eq!(second["next"], 3);
    assert_eq!(
        page("?from=18446744073709551615").await["entries"],
        json!([])
    );
    stage.stop().await;
}

#[tokio::test]
async fn the_conversation_of_an_agent_is_found_by_its_task() {
    let stage = Stage::new().await;
    let (task, session) = stage.agent("a").await;
    stage.say(session, 0, "go").await;
    let shown = stage
        .get(READ, &format!("/api/v1/sessions/{session}"))
        .await
        .json();
    assert_eq!(shown["task_id"], task.task_id.to_string());
    assert_eq!(shown["project"], stage.key("a"));
    let shown = stage
        .get(READ, &format!("/api/v1/tasks/{}", task.task_id))
        .await
        .json();
    assert_eq!(shown["agent_session"], session.to_string());
    assert_eq!(shown["instruction"], "go");
    stage.stop().await;
}

#[tokio::test]
async fn an_agent_gets_messages_and_other_tasks_do_not() {
    let stage = Stage::new().await;
    let (agent, _) = stage.agent("a").await;
    let shell = stage.task("a", "a command").await;
    let send = async |id: &TaskId| {
        let path = format!("/api/v1/tasks/{id}/messages");
        stage
            .post(WRITE, &path, &json!({"message": "also the tests"}))
            .await
    };
    let sent = send(&agent.task_id).await;
    assert_eq!(sent.status, StatusCode::ACCEPTED, "{}", sent.text);
    let mail = stage.store().mail(&agent.task_id).await.unwrap();
    assert_eq!(mail[0].body, "also the tests");
    let refused = send(&shell.task_id).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.code(), "not_an_agent");
    stage.stop().await;
}

#[tokio::test]
async fn a_stopped_task_cannot_be_stopped_again() {
    let stage = Stage::new().await;
    let task = stage.task("a", "waits").await;
    let path = format!("/api/v1/tasks/{}/stop", task.task_id);
    let body = json!({"reason": "no longer needed"});
    let stopped = stage.post(WRITE, &path, &body).await;
    assert_eq!(stopped.json()["status"], "killed", "{}", stopped.text);
    assert_eq!(
        stopped.json()["error"],
        "stopped by write (API): no longer needed"
    );
    let again = stage.post(WRITE, &path, &body).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{}", again.text);
    stage.stop().await;
}

#[tokio::test]
async fn a_run_of_the_dev_agent_is_recorded_with_the_authority_of_its_project() {
    let stage = Stage::new().await;
    let body = json!({"instruction": "fix the typo", "project": stage.key("b"), "draft": true});
    let made = stage.post(WRITE, "/api/v1/tasks", &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let id = made.json()["task_id"].as_str().unwrap().to_owned();
    assert_eq!(made.headers["location"], format!("/api/v1/tasks/{id}"));
    assert_eq!(made.json()["kind"], "dev");
    assert_eq!(made.json()["instruction"], "fix the typo");
    let record = stage.store().task(&id.parse().unwrap()).await.unwrap();
    let authority = record.authority.unwrap();
    assert_eq!(authority.project_root, stage.root("b"));
    assert_eq!(authority.mode, "default");
    stage.stop().await;
}

async fn ask(stage: &Stage, project: &str, request: QuestionRequest) -> String {
    let new = NewQuestion {
        session_id: SessionId::new(),
        task_id: None,
        asked_under: None,
        project_root: stage.root(project),
        key: SessionId::new().to_string(),
        request,
        expires_at: Timestamp::now() + SignedDuration::from_hours(1),
    };
    stage
        .store()
        .ask_question(new)
        .await
        .unwrap()
        .id
        .to_string()
}

pub(crate) async fn clarification(stage: &Stage, project: &str, text: Option<&str>) -> String {
    let text = text.unwrap_or("secret plans").to_owned();
    let request = QuestionRequest::Clarification(ClarificationRequest { text });
    ask(stage, project, request).await
}

#[tokio::test]
async fn a_question_is_answered_once() {
    let stage = Stage::new().await;
    let id = clarification(&stage, "a", Some("which file?")).await;
    let listed = stage.get(READ, "/api/v1/questions").await.json();
    assert_eq!(listed["questions"][0]["id"], id);
    assert_eq!(listed["questions"][0]["kind"], "clarification");
    assert_eq!(
        listed["questions"][0]["request"],
        json!({"text": "which file?"})
    );
    let path = format!("/api/v1/questions/{id}/answer");
    let answered = stage.post(WRITE, &path, &json!({"answer": "a.rs"})).await;
    assert_eq!(answered.json()["status"], "answered", "{}", answered.text);
    assert_eq!(answered.json()["answered_by"], "write (API)");
    let again = stage.post(WRITE, &path, &json!({"answer": "b.rs"})).await;
    assert_eq!(
        (again.status, again.code()),
        (StatusCode::CONFLICT, "question_not_open".to_owned())
    );
    let listed = stage.get(READ, "/api/v1/questions").await.json();
    assert_eq!(listed["questions"], json!([]));
    stage.stop().await;
}

#[tokio::test]
async fn always_saves_a_rule_and_is_for_admins() {
    let stage = Stage::new().await;
    let id = ask(&stage, "a", permission()).await;
    let path = format!("/api/v1/questions/{id}/answer");
    let nonsense = stage
        .post(WRITE, &path, &json!({"answer": "perhaps"}))
        .await;
    assert_eq!(
        nonsense.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        nonsense.text
    );
    let refused = stage
        .post(AccessRole::Merge, &path, &json!({"answer": "always"}))
        .await;
    assert_eq!(refused.code(), "role");
    for changed in [r#"yes {"command": "curl evil"}"#, "always Bash(*)"] {
        let refused = stage
            .post(AccessRole::Admin, &path, &json!({"answer": changed}))
            .await;
        assert_eq!(refused.code(), "needs_terminal", "{changed}");
    }
    let file = stage.root("a").join(".codespar/settings.local.json");
    assert!(!file.exists());
    let answered = stage
        .post(AccessRole::Admin, &path, &json!({"answer": "always"}))
        .await;
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
    assert!(fs::read_to_string(file).unwrap().contains("Bash(make)"));
    stage.stop().await;
}

fn permission() -> QuestionRequest {
    QuestionRequest::Permission(PermissionRequest {
        tool_use_id: "t".into(),
        tool: "Bash".to_owned(),
        summary: "make".to_owned(),
        input: json!({"command": "make"}),
        preview: None,
        change: None,
        confinement: Some(codespar_protocol::Confinement::Sandboxed),
        reason: "no rule".to_owned(),
        suggested_rules: vec!["Bash(make)".to_owned()],
    })
}

#[tokio::test]
async fn projects_workers_and_usage_are_shown() {
    let stage = Stage::new().await;
    let projects = stage.get(READ, "/api/v1/projects").await.json();
    let keys: Vec<&str> = projects["projects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|project| project["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, [stage.key("a"), stage.key("b")]);
    assert!(
        !projects
            .to_string()
            .contains(stage.dir.path().to_str().unwrap())
    );
    let workers = stage.get(READ, "/api/v1/workers").await.json();
    assert_eq!(workers["runs_tasks"], false);
    assert_eq!(
        workers["queue"],
        json!({"pending": 0, "ready": 0, "running": 0})
    );
    let usage = stage.get(READ, "/api/v1/usage").await.json();
    assert_eq!(usage["rows"], json!([]));
    stage.stop().await;
}

#[tokio::test]
async fn pull_requests_of_a_project_are_listed_reviewed_and_merged() {
    let stage = Stage::new().await;
    let git = branch_to_merge(&stage);
    let base = format!("/api/v1/projects/{}/pulls", stage.key("a"));
    let none = stage.get(READ, &base).await;
    assert_eq!(none.json()["pull_requests"], json!([]), "{}", none.text);
    open_pull(&stage).await;

    let listed = stage.get(READ, &base).await.json();
    assert_eq!(listed["pull_requests"][0]["number"], 1);
    let shown = stage.get(READ, &format!("{base}/1")).await.json();
    assert_eq!(shown["pull_request"]["draft"], true);
    let diff = stage.get(READ, &format!("{base}/1/diff")).await.json();
    assert!(
        diff["diff"].as_str().unwrap().contains("+hello world"),
        "{diff}"
    );
    let reviewed = stage
        .post(WRITE, &format!("{base}/1/review"), &json!({}))
        .await;
    assert_eq!(reviewed.status, StatusCode::OK, "{}", reviewed.text);
    assert_eq!(reviewed.json()["simulated"], true);
    let shown = stage.get(READ, &format!("{base}/1")).await.json();
    assert_eq!(shown["reviews"].as_array().unwrap().len(), 1);

    let merge = format!("{base}/1/merge");
    let refused = stage.post(AccessRole::Merge, &merge, &json!({})).await;
    assert_eq!(
        (refused.status, refused.code()),
        (StatusCode::CONFLICT, "merge_refused".to_owned())
    );
    assert!(
        !refused.json()["error"]["reasons"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let pulls = pulls(&stage).await;
    pulls
        .make_ready(1, codespar_pulls::CheckRule::Ignored)
        .await
        .unwrap();
    let merged = stage
        .post(AccessRole::Merge, &merge, &json!({"strategy": "squash"}))
        .await;
    assert_eq!(merged.status, StatusCode::OK, "{}", merged.text);
    assert_eq!(git(&["show", "main:README.md"]), "hello world");
    let listed = stage
        .get(READ, &format!("{base}?state=merged"))
        .await
        .json();
    assert_eq!(listed["pull_requests"][0]["state"], "merged");
    stage.stop().await;
}

/// A branch with a change, and git in the repository that has it.
pub(crate) fn branch_to_merge(stage: &Stage) -> impl Fn(&[&str]) -> String + use<> {
    let root = stage.root("a");
    let directory = root.clone();
    let git = move |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command
            .args(args)
            .current_dir(&directory)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["checkout", "-qb", "codespar/task-1"]);
    fs::write(root.join("README.md"), "hello world\n").unwrap();
    git(&[
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "commit",
        "-qam",
        "second",
    ]);
    git(&["checkout", "-q", "main"]);
    git
}

async fn pulls(stage: &Stage) -> codespar_runtime::Pulls {
    let project = stage.runtime.project_at(&stage.root("a")).unwrap();
    let repository = codespar_runtime::which(&project.dir, &project.settings, None).unwrap();
    let pulls = codespar_runtime::Pulls::of(&project.dir, stage.store().clone(), &repository);
    pulls.await.unwrap()
}

pub(crate) async fn open_pull(stage: &Stage) {
    let new = codespar_pulls::NewPullRequest {
        head: "codespar/task-1".to_owned(),
        base: "main".to_owned(),
        title: "Greet the world".to_owned(),
        body: "More.".to_owned(),
        draft: codespar_pulls::Draft::Draft,
    };
    let pulls = pulls(stage).await;
    pulls.forge().open_pull_request(&new).await.unwrap();
}
