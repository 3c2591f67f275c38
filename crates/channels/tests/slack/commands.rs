//! `/codespar`, and the thread that its answer begins.

use codespar_testkit::slack::{SlackFault, said, slash};
use serde_json::Value;

use crate::{OK, Workspace};

fn body(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn the_first_answer_to_a_command_begins_a_thread_that_goes_on() {
    let workspace = Workspace::new().await;
    let answered = workspace
        .submit(&slash("U1", "7.1", "fix the greeting"))
        .await;
    assert_eq!(answered.status, OK);
    assert_eq!(body(&answered.body)["response_type"], "in_channel");
    workspace.idle().await;
    let messages = workspace.slack.messages();
    let [root, result] = messages.as_slice() else {
        panic!("{messages:#?}");
    };
    assert_eq!(root.thread, "", "{root:#?}");
    assert_eq!(result.thread, root.ts, "{result:#?}");
    let texts = [root.text(), result.text()].join("\n");
    assert!(texts.contains("PR #1"), "{texts}");

    // What is said in it, and a button in it, belong to the pull request.
    let mut more = said(
        "app_mention",
        "U1",
        "1800000000.1",
        "<@UBOT> also the tests",
    );
    more["thread_ts"] = root.ts.clone().into();
    workspace.deliver(&more).await;
    workspace.idle().await;
    assert_eq!(workspace.room.tasks().await.len(), 2);
    let last = workspace.slack.messages().pop().unwrap();
    assert_eq!(last.thread, root.ts);
    assert!(last.text().contains("PR #1"), "{last:#?}");
    workspace.press("U2", &last, "merge PR #1").await;
    workspace.idle().await;
    let refused = workspace.slack.messages().pop().unwrap();
    assert_eq!(refused.thread, root.ts);
    assert!(refused.text().contains("the role merge"), "{refused:#?}");
    workspace.room.close().await;
}

#[tokio::test]
async fn a_stranger_is_told_so_alone() {
    let workspace = Workspace::new().await;
    let answered = workspace
        .submit(&slash("U9", "7.1", "fix the greeting"))
        .await;
    assert_eq!(answered.status, OK);
    let shown = body(&answered.body);
    assert_eq!(shown["response_type"], "ephemeral");
    assert!(
        shown["text"].as_str().unwrap().contains("no role"),
        "{shown}"
    );
    workspace.idle().await;
    assert!(workspace.slack.messages().is_empty());
    assert!(workspace.room.tasks().await.is_empty());
    let audit = workspace.room.runtime.store().audit(0, 10).await.unwrap();
    assert_eq!(audit.len(), 1);
    assert_eq!(
        (
            audit[0].entry.speaker.as_str(),
            audit[0].entry.decision.as_str()
        ),
        ("U9", "refused")
    );
    workspace.room.close().await;
}

#[tokio::test]
async fn a_long_log_is_shown_in_part_and_shared_once_as_a_file() {
    let workspace = Workspace::new().await;
    let fix = said("app_mention", "U1", "1.0", "<@UBOT> fix the greeting");
    workspace.deliver(&fix).await;
    workspace.idle().await;
    let task = workspace.room.tasks().await.remove(0);
    let output = task.output_file.clone().unwrap();
    std::fs::create_dir_all(std::path::Path::new(&output).parent().unwrap()).unwrap();
    let log: String = (0..2_000).map(|line| format!("line {line}\n")).collect();
    std::fs::write(&output, &log).unwrap();
    // The answer to the last step is lost: it is looked for before it is shared again.
    workspace
        .slack
        .inject("files.completeUploadExternal", SlackFault::CutAfter);
    let text = format!("<@UBOT> logs {}", task.task_id);
    let mut logs = said("app_mention", "U1", "2.0", &text);
    logs["thread_ts"] = "1.0".into();
    workspace.deliver(&logs).await;
    workspace.idle().await;
    let shown = workspace.slack.messages().pop().unwrap();
    assert!(shown.text().contains("line 1999"), "{shown:#?}");
    assert!(!shown.text().contains("line 100\n"), "{shown:#?}");
    let shared = workspace.slack.shared();
    assert_eq!(shared.len(), 1, "{shared:#?}");
    assert_eq!((shared[0].thread.as_str(), &shared[0].text), ("1.0", &log));
    workspace.room.close().await;
}
