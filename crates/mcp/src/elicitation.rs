//! What a server wants to know of the user.
//!
//! A server may ask for the values of a form while it works on a call. The question belongs to the
//! server, not to an agent: servers are shared. While it is open, the time limit of the server's
//! calls does not run.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use codespar_protocol::{Answer, ElicitationRequest};
use serde_json::{Map, Value};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// With signs of progress a call may take this many times its limit. A server could send them for
/// ever.
const MAX_TOTAL: u32 = 30;

/// Puts the questions of servers to the user.
#[async_trait]
pub trait Elicitor: Send + Sync {
    /// Asks and waits, until there is an answer or the server has given up. Anything but
    /// `Answer::Form` is passed on as declined.
    async fn elicit(&self, request: ElicitationRequest, gave_up: &CancellationToken) -> Answer;
}

/// Set once, before servers connect; without one they are told that nobody can be asked.
#[derive(Clone, Default)]
pub struct SharedElicitor(Arc<OnceLock<Arc<dyn Elicitor>>>);

impl fmt::Debug for SharedElicitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedElicitor")
            .field(&self.0.get().is_some())
            .finish()
    }
}

impl SharedElicitor {
    pub(super) fn get(&self) -> Option<Arc<dyn Elicitor>> {
        self.0.get().cloned()
    }

    /// The first one stays.
    pub(super) fn set(&self, elicitor: Arc<dyn Elicitor>) {
        let _ = self.0.set(elicitor);
    }
}

/// How many questions of a server are open. Meanwhile its calls take as long as the user does.
#[derive(Clone)]
pub(super) struct OpenElicitations(Arc<watch::Sender<u32>>);

impl Default for OpenElicitations {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

/// One open question.
pub(super) struct OpenElicitation(OpenElicitations);

impl Drop for OpenElicitation {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

impl OpenElicitations {
    /// Counts until the value is dropped, however the question ends.
    pub(super) fn open(&self) -> OpenElicitation {
        self.0.send_modify(|open| *open += 1);
        OpenElicitation(self.clone())
    }

    /// Returns when a call has taken too long: `time` without an open question and without a sign
    /// of progress, or [`MAX_TOTAL`] times that in all. After each question and each sign the time
    /// starts anew, so a server is never given less than its limit.
    pub(super) async fn time_out(&self, time: Duration, progress: &mut watch::Receiver<u64>) {
        let mut open = self.0.subscribe();
        let mut left = time * MAX_TOTAL;
        loop {
            // The sender is ours: there is always one.
            let _ = open.wait_for(|open| *open == 0).await;
            let began = Instant::now();
            tokio::select! {
                () = sleep(time.min(left)) => return,
                _ = open.wait_for(|open| *open > 0) => {}
                Ok(()) = progress.changed() => {}
            }
            left = left.saturating_sub(began.elapsed());
        }
    }
}

/// A form with the defaults of the fields that were left empty, as the protocol wants it.
pub(super) fn with_defaults(schema: &Value, mut content: Map<String, Value>) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, field) in properties.into_iter().flatten() {
        if let Some(default) = field.get("default").filter(|value| !value.is_null()) {
            content
                .entry(name.clone())
                .or_insert_with(|| default.clone());
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_were_left_empty_have_their_defaults() {
        let schema = json!({"properties": {
            "name": {"type": "string", "default": "John"},
            "age": {"type": "integer", "default": 30},
            "other": {"type": "string"},
        }});
        let typed = json!({"age": 4});
        let content = with_defaults(&schema, typed.as_object().unwrap().clone());
        assert_eq!(Value::Object(content), json!({"name": "John", "age": 4}));
    }

    #[tokio::test]
    async fn progress_extends_the_time_of_a_call_but_not_for_ever() {
        let (signs, mut progress) = watch::channel(0);
        let limit = Duration::from_millis(40);
        let calls = OpenElicitations::default();
        let deadline = Duration::from_secs(60);
        let endless = async {
            loop {
                sleep(Duration::from_millis(4)).await;
                signs.send_modify(|count| *count += 1);
            }
        };
        let out = calls.time_out(limit, &mut progress);
        let ended = async {
            tokio::select! {
                () = out => {}
                () = endless => {}
            }
        };
        tokio::time::timeout(deadline, ended).await.unwrap();
        assert!(*signs.borrow() > 20, "it was given more than its limit");
        let silent = calls.time_out(limit, &mut progress);
        tokio::time::timeout(deadline, silent).await.unwrap();
    }
}
