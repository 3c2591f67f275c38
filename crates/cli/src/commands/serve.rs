//! `codespar serve`.

mod channels;
mod demo;
mod sign_in;

use std::{
    io::IsTerminal,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use codespar_protocol::{AccessRole, counted};
use codespar_runtime::{ProcessRole, ProjectConfig, ProjectDir, ProjectOptions, Runtime};
use codespar_server::{
    ListenPlan, ProxyChoice, ProxySignIn, ServedSurface, Server, ServerLimits, ServerSetup,
    TlsFiles, Transport, WebhookOutcomes, WorkerState,
};
use codespar_tasks::Attendance;
use tokio_util::sync::CancellationToken;

use self::demo::DemoPlace;
use crate::{
    commands::gc, error::CommandError, printer, progress::Progress, signals::Signals, style,
};

/// Serve the HTTP API and the web page, with a worker that runs tasks.
///
/// Programs use it with a token (`codespar token create`) as `Authorization: Bearer`; a browser
/// signs in once with a token, by the link that is printed at a terminal, or at a provider (OpenID
/// Connect, GitHub) that the settings name (`server.signIn`). The API is described at
/// /api/openapi.json; docs/server.md explains it.
///
/// Without other options only this machine can connect, and a token is still needed: other users
/// and web pages can reach the port, too. Another address needs a certificate, or a proxy in front
/// that has one.
///
/// Everything runs with the settings and the trust of its project; a request cannot choose a
/// sandbox, a permission mode or a directory.
///
/// SIGTERM or Ctrl-C stops accepting, lets requests finish, hands tasks over and exits with 0; a
/// second signal exits at once.
///
/// Examples:
///   codespar serve
///   codespar serve --demo
///   codespar serve --project ~/api --project ~/web --listen 127.0.0.1:8080
///   codespar serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --host spar.example.com
///   codespar serve --listen 0.0.0.0:8080 --behind-proxy --host spar.example.com --no-worker
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4180")]
    listen: SocketAddr,

    /// A project to serve, the current directory by default. May be repeated.
    #[arg(long, value_name = "DIR")]
    project: Vec<PathBuf>,

    /// The header in which a proxy names the person that it has signed in (X-Forwarded-User,
    /// Remote-User …). Roles are those of `channels.access.proxy` in the settings, else read.
    #[arg(long, value_name = "NAME", requires = "trusted_proxy")]
    trusted_proxy_header: Option<String>,

    /// The address of that proxy; from others the header is ignored. May be repeated.
    #[arg(long, value_name = "ADDR", requires = "trusted_proxy_header")]
    trusted_proxy: Vec<IpAddr>,

    #[command(flatten)]
    connections: ListenArgs,

    /// Run no tasks in this process; a `codespar worker` on the same state directory does.
    #[arg(long)]
    no_worker: bool,

    /// Serve a sample repository with a recorded model, offline, in a temporary directory that is
    /// removed at the end: to try the page and its chat without any set-up.
    #[arg(long, conflicts_with_all = ["project", "no_worker"])]
    demo: bool,

    /// Print a link that signs one browser in with the role admin, also if the output is not a
    /// terminal. It works once, for 15 minutes.
    #[arg(long)]
    sign_in_url: bool,
}

/// How clients reach a server.
#[derive(Args)]
pub(super) struct ListenArgs {
    /// The certificate chain for TLS, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// A proxy in front speaks TLS: plain HTTP is allowed on any address.
    #[arg(long, conflicts_with = "tls_cert")]
    behind_proxy: bool,

    /// A name by which browsers reach the server, besides its address. May be repeated.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
}

impl ServeArgs {
    /// It serves a sample, and nothing of the user's.
    pub(crate) fn is_demo(&self) -> bool {
        self.demo
    }
}

pub(crate) async fn run(
    args: ServeArgs,
    project_dir: ProjectDir,
) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let _signals = Signals::watch(cancel.clone())?;
    let mut plan = args.connections.plan(args.listen)?;
    let proxy_sign_in = args
        .trusted_proxy_header
        .as_deref()
        .map(|header| ProxySignIn::new(header, &args.trusted_proxy))
        .transpose()
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let demo = match args.demo {
        true => Some(DemoPlace::new(&project_dir)?),
        false => None,
    };
    let (project_dir, channels) = match &demo {
        Some(demo) => (demo.project_dir.clone(), Vec::new()),
        None => {
            let channels = crate::channels::find(&project_dir)?;
            (project_dir, channels)
        }
    };
    let dirs = project_dirs(&args.project, project_dir)?;
    let role = match args.no_worker {
        true => ProcessRole::Client,
        false => ProcessRole::Worker,
    };
    let (runtime, roots) = open(dirs, role).await?;
    if role == ProcessRole::Worker {
        runtime.start_tasks();
    }
    let home = runtime.project_at(&roots[0])?;
    let sign_in = sign_in::find(&home.settings.server, &home.dir, &mut plan)?;
    let channels = channels::serve(channels, &runtime, home, &roots, &cancel);
    let setup = ServerSetup {
        runtime: runtime.clone(),
        projects: roots.clone(),
        plan: plan.clone(),
        limits: ServerLimits::default(),
        worker: match args.no_worker {
            true => WorkerState::Elsewhere,
            false => WorkerState::Here,
        },
        proxy_sign_in,
        sign_in,
        webhooks: WebhookOutcomes::default(),
        hooks: channels.hooks,
        core: channels.core,
        surface: ServedSurface::Everything,
    };
    let core = setup.core.clone();
    let server = Server::bind(setup).await;
    let server = server.map_err(|error| CommandError::Failed(error.to_string()))?;
    announce(&server, &plan, &roots, &args, &runtime).await?;
    if let Some(place) = &demo {
        demo::seed(&runtime, &core, &roots[0]).await?;
        printer::err(format_args!(
            "codespar: this is a demo with a recorded model, in {}; Chat is the page to begin with",
            place.path().display()
        ));
    }
    server.run(cancel.clone()).await;
    cancel.cancel();
    channels.running.wait().await;
    let progress = Progress::beside_result();
    progress
        .during("Handing over tasks", runtime.close())
        .await?;
    Ok(ExitCode::SUCCESS)
}

