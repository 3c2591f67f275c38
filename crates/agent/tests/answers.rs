//! Answers of the user that change a call, against the scripted model.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use std::{collections::VecDeque, fs, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_agent::Approver;
use codespar_protocol::{Answer, Confinement, Event, Message, PermissionRequest, ToolUseId};
use codespar_testkit::{Script, Turn};
use common::{Bench, SECRET};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

type Reply = Box<dyn Fn(&PermissionRequest) -> Answer + Send + Sync>;

/// Gives these answers, in order, and keeps what was asked.
#[derive(Default)]
struct User {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<(String, PermissionRequest)>>,
}

impl User {
    fn saying(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        let replies = answers.into_iter().map(|answer| {
            let reply: Reply = Box::new(move |_| answer.clone());
            reply
        });
        Arc::new(Self {
            replies: Mutex::new(replies.collect()),
            ..Self::default()
        })
    }

    fn reasons(&self) -> Vec<String> {
        let asked = self.asked.lock();
        asked
            .iter()
            .map(|(_, asked)| asked.reason.clone())
            .collect()
    }
}

#[async_trait]
impl Approver for User {
    async fn ask(&self, key: &str, request: PermissionRequest) -> Answer {
        self.asked.lock().push((key.to_owned(), request.clone()));
        let reply = self.replies.lock().pop_front();
        reply.map_or(Answer::No { reason: None }, |reply| reply(&request))
    }

    async fn withdraw(&self, _: &ToolUseId) {}
}

fn once_with(input: Value) -> Answer {
    Answer::OnceWith { input }
}

/// A model that makes one call, and a user who answers.
async fn bench(tool: &str, input: &Value, user: &Arc<User>) -> Bench {
    let script = Script::new()
        .turn(Turn::tool(tool, input))
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.allow.clear();
    bench.approver = user.clone();
    bench
}

#[tokio::test]
async fn a_changed_command_runs_and_the_model_is_told_what_ran() {
    let user = User::saying([once_with(
        json!({"command": "echo theirs > a.txt", "timeout": 5000}),
    )]);
    let written = r#"{"command":  "echo mine > a.txt",
        "description": "write it"}"#;
    let script = Script::new()
        .turn(Turn::new().and_tool_written(None, "Bash", written))
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.allow.clear();
    bench.approver = user.clone();
    bench.run("go").await;
    let text = fs::read_to_string(bench.root.join("a.txt")).unwrap();
    assert_eq!(text, "theirs\n");
    assert_eq!(
        bench.last_results(),
        [(
            "(no output)\n\nThe user changed this call before allowing it. It was made with \
             {\"command\":\"echo theirs > a.txt\",\"timeout\":5000}. It was made without \
             `description`."
                .to_owned(),
            false
        )]
    );
    // The call itself goes back as it came.
    let request = bench.server.last_request().unwrap();
    let body = String::from_utf8(request.body().to_vec()).unwrap();
    assert!(body.contains(written), "{body}");
    let events = bench.events.lock();
    let started = events.iter().find_map(|event| match event {
        Event::ToolStarted { summary, input, .. } => Some((summary.clone(), input.clone())),
        _ => None,
    });
    let (summary, input) = started.unwrap();
    assert_eq!(summary, "echo theirs > a.txt");
    assert_eq!(input["timeout"], 5000);
}

#[tokio::test]
async fn a_deny_rule_holds_for_a_command_that_the_user_edited() {
    let user = User::saying([once_with(json!({"command": "true && rm -rf important"}))]);
    let mut bench = bench("Bash", &json!({"command": "make clean"}), &user).await;
    bench.deny = vec!["Bash(rm *)"];
    fs::write(bench.root.join("important"), "").unwrap();
    let result = bench.run("go").await;
    assert!(bench.root.join("important").exists());
    let (text, is_error) = bench.last_results().remove(0);
    assert!(is_error);
    assert!(
        text.starts_with(
            "permission denied: the user changed the call to `true && rm -rf important`, and that \
             is not allowed: "
        ) && text.contains("Bash(rm *)"),
        "{text}"
    );
    assert_eq!(result.permission_denials.len(), 1);
    assert_eq!(user.asked.lock().len(), 1);
}

