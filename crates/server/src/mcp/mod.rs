//! An MCP server: other agents start runs, reviews and merges, and follow tasks.
//!
//! ```text
//! tools.rs   what is offered: names, descriptions, input, the role that each needs
//! calls.rs   which tool does what
//! api.rs     most of them are requests of the HTTP API, made within the process
//! follow.rs  a run of the dev agent, with its steps as progress
//! ```
//!
//! A client acts with the role of its token, or over standard streams with the role that the user
//! chose for them. What the API refuses is refused here.

mod api;
mod calls;
mod follow;
mod tools;

use std::{sync::Arc, time::Duration};

use codespar_protocol::{AccessRole, TokenId};
use codespar_store::AccessToken;
use jiff::Timestamp;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, InitializeResult, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::{
        async_rw::AsyncRwTransport,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::api::InnerApi;
use crate::{
    access::{Client, Credential},
    routes,
    state::{ServerSetup, ServerState, Shared},
};

/// Where the server is, over HTTP.
pub(crate) const PATH: &str = "/mcp";
/// Bytes of one message; an instruction is text.
const MOST_MESSAGE: usize = 1 << 20;

/// How long a client that has closed its end may still be answered.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// How a client is connected, which decides what the end of a call means.
#[derive(Debug, Clone)]
enum Link {
    /// One client, who is known by having started the process. A call that ends early was cancelled
    /// by it, unless it is gone.
    Streams {
        client: Box<Client>,
        gone: CancellationToken,
    },
    /// A client of a request is known by its token. A call that ends early may be a connection that
    /// was lost, so it stops nothing that outlives a call.
    Http,
}

/// The handler of one connection.
#[derive(Clone)]
pub(crate) struct McpHandler {
    state: Shared,
    api: InnerApi,
    link: Link,
}

impl McpHandler {
    fn new(state: Shared, link: Link) -> Self {
        Self {
            api: InnerApi::new(routes::router(&state)),
            state,
            link,
        }
    }

    /// Who calls. A request that nobody has checked has no client.
    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Client, ErrorData> {
        let found = match &self.link {
            Link::Streams { client, .. } => Some((**client).clone()),
            Link::Http => {
                let parts = context.extensions.get::<axum::http::request::Parts>();
                parts.and_then(|parts| parts.extensions.get::<Client>().cloned())
            }
        };
        found.ok_or_else(|| ErrorData::invalid_request("who asks is not known", None))
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = InitializeResult::new(capabilities);
        info.server_info = Implementation::new("codespar", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(tools::INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let role = self.client(&context)?.token.role;
        let offered = tools::all().into_iter();
        let offered = offered.filter(|one| role.allows(one.role));
        Ok(ListToolsResult::with_all_items(
            offered.map(|one| one.tool).collect(),
        ))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).map(|one| one.tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context)?;
        Ok(self.call(client, request, context).await?.into())
    }
}

/// Serves the client that started the process, over standard input and output.
pub async fn serve_mcp_stdio(
    setup: ServerSetup,
    role: AccessRole,
    leaving: CancellationToken,
) -> Result<(), String> {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    serve_streams(setup, role, input, output, leaving).await
}

/// Serves one client over two streams until it closes its end or `leaving`.
async fn serve_streams(
    setup: ServerSetup,
    role: AccessRole,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    leaving: CancellationToken,
) -> Result<(), String> {
    let state = ServerState::new(setup, None).map_err(|error| error.to_string())?;
    let gone = leaving.child_token();
    let link = Link::Streams {
        client: Box::new(local_client(role)),
        gone: gone.clone(),
    };
    let handler = McpHandler::new(state.clone(), link);
    let input = EndTelling {
        input,
        ended: gone.clone(),
    };
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MOST_MESSAGE);
    let served = async {
        match handler.serve(transport).await {
            Ok(running) => running
                .waiting()
                .await
                .map(|_| ())
                .map_err(|error| error.to_string()),
            // It left before it said anything.
            Err(_) if gone.is_cancelled() => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    let served = tokio::select! {
        served = served => served,
        () = leaving.cancelled() => Ok(()),
        // What was asked before gets its answer.
        () = async {
            gone.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        } => Ok(()),
    };
    gone.cancel();
    state.stopping.cancel();
    state.background.close();
    let _ = tokio::time::timeout(state.limits.drain_time, state.background.wait()).await;
    served
}

/// Whoever started the process. It has no token on record, and nothing it does is counted.
fn local_client(role: AccessRole) -> Client {
    Client {
        token: AccessToken {
            id: TokenId::new(),
            name: "mcp".to_owned(),
            role,
            created_at: Timestamp::now(),
            last_used_at: None,
            revoked_at: None,
        },
        credential: Credential::Within,
    }
}

/// The same over HTTP. The layers of the server have checked the host, the token and the page.
pub(crate) fn http_service(
    state: &Shared,
) -> StreamableHttpService<McpHandler, LocalSessionManager> {
    let config = StreamableHttpServerConfig::default()
        // `shield.rs` checks it.
        .disable_allowed_hosts()
        .enforce_origin_validation()
        .with_max_request_body_bytes(MOST_MESSAGE)
        .with_cancellation_token(state.stopping.child_token());
    let handler = McpHandler::new(state.clone(), Link::Http);
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config)
}

/// Tells when the other end has closed, before calls under way are ended for it.
struct EndTelling<R> {
    input: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EndTelling<R> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let had_room = buffer.remaining() > 0;
        let read = std::pin::Pin::new(&mut self.input).poll_read(cx, buffer);
        if let std::task::Poll::Ready(done) = &read
            && (done.is_err() || had_room && buffer.filled().len() == before)
        {
            self.ended.cancel();
        }
        read
    }
}
