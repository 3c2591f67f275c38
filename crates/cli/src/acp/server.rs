//! Which message of the client does what.
//!
//! Handlers run one at a time, so each hands what takes longer to a task of its own.
//!
//! The types of the protocol's crate are used here and in the modules beside this one, and nowhere
//! else in the project: the crate is pinned, and a new version of it is a change of this directory.

use std::{sync::Arc, time::Duration};

use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, JsonRpcResponse, Responder, V1, on_receive_notification,
    on_receive_request,
    v1::{
        ConnectionTo,
        schema::{
            CancelNotification, CloseSessionRequest, CloseSessionResponse, InitializeRequest,
            ListSessionsRequest, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
            NewSessionResponse, PromptRequest, PromptResponse, ResumeSessionRequest,
            ResumeSessionResponse, SessionModeState, SetSessionModeRequest, SetSessionModeResponse,
        },
    },
};
use codespar_policy::Mode;
use tokio_util::sync::CancellationToken;

use super::{
    capabilities,
    conversation::Conversation,
    prompt,
    sessions::{Sessions, Wanted, failure},
    transport,
    view::Replay,
};
use crate::error::CommandError;

/// How long a client that has closed its end may still be answered.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Serves until the client closes its end, or `stop`.
pub(super) async fn serve(sessions: Arc<Sessions>, stop: CancellationToken) -> Result<(), String> {
    let gone = CancellationToken::new();
    let connection = connect(sessions, transport::stdio(gone.clone()));
    tokio::select! {
        ended = connection => ended.map_err(|error| error.message),
        // What was asked before gets its answer.
        () = async {
            gone.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        } => Ok(()),
        () = stop.cancelled() => Ok(()),
    }
}

/// A handler that opens a session of the wanted kind.
macro_rules! opening {
    ($sessions:expr, $request:ty, $response:expr) => {{
        let sessions = $sessions.clone();
        async move |request: $request, responder, connection| {
            open(&sessions, request.into(), connection, responder, $response);
            Ok(())
        }
    }};
}

async fn connect(
    sessions: Arc<Sessions>,
    transport: impl ConnectTo<Agent> + 'static,
) -> Result<(), Error> {
    let new = opening!(sessions, NewSessionRequest, |it| {
        NewSessionResponse::new(it.id.to_string()).modes(modes_of(it))
    });
    let load = opening!(sessions, LoadSessionRequest, |it| {
        LoadSessionResponse::new().modes(modes_of(it))
    });
    let resume = opening!(sessions, ResumeSessionRequest, |it| {
        ResumeSessionResponse::new().modes(modes_of(it))
    });
    let (listing, closing) = (sessions.clone(), sessions.clone());
    let (modes, prompting) = (sessions.clone(), sessions.clone());
    let list = async move |request: ListSessionsRequest, responder, _| {
        let sessions = listing.clone();
        answer(responder, async move { sessions.list(&request).await });
        Ok(())
    };
    let close = async move |request: CloseSessionRequest, responder, _| {
        let sessions = closing.clone();
        answer(responder, async move {
            sessions.close_one(&request.session_id.0).await?;
            Ok(CloseSessionResponse::new())
        });
        Ok(())
    };
    let set_mode = async move |request: SetSessionModeRequest, responder: Responder<_, V1>, _| {
        responder.respond_with_result(set_mode(&modes, &request))
    };
    let cancel = async move |request: CancelNotification, _| {
        if let Ok(conversation) = sessions.find(&request.session_id.0) {
            conversation.cancel();
        }
        Ok(())
    };
    let initialize = async |_: InitializeRequest, responder: Responder<_, V1>, _| {
        responder.respond(capabilities::initialized())
    };
    let prompt = async move |request: PromptRequest, responder, _| {
        begin_prompt(&prompting, &request, responder)
    };
    Agent
        .v1()
        .name("codespar")
        .on_receive_request(initialize, on_receive_request!())
        .on_receive_request(new, on_receive_request!())
        .on_receive_request(load, on_receive_request!())
        .on_receive_request(resume, on_receive_request!())
        .on_receive_request(list, on_receive_request!())
        .on_receive_request(close, on_receive_request!())
        .on_receive_request(set_mode, on_receive_request!())
        .on_receive_request(prompt, on_receive_request!())
        .on_receive_notification(cancel, on_receive_notification!())
        .connect_to(transport)
        .await
}