impl ListenArgs {
    pub(super) fn is_given(&self) -> bool {
        self.tls_cert.is_some() || self.behind_proxy || !self.host.is_empty()
    }

    pub(super) fn plan(&self, address: SocketAddr) -> Result<ListenPlan, CommandError> {
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
            }),
            _ => None,
        };
        let proxy = match self.behind_proxy {
            true => ProxyChoice::InFront,
            false => ProxyChoice::None,
        };
        let plan = ListenPlan::new(address, tls, proxy, &self.host);
        plan.map_err(|error| CommandError::Usage(error.to_string()))
    }
}

/// Trust is that on record for each; the option of the command line is about the directory that it
/// was given in.
pub(super) fn project_dirs(
    paths: &[PathBuf],
    project_dir: ProjectDir,
) -> Result<Vec<ProjectDir>, CommandError> {
    if paths.is_empty() {
        return Ok(vec![project_dir]);
    }
    let mut dirs: Vec<ProjectDir> = Vec::new();
    for path in paths {
        let found = ProjectDir::find(project_dir.environment.clone(), path)?;
        if found.root == project_dir.root {
            dirs.push(project_dir.clone());
            continue;
        }
        if let Some(notice) = found.trust.notice() {
            printer::err(format_args!("codespar: {}: {notice}", found.root.display()));
        }
        if dirs.iter().all(|known| known.root != found.root) {
            dirs.push(found);
        }
    }
    Ok(dirs)
}

/// Opens all projects in one runtime; gives their roots in order.
pub(super) async fn open(
    dirs: Vec<ProjectDir>,
    role: ProcessRole,
) -> Result<(Arc<Runtime>, Vec<PathBuf>), CommandError> {
    let mut configs = Vec::new();
    for dir in dirs {
        let options = ProjectOptions::for_dev_runs(&dir.root, None);
        configs.push(ProjectConfig::load(dir, options)?);
    }
    let mut configs = configs.into_iter();
    let Some(first) = configs.next() else {
        return Err(CommandError::Usage(
            "there is no project to serve".to_owned(),
        ));
    };
    let (runtime, project) = Runtime::with_project(first, Attendance::Elsewhere, role).await?;
    gc::daily(&project.dir, &project.settings);
    let mut roots = vec![project.dir.root.clone()];
    for warning in &project.warnings {
        printer::err(format_args!("{} {warning}", style::warning("warning:")));
    }
    for config in configs {
        let project = runtime.open_project(config, Attendance::Elsewhere);
        for warning in &project.warnings {
            printer::err(format_args!("{} {warning}", style::warning("warning:")));
        }
        roots.push(project.dir.root.clone());
    }
    Ok((runtime, roots))
}

/// Says where the server is and what to do next.
async fn announce(
    server: &Server,
    plan: &ListenPlan,
    roots: &[PathBuf],
    args: &ServeArgs,
    runtime: &Runtime,
) -> Result<(), CommandError> {
    let scheme = match plan.transport {
        Transport::Tls(_) => "https",
        Transport::Loopback | Transport::BehindProxy => "http",
    };
    let address = server.address()?;
    let base = format!("{scheme}://{address}");
    super::print(format_args!("listening on {base}\n"))?;
    for root in roots {
        super::print(format_args!(
            "{}\n",
            style::faint(format!("  project {}", root.display()))
        ))?;
    }
    if args.no_worker {
        printer::err(format_args!(
            "codespar: no tasks run here; start `codespar worker` on this state directory"
        ));
    }
    if args.sign_in_url || args.demo || std::io::stdout().is_terminal() {
        let code = server.sign_in_code(AccessRole::Admin)?;
        super::print(format_args!(
            "Sign in with a browser, once, within 15 minutes:\n"
        ))?;
        printer::secret(&format!("  {base}{}", code.path()))?;
    }
    let tokens = runtime.store().tokens().await?;
    let in_use = tokens
        .iter()
        .filter(|token| token.revoked_at.is_none())
        .count();
    match in_use {
        _ if args.demo => {}
        0 => printer::err(format_args!(
            "codespar: there is no token yet; create one with: codespar token create --role write \
             --name NAME"
        )),
        some => printer::err(format_args!(
            "codespar: {} in use; `codespar token list` shows them",
            counted(some, "token")
        )),
    }
    Ok(())
}
