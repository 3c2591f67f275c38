//! `monitor_mcp`: watches an MCP server and tells what it tells, and whether it is there.

mod journal;
mod runner;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use codespar_agent::mcp::McpServer;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::order;

pub use runner::MonitorRunner;

/// How often a server is asked whether it is there, if nothing else is said.
const INTERVAL_S: u64 = 30;

/// Finds servers for monitors.
#[async_trait]
pub trait ServerSource: Send + Sync {
    /// The server of this name in the project. The error says what there is.
    async fn server(&self, root: &Path, name: &str) -> Result<std::sync::Arc<McpServer>, String>;
}

/// What to watch, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorOrder {
    /// The server's name.
    pub server: String,
    /// Resources to watch; all that the server lists, if none are named.
    #[serde(default, deserialize_with = "one_or_more")]
    pub resources: Vec<String>,
    /// It ends after this many events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u32>,
    /// It ends after this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<u64>,
    /// Seconds between two looks at whether the server answers.
    #[serde(default = "interval")]
    pub interval_s: u64,
    /// The project whose server it is.
    pub root: PathBuf,
}

fn interval() -> u64 {
    INTERVAL_S
}

/// `--metadata resources=note:///a` is a list too.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(String),
        More(Vec<String>),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::One(uri) => vec![uri],
        Given::More(uris) => uris,
    })
}

impl MonitorOrder {
    /// Reads what a caller wrote into the metadata of a task.
    pub fn read(metadata: &Map<String, Value>, root: &Path) -> Result<Self, String> {
        let keys = [
            "server",
            "resources",
            "max_events",
            "duration_s",
            "interval_s",
        ];
        let mut own: Map<String, Value> = keys
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), metadata.get(*key)?.clone())))
            .collect();
        own.insert("root".to_owned(), json!(root));
        let order: Self = serde_json::from_value(Value::Object(own)).map_err(|error| {
            format!(
                "a monitor_mcp task needs `metadata.server` and takes resources (a list of URIs), \
                 max_events, duration_s and interval_s: {error}"
            )
        })?;
        if order.interval_s == 0 || order.max_events == Some(0) || order.duration_s == Some(0) {
            return Err("max_events, duration_s and interval_s must be at least 1".to_owned());
        }
        Ok(order)
    }

    /// What the task is made from.
    pub fn to_metadata(&self) -> Map<String, Value> {
        order::write(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(metadata: Value) -> Result<MonitorOrder, String> {
        let Value::Object(metadata) = metadata else {
            panic!("not an object")
        };
        MonitorOrder::read(&metadata, Path::new("/p"))
    }

    #[test]
    fn an_order_is_read_with_its_defaults_and_written_back() {
        let order = read(json!({"server": "s", "resources": "note:///a", "other": 1})).unwrap();
        assert_eq!(
            order,
            MonitorOrder {
                server: "s".to_owned(),
                resources: vec!["note:///a".to_owned()],
                max_events: None,
                duration_s: None,
                interval_s: 30,
                root: "/p".into(),
            }
        );
        assert_eq!(read(Value::Object(order.to_metadata())), Ok(order));
    }

    #[test]
    fn a_wrong_order_says_what_is_wanted() {
        assert!(
            read(json!({}))
                .unwrap_err()
                .contains("missing field `server`")
        );
        assert_eq!(
            read(json!({"server": "s", "interval_s": 0})),
            Err("max_events, duration_s and interval_s must be at least 1".to_owned())
        );
    }
}
