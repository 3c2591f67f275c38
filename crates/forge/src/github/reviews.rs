//! Reviews with remarks on lines.
//!
//! A review is one request with all its remarks, so it appears as a whole. GitHub refuses it for
//! reasons that can be worked around: a remark on a line outside the diff, or a verdict on one's
//! own pull request. The text of the review then carries what the form cannot.

use std::{collections::HashMap, fmt::Write as _};

use codespar_protocol::{CommitId, Review, ReviewComment, Verdict};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    GitHubForge, MAX_BODY_CHARS,
    api::{Call, Made},
    failure::Failure,
    lines::ShownLines,
    text::shortened,
    wire::{self, login},
};
use crate::{Forge, ForgeError, NewReview};

const READ: &str = "Pull requests: read";
const WRITE: &str = "Pull requests: write";

/// A review in the form it is sent. It starts as a copy of the order and loses remarks and verdict
/// to its body as GitHub refuses them.
struct Draughted {
    verdict: Verdict,
    body: String,
    comments: Vec<ReviewComment>,
}

impl GitHubForge {
    /// Each refusal allows one remedy. The loop ends because a remedy can be applied only a few
    /// times: the verdict once, the remarks until none is left.
    pub(super) async fn post_review(
        &self,
        number: u64,
        new: &NewReview,
    ) -> Result<Review, ForgeError> {
        if let Some(own) = self.own_review(number, &new.key).await? {
            return Ok(own);
        }
        let mut review = Draughted {
            verdict: new.verdict,
            body: new.body.clone(),
            comments: new.comments.clone(),
        };
        // At most: lines outside the diff, then all lines, then the verdict.
        let mut remedies = 0;
        loop {
            let (said, call) = match self.send_review(number, new, &review).await? {
                Sent::Posted(review) => return Ok(review),
                Sent::Refused(said, call) => (said, call),
            };
            remedies += 1;
            let own_work =
                said.is(422, "your own pull request") && review.verdict != Verdict::Comment;
            if own_work {
                review.say_verdict();
            } else if said.status == 422 && !review.comments.is_empty() && remedies <= 3 {
                let shown = ShownLines::of(&self.read_diff(number).await?);
                review.keep_only(&shown);
            } else {
                return Err(Failure::Said(said).explain(&call));
            }
        }
    }

