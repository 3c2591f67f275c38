//! Requests of the HTTP API that are made within the process, as the client of an MCP call.
//!
//! The request goes through the router with the client that was checked at the connection, so the
//! role, the scope and the limits are looked at again there.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, header},
};
use hyper_util::service::TowerToHyperService;
use rmcp::{ErrorData, model::CallToolResult};
use serde_json::{Value, json};

use crate::access::Client;

/// Bytes of an answer: the longest output of a task, and what is around it.
const MOST_ANSWER: usize = 8 << 20;

/// The routes of the API with their checks.
#[derive(Clone)]
pub(super) struct InnerApi(TowerToHyperService<Router>);

impl InnerApi {
    pub(super) fn new(router: Router) -> Self {
        Self(TowerToHyperService::new(router))
    }

    /// What is refused is a result that says so, which the model of the caller can read.
    pub(super) async fn ask(
        &self,
        client: Client,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Result<Value, CallToolResult>, ErrorData> {
        let failed = |error: &dyn std::fmt::Display| {
            ErrorData::internal_error(format!("the request could not be made: {error}"), None)
        };
        let text = body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(text))
            .map_err(|error| failed(&error))?;
        request.extensions_mut().insert(client);
        let answer = hyper::service::Service::call(&self.0, request).await;
        let answer = answer.map_err(|never| failed(&never))?;
        let is_fine = answer.status().is_success();
        let bytes = to_bytes(Body::new(answer.into_body()), MOST_ANSWER).await;
        let bytes = bytes.map_err(|error| failed(&error))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| failed(&error))?;
        Ok(match is_fine {
            true => Ok(value),
            false => Err(refusal(&value)),
        })
    }
}

/// The message of an error of the API, with each reason on a line.
fn refusal(value: &Value) -> CallToolResult {
    let error = &value["error"];
    let mut text = error["message"].as_str().unwrap_or("refused").to_owned();
    let reasons = error["reasons"].as_array();
    for reason in reasons.into_iter().flatten().filter_map(Value::as_str) {
        text.push_str("\n- ");
        text.push_str(reason);
    }
    said_no(&text)
}

/// A result that is an error, for the model of the caller.
pub(super) fn said_no(text: &str) -> CallToolResult {
    CallToolResult::structured_error(json!({ "error": text }))
}
