//! Requests as they came and how they were answered.
//!
//! Tests look here for what the program did not do: no second commit, no request without a token,
//! no force.

use serde_json::Value;

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    /// The path as it was sent, without the query.
    pub path: String,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    /// All header fields; names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; `null` if there is none.
    pub body: Value,
    /// The status of the answer, sent or not.
    pub status: u16,
    /// The answer as JSON; `null` if it is none.
    pub answer: Value,
}

impl RecordedRequest {
    /// The first header field of this name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(field, _)| field == name);
        field.map(|(_, value)| value.as_str())
    }
}
