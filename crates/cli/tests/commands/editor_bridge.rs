//! The bridge between editors and the Agent SDK, with this program as the one that it starts.

use std::{path::Path, process::Command};

use agent_client_protocol::v1::schema::{
    CancelNotification, RequestPermissionRequest, SessionUpdate, SetSessionModeRequest, StopReason,
    ToolCallStatus,
};
use codespar_testkit::{Gate, Script, Turn};

use crate::{
    acp_client::{Seen, edit_with, new_session, prompt, write},
    common::{Bench, PATIENCE},
    mcp_conformance::{node, target},
};

fn bridge(bench: &Bench) -> Command {
    let package = "claude-agent-acp/node_modules/@agentclientprotocol/claude-agent-acp";
    let program = target().join(package).join("dist/index.js");
    assert!(program.exists(), "cargo xtask test installs it, with npm");
    let mut command = bench.room.command(node().to_str().unwrap());
    command
        .arg(program)
        .current_dir(bench.work())
        .env("CLAUDE_CODE_EXECUTABLE", env!("CARGO_BIN_EXE_codespar"))
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001");
    command
}

/// By the kind of the option: its ids are the bridge's own.
fn choose(asked: &RequestPermissionRequest) -> Option<&'static str> {
    let title = asked.tool_call.fields.title.as_deref().unwrap_or_default();
    let wanted = match title.contains("yes.txt") {
        true => "allow-once",
        false => "reject",
    };
    let ids = asked.options.iter().map(|one| &*one.option_id.0);
    assert_eq!(ids.filter(|id| *id == wanted).count(), 1, "{asked:?}");
    Some(wanted)
}

fn costs(seen: &Seen) -> Vec<f64> {
    let updates = seen.updates().into_iter();
    let costs = updates.filter_map(|update| match update {
        SessionUpdate::UsageUpdate(usage) => usage.cost.map(|cost| cost.amount),
        _ => None,
    });
    costs.collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the bridge from npm and node 22; cargo xtask test runs it"]
async fn the_editor_bridge_holds_a_conversation_with_a_permission_prompt() {
    let gate = Gate::closed();
    let script = Script::new()
        .turn(Turn::text("hello there"))
        .turn(write("yes.txt"))
        .turn(Turn::text("written"))
        .turn(write("no.txt"))
        .turn(Turn::text("refused"))
        .turn(write("free.txt"))
        .turn(Turn::text("not asked"))
        .turn(Turn::text("here again").held_by(&gate))
        .turn(Turn::text("here again"));
    let bench = Bench::new(script);
    let exists = |name: &str| Path::new(&bench.work()).join(name).exists();
    edit_with(bridge(&bench), choose, async |connection, seen| {
        let session = new_session(&connection, &bench.work()).await?;
        let say = async |text: &str| prompt(&connection, &session, text).await;
        assert_eq!(say("say it").await?, StopReason::EndTurn);
        assert!(seen.said().contains("hello there"), "{}", seen.said());

        assert_eq!(say("write it").await?, StopReason::EndTurn);
        assert!(exists("yes.txt"));
        assert_eq!(seen.last_status(), Some(ToolCallStatus::Completed));
        assert_eq!(say("write another").await?, StopReason::EndTurn);
        assert!(!exists("no.txt"));
        assert_eq!(seen.last_status(), Some(ToolCallStatus::Failed));
        assert_eq!(seen.asked.lock().unwrap().len(), 2);

        let mode = SetSessionModeRequest::new(session.clone(), "acceptEdits");
        connection.send_request(mode).block_task().await?;
        assert_eq!(say("write freely").await?, StopReason::EndTurn);
        assert!(exists("free.txt"));
        assert_eq!(seen.asked.lock().unwrap().len(), 2);
        // What a session has cost so far is shown after each turn.
        let costs = costs(&seen);
        assert!(costs.len() >= 4, "{costs:?}");
        assert!(costs.windows(2).all(|two| two[0] < two[1]), "{costs:?}");

        let waiting = say("wait");
        let cancelling = async {
            assert!(bench.server.wait_for_requests(8).await.is_ok());
            connection.send_notification(CancelNotification::new(session.clone()))
        };
        let (ended, cancelled) = tokio::join!(waiting, cancelling);
        cancelled?;
        assert_eq!(ended?, StopReason::Cancelled);
        gate.open();
        assert_eq!(say("still there?").await?, StopReason::EndTurn);
        assert!(seen.said().contains("here again"), "{}", seen.said());
        // Nothing of how programs and this one differ is the user's business.
        for noise in ["PostModelSwitch", "AskUserQuestion"] {
            assert!(!seen.said().contains(noise), "{}", seen.said());
        }
        Ok(())
    })
    .await;
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the bridge from npm and node 22; cargo xtask test runs it"]
async fn the_editor_bridge_shows_that_files_are_not_trusted() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    let allow = serde_json::json!({"permissions": {"allow": ["Write"]}});
    bench.file(".claude/settings.json", &allow.to_string());
    let said = edit_with(bridge(&bench), choose, async |connection, seen| {
        let session = new_session(&connection, &bench.work()).await?;
        prompt(&connection, &session, "go").await?;
        Ok(seen.said())
    })
    .await;
    assert!(said.contains("codespar trust add"), "{said}");
    assert!(said.contains("done"), "{said}");
}