/// Answers when the work is done. On this thread: the driver of sessions stays on one.
fn answer<T: JsonRpcResponse>(
    responder: Responder<T, V1>,
    work: impl Future<Output = Result<T, Error>> + 'static,
) {
    tokio::task::spawn_local(async move {
        let done = work.await;
        // The client may be gone.
        let _ = responder.respond_with_result(done);
    });
}

/// The commands of the session are told after the answer: before it, the client does not know the
/// session.
fn open<T>(
    sessions: &Arc<Sessions>,
    wanted: Wanted,
    connection: ConnectionTo<Client>,
    responder: Responder<T, V1>,
    response: impl FnOnce(&Conversation) -> T + 'static,
) where
    T: JsonRpcResponse,
{
    let sessions = sessions.clone();
    tokio::task::spawn_local(async move {
        let opened = sessions.open(connection, wanted).await;
        let answer = opened.as_ref().map(|it| response(it)).map_err(Clone::clone);
        let _ = responder.respond_with_result(answer);
        if let Ok(conversation) = opened {
            conversation.view.tell_commands();
        }
    });
}

fn modes_of(conversation: &Conversation) -> SessionModeState {
    capabilities::modes(&conversation.project)
}

/// A mode that was not offered is refused.
fn set_mode(
    sessions: &Sessions,
    request: &SetSessionModeRequest,
) -> Result<SetSessionModeResponse, Error> {
    let conversation = sessions.find(&request.session_id.0)?;
    let refused = |message: String| failure(&CommandError::Usage(message));
    let mode: Mode = request
        .mode_id
        .0
        .parse()
        .map_err(|error: codespar_policy::ModeError| refused(error.to_string()))?;
    if !capabilities::may_choose(&conversation.project, mode) {
        return Err(refused(
            "start with --permission-mode bypassPermissions to allow everything".to_owned(),
        ));
    }
    conversation.set_mode(mode);
    Ok(SetSessionModeResponse::new())
}

/// The prompt is on its way when this returns, so that a cancellation that follows finds it.
fn begin_prompt(
    sessions: &Sessions,
    request: &PromptRequest,
    responder: Responder<PromptResponse, V1>,
) -> Result<(), Error> {
    let begun = sessions
        .find(&request.session_id.0)
        .and_then(|conversation| {
            let prompted = prompt::read(&request.prompt);
            let prompted = prompted.map_err(|why| failure(&CommandError::Usage(why)))?;
            conversation.prompt(prompted)
        });
    match begun {
        Err(error) => responder.respond_with_error(error),
        Ok(answered) => {
            answer(responder, async move {
                let lost =
                    || CommandError::Failed("the session ended before the prompt".to_owned());
                let answered = answered.await.map_err(|_| failure(&lost()))?;
                answered.map(PromptResponse::new)
            });
            Ok(())
        }
    }
}

impl From<NewSessionRequest> for Wanted {
    fn from(request: NewSessionRequest) -> Self {
        Self {
            cwd: request.cwd,
            more_dirs: request.additional_directories,
            servers: request.mcp_servers,
            resumed: None,
        }
    }
}

impl From<LoadSessionRequest> for Wanted {
    fn from(request: LoadSessionRequest) -> Self {
        Self {
            cwd: request.cwd,
            more_dirs: request.additional_directories,
            servers: request.mcp_servers,
            resumed: Some((request.session_id.0.to_string(), Replay::Whole)),
        }
    }
}

impl From<ResumeSessionRequest> for Wanted {
    fn from(request: ResumeSessionRequest) -> Self {
        Self {
            cwd: request.cwd,
            more_dirs: request.additional_directories,
            servers: request.mcp_servers,
            resumed: Some((request.session_id.0.to_string(), Replay::Nothing)),
        }
    }
}
