//! Who is asked when the rules leave a call to the user.
//!
//! The agent does not know how a question reaches somebody: on this terminal, from another process
//! by way of the store, or not at all. It waits for one answer per call. When the run is stopped it
//! stops waiting and withdraws the question.

use async_trait::async_trait;
use codespar_protocol::{Answer, PermissionRequest, ToolUseId};

/// Someone who can say yes or no, or change the call. On `Answer::Always` and `Answer::AlwaysBy` the
/// one who answers also keeps the rules for later sessions; the running agent adds them to its own.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks and waits. `key` tells the question from all others of the session: asked again after a
    /// crash, the same question is found, with its answer if there is one. Always comes to an
    /// answer: nobody there, a time limit or an error is an `Answer::No` with the reason. The
    /// future is dropped when the run is stopped. An answer that cannot be used is asked again under
    /// another key, with what is wrong with it in the reason.
    async fn ask(&self, key: &str, request: PermissionRequest) -> Answer;

    /// The call was stopped: nobody needs the answer any more.
    async fn withdraw(&self, call: &ToolUseId);
}

/// Headless: there is nobody to ask, so the answer is no, and says how to allow it.
pub struct NobodyThere;

#[async_trait]
impl Approver for NobodyThere {
    async fn ask(&self, _: &str, request: PermissionRequest) -> Answer {
        let advice = match request.suggested_rules.as_slice() {
            [] => "nobody is there to answer in a headless run".to_owned(),
            rules => format!(
                "nobody is there to answer in a headless run; `--allowedTools \"{}\"` would allow it",
                rules.join(",")
            ),
        };
        Answer::No {
            reason: Some(advice),
        }
    }

    async fn withdraw(&self, _: &ToolUseId) {}
}
