//! Sessions of `codespar acp`: resumed, closed, with more directories and with what clients bring.

use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ContentBlock, HttpHeader, LoadSessionRequest, McpServer, McpServerHttp,
    McpServerSse, McpServerStdio, NewSessionRequest, PromptRequest, RequestPermissionRequest,
    ResumeSessionRequest, SetSessionModeRequest, StopReason, TextContent, ToolCallStatus,
};
use codespar_testkit::{Gate, Script, Turn, mcp::program};
use serde_json::json;

use crate::{
    acp_client::{Choice, answered_session, edit, new_session, prompt, write},
    common::Bench,
    mcp::http_server,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_goes_on_without_being_told_again() {
    let script = Script::new()
        .turn(Turn::text("the answer"))
        .turn(Turn::text("more"));
    let bench = Bench::new(script);
    let cwd = bench.work().canonicalize().unwrap();
    let session = answered_session(&bench, &cwd).await;
    edit(
        &bench,
        &[],
        |_| None,
        async |connection, seen| {
            let resume = ResumeSessionRequest::new(session.clone(), cwd.clone());
            let resumed = connection.send_request(resume.clone()).block_task().await?;
            assert!(resumed.modes.is_some());
            assert_eq!(seen.said(), "");
            let twice = connection.send_request(resume).block_task().await;
            assert!(twice.unwrap_err().message.contains("open already"));
            prompt(&connection, &session, "and?").await?;
            assert_eq!(seen.said(), "more");
            Ok(())
        },
    )
    .await;
    let sent = bench.server.last_request().unwrap().messages().to_vec();
    let sent = json!(sent).to_string();
    for part in ["the question", "the answer", "and?"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_ends_its_prompt_and_can_be_loaded_again() {
    let gate = Gate::closed();
    let script = Script::new()
        .turn(Turn::text("first"))
        .turn(Turn::text("after all").held_by(&gate))
        .turn(Turn::text("after all"));
    let bench = Bench::new(script);
    let cwd = bench.work().canonicalize().unwrap();
    edit(
        &bench,
        &[],
        |_| None,
        async |connection, seen| {
            let session = new_session(&connection, &cwd).await?;
            prompt(&connection, &session, "hello").await?;
            let waiting = prompt(&connection, &session, "and now");
            let closing = async {
                assert!(bench.server.wait_for_requests(2).await.is_ok());
                let close = CloseSessionRequest::new(session.clone());
                connection.send_request(close.clone()).block_task().await?;
                let again = connection.send_request(close).block_task().await;
                assert!(again.unwrap_err().message.contains("no such session"));
                Ok::<_, agent_client_protocol::Error>(())
            };
            let (ended, closed) = tokio::join!(waiting, closing);
            closed?;
            assert!(
                ended.is_err() || ended == Ok(StopReason::Cancelled),
                "{ended:?}"
            );
            let gone = prompt(&connection, &session, "still there?").await;
            assert!(gone.unwrap_err().message.contains("no such session"));
            gate.open();
            let load = LoadSessionRequest::new(session.clone(), cwd.clone());
            connection.send_request(load).block_task().await?;
            prompt(&connection, &session, "once more").await?;
            assert!(seen.said().ends_with("after all"), "{}", seen.said());
            Ok(())
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_directories_of_the_client_belong_to_the_workspace() {
    let bench = Bench::new(Script::new());
    let other = bench.room.home().join("other");
    std::fs::create_dir(&other).unwrap();
    let other = other.canonicalize().unwrap();
    let file = other.join("a.txt");
    let turns = || {
        Script::new()
            .turn(write(file.to_str().unwrap()))
            .turn(Turn::text("over"))
    };
    for (dirs, questions) in [(vec![], 1), (vec![other.clone()], 0)] {
        let bench = Bench::new(turns());
        let asked = edit(
            &bench,
            &[],
            |_| Some("no"),
            async |connection, seen| {
                let cwd = bench.work().canonicalize().unwrap();
                let request = NewSessionRequest::new(cwd).additional_directories(dirs.clone());
                let made = connection.send_request(request).block_task().await?;
                let mode = SetSessionModeRequest::new(made.session_id.clone(), "acceptEdits");
                connection.send_request(mode).block_task().await?;
                prompt(&connection, &made.session_id, "write it").await?;
                Ok(seen.asked.lock().unwrap().len())
            },
        );
        assert_eq!(asked.await, questions, "{dirs:?}");
        assert_eq!(file.exists(), questions == 0);
    }
    edit(
        &bench,
        &[],
        |_| None,
        async |connection, _| {
            for (dir, why) in [("other", "absolute"), ("/no/such/dir", "/no/such/dir")] {
                let request =
                    NewSessionRequest::new(bench.work()).additional_directories(vec![dir.into()]);
                let refused = connection.send_request(request).block_task().await;
                let refused = refused.unwrap_err().message;
                assert!(refused.contains(why), "{refused}");
            }
            Ok(())
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_the_client_names_is_reached_over_http_with_its_headers() {
    let script = Script::new()
        .turn(Turn::tool("mcp__kit__echo", &json!({"text": "over http"})))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let (_server, url) = http_server(&bench, &["--token", "t0ken-of-the-test"]);
    edit(
        &bench,
        &[],
        |_| Some("once"),
        async |connection, seen| {
            let header = HttpHeader::new("Authorization", "Bearer t0ken-of-the-test");
            let server = McpServer::Http(McpServerHttp::new("kit", url).headers(vec![header]));
            let request = NewSessionRequest::new(bench.work()).mcp_servers(vec![server]);
            let made = connection.send_request(request).block_task().await?;
            prompt(&connection, &made.session_id, "call it").await?;
            assert_eq!(seen.last_status(), Some(ToolCallStatus::Completed));
            let old = McpServer::Sse(McpServerSse::new("old", "http://127.0.0.1:1/sse"));
            let request = NewSessionRequest::new(bench.work()).mcp_servers(vec![old]);
            let refused = connection.send_request(request).block_task().await;
            let refused = refused.unwrap_err().message;
            assert!(refused.contains("`sse`"), "{refused}");
            Ok(())
        },
    )
    .await;
    let results = bench.server.last_request().unwrap().tool_results();
    assert_eq!(results[0].text, "over http");
}

/// The call is allowed; of the colours the second is chosen.
fn blue(asked: &RequestPermissionRequest) -> Option<&'static str> {
    let names: Vec<&str> = asked.options.iter().map(|one| one.name.as_str()).collect();
    match names[..] {
        ["red", "blue", "Decline"] => Some("2"),
        _ => Some("once"),
    }
}

fn decline(asked: &RequestPermissionRequest) -> Option<&'static str> {
    match blue(asked) {
        Some("2") => Some("no"),
        other => other,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_server_with_few_answers_is_a_choice_in_the_editor() {
    let kit = program(std::path::Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let choosing: [(Choice, &str); 2] = [(blue, "blue"), (decline, "decline")];
    for (choose, expected) in choosing {
        let script = Script::new()
            .turn(Turn::tool("mcp__kit__ask", &json!({})))
            .turn(Turn::text("done"));
        let bench = Bench::new(script);
        edit(&bench, &[], choose, async |connection, seen| {
            let server = McpServer::Stdio(McpServerStdio::new("kit", &kit));
            let request = NewSessionRequest::new(bench.work()).mcp_servers(vec![server]);
            let made = connection.send_request(request).block_task().await?;
            let text = ContentBlock::Text(TextContent::new("ask"));
            let request = PromptRequest::new(made.session_id, vec![text]);
            connection.send_request(request).block_task().await?;
            assert_eq!(seen.asked.lock().unwrap().len(), 2);
            Ok(())
        })
        .await;
        let results = bench.server.last_request().unwrap().tool_results();
        assert!(results[0].text.contains(expected), "{}", results[0].text);
    }
}