#[tokio::test]
async fn a_deny_rule_holds_for_a_path_that_the_user_edited() {
    let user = User::saying([once_with(
        json!({"file_path": "secret/b.txt", "content": "x"}),
    )]);
    let input = json!({"file_path": "a.txt", "content": "x"});
    let mut bench = bench("Write", &input, &user).await;
    bench.deny = vec!["Edit(secret/**)"];
    bench.run("go").await;
    assert!(!bench.root.join("secret").exists());
    assert!(bench.last_results()[0].0.contains("Edit(secret/**)"));
}

#[tokio::test]
async fn an_input_that_the_tool_cannot_use_is_asked_again_with_the_reason() {
    let user = User::saying([
        once_with(json!({"comand": "ls"})),
        once_with(json!({"command": "echo ok"})),
    ]);
    let mut bench = bench("Bash", &json!({"command": "make"}), &user).await;
    bench.run("go").await;
    assert!(bench.last_results()[0].0.starts_with("ok\n"));
    let reasons = user.reasons();
    assert!(
        reasons[1].starts_with("the change cannot be used: invalid input: ")
            && reasons[1].ends_with(&reasons[0]),
        "{reasons:?}"
    );
    let asked = user.asked.lock();
    assert_eq!(asked[1].0, format!("{}/2", asked[0].0));
    // The sandbox is switched off in this test.
    assert_eq!(asked[0].1.confinement, Some(Confinement::SwitchedOff));
}

#[tokio::test]
async fn a_rule_that_the_user_wrote_is_checked_and_then_holds() {
    let by = |rule: &str| Answer::AlwaysBy {
        rules: vec![rule.to_owned()],
    };
    let user = User::saying([by("Bash(echo"), by("Bahs(echo *)"), by("Bash(echo one)")]);
    let script = Script::new()
        .turn(Turn::tool("Bash", &json!({"command": "echo one"})))
        .turn(Turn::tool("Bash", &json!({"command": "echo one"})))
        .turn(Turn::tool("Bash", &json!({"command": "echo two"})))
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.allow.clear();
    bench.approver = user.clone();
    bench.run("go").await;
    let reasons = user.reasons();
    assert!(reasons[1].contains("the `(` is not closed"), "{reasons:?}");
    assert!(
        reasons[2].contains("`Bahs(echo *)` names no tool"),
        "{reasons:?}"
    );
    // Three questions about the first call, none about the second, one about the third.
    assert_eq!(reasons.len(), 4);
    assert_eq!(user.asked.lock()[3].1.summary, "echo two");
}

#[tokio::test]
async fn an_answer_that_never_fits_ends_in_a_refusal() {
    let user = User::saying(std::iter::repeat_n(once_with(json!([])), 20));
    let mut bench = bench("Bash", &json!({"command": "touch made"}), &user).await;
    bench.run("go").await;
    assert!(!bench.root.join("made").exists());
    let (text, is_error) = bench.last_results().remove(0);
    assert!(is_error && text.contains("must be a JSON object"), "{text}");
    assert_eq!(user.asked.lock().len(), 5);
}

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";

fn edits() -> Value {
    json!({"file_path": "a.txt", "edits": [
        {"old_string": "one\n", "new_string": "1\n"},
        {"old_string": "five\n", "new_string": "-- 5\n"},
        {"old_string": "nine\n", "new_string": "9\n"},
    ]})
}

/// A user who refuses the second hunk, after `before` was done to the file.
fn refuses_second(before: impl Fn() + Send + Sync + 'static) -> Arc<User> {
    let reply: Reply = Box::new(move |request| {
        let change = request.change.clone().unwrap();
        assert_eq!(change.hunks.len(), 3);
        before();
        Answer::OnceWithout {
            change: change.id,
            refused: vec![2],
        }
    });
    let user = User::default();
    user.replies.lock().push_back(reply);
    Arc::new(user)
}

