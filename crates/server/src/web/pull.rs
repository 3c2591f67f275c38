//! One pull request: what it says, its checks and reviews, its diff, and merging it.
//!
//! The page asks the forge anew each time it is loaded and keeps nothing, so it is never older than
//! its last load. What people and models wrote (title, body, reviews, the diff itself) passes the
//! redactor before it is rendered. Buttons send requests to the API, which checks the role again;
//! leaving a button out is a courtesy to the reader and no protection.

use axum::{extract::State, response::Html};
use codespar_protocol::{AccessRole, CheckState, PullRequest, PullRequestState, Review, Verdict};
use codespar_pulls::CommitChecks;
use maud::{Markup, html};

use super::{
    diff::{self, Remark, Remarks},
    layout::{self, View, may},
    markdown, text,
};
use crate::{
    access::Client,
    api::{Named, reach_pulls},
    error::ApiError,
    state::Shared,
};

/// A number that no forge can have is answered like one that does not exist. Reviews, checks and
/// the diff are asked for together, since each may be a request to GitHub. A diff that cannot be
/// had, because the branch of a merged pull request is gone, is an explanation in its place and not
/// an error of the page.
pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Named((key, number)): Named<(String, u64)>,
) -> Result<Html<String>, ApiError> {
    let missing = |_| ApiError::not_found(format!("there is no pull request #{number}"));
    i64::try_from(number).map_err(missing)?;
    let pulls = reach_pulls(&state, &key).await?;
    let forge = pulls.forge();
    let pull = forge.pull_request(number).await?;
    let (reviews, checks, diff) = tokio::join!(
        forge.reviews(number),
        forge.checks(&pull.head_commit),
        forge.diff(number)
    );
    let (reviews, checks) = (reviews?, checks?);
    // The branch of a merged one may be gone.
    let diff = diff.map(|diff| state.runtime.redactor().redact(&diff).into_owned());
    let content = html! {
        (head(&state, &pull))
        div.columns {
            div {
                section.panel aria-label="Description" {
                    (markdown::render(&state.runtime.redactor().redact(&pull.body)))
                }
            }
            aside id="state" data-live="task" {
                (checks_panel(&state, &checks))
                (reviews_panel(&state, &reviews))
                @if pull.state == PullRequestState::Open { (actions(&client, &key, &pull)) }
            }
        }
        section aria-labelledby="diff-title" {
            h2 id="diff-title" { "Diff" }
            @match &diff {
                Ok(diff) => (diff::unified(diff, &remarks(&state, &reviews))),
                Err(error) => p.note { (text::clean(&state, &error.to_string())) },
            }
        }
    };
    let title = format!("#{number} {}", text::line(&state, &pull.title));
    layout::page(&state, &client, View::Pulls, &title, content).await
}

/// A draft has a state of its own here, although forges count it as open. The link to the forge is
/// shown only if it is a web address: it comes from the answer of the forge.
fn head(state: &Shared, pull: &PullRequest) -> Markup {
    let is_draft = pull.draft && pull.state == PullRequestState::Open;
    let word = if is_draft {
        "draft"
    } else {
        pull.state.as_str()
    };
    html! {
        div.head id="head" data-live="task" {
            div {
                h1 { (text::line(state, &pull.title)) " " span.quiet { "#" (pull.number) } }
                p.facts {
                    span class={ "status " (word) } { (word) }
                    span.mono { (text::line(state, &pull.head)) " → " (text::line(state, &pull.base)) }
                    span { (text::line(state, &pull.author)) }
                    span { "updated " (text::ago(pull.updated_at)) }
                    @if let Some(commit) = &pull.merge_commit { span.mono { (commit.short()) } }
                    @if let Some(url) = pull.url.as_deref().and_then(markdown::web_address) {
                        a rel="noopener noreferrer nofollow" href=(url) { "Open at the forge" }
                    }
                }
            }
        }
    }
}

