//! What a server tells by itself.

// Logging is on its way out of the protocol; servers of today still use it.
#![allow(deprecated)]

use std::fmt;

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, LoggingLevel,
        LoggingMessageNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
        ServerNotification,
    },
    service::NotificationContext,
};
use serde_json::Value;
use tokio::sync::broadcast;

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
    let words = match &said.data {
        Value::String(text) => text.replace('\n', " "),
        other => other.to_string(),
    };
    let text = match &said.logger {
        Some(logger) => format!("[{logger}] {words}"),
        None => words,
    };
    McpEvent::Logged { level, text }
}

/// Our side of a connection: passes on what the server tells.
#[derive(Clone)]
pub(super) struct Listener(pub(super) broadcast::Sender<McpEvent>);

impl Listener {
    fn tell(&self, event: McpEvent) {
        // Nobody may be listening.
        let _ = self.0.send(event);
    }
}

type Context = NotificationContext<RoleClient>;

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("codespar", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
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
