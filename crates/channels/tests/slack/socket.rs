//! Socket Mode: acknowledged once on record, over connections that come and go.

use codespar_channels::slack::SlackSocket;
use codespar_testkit::slack::{SLACK_APP_TOKEN, event_callback, pressed, said, slash};
use serde_json::Value;

use crate::{Workspace, wait_for};

impl Workspace {
    async fn connected() -> Self {
        let workspace = Self::new().await;
        let socket = SlackSocket::new(&workspace.setup, SLACK_APP_TOKEN.into()).unwrap();
        let (core, cancel) = (workspace.room.core.clone(), workspace.room.cancel.clone());
        tokio::spawn(socket.run(core, cancel));
        wait_for("a connection", || workspace.slack.sockets().0 == 1).await;
        workspace
    }

    /// Sends an envelope and waits for what it is acknowledged with.
    async fn envelope(&self, kind: &str, payload: &Value) -> Value {
        let id = self.slack.send_envelope(kind, payload).unwrap();
        wait_for(&id, || self.slack.acknowledgement(&id).is_some()).await;
        self.slack.acknowledgement(&id).unwrap()
    }

    /// A mention that comes now is answered once.
    async fn is_heard(&self) {
        self.envelope("events_api", &mention("1.0", "whoami")).await;
        self.idle().await;
        assert_eq!(self.slack.messages().len(), 1);
    }
}

fn mention(ts: &str, text: &str) -> Value {
    event_callback(&said("app_mention", "U1", ts, &format!("<@UBOT> {text}")))
}

#[tokio::test]
async fn events_buttons_and_commands_come_over_a_connection_of_ours() {
    let workspace = Workspace::connected().await;
    let acknowledged = workspace
        .envelope("events_api", &mention("1.0", "fix the greeting"))
        .await;
    assert!(acknowledged.get("payload").is_none(), "{acknowledged}");
    // On record by now.
    let store = workspace.room.runtime.store();
    assert!(store.message("slack:T1:C1:1.0").await.is_ok());
    // Delivered again, and as its second event.
    workspace
        .envelope("events_api", &mention("1.0", "fix the greeting"))
        .await;
    workspace.idle().await;
    assert_eq!(workspace.room.tasks().await.len(), 1);

    let result = workspace.slack.messages().pop().unwrap();
    let pressed = pressed("U2", &result, "merge PR #1");
    workspace.envelope("interactive", &pressed).await;
    workspace.idle().await;
    let refused = workspace.slack.messages().pop().unwrap();
    assert!(refused.text().contains("the role merge"), "{refused:#?}");

    let stranger = slash("U9", "9.1", "fix the greeting");
    let shown = workspace.envelope("slash_commands", &stranger).await;
    assert_eq!(shown["payload"]["response_type"], "ephemeral", "{shown}");
    // What is unknown or cannot be read is acknowledged: it would be no better the next time.
    for payload in [
        serde_json::json!({"type": "what"}),
        serde_json::json!({"type": "event_callback"}),
    ] {
        workspace.envelope("events_api", &payload).await;
    }
    workspace.idle().await;
    assert_eq!(workspace.room.tasks().await.len(), 1);
    workspace.room.close().await;
}

#[tokio::test]
async fn an_announced_end_is_followed_by_a_new_connection_before_the_old_one_is_gone() {
    let workspace = Workspace::connected().await;
    workspace.slack.announce_end("refresh_requested");
    wait_for("both connections", || workspace.slack.sockets() == (2, 2)).await;
    workspace.slack.cut_socket();
    wait_for("the new one", || workspace.slack.sockets() == (1, 2)).await;
    workspace.is_heard().await;
    workspace.room.close().await;
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again() {
    let workspace = Workspace::connected().await;
    workspace.slack.inject(
        "apps.connections.open",
        codespar_testkit::slack::SlackFault::Status(500),
    );
    workspace.slack.cut_socket();
    wait_for("a second connection", || {
        workspace.slack.sockets() == (1, 2)
    })
    .await;
    workspace.is_heard().await;
    workspace.room.close().await;
}

#[tokio::test]
async fn ending_closes_the_connection() {
    let workspace = Workspace::connected().await;
    workspace.room.cancel.cancel();
    wait_for("the end", || workspace.slack.sockets().0 == 0).await;
    workspace.room.close().await;
}
