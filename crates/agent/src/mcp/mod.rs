//! MCP servers: how they are configured, connected and called, and their tools.

mod config;
mod connection;
mod elicitation;
mod event;
mod expand;
mod naming;
mod outcome;
mod server;
mod set;
mod subscription;
mod tool;

pub use config::{Endpoint, MAX_CONFIG_BYTES, McpProblem, Origin, ServerConfig, ServerConfigs};
pub use connection::{McpError, McpSetup, Said};
pub use elicitation::{Elicitor, SharedElicitor};
pub use event::McpEvent;
pub use naming::server_word;
pub use server::{McpServer, McpStatus};
pub use set::{McpServers, ServerStatus};
pub use subscription::McpSubscription;
