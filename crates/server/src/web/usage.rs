//! What the work cost: by day, model and project.
//!
//! Sums are those of the store, by day in UTC, project and model; nothing is counted twice and
//! nothing is cached. Where a price is not known, a sum is the part that is, and is marked as a
//! lower bound. Usage of directories that are not of a project of this server is left out.

use std::collections::BTreeMap;

use axum::{extract::State, response::Html};
use codespar_protocol::{Cost, TaskRecord, Usage};
use codespar_store::TaskFilter;
use jiff::{SignedDuration, Timestamp, ToSpan, tz::TimeZone};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    board,
    chart::{self, Bar},
    layout::{self, View},
    text,
};
use crate::{access::Client, api::Params, error::ApiError, scope::ProjectKey, state::Shared};

/// How many of the most expensive and of the slowest tasks.
const RANKED: usize = 8;

/// As the address has them; a number of days that is not offered means thirty.
#[derive(Deserialize, Default)]
pub(crate) struct UsageParams {
    #[serde(default)]
    days: String,
    #[serde(default)]
    project: String,
}

/// Of whatever a row or a bar stands for. The cost keeps apart what is known from what is not, so
/// adding up never makes an unknown price look like zero.
#[derive(Default, Clone)]
struct Sum {
    calls: u64,
    usage: Usage,
    cost: Cost,
}

impl Sum {
    fn add(&mut self, calls: u64, usage: Usage, cost: Cost) {
        self.calls += calls;
        self.usage += usage;
        self.cost += cost;
    }

    fn dollars(&self) -> f64 {
        self.cost.at_least().dollars()
    }
}

/// The same rows added up in each of the ways that the page shows, in one pass. Days without usage
/// are there with zero: the chart has a column for each.
#[derive(Default)]
struct Sums {
    total: Sum,
    days: BTreeMap<String, Sum>,
    models: BTreeMap<String, Sum>,
    projects: BTreeMap<String, Sum>,
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Params(params): Params<UsageParams>,
) -> Result<Html<String>, ApiError> {
    let days = match params.days.as_str() {
        "7" => 7,
        "90" => 90,
        _ => 30,
    };
    let sums = sums(&state, days, &params.project).await?;
    let content = html! {
        h1 { "Usage" }
        (filters(&state, days, &params.project))
        div id="sums" data-live="task" {
            div.tiles {
                div.tile { b { (text::cost(sums.total.cost)) } span { "cost in " (days) " days" } }
                div.tile { b { (text::count(sums.total.usage.total_tokens())) } span { "tokens" } }
                div.tile { b { (text::count(sums.total.calls)) } span { "calls and runs" } }
            }
            div.pair {
            (by_day("Cost per day", &sums, Sum::dollars, &text::dollars))
            (by_day("Tokens per day", &sums, |sum| sum.usage.total_tokens() as f64, &|n| text::count(n as u64)))
            }
            (table(&state, "By model", "Model", &sums.models))
            (table(&state, "By project", "Project", &sums.projects))
            (outliers(&state, days).await?)
        }
    };
    layout::page(&state, &client, View::Usage, "Usage", content).await
}

/// The end is tomorrow: a row of today must not be lost to the difference between clocks.
async fn sums(state: &Shared, days: i64, project: &str) -> Result<Sums, ApiError> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let first = today
        .checked_sub((days - 1).days())
        .map_err(ApiError::internal)?;
    let from = first.to_zoned(TimeZone::UTC).map_err(ApiError::internal)?;
    let until = Timestamp::now() + SignedDuration::from_hours(24);
    let names: BTreeMap<String, String> = board::projects(state).into_iter().collect();
    let mut sums = Sums::default();
    let mut day = first;
    while day <= today {
        sums.days.insert(day.to_string(), Sum::default());
        day = day.checked_add(1.day()).map_err(ApiError::internal)?;
    }
    for row in state.store().daily_usage(from.timestamp(), until).await? {
        let Some(root) = state.scope.root_of(&row.directory) else {
            continue;
        };
        let key = ProjectKey::of(root).as_str().to_owned();
        if !project.is_empty() && key != project {
            continue;
        }
        let day = row.day.to_zoned(TimeZone::UTC).date().to_string();
        let name = names.get(&key).cloned().unwrap_or(key);
        for sum in [
            &mut sums.total,
            sums.days.entry(day).or_default(),
            sums.models.entry(row.model.clone()).or_default(),
            sums.projects.entry(name).or_default(),
        ] {
            sum.add(row.calls, row.usage, row.cost);
        }
    }
    Ok(sums)
}