/// Checks that the token of the server may not read are told from none at all: the first may hide
/// one that failed.
fn checks_panel(state: &Shared, checks: &CommitChecks) -> Markup {
    html! {
        section.panel aria-labelledby="checks-title" {
            h2 id="checks-title" { "Checks" }
            @if let Some(reason) = &checks.unknown {
                p.note { "Checks unknown: " (text::line(state, reason)) }
            } @else if checks.checks.is_empty() {
                p.empty { "No check has looked at this commit." }
            }
            ul.list {
                @for check in &checks.checks {
                    @let (class, word) = match check.state {
                        CheckState::Success => ("success", "passed"),
                        CheckState::Failure => ("failure", "failed"),
                        CheckState::Pending => ("pending", "pending"),
                    };
                    li {
                        span class={ "status " (class) } { (word) }
                        div.grow {
                            (text::line(state, &check.name))
                            @if let Some(summary) = &check.summary { div.note { (text::line(state, summary)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Verdicts are shown in words beside their colour, for people who do not see the difference of
/// colours.
fn reviews_panel(state: &Shared, reviews: &[Review]) -> Markup {
    html! {
        @if !reviews.is_empty() {
            section.panel aria-labelledby="reviews-title" {
                h2 id="reviews-title" { "Reviews" }
                @for (index, review) in reviews.iter().enumerate() {
                    @let (class, word) = match review.verdict {
                        Verdict::Approve => ("success", "approved"),
                        Verdict::RequestChanges => ("failure", "asks for changes"),
                        Verdict::Comment => ("pending", "comment"),
                    };
                    details id={ "review-" (index) } open {
                        summary {
                            (text::line(state, &review.author)) " "
                            span class={ "status " (class) } { (word) } " " (text::ago(review.at))
                        }
                        (markdown::render(&state.runtime.redactor().redact(&review.body)))
                    }
                }
            }
        }
    }
}

/// By the path and the line they were made on. A remark on a line that the diff does not show any
/// more is in its review alone.
fn remarks(state: &Shared, reviews: &[Review]) -> Remarks {
    let mut remarks = Remarks::new();
    for review in reviews {
        for comment in &review.comments {
            let place = (comment.path.clone(), comment.line);
            remarks.entry(place).or_default().push(Remark {
                author: text::line(state, &review.author),
                body: state.runtime.redactor().redact(&comment.body).into_owned(),
            });
        }
    }
    remarks
}

/// What the role of the client reaches; the API decides in any case. An empty strategy is the usual
/// one of the forge.
fn actions(client: &Client, key: &str, pull: &PullRequest) -> Markup {
    let address = format!("/api/v1/projects/{key}/pulls/{}", pull.number);
    let strategies = [
        ("squash", "Squash"),
        ("merge", "Merge commit"),
        ("rebase", "Rebase"),
    ];
    html! {
        @if may(client, AccessRole::Write) {
            section.panel aria-labelledby="actions-title" {
                h2 id="actions-title" { "Actions" }
                @if may(client, AccessRole::Merge) {
                    form id="merge" data-api={ (address) "/merge" } data-done="Merged" method="post" {
                        div.row {
                            label for="strategy" { "Strategy" }
                            select id="strategy" name="strategy" {
                                option value="" { "Usual" }
                                @for (word, name) in strategies { option value=(word) { (name) } }
                            }
                            button.primary { "Merge" }
                        }
                        p.problem role="alert" {}
                    }
                }
                @if pull.draft && pull.state == PullRequestState::Open {
                    form id="ready" data-api={ (address) "/ready" } data-done="Ready" method="post" {
                        div.row { button { "Ready to be merged" } }
                        p.problem role="alert" {}
                    }
                }
                form data-api={ (address) "/review" } data-done="Reviewed" method="post" {
                    div.row { button { "Review by a model" } }
                    p.problem role="alert" {}
                }
            }
        }
    }
}
