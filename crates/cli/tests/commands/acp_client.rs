//! An editor: the client of the protocol's own crate, connected to a program.

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, Lines, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest,
            RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
            SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason,
            TextContent, ToolCallStatus,
        },
    },
};
use codespar_testkit::Turn;
use futures::{sink, stream};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::common::{Bench, PATIENCE};

/// What the client chooses at a permission prompt; nothing: it never answers.
pub(crate) type Choice = fn(&RequestPermissionRequest) -> Option<&'static str>;

/// What an editor has seen.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) updates: Arc<Mutex<Vec<SessionNotification>>>,
    pub(crate) asked: Arc<Mutex<Vec<RequestPermissionRequest>>>,
}

impl Seen {
    pub(crate) fn updates(&self) -> Vec<SessionUpdate> {
        let updates = self.updates.lock().unwrap();
        updates.iter().map(|one| one.update.clone()).collect()
    }

    /// The texts of the agent's messages, together.
    pub(crate) fn said(&self) -> String {
        let chunks = self.updates().into_iter();
        let texts = chunks.filter_map(|update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
                ContentBlock::Text(text) => Some(text.text),
                _ => None,
            },
            _ => None,
        });
        texts.collect()
    }

    /// How the last call that came to an end did so.
    pub(crate) fn last_status(&self) -> Option<ToolCallStatus> {
        let updates = self.updates().into_iter().rev();
        updates
            .filter_map(|update| match update {
                SessionUpdate::ToolCallUpdate(update) => update.fields.status,
                _ => None,
            })
            .next()
    }

    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "{what}: {:?}", self.updates());
    }
}

/// The program, as the other end of a connection.
fn agent(command: Command) -> (impl ConnectTo<Client> + 'static, tokio::process::Child) {
    let mut command: tokio::process::Command = command.into();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let lines = stream::unfold(BufReader::new(output).lines(), async |mut lines| {
        let line = lines.next_line().await.transpose()?;
        Some((line, lines))
    });
    let write = sink::unfold(input, async |mut input, line: String| {
        input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok::<_, std::io::Error>(input)
    });
    (Lines::new(write, lines), child)
}

/// Talks to a new process of ours as an editor does.
pub(crate) async fn edit<R>(
    bench: &Bench,
    args: &[&str],
    choose: Choice,
    talk: impl AsyncFnOnce(ConnectionTo<Agent>, Seen) -> Result<R, Error>,
) -> R {
    edit_with(bench.command(&[&["acp"], args].concat()), choose, talk).await
}

/// The same with any program that speaks the protocol.
pub(crate) async fn edit_with<R>(
    command: Command,
    choose: Choice,
    talk: impl AsyncFnOnce(ConnectionTo<Agent>, Seen) -> Result<R, Error>,
) -> R {
    let (transport, _child) = agent(command);
    let seen = Seen::default();
    let (updates, asked) = (seen.updates.clone(), seen.asked.clone());
    let talked = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                updates.lock().unwrap().push(notification);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, connection| {
                let chosen = choose(&request);
                asked.lock().unwrap().push(request);
                let Some(chosen) = chosen else {
                    let _ = &connection;
                    std::mem::forget(responder);
                    return Ok(());
                };
                let outcome = SelectedPermissionOutcome::new(chosen);
                let outcome = RequestPermissionOutcome::Selected(outcome);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .connect_with(transport, async |connection: ConnectionTo<Agent>| {
            let hello = InitializeRequest::new(ProtocolVersion::V1);
            let hello = connection.send_request(hello).block_task().await?;
            assert!(hello.agent_capabilities.load_session);
            talk(connection, seen).await
        });
    let talked = tokio::time::timeout(PATIENCE, talked).await.unwrap();
    talked.unwrap_or_else(|error| panic!("{error:?}"))
}

pub(crate) async fn new_session(
    connection: &ConnectionTo<Agent>,
    dir: &Path,
) -> Result<SessionId, Error> {
    let request = NewSessionRequest::new(dir.canonicalize().unwrap());
    let made = connection.send_request(request).block_task().await?;
    assert!(made.modes.is_some());
    Ok(made.session_id)
}

pub(crate) async fn prompt(
    connection: &ConnectionTo<Agent>,
    session: &SessionId,
    text: &str,
) -> Result<StopReason, Error> {
    let text = ContentBlock::Text(TextContent::new(text));
    let request = PromptRequest::new(session.clone(), vec![text]);
    let answered = connection.send_request(request).block_task().await?;
    Ok(answered.stop_reason)
}

pub(crate) fn write(name: &str) -> Turn {
    Turn::tool(
        "Write",
        &json!({"file_path": name, "content": "new text\n"}),
    )
}

/// A session with one prompt, "the question", that was answered before its process ended.
pub(crate) async fn answered_session(bench: &Bench, cwd: &Path) -> SessionId {
    edit(
        bench,
        &[],
        |_| None,
        async |connection, _| {
            let session = new_session(&connection, cwd).await?;
            prompt(&connection, &session, "the question").await?;
            Ok(session)
        },
    )
    .await
}
