//! Pictures: fetched from Slack for people with a role, kept while they are needed.

use codespar_testkit::slack::{SlackMessage, said};
use serde_json::{Value, json};

use crate::{OK, Workspace};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

impl Workspace {
    async fn send_with(&self, user: &str, ts: &str, files: Value) {
        let mut event = said("app_mention", user, ts, "<@UBOT> fix the greeting");
        event["files"] = files;
        assert_eq!(self.deliver(&event).await.status, OK);
        self.idle().await;
    }

    fn fetched(&self) -> usize {
        let calls = self.slack.calls();
        calls.iter().filter(|call| *call == "file").count()
    }

    /// Pictures that are kept now.
    fn kept(&self) -> usize {
        let directory = self.room.state().join("channel-pictures/slack");
        std::fs::read_dir(directory).map_or(0, Iterator::count)
    }

    /// What was said of files that are left out.
    fn left_out(&self) -> Vec<String> {
        let messages = self.slack.messages();
        let texts = messages.iter().map(SlackMessage::text);
        let those = texts.filter(|text| text.contains("is left out"));
        those.map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn a_picture_is_fetched_for_somebody_with_the_role_and_removed_at_the_end() {
    let workspace = Workspace::new().await;
    let picture = workspace.slack.upload("F1", "shot.png", "image/png", PNG);
    // A stranger, and somebody who may only read.
    workspace.send_with("U9", "1.0", json!([picture])).await;
    workspace.send_with("U2", "2.0", json!([picture])).await;
    assert_eq!(workspace.fetched(), 0);
    workspace.send_with("U1", "3.0", json!([picture])).await;
    assert_eq!(workspace.fetched(), 1);
    assert_eq!(workspace.left_out(), Vec::<String>::new());
    assert_eq!(workspace.room.tasks().await.len(), 1);
    assert_eq!(workspace.kept(), 0);
    workspace.room.close().await;
}

/// The two events of one mention. Slack may leave the files out of the first.
#[tokio::test]
async fn pictures_of_a_mention_are_seen_whichever_of_its_events_has_them_and_comes_first() {
    for (order, is_decided) in [
        (["app_mention", "message"], false),
        (["app_mention", "message"], true),
        (["message", "app_mention"], false),
        (["message", "app_mention"], true),
    ] {
        let workspace = Workspace::new().await;
        let picture = workspace.slack.upload("F1", "shot.png", "image/png", PNG);
        let event = |kind: &str| {
            let mut event = said(kind, "U1", "3.0", "<@UBOT> fix the greeting");
            if kind == "message" {
                event["subtype"] = json!("file_share");
                event["files"] = json!([picture]);
            }
            event
        };
        // Slack has the message before it tells of it.
        workspace.slack.keep(&event("message"));
        for kind in order {
            assert_eq!(workspace.deliver(&event(kind)).await.status, OK);
            if is_decided {
                workspace.idle().await;
            }
        }
        workspace.idle().await;
        let case = format!("{order:?}, decided in between: {is_decided}");
        assert_eq!(workspace.fetched(), 1, "{case}");
        assert_eq!(workspace.left_out(), Vec::<String>::new(), "{case}");
        assert_eq!(workspace.room.tasks().await.len(), 1, "{case}");
        assert_eq!(workspace.kept(), 0, "{case}");
        workspace.room.close().await;
    }
}

#[tokio::test]
async fn a_mention_without_files_runs_also_if_slack_does_not_tell_of_any() {
    let workspace = Workspace::new().await;
    let refused = codespar_testkit::slack::SlackFault::Error("missing_scope");
    workspace.slack.inject("conversations.replies", refused);
    let event = said("app_mention", "U1", "3.0", "<@UBOT> fix the greeting");
    assert_eq!(workspace.deliver(&event).await.status, OK);
    workspace.idle().await;
    assert_eq!(workspace.room.tasks().await.len(), 1);
    assert_eq!(workspace.fetched(), 0);
    workspace.room.close().await;
}

#[tokio::test]
async fn what_is_no_picture_is_named_and_the_text_still_runs() {
    let workspace = Workspace::new().await;
    let slack = &workspace.slack;
    let large = [PNG, &vec![0; 5 << 20]].concat();
    let mut foreign = slack.upload("F4", "far.png", "image/png", PNG);
    foreign["url_private_download"] = json!("https://evil.example/a.png");
    let files = json!([
        slack.upload("F1", "notes.pdf", "application/pdf", b"%PDF"),
        slack.upload("F2", "large.png", "image/png", &large),
        slack.upload("F3", "fake.png", "image/png", b"#!/bin/sh"),
        foreign,
        {"id": "F5", "name": "gone.png", "file_access": "check_file_info"},
    ]);
    workspace.send_with("U1", "1.0", files).await;
    let left_out = workspace.left_out().join("\n");
    for text in [
        "notes.pdf is left out: it is no picture (application/pdf)",
        "large.png is left out: it has more than 4 MB",
        "fake.png is left out: fake.png: is not a PNG",
        "far.png is left out: it is not kept by Slack",
        "gone.png is left out: Slack says file_not_found",
    ] {
        assert!(left_out.contains(text), "{text}: {left_out}");
    }
    assert_eq!(workspace.room.tasks().await.len(), 1);
    assert_eq!(workspace.kept(), 0);
    workspace.room.close().await;
}

#[tokio::test]
async fn a_shared_channel_gives_the_id_of_a_file_only() {
    let workspace = Workspace::new().await;
    workspace.slack.upload("F1", "shot.png", "image/png", PNG);
    let shared = json!([{"id": "F1", "file_access": "check_file_info"}]);
    workspace.send_with("U1", "1.0", shared).await;
    assert_eq!(workspace.fetched(), 1);
    assert_eq!(workspace.left_out(), Vec::<String>::new());
    workspace.room.close().await;
}

#[tokio::test]
async fn a_page_of_the_sign_in_says_which_scope_is_missing() {
    let workspace = Workspace::new().await;
    let picture = workspace.slack.upload("F1", "shot.png", "image/png", PNG);
    workspace.slack.grant("app_mentions:read,chat:write");
    workspace.send_with("U1", "1.0", json!([picture])).await;
    let left_out = workspace.left_out();
    assert!(left_out[0].contains("files:read"), "{left_out:?}");
    assert_eq!(workspace.room.tasks().await.len(), 1);
    workspace.room.close().await;
}
