//! Reviews and remarks on lines.
//!
//! A review is posted with its remarks in one request, and is there whole or not at all. Remarks
//! are checked against the diff as it is now. Comments on the pull request itself are in
//! `conversation.rs`.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered, plain_page},
    pulls,
    route::{HandlerContext, not_found},
    shapes,
    state::{LineComment, Review, now},
};

fn review_json(context: &HandlerContext<'_>, review: &Review) -> Value {
    json!({
        "id": review.id,
        "node_id": format!("PRR_{}", review.id),
        "user": shapes::user(&review.author),
        "body": review.body,
        "state": review.state,
        "html_url": context.room.page(&format!("/pull/{}#review-{}", review.pull, review.id)),
        "pull_request_url": context.room.api(&format!("/pulls/{}", review.pull)),
        "commit_id": review.commit,
        "submitted_at": review.at.to_string(),
        "author_association": "MEMBER",
    })
}

pub(super) fn list(context: &HandlerContext<'_>, number: u64) -> Answered {
    let of_pull = context
        .state
        .reviews
        .iter()
        .filter(|review| review.pull == number);
    let all: Vec<Value> = of_pull.map(|review| review_json(context, review)).collect();
    plain_page(context.asked, &all)
}

pub(super) fn get(context: &HandlerContext<'_>, id: &str) -> Answered {
    let mut reviews = context.state.reviews.iter();
    let found = reviews.find(|review| review.id.to_string() == id);
    let found = found.ok_or_else(not_found)?;
    Ok(Answer::json(200, &review_json(context, found)))
}

pub(super) fn line_comments(context: &HandlerContext<'_>, number: u64) -> Answered {
    remarks(context, |review| review.pull == number)
}

pub(super) fn comments_of(context: &HandlerContext<'_>, id: &str) -> Answered {
    remarks(context, |review| review.id.to_string() == id)
}

fn remarks(context: &HandlerContext<'_>, is_of: impl Fn(&Review) -> bool) -> Answered {
    let of_pull = context.state.reviews.iter().filter(|review| is_of(review));
    let comment = |(review, comment): (&Review, &LineComment)| {
        json!({
            "id": comment.id,
            "node_id": format!("PRRC_{}", comment.id),
            "pull_request_review_id": review.id,
            "user": shapes::user(&review.author),
            "path": comment.path,
            "line": comment.line,
            "original_line": comment.line,
            "side": "RIGHT",
            "body": comment.body,
            "commit_id": review.commit,
            "original_commit_id": review.commit,
            "created_at": review.at.to_string(),
            "updated_at": review.at.to_string(),
        })
    };
    let all: Vec<Value> = of_pull
        .flat_map(|review| review.comments.iter().map(move |comment| (review, comment)))
        .map(comment)
        .collect();
    plain_page(context.asked, &all)
}

fn unprocessable(error: &str) -> Answer {
    Answer::invalid("Unprocessable Entity", &json!([error]))
}

/// Anyone who can read may review. Nobody approves or rejects their own, and a comment or a
/// rejection needs a text. Without an event it stays `PENDING`.
pub(super) fn post(context: &mut HandlerContext<'_>, number: u64) -> Answered {
    let asked = &context.asked.json;
    let body = asked["body"].as_str().unwrap_or_default().to_owned();
    let state = match asked["event"].as_str() {
        Some("COMMENT") => "COMMENTED",
        Some("APPROVE") => "APPROVED",
        Some("REQUEST_CHANGES") => "CHANGES_REQUESTED",
        _ => "PENDING",
    };
    let who = context.who.login.clone();
    let pull = context.state.pull(number).ok_or_else(not_found)?;
    let own = pull.author == who;
    let head = pull.head_sha.clone();
    match state {
        "APPROVED" if own => return Err(unprocessable("Can not approve your own pull request")),
        "CHANGES_REQUESTED" if own => {
            return Err(unprocessable(
                "Can not request changes on your own pull request",
            ));
        }
        "COMMENTED" | "CHANGES_REQUESTED" if body.is_empty() => {
            return Err(unprocessable("Body can't be blank"));
        }
        _ => {}
    }
    let commit = asked["commit_id"].as_str().unwrap_or(&head).to_owned();
    if context.room.git.kind(&commit).as_deref() != Some("commit") {
        return Err(unprocessable("The commit is not part of the pull request"));
    }
    let mut comments = Vec::new();
    for comment in asked["comments"].as_array().cloned().unwrap_or_default() {
        comments.push(line_comment(context, number, &comment)?);
    }
    let review = Review {
        id: context.state.next_id(),
        pull: number,
        author: who,
        body,
        state: state.to_owned(),
        commit,
        at: now(),
        comments,
    };
    let answer = review_json(context, &review);
    context.state.reviews.push(review);
    Ok(Answer::json(200, &answer))
}

/// A line that the diff shows on its new side, or an error.
fn line_comment(
    context: &mut HandlerContext<'_>,
    number: u64,
    comment: &Value,
) -> Result<LineComment, Answer> {
    let path = comment["path"].as_str().unwrap_or_default();
    let line = comment["line"].as_u64().unwrap_or_default();
    let diff = pulls::diff(context, number, &["--", path])?;
    let diff = String::from_utf8_lossy(&diff);
    if diff.is_empty() {
        return Err(unprocessable("Path could not be resolved"));
    }
    // Every line of a hunk's new side is shown.
    let mut hunks = diff.lines().filter_map(|line| line.strip_prefix("@@ "));
    let shown = hunks.any(|hunk| {
        let new = hunk.split(' ').nth(1).and_then(|new| new.strip_prefix('+'));
        let (start, count) = new
            .map(|new| new.split_once(',').unwrap_or((new, "1")))
            .unwrap_or_default();
        let (start, count) = (start.parse().unwrap_or(0), count.parse().unwrap_or(0));
        (start..start + count).contains(&line)
    });
    if !shown {
        return Err(unprocessable("Line could not be resolved"));
    }
    Ok(LineComment {
        id: context.state.next_id(),
        path: path.to_owned(),
        line,
        body: comment["body"].as_str().unwrap_or_default().to_owned(),
    })
}
