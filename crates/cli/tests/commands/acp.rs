//! `codespar acp` with the client of the protocol's own crate.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, EmbeddedResource, EmbeddedResourceResource, EnvVariable,
    ImageContent, ListSessionsRequest, LoadSessionRequest, McpServer, McpServerStdio,
    NewSessionRequest, PromptRequest, SessionId, SessionUpdate, SetSessionModeRequest, StopReason,
    TextContent, TextResourceContents, ToolCallContent, ToolCallStatus,
};
use codespar_testkit::{Gate, Script, Turn, mcp::program};
use serde_json::{Value, json};

use crate::{
    acp_client::{answered_session, edit, new_session, prompt, write},
    common::{Bench, PATIENCE},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_holds_a_conversation_with_a_permission_prompt() {
    let script = Script::new()
        .turn(write("a.txt"))
        .turn(Turn::text("It is \u{1b}]0;written\u{7}."));
    let bench = Bench::new(script);
    let seen = edit(
        &bench,
        &[],
        |_| Some("once"),
        async |connection, seen| {
            let session = new_session(&connection, &bench.work()).await?;
            let ended = prompt(&connection, &session, "write it").await?;
            assert_eq!(ended, StopReason::EndTurn);
            Ok(seen)
        },
    )
    .await;
    let text = std::fs::read_to_string(bench.work().join("a.txt")).unwrap();
    assert_eq!(text, "new text\n");
    assert_eq!(seen.last_status(), Some(ToolCallStatus::Completed));
    // What a terminal would obey is shown as text.
    assert!(
        seen.said().contains("It is \\u{1b}]0;written"),
        "{}",
        seen.said()
    );
    let asked = seen.asked.lock().unwrap();
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let diff = asked.tool_call.fields.content.as_ref().unwrap();
    let diff = diff.iter().find_map(|content| match content {
        ToolCallContent::Diff(diff) => Some((diff.old_text.clone(), diff.new_text.clone())),
        _ => None,
    });
    assert_eq!(diff, Some((None, "new text\n".to_owned())));
    let offered = seen.updates().into_iter().find_map(|update| match update {
        SessionUpdate::AvailableCommandsUpdate(commands) => Some(commands.available_commands),
        _ => None,
    });
    let names: Vec<String> = offered.unwrap().into_iter().map(|one| one.name).collect();
    assert!(names.contains(&"compact".to_owned()), "{names:?}");
    assert!(!names.contains(&"quit".to_owned()), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_chooses_beats_no_deny_rule_and_unknown_options_allow_nothing() {
    let turns = || Script::new().turn(write("a.txt")).turn(Turn::text("over"));
    let denied = Bench::new(turns());
    let state = denied.room.codespar_home();
    std::fs::create_dir_all(&state).unwrap();
    let settings = json!({"permissions": {"deny": ["Write"]}}).to_string();
    std::fs::write(state.join("settings.json"), settings).unwrap();
    let asked = edit(
        &denied,
        &[],
        |_| Some("always"),
        async |connection, seen| {
            let session = new_session(&connection, &denied.work()).await?;
            prompt(&connection, &session, "write it").await?;
            Ok(seen.asked.lock().unwrap().len())
        },
    );
    assert_eq!(asked.await, 0);
    assert!(!denied.work().join("a.txt").exists());

    let bench = Bench::new(turns());
    let asked = edit(
        &bench,
        &[],
        |_| Some("allow_always"),
        async |connection, seen| {
            let session = new_session(&connection, &bench.work()).await?;
            prompt(&connection, &session, "write it").await?;
            assert_eq!(seen.last_status(), Some(ToolCallStatus::Failed));
            Ok(seen.asked.lock().unwrap().len())
        },
    );
    assert_eq!(asked.await, 1);
    assert!(!bench.work().join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_untrusted_project_grant_nothing_and_the_client_is_told_once() {
    let script = Script::new()
        .turn(write("a.txt"))
        .turn(Turn::text("first"))
        .turn(Turn::text("second"));
    let bench = Bench::new(script);
    let allow = json!({"permissions": {"allow": ["Write"]}});
    bench.file(".claude/settings.json", &allow.to_string());
    let seen = edit(
        &bench,
        &[],
        |_| Some("no"),
        async |connection, seen| {
            let session = new_session(&connection, &bench.work()).await?;
            prompt(&connection, &session, "write it").await?;
            prompt(&connection, &session, "again").await?;
            Ok(seen)
        },
    )
    .await;
    assert_eq!(seen.asked.lock().unwrap().len(), 1);
    assert!(!bench.work().join("a.txt").exists());
    assert_eq!(
        seen.said().matches("codespar trust add").count(),
        1,
        "{}",
        seen.said()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_prompt_ends_and_the_session_goes_on() {
    let gate = Gate::closed();
    let script = Script::new()
        .turn(write("a.txt"))
        .turn(Turn::text("never").held_by(&gate))
        .turn(Turn::text("here again"));
    let bench = Bench::new(script);
    edit(
        &bench,
        &[],
        |_| None,
        async |connection, seen| {
            let session = new_session(&connection, &bench.work()).await?;
            // Nobody answers the question.
            let asking = prompt(&connection, &session, "write it");
            let cancelling = async {
                seen.until("a question", |seen| !seen.asked.lock().unwrap().is_empty())
                    .await;
                connection.send_notification(CancelNotification::new(session.clone()))
            };
            let (ended, cancelled) = tokio::join!(asking, cancelling);
            cancelled?;
            assert_eq!(ended?, StopReason::Cancelled);
            assert!(!bench.work().join("a.txt").exists());
            // Nor does the model; and there is one prompt at a time.
            let waiting = prompt(&connection, &session, "and now");
            let cancelling = async {
                let requests = bench.server.wait_for_requests(2).await;
                assert!(requests.is_ok());
                let refused = prompt(&connection, &session, "me too").await;
                let refused = refused.unwrap_err();
                assert!(refused.message.contains("under way"), "{refused:?}");
                connection.send_notification(CancelNotification::new(session.clone()))
            };
            let (ended, cancelled) = tokio::join!(waiting, cancelling);
            cancelled?;
            assert_eq!(ended?, StopReason::Cancelled);
            gate.open();
            let ended = prompt(&connection, &session, "still there?").await?;
            assert_eq!(ended, StopReason::EndTurn);
            Ok(())
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_their_own_directory_and_mode() {
    let script = Script::new().turn(write("a.txt")).turn(Turn::text("over"));
    let bench = Bench::new(script);
    let other = bench.work().join("sub");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    edit(&bench, &[], |_| Some("no"), async |connection, seen| {
        let careful = new_session(&connection, &bench.work()).await?;
        let free = new_session(&connection, &other).await?;
        let mode = SetSessionModeRequest::new(free.clone(), "acceptEdits");
        connection.send_request(mode).block_task().await?;
        for refused in ["bypassPermissions", "godMode"] {
            let mode = SetSessionModeRequest::new(careful.clone(), refused);
            assert!(connection.send_request(mode).block_task().await.is_err());
        }
        prompt(&connection, &free, "write it").await?;
        assert_eq!(seen.asked.lock().unwrap().len(), 0);
        assert!(other.join("a.txt").exists());
        assert!(!bench.work().join("a.txt").exists());
        // The other session is as it was.
        prompt(&connection, &careful, "/mode").await?;
        assert!(seen.said().contains("default"), "{}", seen.said());
        prompt(&connection, &careful, "/mode plan").await?;
        let changed = seen.updates().into_iter().any(|update| {
            matches!(update, SessionUpdate::CurrentModeUpdate(it) if &*it.current_mode_id.0 == "plan")
        });
        assert!(changed, "{:?}", seen.updates());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_listed_and_loaded_by_another_process() {
    let script = Script::new()
        .turn(Turn::text("the answer"))
        .turn(Turn::text("more"));
    let bench = Bench::new(script);
    let cwd = bench.work().canonicalize().unwrap();
    let session = answered_session(&bench, &cwd).await;
    edit(&bench, &[], |_| None, async |connection, seen| {
        let list = ListSessionsRequest::new().cwd(cwd.clone());
        let listed = connection.send_request(list).block_task().await?.sessions;
        let [listed] = listed.as_slice() else {
            panic!("{listed:?}");
        };
        assert_eq!(listed.session_id, session);
        assert_eq!(listed.title.as_deref(), Some("the question"));
        let load = LoadSessionRequest::new(session.clone(), cwd.clone());
        connection.send_request(load.clone()).block_task().await?;
        let said = seen.updates();
        let user = said.iter().any(|update| {
            matches!(update, SessionUpdate::UserMessageChunk(chunk)
                if matches!(&chunk.content, ContentBlock::Text(text) if text.text == "the question"))
        });
        assert!(user, "{said:?}");
        assert_eq!(seen.said(), "the answer");
        let twice = connection.send_request(load).block_task().await.unwrap_err();
        assert!(twice.message.contains("open already"), "{twice:?}");
        prompt(&connection, &session, "and?").await?;
        assert!(seen.said().ends_with("more"), "{}", seen.said());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_resources_and_servers_of_the_client_reach_the_model() {
    let script = Script::new()
        .turn(Turn::tool("mcp__kit__echo", &json!({"text": "hello"})))
        .turn(Turn::text("seen"));
    let bench = Bench::new(script);
    let kit = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let picture = "iVBORw0KGgowMDAw";
    let asked = edit(
        &bench,
        &[],
        |_| Some("once"),
        async |connection, seen| {
            let env = vec![EnvVariable::new("KIT", "1")];
            let server = McpServer::Stdio(McpServerStdio::new("kit", kit).env(env));
            let request = NewSessionRequest::new(bench.work().canonicalize().unwrap())
                .mcp_servers(vec![server]);
            let session = connection
                .send_request(request)
                .block_task()
                .await?
                .session_id;
            let file = TextResourceContents::new("let a = 1;", "file:///w/a.rs");
            let file = EmbeddedResourceResource::TextResourceContents(file);
            let blocks = vec![
                ContentBlock::Text(TextContent::new("!touch run.txt")),
                ContentBlock::Resource(EmbeddedResource::new(file)),
                ContentBlock::Image(ImageContent::new(picture, "image/png")),
            ];
            let request = PromptRequest::new(session, blocks);
            connection.send_request(request).block_task().await?;
            Ok(seen.asked.lock().unwrap().len())
        },
    )
    .await;
    assert_eq!(asked, 1);
    // A prompt runs no command by itself.
    assert!(!bench.work().join("run.txt").exists());
    let request: Value = bench.server.requests()[0].json().clone();
    let sent = request["messages"].to_string();
    for part in ["!touch run.txt", "let a = 1;", "/w/a.rs", picture] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    let tools = request["tools"].to_string();
    assert!(tools.contains("mcp__kit__echo"), "{tools}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_get_errors_and_the_connection_stays() {
    let bench = Bench::new(Script::new().turn(Turn::text("fine")));
    edit(
        &bench,
        &[],
        |_| None,
        async |connection, _| {
            let relative = NewSessionRequest::new("work");
            let refused = connection.send_request(relative).block_task().await;
            assert!(refused.unwrap_err().message.contains("absolute path"));
            let nowhere = NewSessionRequest::new("/no/such/dir");
            let refused = connection.send_request(nowhere).block_task().await;
            assert!(refused.unwrap_err().message.contains("/no/such/dir"));
            let env = vec![EnvVariable::new("A", "${HOME}")];
            let server = McpServer::Stdio(McpServerStdio::new("x", "/bin/true").env(env));
            let expanding = NewSessionRequest::new(bench.work()).mcp_servers(vec![server]);
            let refused = connection.send_request(expanding).block_task().await;
            assert!(
                refused
                    .unwrap_err()
                    .message
                    .contains("variables are not replaced")
            );
            let unknown: SessionId = "0190".to_owned().into();
            let refused = prompt(&connection, &unknown, "hello").await.unwrap_err();
            assert!(refused.message.contains("no such session"), "{refused:?}");
            let session = new_session(&connection, &bench.work()).await?;
            let refused = prompt(&connection, &session, "  ").await.unwrap_err();
            assert!(refused.message.contains("empty"), "{refused:?}");
            prompt(&connection, &session, "hello").await?;
            Ok(())
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_client_goes_away_everything_ends() {
    let script = Script::new()
        .turn(Turn::tool(
            "Bash",
            &json!({"command": "touch started; sleep 600"}),
        ))
        .turn(Turn::text("never"));
    let bench = Bench::new(script);
    edit(
        &bench,
        &[],
        |_| Some("once"),
        async |connection, seen| {
            let session = new_session(&connection, &bench.work()).await?;
            let text = ContentBlock::Text(TextContent::new("run it"));
            let request = PromptRequest::new(session, vec![text]);
            let _under_way = connection.send_request(request);
            let started = bench.work().join("started");
            seen.until("the command", |_| started.exists()).await;
            Ok(())
        },
    )
    .await;
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

/// With a client that others wrote, in another language.
#[test]
#[ignore = "needs acpx from npm; cargo xtask test runs it"]
fn acpx_holds_a_conversation_with_a_permission_prompt() {
    let acpx = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/acpx/node_modules/acpx/dist/cli.js");
    let agent = format!("{} acp", env!("CARGO_BIN_EXE_codespar"));
    let talk = |policy: &str| {
        let script = Script::new()
            .turn(write("a.txt"))
            .turn(Turn::text("It is over."));
        let bench = Bench::new(script);
        let mut command = bench.room.command("node");
        command
            .current_dir(bench.work())
            .env("ANTHROPIC_BASE_URL", bench.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
            .arg(&acpx)
            .args(["--agent", &agent, policy, "exec", "write it"]);
        let ended = codespar_testkit::process::spawn(&mut command).unwrap();
        let ended = ended.wait(PATIENCE).unwrap();
        assert!(
            ended.stdout.contains("It is over."),
            "{} {}",
            ended.stdout,
            ended.stderr
        );
        let left = bench.room.wait_until_empty(PATIENCE).unwrap();
        assert!(left.is_empty(), "{left:?}");
        bench.work().join("a.txt").exists()
    };
    assert!(talk("--approve-all"));
    assert!(!talk("--deny-all"));
}
