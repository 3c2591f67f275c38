//! The three things that are asked for in GraphQL.
//!
//! Queries are not parsed: they are told by a word in them. Drafts can be changed only here, since
//! the REST API has no way to do it.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered},
    route::HandlerContext,
    state::{Level, now},
};

pub(super) fn answer(context: &mut HandlerContext<'_>) -> Answered {
    let query = context.asked.text("query")?;
    let draft = if query.contains("markPullRequestReadyForReview") {
        false
    } else if query.contains("convertPullRequestToDraft") {
        true
    } else if query.contains("viewer") {
        return data(&json!({"viewer": {"login": context.who.login}}));
    } else {
        return error("undefinedField", "the fake knows no such query");
    };
    if context.who.level < Level::Write {
        return error(
            "FORBIDDEN",
            "Resource not accessible by personal access token",
        );
    }
    let id = context.asked.json["variables"]["id"]
        .as_str()
        .unwrap_or_default();
    let number = id
        .strip_prefix("PR_")
        .and_then(|number| number.parse().ok());
    let Some(pull) = number.and_then(|number| context.state.pull(number)) else {
        return error(
            "NOT_FOUND",
            &format!("Could not resolve to a node with the global id of '{id}'"),
        );
    };
    if !pull.open {
        return error("UNPROCESSABLE", "Pull request is closed");
    }
    pull.draft = draft;
    pull.updated_at = now();
    data(&json!({"done": {"clientMutationId": null}}))
}

fn data(data: &Value) -> Answered {
    Ok(Answer::json(200, &json!({"data": data})))
}

/// With status 200, as there.
fn error(kind: &str, message: &str) -> Answered {
    let errors = json!([{"type": kind, "message": message}]);
    Ok(Answer::json(200, &json!({"data": null, "errors": errors})))
}
