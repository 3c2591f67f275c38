//! What the work cost, by day, project and model.
//!
//! Days are those of UTC, for everybody: a sum must not depend on where it is looked at. A price
//! that is not known leaves the cost of a row away instead of making it zero.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use codespar_protocol::{Cost, Usage};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{extract::Params, schema::ApiUsage};
use crate::{error::ApiError, scope::ProjectKey, state::Shared};

const USUAL_DAYS: i64 = 30;
const MOST_DAYS: i64 = 400;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageParams {
    /// The first day, `2026-01-31`, in UTC; 30 days before `until` by default.
    #[param(value_type = Option<String>, format = Date)]
    from: Option<String>,
    /// The last day; today by default. At most 400 days after `from`.
    #[param(value_type = Option<String>, format = Date)]
    until: Option<String>,
    /// Only the project with this key.
    project: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct UsageReport {
    #[schema(format = Date)]
    from: String,
    #[schema(format = Date)]
    until: String,
    /// By day, project and model.
    rows: Vec<UsageRow>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct UsageRow {
    #[schema(format = Date)]
    day: String,
    /// The key of the project.
    project: String,
    model: String,
    /// Calls of agents, and runs of the dev agent.
    calls: u64,
    usage: ApiUsage,
    /// Absent where a price is unknown.
    cost_usd: Option<f64>,
    /// The part with a known price.
    known_cost_usd: f64,
}

/// Show usage by day, project and model.
#[utoipa::path(
    get, path = "/api/v1/usage", tag = "usage", params(UsageParams),
    responses((status = 200, body = UsageReport))
)]
pub(super) async fn show(
    State(state): State<Shared>,
    Params(params): Params<UsageParams>,
) -> Result<Json<UsageReport>, ApiError> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let until = day("until", params.until.as_deref())?.unwrap_or(today);
    let usual = until.checked_sub(USUAL_DAYS.days());
    let from = match day("from", params.from.as_deref())? {
        Some(from) => from,
        None => usual.map_err(|_| ApiError::bad_request("`until` is too early"))?,
    };
    let days = from.until(until).map_err(|_| too_long())?.get_days();
    if !(0..=MOST_DAYS as i32).contains(&days) {
        return Err(too_long());
    }
    let wanted = match &params.project {
        Some(key) => Some(state.scope.root_by_key(key)?.to_path_buf()),
        None => None,
    };
    let end = until.checked_add(1.day()).map_err(|_| too_long())?;
    let found = state
        .store()
        .daily_usage(moment(from)?, moment(end)?)
        .await?;
    let mut sums: BTreeMap<(String, String, String), (u64, Usage, Cost)> = BTreeMap::new();
    for row in found {
        let Some(root) = state.scope.root_of(&row.directory) else {
            continue;
        };
        if wanted.as_deref().is_some_and(|wanted| wanted != root) {
            continue;
        }
        let day = row.day.to_zoned(TimeZone::UTC).date().to_string();
        let key = (day, ProjectKey::of(root).as_str().to_owned(), row.model);
        let sum = sums.entry(key).or_default();
        sum.0 += row.calls;
        sum.1 += row.usage;
        sum.2 += row.cost;
    }
    let row = |((day, project, model), (calls, usage, cost)): (
        (String, String, String),
        (u64, Usage, Cost),
    )| UsageRow {
        day,
        project,
        model,
        calls,
        usage: usage.into(),
        cost_usd: cost.known().map(|usd| usd.dollars()),
        known_cost_usd: cost.at_least().dollars(),
    };
    Ok(Json(UsageReport {
        from: from.to_string(),
        until: until.to_string(),
        rows: sums.into_iter().map(row).collect(),
    }))
}

fn too_long() -> ApiError {
    ApiError::bad_request(format!("`from` is at most {MOST_DAYS} days before `until`"))
}

fn day(name: &str, text: Option<&str>) -> Result<Option<Date>, ApiError> {
    let read = text.map(str::parse).transpose();
    read.map_err(|_| ApiError::bad_request(format!("`{name}` is a day such as 2026-01-31")))
}

fn moment(day: Date) -> Result<Timestamp, ApiError> {
    let at = day.to_zoned(TimeZone::UTC);
    Ok(at.map_err(|_| too_long())?.timestamp())
}