fn filters(state: &Shared, days: i64, project: &str) -> Markup {
    html! {
        form.filters method="get" action="/usage" data-auto aria-label="Filters" {
            label { "Days"
                select name="days" {
                    @for choice in [7, 30, 90] { option value=(choice) selected[choice == days] { (choice) } }
                }
            }
            label { "Project"
                select name="project" {
                    option value="" { "All" }
                    @for (key, name) in board::projects(state) {
                        option value=(key) selected[key == project] { (name) }
                    }
                }
            }
            noscript { button { "Filter" } }
        }
    }
}

/// The chart scrolls in a box of its own where there are more days than the screen is wide.
fn by_day(
    title: &str,
    sums: &Sums,
    value: impl Fn(&Sum) -> f64,
    shown: &dyn Fn(f64) -> String,
) -> Markup {
    let bars: Vec<Bar> = sums
        .days
        .iter()
        .map(|(day, sum)| Bar {
            name: day.clone(),
            value: value(sum),
            shown: shown(value(sum)),
        })
        .collect();
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    html! {
        section.panel {
            h2 { (title) }
            div.scroll tabindex="0" role="region" aria-label=(title) { (chart::columns(title, &bars, &shown(most))) }
        }
    }
}

/// The most expensive first, by the part of the cost that is known.
fn table(state: &Shared, title: &str, what: &str, sums: &BTreeMap<String, Sum>) -> Markup {
    let mut rows: Vec<_> = sums.iter().collect();
    rows.sort_by(|a, b| b.1.dollars().total_cmp(&a.1.dollars()));
    let most = rows
        .iter()
        .map(|(_, sum)| sum.dollars())
        .fold(0.0, f64::max);
    html! {
        section.panel {
            h2 { (title) }
            @if rows.is_empty() { p.empty { "Nothing yet." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label=(title) { table.wide {
                    thead { tr {
                        th { (what) } th.number { "Calls" } th.number { "Tokens" } th.number { "Cost" } th { span.hidden { "Share" } }
                    } }
                    tbody {
                        @for (name, sum) in rows {
                            tr {
                                td { (text::line(state, name)) }
                                td.number { (text::count(sum.calls)) }
                                td.number { (text::count(sum.usage.total_tokens())) }
                                td.number { (text::cost(sum.cost)) }
                                td { (chart::share(sum.dollars(), most)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// The tasks that cost most, and those that took longest.
async fn outliers(state: &Shared, days: i64) -> Result<Markup, ApiError> {
    let since = Timestamp::now() - SignedDuration::from_hours(24 * days);
    let filter = TaskFilter {
        project_roots: state.scope.roots().to_vec(),
        limit: Some(500),
        ..TaskFilter::default()
    };
    let mut tasks = state.store().tasks(filter).await?;
    tasks.retain(|task| task.created_at > since);
    let mut expensive: Vec<&TaskRecord> = tasks.iter().collect();
    expensive.retain(|task| task.usage.total_tokens() > 0);
    expensive.sort_by_key(|task| std::cmp::Reverse(task.cost_usd.at_least()));
    let mut slow: Vec<&TaskRecord> = tasks.iter().collect();
    slow.retain(|task| seconds(task).is_some());
    slow.sort_by_key(|task| std::cmp::Reverse(seconds(task)));
    Ok(html! {
        div.pair {
            (ranking(state, "Most expensive tasks", &expensive))
            (ranking(state, "Slowest tasks", &slow))
        }
    })
}

/// How long a task that is over took, from its start to its end.
fn seconds(task: &TaskRecord) -> Option<i64> {
    Some(task.ended_at?.as_second() - task.started_at?.as_second())
}

/// Nothing is shown where no task qualifies, instead of an empty box.
fn ranking(state: &Shared, title: &str, tasks: &[&TaskRecord]) -> Markup {
    html! {
        @if !tasks.is_empty() {
            section.panel {
                h2 { (title) }
                ul.list {
                    @for task in tasks.iter().take(RANKED) {
                        li data-item {
                            div.grow { a href={ "/tasks/" (task.task_id) } { (text::line(state, &task.subject)) } }
                            @if let Some(took) = text::elapsed(task.started_at, task.ended_at) { span.note { (took) } }
                            span { (text::cost(task.cost_usd)) }
                        }
                    }
                }
            }
        }
    }
}
