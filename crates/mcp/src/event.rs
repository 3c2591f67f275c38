//! What a server tells by itself.
//!
//! Events of a server go to whoever listens (`McpServer::events`) and to nobody else: they do not
//! reach a conversation by themselves. When a list changed, the server is asked for it anew
//! (`refresh`).

// Logging is on its way out of the protocol; servers of today still use it.
#![allow(deprecated)]

use std::{fmt, sync::Arc};

use codespar_protocol::{Answer, ElicitationRequest};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, FormElicitationCapability, Implementation, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
        ResourceUpdatedNotificationParam, ServerNotification,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::{
    elicitation::{Elicitor, OpenElicitations, with_defaults},
    progress::CallsInProgress,
};

/// Something a server told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEvent {
    /// A message of its log.
    Logged {
        /// How much it matters.
        level: &'static str,
        /// In one line.
        text: String,
    },
    /// A resource changed.
    ResourceUpdated { uri: String },
    ListChanged {
        /// `tools`, `resources` or `prompts`.
        list: &'static str,
    },
}

impl fmt::Display for McpEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Logged { level, text } => write!(f, "log {level}: {text}"),
            Self::ResourceUpdated { uri } => write!(f, "resource updated: {uri}"),
            Self::ListChanged { list } => write!(f, "list of {list} changed"),
        }
    }
}

impl McpEvent {
    /// What a notification says; `None` for those that matter only to a call under way.
    pub(super) fn of(notification: &ServerNotification) -> Option<Self> {
        match notification {
            ServerNotification::LoggingMessageNotification(said) => Some(logged(&said.params)),
            ServerNotification::ResourceUpdatedNotification(said) => Some(Self::ResourceUpdated {
                uri: said.params.uri.clone(),
            }),
            ServerNotification::ResourceListChangedNotification(_) => {
                Some(Self::ListChanged { list: "resources" })
            }
            ServerNotification::ToolListChangedNotification(_) => {
                Some(Self::ListChanged { list: "tools" })
            }
            ServerNotification::PromptListChangedNotification(_) => {
                Some(Self::ListChanged { list: "prompts" })
            }
            _ => None,
        }
    }
}

/// Line breaks become spaces: an event is one line, and what a server says cannot look like two.
fn logged(said: &LoggingMessageNotificationParam) -> McpEvent {
    let level = match said.level {
        LoggingLevel::Debug => "debug",
        LoggingLevel::Info => "info",
        LoggingLevel::Notice => "notice",
        LoggingLevel::Warning => "warning",
        LoggingLevel::Error => "error",
        LoggingLevel::Critical => "critical",
        LoggingLevel::Alert => "alert",
        LoggingLevel::Emergency => "emergency",
    };
    let data = match &said.data {
        Value::String(text) => text.replace('\n', " "),
        other => other.to_string(),
    };
    let text = match &said.logger {
        Some(logger) => format!("[{logger}] {data}"),
        None => data,
    };
    McpEvent::Logged { level, text }
}

/// Our side of a connection: passes on what the server tells. `elicitor` is fixed when the
/// connection is made: without one the server is told at the handshake that nobody can be asked.
#[derive(Clone)]
pub(super) struct Listener {
    pub(super) server: String,
    pub(super) events: broadcast::Sender<McpEvent>,
    pub(super) elicitor: Option<Arc<dyn Elicitor>>,
    pub(super) elicitations: OpenElicitations,
    pub(super) calls: CallsInProgress,
}

impl Listener {
    /// Does not wait; a listener that is too far behind loses the oldest events.
    fn tell(&self, event: McpEvent) {
        // Nobody may be listening.
        let _ = self.events.send(event);
    }
}

type Context = NotificationContext<RoleClient>;

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("codespar", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        if self.elicitor.is_some() {
            let form = FormElicitationCapability::new().with_schema_validation(true);
            capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        }
        ClientConfig::new(capabilities, us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    /// Only forms are supported. A request to open an address in a browser is declined.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let decline = || Ok(ElicitResult::new(ElicitationAction::Decline));
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = request
        else {
            return decline();
        };
        let Some(elicitor) = &self.elicitor else {
            return decline();
        };
        let request = ElicitationRequest {
            server: self.server.clone(),
            message,
            schema: serde_json::to_value(requested_schema).unwrap_or_default(),
        };
        let _open = self.elicitations.open();
        let schema = request.schema.clone();
        match elicitor.elicit(request, &context.ct).await {
            Answer::Form { content } => {
                let content = Value::Object(with_defaults(&schema, content));
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
            }
            _ => decline(),
        }
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: Context) {
        self.calls.report(&said);
    }

    async fn on_logging_message(&self, said: LoggingMessageNotificationParam, _: Context) {
        self.tell(logged(&said));
    }

    async fn on_resource_updated(&self, said: ResourceUpdatedNotificationParam, _: Context) {
        self.tell(McpEvent::ResourceUpdated { uri: said.uri });
    }

    async fn on_resource_list_changed(&self, _: Context) {
        self.tell(McpEvent::ListChanged { list: "resources" });
    }

    async fn on_tool_list_changed(&self, _: Context) {
        self.tell(McpEvent::ListChanged { list: "tools" });
    }

    async fn on_prompt_list_changed(&self, _: Context) {
        self.tell(McpEvent::ListChanged { list: "prompts" });
    }
}