#[tokio::test]
async fn a_refused_hunk_is_not_written_and_the_model_is_told_which() {
    let user = refuses_second(|| ());
    let mut bench = bench("Edit", &edits(), &user).await;
    fs::write(bench.root.join("a.txt"), LINES).unwrap();
    bench.run("go").await;
    let text = fs::read_to_string(bench.root.join("a.txt")).unwrap();
    assert_eq!(text, LINES.replace("one", "1").replace("nine", "9"));
    assert_eq!(
        bench.last_results(),
        [(
            "Updated a.txt (9 lines, before 9)\n\nThe user refused 1 of the 3 hunks of this \
             change; the file has only the others. Refused:\nhunk 2, line 4:\n four\n-five\n+-- \
             5\n six"
                .to_owned(),
            false
        )]
    );
}

#[tokio::test]
async fn hunks_chosen_on_a_file_that_changed_meanwhile_are_not_written() {
    let place: Arc<Mutex<PathBuf>> = Arc::default();
    let changed = place.clone();
    let user = refuses_second(move || fs::write(&*changed.lock(), "other\n").unwrap());
    let mut bench = bench("Edit", &edits(), &user).await;
    *place.lock() = bench.root.join("a.txt");
    fs::write(bench.root.join("a.txt"), LINES).unwrap();
    bench.run("go").await;
    let text = fs::read_to_string(bench.root.join("a.txt")).unwrap();
    assert_eq!(text, "other\n");
    let (text, is_error) = bench.last_results().remove(0);
    assert!(is_error);
    assert!(
        text.starts_with("a.txt is not written: it has changed since its hunks were shown"),
        "{text}"
    );
}

#[tokio::test]
async fn an_answer_about_the_hunks_of_another_text_is_asked_again() {
    let user = User::saying([Answer::OnceWithout {
        change: "of an earlier process".to_owned(),
        refused: vec![1],
    }]);
    let mut bench = bench("Edit", &edits(), &user).await;
    fs::write(bench.root.join("a.txt"), LINES).unwrap();
    bench.run("go").await;
    let text = fs::read_to_string(bench.root.join("a.txt")).unwrap();
    assert_eq!(text, LINES);
    assert!(user.reasons()[1].starts_with("the file has changed since its hunks were shown; "));
}

#[tokio::test]
async fn secrets_of_a_file_are_not_in_the_hunks_that_are_asked_about() {
    let user = refuses_second(|| ());
    let mut bench = bench("Edit", &edits(), &user).await;
    let before = LINES.replace("four", SECRET);
    fs::write(bench.root.join("a.txt"), &before).unwrap();
    bench.run("go").await;
    let asked = serde_json::to_string(&user.asked.lock()[0].1).unwrap();
    assert!(asked.contains("[redacted:TOKEN]") && !asked.contains(SECRET));
    assert!(!bench.last_results()[0].0.contains(SECRET));
    let text = fs::read_to_string(bench.root.join("a.txt")).unwrap();
    assert_eq!(text, before.replace("one", "1").replace("nine", "9"));
}

#[tokio::test]
async fn output_comes_while_a_command_runs_only_if_somebody_wants_it() {
    for is_wanted in [false, true] {
        let command = format!("echo {SECRET}; sleep 2");
        let script = Script::new()
            .turn(Turn::tool("Bash", &json!({ "command": command })))
            .turn(Turn::text("done"));
        let mut bench = Bench::new(script).await;
        let (mut agent, _) = bench.agent().await;
        if is_wanted {
            agent.report_command_output();
        }
        let prompt = Message::user("go");
        agent.run(Some(prompt), CancellationToken::new()).await;
        let events = bench.events.lock();
        let told: Vec<&Vec<String>> = events
            .iter()
            .filter_map(|event| match event {
                Event::CommandOutput { lines, .. } => Some(lines),
                _ => None,
            })
            .collect();
        match is_wanted {
            false => assert!(told.is_empty(), "{told:?}"),
            true => assert_eq!(told, [&["[redacted:TOKEN]"]]),
        }
    }
}
