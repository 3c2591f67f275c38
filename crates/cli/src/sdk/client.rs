//! The client at the other end: lines to it, requests to it and what it answers.
//!
//! A request is over when its answer comes, when whoever asked does not want it any more (the
//! client is told), or when the client has closed its input. An answer to a request that is over,
//! or that was never made, changes nothing.

use std::{collections::HashMap, sync::Arc};

use codespar_protocol::EntryId;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{printer, signals::Signals};

type Waiting = oneshot::Sender<Result<Value, String>>;

/// Clones speak to the same client.
#[derive(Clone)]
pub(super) struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    signals: Signals,
    waiting: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    open: HashMap<String, Waiting>,
    /// The client says nothing more.
    is_closed: bool,
}

impl Client {
    pub(super) fn new(signals: Signals) -> Self {
        Self {
            shared: Arc::new(Shared {
                signals,
                waiting: Mutex::default(),
            }),
        }
    }

    /// Where a line that cannot be written is told.
    pub(super) fn signals(&self) -> &Signals {
        &self.shared.signals
    }

    /// Writes a line. One that cannot be written ends the run: nobody would see what is paid for.
    pub(super) fn line(&self, line: &Value) {
        if let Err(error) = printer::json(&line.to_string()) {
            self.shared.signals.write_failed(&error);
        }
    }

    /// Answers a request of the client.
    pub(super) fn reply(&self, id: &str, answer: Result<Value, String>) {
        let response = match answer {
            Ok(response) => {
                json!({ "subtype": "success", "request_id": id, "response": response })
            }
            Err(error) => json!({ "subtype": "error", "request_id": id, "error": error }),
        };
        self.line(&json!({ "type": "control_response", "response": response }));
    }

    /// Something that people should know.
    pub(super) fn warn(&self, text: &str) {
        self.line(&json!({
            "type": "system", "subtype": "informational", "level": "warning", "content": text,
            "session_id": "", "uuid": EntryId::new(),
        }));
    }

    /// Asks the client and waits. The error is the client's, or that it is gone. If the future is
    /// dropped, the client is told that nobody waits any more.
    pub(super) async fn ask(&self, request: Value) -> Result<Value, String> {
        let id = EntryId::new().to_string();
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.shared.waiting.lock();
            if waiting.is_closed {
                return Err("the client has closed its input".to_owned());
            }
            waiting.open.insert(id.clone(), answer);
        }
        let _question = OpenRequest {
            client: self,
            id: &id,
        };
        self.line(&json!({ "type": "control_request", "request_id": id, "request": request }));
        answered
            .await
            .unwrap_or_else(|_| Err("the client has closed its input".to_owned()))
    }

    /// Takes the answer of the client. One that nobody waits for is dropped.
    pub(super) fn answered(&self, id: &str, answer: Result<Value, String>) {
        let waiting = self.shared.waiting.lock().open.remove(id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// No answer comes any more: whoever waits for one gets an error.
    pub(super) fn close(&self) {
        let mut waiting = self.shared.waiting.lock();
        waiting.is_closed = true;
        waiting.open.clear();
    }
}

/// Tells the client when nobody waits for its answer any more.
struct OpenRequest<'a> {
    client: &'a Client,
    id: &'a str,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let waiting = self.client.shared.waiting.lock().open.remove(self.id);
        if waiting.is_some() {
            let line = json!({ "type": "control_cancel_request", "request_id": self.id });
            self.client.line(&line);
        }
    }
}
