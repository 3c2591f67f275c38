//! The live events of a server, over connections that come and go.
//!
//! Events on record have a place; a connection that is lost goes on from the last one, so none of
//! them is missed. What agents say as they work has no place and is not repeated.
//!
//! A first connection that fails is an error, since the address or the token may be wrong. Once one
//! has worked, whatever happens is waited out with longer and longer pauses: the run goes on at the
//! server, and whoever follows it wants to see its end.

use std::time::Duration;

use codespar_protocol::{Backoff, TaskId};
use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use super::{RemoteError, RemoteServer};

/// The server gives a sign of life every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
const RECONNECT: Backoff = Backoff {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(15),
};
/// A block of the stream; the server sends at most 64 KB of content.
const MOST_BLOCK: usize = 1 << 20;

/// Something that the server tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RemoteEvent {
    /// The stream is open; `after_loss` if it was before.
    Open { after_loss: bool },
    /// The connection is gone, and is made again.
    Lost { reason: String },
    /// An event by its name.
    Told { name: String, data: Value },
}

/// Follows one server for as long as it is asked for the next event.
pub(crate) struct RemoteEvents {
    server: RemoteServer,
    /// Only events of this task are asked for from the next connection on.
    task: Option<TaskId>,
    last: Option<u64>,
    connection: Option<Response>,
    /// What was read and is not a whole event yet.
    text: Vec<u8>,
    /// Failed connections in a row, for the wait before the next one.
    lost: u32,
    is_new: bool,
}

impl RemoteEvents {
    pub(crate) fn new(server: RemoteServer) -> Self {
        Self {
            server,
            task: None,
            last: None,
            connection: None,
            text: Vec::new(),
            lost: 0,
            is_new: true,
        }
    }

    pub(crate) fn narrow_to(&mut self, task: &TaskId) {
        self.task = Some(task.clone());
    }

    /// The next event. An error is one that another attempt would not mend.
    pub(crate) async fn next(&mut self) -> Result<RemoteEvent, RemoteError> {
        loop {
            if let Some(block) = self.take_block() {
                match self.read(&block) {
                    Some(event) => return Ok(event),
                    None => continue,
                }
            }
            let Some(connection) = &mut self.connection else {
                self.connect().await?;
                continue;
            };
            let reason = match timeout(SILENCE, connection.chunk()).await {
                Ok(Ok(Some(chunk))) if self.text.len() + chunk.len() <= MOST_BLOCK => {
                    self.text.extend_from_slice(&chunk);
                    continue;
                }
                Ok(Ok(Some(_))) => "an event is too large".to_owned(),
                Ok(Ok(None)) => "the server ended the connection".to_owned(),
                Ok(Err(error)) => error.without_url().to_string(),
                Err(_) => "the server is silent".to_owned(),
            };
            self.drop_connection();
            return Ok(RemoteEvent::Lost { reason });
        }
    }

    fn drop_connection(&mut self) {
        self.connection = None;
        self.text.clear();
        self.lost += 1;
    }

    /// Waits longer each time. A server that does not accept us any more ends it.
    async fn connect(&mut self) -> Result<(), RemoteError> {
        if self.lost > 0 {
            tokio::time::sleep(RECONNECT.delay(self.lost)).await;
        }
        let path = match &self.task {
            Some(task) => format!("/api/v1/events?task={task}"),
            None => "/api/v1/events".to_owned(),
        };
        match self.server.open(&path, self.last).await {
            Ok(connection) => self.connection = Some(connection),
            // The first connection tells whether the address is right.
            Err(RemoteError::Unreachable { .. }) if !self.is_new => self.lost += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Up to a blank line. What is left is the beginning of the next.
    fn take_block(&mut self) -> Option<String> {
        let end = self.text.windows(2).position(|pair| pair == b"\n\n")?;
        let rest = self.text.split_off(end + 2);
        let block = std::mem::replace(&mut self.text, rest);
        Some(String::from_utf8_lossy(&block).into_owned())
    }

    /// `None` for signs of life and for what cannot be read; its place counts as seen all the same.
    fn read(&mut self, block: &str) -> Option<RemoteEvent> {
        let field = |name: &str| {
            let mut lines = block.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim_start()))
        };
        if let Some(id) = field("id:").and_then(|id| id.parse().ok()) {
            self.last = Some(id);
        }
        let name = field("event:")?.to_owned();
        if name == "ready" {
            let after_loss = !self.is_new;
            (self.is_new, self.lost) = (false, 0);
            return Some(RemoteEvent::Open { after_loss });
        }
        let data = serde_json::from_str(field("data:")?).ok()?;
        Some(RemoteEvent::Told { name, data })
    }
}
