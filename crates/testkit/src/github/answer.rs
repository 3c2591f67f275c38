//! Answers: JSON, pages, tags, errors.
//!
//! Errors have the shape of the API: a message, the address of its documentation, the status as a
//! text; 422 may add a list of what is wrong.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::route::Asked;

/// What is sent back.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// An answer, or an error as an answer.
pub(super) type Answered = Result<Answer, Answer>;

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::bytes(
            status,
            "application/json; charset=utf-8",
            body.to_string().into_bytes(),
        )
    }

    pub(super) fn bytes(status: u16, kind: &str, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), kind.to_owned())],
            body,
        }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::json(
            status,
            &json!({
                "message": message,
                "documentation_url": "https://docs.github.com/rest",
                "status": status.to_string(),
            }),
        )
    }

    /// 422 with details.
    pub(super) fn invalid(message: &str, errors: &Value) -> Self {
        Self::json(
            422,
            &json!({
                "message": message,
                "errors": errors,
                "documentation_url": "https://docs.github.com/rest",
                "status": "422",
            }),
        )
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the tag; 304 if the client has it already. A weak tag made from the body, for `GET`
    /// with status 200.
    pub(super) fn tagged(self, asked: &Asked) -> Self {
        let mut hasher = DefaultHasher::new();
        self.body.hash(&mut hasher);
        let tag = format!("W/\"{:016x}\"", hasher.finish());
        let known = asked.header("if-none-match") == Some(tag.as_str());
        let answer = if known { Self::empty(304) } else { self };
        answer.header("ETag", tag)
    }
}

/// One page of a list with its `Link`; `wrap` makes the body. 30 entries by default, 100 at most,
/// pages from 1. A page beyond the last is empty.
pub(super) fn page(
    asked: &Asked,
    all: &[Value],
    wrap: impl FnOnce(Vec<Value>) -> Value,
) -> Answered {
    let number = |name: &str, default: usize| match asked.query(name) {
        Some(text) => text
            .parse()
            .map_err(|_| Answer::error(422, &format!("{name} is not a number"))),
        None => Ok(default),
    };
    let per_page = number("per_page", 30)?.clamp(1, 100);
    let page = number("page", 1)?.max(1);
    let last = all.len().div_ceil(per_page).max(1);
    let some: Vec<Value> = all
        .iter()
        .skip((page - 1) * per_page)
        .take(per_page)
        .cloned()
        .collect();
    let mut links = Vec::new();
    let mut link = |to: usize, rel: &str| {
        links.push(format!("<{}>; rel=\"{rel}\"", asked.url_with_page(to)));
    };
    if page > 1 {
        link(page - 1, "prev");
    }
    if page < last {
        link(page + 1, "next");
        link(last, "last");
    }
    if page > 1 {
        link(1, "first");
    }
    let answer = Answer::json(200, &wrap(some));
    Ok(if links.is_empty() {
        answer
    } else {
        answer.header("Link", links.join(", "))
    })
}

/// A page of a plain list.
pub(super) fn plain_page(asked: &Asked, all: &[Value]) -> Answered {
    page(asked, all, Value::from)
}
