//! Requests to a server that take their time: calls of tools, reading resources, prompts.
//!
//! Each has the time limit of calls, can be interrupted, and is never made a second time by itself.
//! A refusal for want of a login leaves the connection alone.

use std::time::Duration;

use rmcp::{
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
        ClientRequest, JsonObject, ServerResult,
    },
    service::{PeerRequestOptions, ServiceError},
};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{in_time, needs_login},
    offer::challenge_of,
    progress::ShowProgress,
    server::{Line, McpServer},
};

/// How long it may take to tell a server that a call is not wanted any more: one that does not take
/// the notice must not hold the call up.
const NOTICE: Duration = Duration::from_millis(500);

impl McpServer {
    /// Makes a call; the error is for the model. A call that is cancelled or takes too long is
    /// given up here, and the server is told; whether it finished is unknown. The time limit does
    /// not run while the server waits for the user, and starts anew with each sign of progress.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
        show: Option<ShowProgress>,
    ) -> Result<CallToolResult, String> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.request(request, cancel, show).await? {
            ServerResult::CallToolResult(result) => Ok(result),
            _ => Err(self.answered_otherwise()),
        }
    }

    pub(super) fn answered_otherwise(&self) -> String {
        self.named("answered with something else than a result")
    }

    pub(super) async fn request(
        &self,
        request: ClientRequest,
        cancel: &CancellationToken,
        show: Option<ShowProgress>,
    ) -> Result<ServerResult, String> {
        let line = self.line()?;
        if line.peer.is_transport_closed() {
            let reason = "had ended before this call, which was not made";
            return Err(self.revived(&line, reason).await);
        }
        let options = PeerRequestOptions::no_options();
        let asked = line.peer.send_cancellable_request(request, options).await;
        let handle = match asked {
            Ok(handle) => handle,
            Err(error) => return Err(self.failed(&line, error).await),
        };
        let mut watch = self.calls.watch(handle.progress_token.clone(), show);
        let id = handle.id.clone();
        let not_wanted = async |reason: &str| {
            let notice = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
            let _ = in_time(NOTICE, line.peer.notify_cancelled(notice)).await;
        };
        let limit = self.setup.call_timeout;
        tokio::select! {
            answer = handle.await_response() => match answer {
                Ok(ServerResult::InputRequiredResult(_)) => Err(self.named(
                    "wants more input from a person for this call, which is not supported",
                )),
                Ok(result) => Ok(result),
                Err(error) => Err(self.failed(&line, error).await),
            },
            () = self.elicitations.time_out(limit, &mut watch.signs) => {
                not_wanted("timeout").await;
                Err(self.too_slow(limit))
            }
            () = cancel.cancelled() => {
                not_wanted("interrupted").await;
                Err("interrupted; whether the server finished the call is unknown".to_owned())
            }
        }
    }

    fn too_slow(&self, limit: Duration) -> String {
        self.named(&format!(
            "gave no answer within {} s; whether it finished the call is unknown \
             (`mcpTimeoutMs` in the settings)",
            limit.as_secs_f64()
        ))
    }

    /// An error that the server answered leaves the connection alone; only one that ended it
    /// connects anew.
    async fn failed(&self, line: &Line, error: ServiceError) -> String {
        if let Some(challenge) = challenge_of(&error) {
            let error = needs_login(self.config(), &challenge);
            return self.named(&format!("refused this call: {error}"));
        }
        match error {
            ServiceError::McpError(error) => self.named(&format!("refused: {}", error.message)),
            ServiceError::Timeout { timeout } => self.too_slow(timeout),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let reason = "went away during this call, whose outcome is unknown";
                self.revived(line, reason).await
            }
            other => self.named(&format!("failed: {other}")),
        }
    }
}
