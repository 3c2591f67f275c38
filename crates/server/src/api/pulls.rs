//! Pull requests of a project: list, one, its diff, review, merge.

use std::{future::Future, sync::Arc};

use axum::{Json, extract::State};
use codespar_protocol::{
    Check, CheckState, MergeStrategy, PullRequest, PullRequestState, Review, Verdict,
};
use codespar_pulls::{CheckRule, Merged, Reviewed, UnknownChecks};
use codespar_runtime::{Project, Pulls, ReviewRequest, requester, which};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    extract::{Body, Named, Params, checked_text},
    schema::StrategySchema,
    task_actions::budget,
};
use crate::{error::ApiError, state::Shared};

#[derive(Serialize, ToSchema)]
pub(super) struct ApiPull {
    number: u64,
    title: String,
    body: String,
    /// `open`, `merged` or `closed`.
    state: String,
    draft: bool,
    /// The branch with the changes.
    head: String,
    head_commit: String,
    /// The branch they are for.
    base: String,
    author: String,
    url: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    merge_commit: Option<String>,
}

impl From<PullRequest> for ApiPull {
    fn from(pull: PullRequest) -> Self {
        Self {
            number: pull.number,
            title: pull.title,
            body: pull.body,
            state: pull.state.as_str().to_owned(),
            draft: pull.draft,
            head: pull.head,
            head_commit: pull.head_commit.0,
            base: pull.base,
            author: pull.author,
            url: pull.url,
            created_at: pull.created_at,
            updated_at: pull.updated_at,
            merge_commit: pull.merge_commit.map(|commit| commit.0),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ApiReview {
    id: String,
    author: String,
    /// `comment`, `approve` or `request_changes`.
    verdict: String,
    body: String,
    comments: Vec<ApiComment>,
    /// The commit it looked at.
    commit: String,
    at: Timestamp,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ApiComment {
    path: String,
    line: u32,
    body: String,
}

impl From<Review> for ApiReview {
    fn from(review: Review) -> Self {
        let comment = |comment: codespar_protocol::ReviewComment| ApiComment {
            path: comment.path,
            line: comment.line,
            body: comment.body,
        };
        let verdict = match review.verdict {
            Verdict::Comment => "comment",
            Verdict::Approve => "approve",
            Verdict::RequestChanges => "request_changes",
        };
        Self {
            id: review.id,
            author: review.author,
            verdict: verdict.to_owned(),
            body: review.body,
            comments: review.comments.into_iter().map(comment).collect(),
            commit: review.commit.0,
            at: review.at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ApiCheck {
    name: String,
    /// `success`, `failure` or `pending`.
    state: String,
    summary: Option<String>,
    url: Option<String>,
}

impl From<Check> for ApiCheck {
    fn from(check: Check) -> Self {
        let state = match check.state {
            CheckState::Success => "success",
            CheckState::Failure => "failure",
            CheckState::Pending => "pending",
        };
        Self {
            name: check.name,
            state: state.to_owned(),
            summary: check.summary,
            url: check.url,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PullStates {
    #[default]
    Open,
    Merged,
    /// Merged ones too.
    Closed,
    All,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// `open` by default.
    #[param(inline)]
    state: Option<PullStates>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct PullList {
    /// Latest first.
    pull_requests: Vec<ApiPull>,
}

/// List pull requests, latest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/pulls", tag = "pull requests",
    params(("project" = String, Path), ListParams),
    responses((status = 200, body = PullList))
)]
pub(super) async fn list(
    State(state): State<Shared>,
    Named(project): Named<String>,
    Params(params): Params<ListParams>,
) -> Result<Json<PullList>, ApiError> {
    let wanted = params.state.unwrap_or_default();
    let asked = match wanted {
        PullStates::Open => Some(PullRequestState::Open),
        PullStates::Merged => Some(PullRequestState::Merged),
        PullStates::Closed | PullStates::All => None,
    };
    let pulls = reach(&state, &project).await?;
    let mut found = pulls.forge().pull_requests(asked).await?;
    if matches!(wanted, PullStates::Closed) {
        found.retain(|pull| pull.state != PullRequestState::Open);
    }
    Ok(Json(PullList {
        pull_requests: found.into_iter().map(ApiPull::from).collect(),
    }))
}

#[derive(Serialize, ToSchema)]
pub(super) struct PullDetails {
    pull_request: ApiPull,
    reviews: Vec<ApiReview>,
    checks: Vec<ApiCheck>,
    /// Why there may be other checks: the server's token may not read them.
    checks_unknown: Option<String>,
}

/// Show a pull request with its reviews and checks.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/pulls/{number}", tag = "pull requests",
    params(("project" = String, Path), ("number" = u64, Path)),
    responses((status = 200, body = PullDetails))
)]
pub(super) async fn get(
    State(state): State<Shared>,
    Named((project, number)): Named<(String, u64)>,
) -> Result<Json<PullDetails>, ApiError> {
    let pulls = reach(&state, &project).await?;
    let forge = pulls.forge();
    let pull = forge.pull_request(checked_number(number)?).await?;
    let reviews = forge.reviews(number).await?;
    let checks = forge.checks(&pull.head_commit).await?;
    Ok(Json(PullDetails {
        pull_request: pull.into(),
        reviews: reviews.into_iter().map(ApiReview::from).collect(),
        checks: checks.checks.into_iter().map(ApiCheck::from).collect(),
        checks_unknown: checks.unknown,
    }))
}

#[derive(Serialize, ToSchema)]
pub(super) struct PullDiff {
    number: u64,
    /// Unified.
    diff: String,
}

/// Show the diff of a pull request.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/pulls/{number}/diff", tag = "pull requests",
    params(("project" = String, Path), ("number" = u64, Path)),
    responses((status = 200, body = PullDiff))
)]
pub(super) async fn diff(
    State(state): State<Shared>,
    Named((project, number)): Named<(String, u64)>,
) -> Result<Json<PullDiff>, ApiError> {
    let pulls = reach(&state, &project).await?;
    let diff = pulls.forge().diff(checked_number(number)?).await?;
    let diff = state.runtime.redactor().redact(&diff).into_owned();
    Ok(Json(PullDiff { number, diff }))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReviewOrder {
    /// The model: an alias or an id.
    model: Option<String>,
    /// The most that it may cost.
    max_budget_usd: Option<f64>,
}

/// What a review came to.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApiReviewed {
    number: u64,
    review: ApiReview,
    /// Findings on lines of the diff.
    #[schema(value_type = Vec<Object>)]
    findings: Value,
    /// The others; they are part of the text of the review.
    #[schema(value_type = Vec<Object>)]
    unplaced: Value,
    /// Files that the model was not shown, or only in part.
    unseen: Vec<String>,
    /// `level` and `reasons`.
    #[schema(value_type = Object)]
    risk: Value,
    /// No model was asked.
    simulated: bool,
    cost_usd: Option<f64>,
}

impl From<Reviewed> for ApiReviewed {
    fn from(reviewed: Reviewed) -> Self {
        let json = |value: Result<Value, _>| value.unwrap_or_default();
        Self {
            number: reviewed.number,
            findings: json(serde_json::to_value(&reviewed.findings)),
            unplaced: json(serde_json::to_value(&reviewed.unplaced)),
            unseen: reviewed.unseen,
            risk: json(serde_json::to_value(&reviewed.risk)),
            simulated: reviewed.simulated,
            cost_usd: reviewed.cost_usd.map(|usd| usd.dollars()),
            review: reviewed.review.into(),
        }
    }
}

/// Review a pull request and post the findings. A commit is reviewed once.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/pulls/{number}/review", tag = "pull requests",
    params(("project" = String, Path), ("number" = u64, Path)), request_body = ReviewOrder,
    responses((status = 200, body = ApiReviewed))
)]
pub(super) async fn review(
    State(state): State<Shared>,
    Named((project, number)): Named<(String, u64)>,
    Body(order): Body<ReviewOrder>,
) -> Result<Json<ApiReviewed>, ApiError> {
    if let Some(model) = &order.model {
        checked_text("model", model, 200)?;
    }
    let request = ReviewRequest {
        model: order.model,
        max_budget: order.max_budget_usd.map(budget).transpose()?,
    };
    let pulls = reach(&state, &project).await?;
    // Unknown numbers are told from reviews that failed.
    pulls.forge().pull_request(checked_number(number)?).await?;
    let cancel = state.stopping.clone();
    let reviewed = carried_on(&state, async move {
        Ok(pulls.review(number, &request, &cancel).await?)
    });
    Ok(Json(ApiReviewed::from(reviewed.await?)))
}

/// Make a draft ready to be merged, if its checks have passed.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/pulls/{number}/ready", tag = "pull requests",
    params(("project" = String, Path), ("number" = u64, Path)),
    responses((status = 200, body = ApiPull))
)]
pub(super) async fn ready(
    State(state): State<Shared>,
    Named((project, number)): Named<(String, u64)>,
) -> Result<Json<ApiPull>, ApiError> {
    let pulls = reach(&state, &project).await?;
    // Unknown numbers are told from drafts that stay drafts.
    pulls.forge().pull_request(checked_number(number)?).await?;
    let ready = carried_on(&state, async move {
        Ok(pulls.make_ready(number, CheckRule::MustPass).await?)
    });
    Ok(Json(ApiPull::from(ready.await?)))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MergeRequest {
    /// The forge's usual one where it is missing.
    #[schema(value_type = Option<StrategySchema>)]
    strategy: Option<MergeStrategy>,
    /// Merge although the server's token may not read all checks. One that is known to have failed
    /// still blocks it.
    without_checks: bool,
}

/// What a merge came to.
#[derive(Serialize, ToSchema)]
pub(super) struct ApiMerged {
    number: u64,
    /// The commit on the base.
    commit: String,
    #[schema(value_type = StrategySchema)]
    strategy: MergeStrategy,
    base: String,
    /// No check has looked at what was merged, as far as is known.
    unchecked: bool,
    /// Why not all checks are known.
    checks_unknown: Option<String>,
    /// Why the commit lacks the signature that the settings of git ask for.
    not_signed: Option<String>,
    deleted_branch: Option<String>,
    /// The branch that could not be deleted, and why.
    kept_branch: Option<String>,
}

impl From<Merged> for ApiMerged {
    fn from(merged: Merged) -> Self {
        Self {
            number: merged.number,
            commit: merged.commit.0,
            strategy: merged.strategy,
            base: merged.base,
            unchecked: merged.unchecked,
            checks_unknown: merged.checks_unknown,
            not_signed: merged.not_signed,
            deleted_branch: merged.deleted_branch,
            kept_branch: merged.kept_branch,
        }
    }
}

/// Merge a pull request if nothing blocks it; otherwise every reason is given.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/pulls/{number}/merge", tag = "pull requests",
    params(("project" = String, Path), ("number" = u64, Path)), request_body = MergeRequest,
    responses((status = 200, body = ApiMerged))
)]
pub(super) async fn merge(
    State(state): State<Shared>,
    Named((project, number)): Named<(String, u64)>,
    Body(order): Body<MergeRequest>,
) -> Result<Json<ApiMerged>, ApiError> {
    checked_number(number)?;
    let open = state.scope.project(&project)?;
    let pulls = reach_project(&state, &open).await?;
    let merged = carried_on(&state, async move {
        let who = requester(&open.dir, pulls.forge()).await;
        let unknown = match order.without_checks {
            true => UnknownChecks::Accept,
            false => UnknownChecks::Refuse,
        };
        let merged =
            codespar_pulls::merge(pulls.forge(), number, order.strategy, &who, unknown).await;
        Ok(merged?)
    });
    Ok(Json(ApiMerged::from(merged.await?)))
}

pub(crate) async fn reach(state: &Shared, project: &str) -> Result<Pulls, ApiError> {
    reach_project(state, &state.scope.project(project)?).await
}

async fn reach_project(state: &Shared, project: &Arc<Project>) -> Result<Pulls, ApiError> {
    let repository = which(&project.dir, &project.settings, None)?;
    Ok(Pulls::of(&project.dir, state.store().clone(), &repository).await?)
}

/// The database counts up to here.
fn checked_number(number: u64) -> Result<u64, ApiError> {
    match i64::try_from(number) {
        Ok(_) => Ok(number),
        Err(_) => Err(ApiError::not_found(format!(
            "there is no pull request #{number}"
        ))),
    }
}

/// Does work to its end even if the client leaves: half a merge is worse than one that nobody waits
/// for.
async fn carried_on<T: Send + 'static>(
    state: &Shared,
    work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    let done = state.background.spawn(work).await;
    done.map_err(ApiError::internal)?
}