    async fn send_review(
        &self,
        number: u64,
        new: &NewReview,
        review: &Draughted,
    ) -> Result<Sent, ForgeError> {
        let call = Call::with(
            Method::POST,
            self.pull_url(number, &["reviews"])?,
            review.to_json(&new.commit),
            format!("a review of {}", self.describe_pull(number)),
            WRITE,
        )
        .once();
        match self
            .api
            .make(&call, || self.own_review(number, &new.key))
            .await
        {
            Ok(Made::Before(own)) => Ok(Sent::Posted(own)),
            Ok(Made::Now(answer)) => {
                let posted: wire::PullReview = answer.read(&call)?;
                Ok(Sent::Posted(to_review(posted, review.comments.clone())))
            }
            Err(Failure::Said(said)) => Ok(Sent::Refused(said, call)),
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    /// Ours, by key and writer: anyone can copy a key into a text. The writer is asked for only if
    /// some review has the mark, which saves a request in the usual case.
    async fn own_review(&self, number: u64, key: &str) -> Result<Option<Review>, ForgeError> {
        let mark = format!("<!-- codespar-key: {key} -->");
        let marked = |review: &Review| review.body.contains(&mark);
        let reviews = self.list_reviews(number).await?;
        if !reviews.iter().any(marked) {
            return Ok(None);
        }
        let us = self.whoami().await?;
        Ok(reviews
            .into_iter()
            .find(|review| marked(review) && review.author == us))
    }

    /// Reviews and remarks are two lists at GitHub; they are joined by the id of the review.
    /// Remarks outside any review are left out.
    pub(super) async fn list_reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        let reviews = self.wire_reviews(number).await?;
        if reviews.is_empty() {
            return Ok(Vec::new());
        }
        let mut comments: HashMap<u64, Vec<ReviewComment>> = HashMap::new();
        for comment in self.line_comments(number).await? {
            let Some(review) = comment.pull_request_review_id else {
                continue;
            };
            comments.entry(review).or_default().push(ReviewComment {
                path: comment.path,
                line: comment.line.or(comment.original_line).unwrap_or_default(),
                body: comment.body,
            });
        }
        let with_comments = |review: wire::PullReview| {
            let comments = comments.remove(&review.id).unwrap_or_default();
            to_review(review, comments)
        };
        Ok(reviews.into_iter().map(with_comments).collect())
    }

    /// Those that were submitted.
    pub(super) async fn wire_reviews(
        &self,
        number: u64,
    ) -> Result<Vec<wire::PullReview>, ForgeError> {
        let mut reviews: Vec<wire::PullReview> = self.pull_list(number, "reviews").await?;
        reviews.retain(|review| review.state != "PENDING");
        Ok(reviews)
    }

    pub(super) async fn line_comments(
        &self,
        number: u64,
    ) -> Result<Vec<wire::LineComment>, ForgeError> {
        self.pull_list(number, "comments").await
    }

    async fn pull_list<T: serde::de::DeserializeOwned>(
        &self,
        number: u64,
        list: &str,
    ) -> Result<Vec<T>, ForgeError> {
        let url = self.pull_url(number, &[list])?;
        let call = Call::get(url, self.describe_pull(number), READ).query(&[("per_page", "100")]);
        self.api.list(&call).await
    }
}

/// A refusal is a value here, since the caller may have a remedy for it.
enum Sent {
    Posted(Review),
    Refused(super::failure::Said, Call),
}

impl Draughted {
    /// All remarks are on the new side of the diff (`RIGHT`).
    fn to_json(&self, commit: &CommitId) -> Value {
        let comment = |comment: &ReviewComment| json!({"path": comment.path, "line": comment.line, "side": "RIGHT", "body": comment.body});
        let comments: Vec<Value> = self.comments.iter().map(comment).collect();
        json!({
            "commit_id": commit.0,
            "body": shortened(&self.body, MAX_BODY_CHARS),
            "event": match self.verdict {
                Verdict::Comment => "COMMENT",
                Verdict::Approve => "APPROVE",
                Verdict::RequestChanges => "REQUEST_CHANGES",
            },
            "comments": comments,
        })
    }

    /// Nobody may approve or refuse their own: the verdict goes into words.
    fn say_verdict(&mut self) {
        let line = match self.verdict {
            Verdict::Approve => "Verdict: approved.",
            Verdict::RequestChanges => "Verdict: changes are needed.",
            Verdict::Comment => return,
        };
        self.verdict = Verdict::Comment;
        self.body = format!("{line}\n\n{}", self.body);
    }

    /// Remarks on other lines go into the body; all of them, if the lines were not the trouble.
    fn keep_only(&mut self, shown: &ShownLines) {
        let all = std::mem::take(&mut self.comments);
        let (inside, mut outside): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|comment| shown.has(&comment.path, comment.line));
        if outside.is_empty() {
            outside = inside;
        } else {
            self.comments = inside;
        }
        self.body
            .push_str("\n\nOn lines that the diff does not show:\n");
        for comment in outside {
            let text = comment.body.trim().replace('\n', "\n  ");
            // Writing to a String cannot fail.
            let _ = write!(self.body, "\n- `{}:{}`: {text}", comment.path, comment.line);
        }
    }
}

/// GitHub may leave out the commit and the time; they become empty values rather than an error.
fn to_review(review: wire::PullReview, comments: Vec<ReviewComment>) -> Review {
    Review {
        id: review.id.to_string(),
        author: login(review.user.as_ref()),
        verdict: verdict_of(&review.state),
        body: review.body,
        comments,
        commit: CommitId(review.commit_id.unwrap_or_default()),
        at: review.submitted_at.unwrap_or_default(),
    }
}

/// A dismissed review counts as a comment.
pub(super) fn verdict_of(state: &str) -> Verdict {
    match state {
        "APPROVED" => Verdict::Approve,
        "CHANGES_REQUESTED" => Verdict::RequestChanges,
        _ => Verdict::Comment,
    }
}
