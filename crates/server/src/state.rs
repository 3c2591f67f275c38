//! What the handlers of one server share.

use std::{sync::Arc, time::Instant};

use codespar_channels::ChannelCore;
use codespar_runtime::Runtime;
use codespar_store::Database;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    access::{Access, ProxySignIn},
    config::{ListenPlan, ServerLimits},
    events::EventHub,
    hooks::Webhooks,
    metrics::{Metrics, WebhookOutcomes},
    providers::{Providers, SignInSetup, SignInSetupError},
    scope::Scope,
};

/// Whether this process runs tasks itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    Here,
    /// Other processes do.
    Elsewhere,
}

/// What is served at the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedSurface {
    /// The API and the web page.
    Everything,
    /// The MCP server alone.
    Mcp,
}

/// What a server is made of.
pub struct ServerSetup {
    pub runtime: Arc<Runtime>,
    /// The roots of the projects that it serves, each open in the runtime.
    pub projects: Vec<std::path::PathBuf>,
    pub plan: ListenPlan,
    pub limits: ServerLimits,
    pub worker: WorkerState,
    /// A proxy in front that signs people in.
    pub proxy_sign_in: Option<ProxySignIn>,
    /// Providers at which people sign in.
    pub sign_in: SignInSetup,
    pub webhooks: WebhookOutcomes,
    pub hooks: Webhooks,
    /// Takes what is said on the page and over the API. Somebody serves its channel
    /// [`codespar_channels::WEB`].
    pub core: Arc<ChannelCore>,
    pub surface: ServedSurface,
}

/// Shared by all handlers.
pub(crate) struct ServerState {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) plan: ListenPlan,
    pub(crate) limits: ServerLimits,
    pub(crate) access: Access,
    pub(crate) proxy_sign_in: Option<ProxySignIn>,
    pub(crate) providers: Providers,
    pub(crate) events: Arc<EventHub>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) hooks: Webhooks,
    pub(crate) core: Arc<ChannelCore>,
    pub(crate) worker: WorkerState,
    pub(crate) began: Instant,
    pub(crate) streams: Arc<Semaphore>,
    /// Work that goes on when its client has gone: merges and reviews.
    pub(crate) background: TaskTracker,
    /// The server stops.
    pub(crate) stopping: CancellationToken,
}

/// How handlers get it.
pub(crate) type Shared = Arc<ServerState>;

impl ServerState {
    /// `own` is the address that only this machine reaches the server by, if it is such a server.
    pub(crate) fn new(setup: ServerSetup, own: Option<Url>) -> Result<Shared, SignInSetupError> {
        let ServerSetup {
            runtime,
            projects,
            plan,
            limits,
            worker,
            proxy_sign_in,
            sign_in,
            webhooks,
            hooks,
            core,
            surface: _,
        } = setup;
        let providers = Providers::new(sign_in, own)?;
        if let Some(address) = providers.link_address() {
            core.offer_linking(address);
        }
        let scope = Arc::new(Scope::new(runtime.clone(), projects));
        let stopping = CancellationToken::new();
        let metrics = Metrics::new(runtime.events(), webhooks);
        let events = EventHub::start(&runtime, scope.clone(), stopping.clone());
        Ok(Arc::new(Self {
            access: Access::new(&limits),
            proxy_sign_in,
            providers,
            streams: Arc::new(Semaphore::new(limits.event_streams)),
            runtime,
            scope,
            plan,
            limits,
            events,
            metrics,
            hooks,
            core,
            worker,
            began: Instant::now(),
            background: TaskTracker::new(),
            stopping,
        }))
    }

    pub(crate) fn store(&self) -> &Arc<dyn Database> {
        self.runtime.store()
    }
}
