//! What the REST API cannot do: drafts made ready and back, and who an app's token is.
//!
//! The queries are constants; values travel as variables, never as part of the text.

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GitHubForge, api::Call, failure::Failure, limits::refused_until};
use crate::{Draft, ForgeError};

const READY: &str = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }";
const DRAFT: &str = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) { clientMutationId } }";
const VIEWER: &str = "query { viewer { login } }";

#[derive(Deserialize)]
struct Reply {
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<ReplyError>,
}

#[derive(Deserialize)]
struct ReplyError {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: String,
}

impl GitHubForge {
    /// Both changes are the same when made twice.
    pub(super) async fn set_draft(
        &self,
        number: u64,
        node: &str,
        draft: Draft,
    ) -> Result<(), ForgeError> {
        let query = match draft {
            Draft::Ready => READY,
            Draft::Draft => DRAFT,
        };
        let what = self.describe_pull(number);
        self.query(query, json!({"id": node}), what, "Pull requests: write")
            .await?;
        Ok(())
    }

    /// Empty if GitHub names nobody.
    pub(super) async fn viewer(&self) -> Result<String, ForgeError> {
        let data = self
            .query(
                VIEWER,
                json!({}),
                "the token's user".to_owned(),
                "Metadata: read",
            )
            .await?;
        Ok(data["viewer"]["login"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }

    /// Only the first error is reported. Both mutations and the query may be repeated, so the call
    /// is not marked as one to be sent once.
    async fn query(
        &self,
        query: &str,
        variables: Value,
        what: String,
        needs: &'static str,
    ) -> Result<Value, ForgeError> {
        let body = json!({"query": query, "variables": variables});
        let call = Call::with(Method::POST, self.api.graphql.clone(), body, what, needs);
        let reply: Reply = self.api.read(&call).await?;
        let Some(error) = reply.errors.first() else {
            return Ok(reply.data.unwrap_or_default());
        };
        Err(refused(&call, error))
    }
}

/// Errors of GraphQL come with status 200. The type of the first error is mapped to the variants
/// that the REST calls use, so that callers need not know which API was used.
fn refused(call: &Call, error: &ReplyError) -> ForgeError {
    let what = call.what.clone();
    let message = &error.message;
    match error.kind.as_deref() {
        Some("NOT_FOUND") => ForgeError::NotFound(format!("{what}: {message}")),
        Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => ForgeError::Forbidden {
            what,
            reason: format!(
                "{message} (the token likely lacks the permission {})",
                call.needs
            ),
        },
        Some("RATE_LIMITED") => {
            match refused_until(429, &reqwest::header::HeaderMap::new(), message) {
                Some(until) => Failure::Limited(until).explain(call),
                None => ForgeError::Refused(message.clone()),
            }
        }
        _ => ForgeError::Refused(format!("{what}: {message}")),
    }
}
