//! `monitor_mcp`: watches an MCP server and tells what it tells, and whether it is there.
//!
//! Nothing of the server's content is acted upon: events are written to the output file and shown,
//! and the session hears a summary at the end. Without `duration_s` or `max_events` a monitor runs
//! until it is stopped; a headless run does not wait for one without `duration_s`.

mod journal;
mod runner;

use std::path::Path;

use async_trait::async_trait;
use codespar_mcp::McpServer;
use codespar_protocol::MonitorSpec;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use runner::MonitorRunner;

/// How often a server is asked whether it is there, if nothing else is said.
const INTERVAL_S: u64 = 30;

/// Finds servers for monitors.
#[async_trait]
pub trait ServerSource: Send + Sync {
    /// The server of this name in the project. The error says what there is.
    async fn server(&self, root: &Path, name: &str) -> Result<std::sync::Arc<McpServer>, String>;
}

/// What a caller writes to say what to watch.
#[derive(Deserialize)]
struct Wanted {
    server: String,
    #[serde(default, deserialize_with = "one_or_more")]
    resources: Vec<String>,
    max_events: Option<u32>,
    duration_s: Option<u64>,
    #[serde(default = "interval")]
    interval_s: u64,
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

/// Reads what a caller gave along with a task; keys that a monitor has no use for are the
/// caller's own.
pub fn monitor_spec(given: &Map<String, Value>, root: &Path) -> Result<MonitorSpec, String> {
    let wanted: Wanted = serde_json::from_value(Value::Object(given.clone())).map_err(|error| {
        format!(
            "a monitor_mcp task needs `metadata.server` and takes resources (a list of URIs), \
             max_events, duration_s and interval_s: {error}"
        )
    })?;
    if wanted.interval_s == 0 || wanted.max_events == Some(0) || wanted.duration_s == Some(0) {
        return Err("max_events, duration_s and interval_s must be at least 1".to_owned());
    }
    Ok(MonitorSpec {
        server: wanted.server,
        resources: wanted.resources,
        max_events: wanted.max_events,
        duration_s: wanted.duration_s,
        interval_s: wanted.interval_s,
        root: root.to_path_buf(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(metadata: Value) -> Result<MonitorSpec, String> {
        let Value::Object(metadata) = metadata else {
            panic!("not an object")
        };
        monitor_spec(&metadata, Path::new("/p"))
    }

    #[test]
    fn what_is_given_is_read_with_its_defaults() {
        let order = read(json!({"server": "s", "resources": "note:///a", "other": 1})).unwrap();
        assert_eq!(
            order,
            MonitorSpec {
                server: "s".to_owned(),
                resources: vec!["note:///a".to_owned()],
                max_events: None,
                duration_s: None,
                interval_s: 30,
                root: "/p".into(),
            }
        );
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
