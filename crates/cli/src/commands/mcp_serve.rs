//! `codespar mcp serve`.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use codespar_channels::{ChannelCore, ChannelSetup, Unlinked};
use codespar_protocol::AccessRole;
use codespar_runtime::{ProcessRole, ProjectDir, Runtime};
use codespar_server::{
    ListenPlan, ServedSurface, Server, ServerLimits, ServerSetup, SignInSetup, Transport,
    WebhookOutcomes, Webhooks, WorkerState, serve_mcp_stdio,
};
use tokio_util::sync::CancellationToken;

use super::serve::{ListenArgs, open, project_dirs};
use crate::{
    error::CommandError,
    printer::{self, To},
    signals::Signals,
};

/// Offer dev, review, merge, locate, ask and the tasks of a project to other agents, over MCP.
///
/// Over standard input and output, for a client that starts it; or with --http at
/// http://ADDR:PORT/mcp, where every client needs a token (`codespar token create`) as
/// `Authorization: Bearer`, and may do what its role allows.
///
/// Everything runs with the settings and the trust of its project; a call cannot choose a sandbox, a
/// permission mode or a directory. A run of `dev` is a task: it outlives its client, and another
/// process can go on with it.
///
/// Examples:
///   codespar mcp serve --role write
///   codespar mcp serve --http 127.0.0.1:4190
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct McpServeArgs {
    /// Listen on this address instead of standard input; port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,

    /// What the client on standard input may do: read, write, merge or admin.
    #[arg(
        long,
        value_name = "ROLE",
        default_value = "merge",
        conflicts_with = "http"
    )]
    role: AccessRole,

    /// A project to serve, the current directory by default. May be repeated.
    #[arg(long, value_name = "DIR")]
    project: Vec<PathBuf>,

    #[command(flatten)]
    listen: ListenArgs,
}

pub(crate) async fn run(
    args: &McpServeArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    if args.http.is_none() && args.listen.is_given() {
        return Err(CommandError::Usage(
            "--tls-cert, --tls-key, --behind-proxy and --host go with --http".to_owned(),
        ));
    }
    // Standard output belongs to the protocol.
    let _diverted = args.http.is_none().then(|| {
        printer::divert(Arc::new(|text: &str| {
            let _ = printer::send(To::Stderr, &printer::rendered(To::Stderr, text));
        }))
    });
    let address = args.http.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let plan = args.listen.plan(address)?;
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?;
    let dirs = project_dirs(&args.project, project_dir.clone())?;
    let (runtime, roots) = open(dirs, ProcessRole::Session).await?;
    runtime.start_tasks();
    let setup = setup(&runtime, roots, plan)?;
    let served = match args.http {
        Some(_) => listen(setup, cancel).await,
        None => serve_mcp_stdio(setup, args.role, cancel)
            .await
            .map_err(CommandError::Failed),
    };
    let closed = runtime.close().await;
    if let (Some(code), None) = (signals.exit_code(), args.http) {
        return Ok(ExitCode::from(code));
    }
    served?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

/// No chat channel is served, and nobody signs in with a browser.
fn setup(
    runtime: &Arc<Runtime>,
    roots: Vec<PathBuf>,
    plan: ListenPlan,
) -> Result<ServerSetup, CommandError> {
    let home = runtime.project_at(&roots[0])?;
    let core = ChannelCore::new(ChannelSetup {
        runtime: runtime.clone(),
        home,
        unlinked: Unlinked::Nothing,
        pages: Vec::new(),
        owner: None,
        crash_point: None,
    });
    Ok(ServerSetup {
        runtime: runtime.clone(),
        projects: roots,
        plan,
        limits: ServerLimits::default(),
        worker: WorkerState::Here,
        proxy_sign_in: None,
        sign_in: SignInSetup::default(),
        webhooks: WebhookOutcomes::default(),
        hooks: Webhooks::default(),
        core,
        surface: ServedSurface::Mcp,
    })
}

async fn listen(setup: ServerSetup, cancel: CancellationToken) -> Result<(), CommandError> {
    let scheme = match setup.plan.transport {
        Transport::Tls(_) => "https",
        Transport::Loopback | Transport::BehindProxy => "http",
    };
    let tokens = setup.runtime.store().tokens().await?;
    let server = Server::bind(setup).await;
    let server = server.map_err(|error| CommandError::Failed(error.to_string()))?;
    super::print(format_args!(
        "listening on {scheme}://{}/mcp\n",
        server.address()?
    ))?;
    if tokens.iter().all(|token| token.revoked_at.is_some()) {
        printer::err(format_args!(
            "codespar: there is no token yet; create one with: codespar token create --role write \
             --name NAME"
        ));
    }
    server.run(cancel).await;
    Ok(())
}
