//! Counters in the text format of Prometheus.
//!
//! Two kinds of figures are on the page. Tasks, queues and processes are read from the store when
//! somebody asks, and are those of the whole fleet, whichever server answers. Calls of models,
//! responses and event streams are counted in this process since it was started; a collector adds
//! those of several up. The number of names of models and of webhook outcomes is bounded: they come from outside.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use codespar_protocol::{Event, Labels, Usage, Usd};
use codespar_store::{FleetReport, FleetRunner, LimitUse, RunnerState};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::{error::ApiError, fleet::visible_limits, state::Shared};

/// Names of models come from providers; beyond so many, the rest are counted as `other`.
const MOST_LABELS: usize = 100;

/// Of a process that has said nothing of itself yet.
const UNKNOWN: &str = "unknown";

/// How webhooks of chat channels ended. Whoever receives them counts here.
#[derive(Debug, Clone, Default)]
pub struct WebhookOutcomes(Arc<Mutex<BTreeMap<(String, String), u64>>>);

impl WebhookOutcomes {
    /// `outcome` is a word such as `accepted`, `duplicate` or `bad_signature`.
    pub fn count(&self, channel: &str, outcome: &str) {
        let mut counts = self.0.lock();
        let key = (channel.to_owned(), outcome.to_owned());
        if counts.len() < MOST_LABELS || counts.contains_key(&key) {
            *counts.entry(key).or_default() += 1;
        }
    }
}

/// What a model was asked for by agents of this process.
#[derive(Debug, Clone, Copy, Default)]
struct ModelCounts {
    calls: u64,
    usage: Usage,
    cost: Usd,
    unpriced: u64,
}

/// Sums since the start of the process; they only grow, as Prometheus expects of counters.
#[derive(Default)]
struct Counts {
    models: BTreeMap<String, ModelCounts>,
    retries: u64,
    failed_runs: u64,
    /// By hundreds: 2xx, 4xx.
    responses: BTreeMap<u16, u64>,
}

/// Hears the events of all agents of the process, for as long as it lives.
pub(crate) struct Metrics {
    counts: Arc<Mutex<Counts>>,
    webhooks: WebhookOutcomes,
    /// Heard for as long as the server lives.
    _subscription: Box<dyn std::any::Any + Send + Sync>,
}

impl Metrics {
    pub(crate) fn new(events: &codespar_runtime::EventBus, webhooks: WebhookOutcomes) -> Arc<Self> {
        let counts: Arc<Mutex<Counts>> = Arc::default();
        let heard = counts.clone();
        let subscription = events.subscribe(Arc::new(move |event| {
            heard.lock().add(event.event);
        }));
        Arc::new(Self {
            counts,
            webhooks,
            _subscription: Box::new(subscription),
        })
    }

    pub(crate) fn count_webhook(&self, channel: &str, outcome: &str) {
        self.webhooks.count(channel, outcome);
    }

    pub(crate) fn count_response(&self, status: StatusCode) {
        let mut counts = self.counts.lock();
        *counts.responses.entry(status.as_u16() / 100).or_default() += 1;
    }
}

impl Counts {
    /// Called from the threads of agents: it adds numbers under a lock and does nothing that waits.
    fn add(&mut self, event: &Event) {
        match event {
            Event::Assistant {
                model, usage, cost, ..
            } => {
                let is_known = self.models.contains_key(model);
                let name = match is_known || self.models.len() < MOST_LABELS {
                    true => model.as_str(),
                    false => "other",
                };
                let of_model = self.models.entry(name.to_owned()).or_default();
                of_model.calls += 1;
                of_model.usage += *usage;
                of_model.cost += cost.at_least();
                of_model.unpriced += u64::from(cost.known().is_none());
            }
            Event::Retrying { .. } => self.retries += 1,
            Event::Finished(result)
                if result.outcome == codespar_protocol::Outcome::ErrorDuringExecution =>
            {
                self.failed_runs += 1;
            }
            _ => {}
        }
    }
}

/// `GET /metrics`.
pub(crate) async fn show(State(state): State<Shared>) -> Result<impl IntoResponse, ApiError> {
    let mut page = Page::default();
    of_tasks(&state, &mut page).await?;
    of_models(&state.metrics.counts.lock(), &mut page);
    of_server(&state, &mut page);
    let format = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, format)], page.0))
}

/// Read anew for each request: it is about all processes, not this one.
async fn of_tasks(state: &Shared, page: &mut Page) -> Result<(), ApiError> {
    page.head(
        "codespar_tasks",
        "gauge",
        "Tasks on record, by type and state",
    );
    for one in state.store().task_counts().await? {
        let labels = [
            ("type", one.task_type.as_str()),
            ("state", one.status.as_str()),
        ];
        page.value("codespar_tasks", &labels, one.count as f64);
    }
    let oldest = state.store().oldest_ready().await?;
    let age = oldest.map_or(0.0, |at| {
        Timestamp::now().duration_since(at).as_secs_f64().max(0.0)
    });
    page.one(
        "codespar_oldest_ready_task_seconds",
        "gauge",
        "For how long the task has waited that has been ready to run for longest; 0 without one",
        age,
    );
    of_fleet(state, page).await?;
    page.one(
        "codespar_running_tasks",
        "gauge",
        "Tasks that run in this process",
        state.runtime.workload().borrow().tasks as f64,
    );
    page.one(
        "codespar_lease_losses_total",
        "counter",
        "Tasks that another process took over from this one",
        state.runtime.lease_losses() as f64,
    );
    Ok(())
}

/// All processes on the database, what waits for them, and the limits.
async fn of_fleet(state: &Shared, page: &mut Page) -> Result<(), ApiError> {
    let fleet = state.store().fleet().await?;
    of_runners(&fleet.runners, page);
    of_queues(&fleet, page);
    of_limits(&visible_limits(fleet.limits, &state.scope), page);
    Ok(())
}

fn of_runners(runners: &[FleetRunner], page: &mut Page) {
    page.one(
        "codespar_runners",
        "gauge",
        "Processes that run tasks and show signs of life",
        runners.iter().filter(|one| is_alive(one)).count() as f64,
    );
    let mut counts: BTreeMap<(&str, &str, RunnerState), u64> = BTreeMap::new();
    for runner in runners {
        let about = runner.about.as_ref();
        let (version, engine) = about.map_or((UNKNOWN, UNKNOWN), |about| {
            (about.version.as_str(), about.engine.as_str())
        });
        let key = (version, engine, runner.state());
        *counts.entry(key).or_default() += 1;
    }
    let name = "codespar_runners_by_version";
    page.head(
        name,
        "gauge",
        "Processes that run tasks, or left some behind, by version, engine and state",
    );
    for ((version, engine, state), count) in counts {
        let labels = [
            ("version", version),
            ("engine", engine),
            ("state", state.as_str()),
        ];
        page.value(name, &labels, count as f64);
    }
    let running: usize = runners.iter().map(|runner| runner.running.len()).sum();
    page.one(
        "codespar_fleet_running_tasks",
        "gauge",
        "Tasks that run in all processes together",
        running as f64,
    );
}

fn is_alive(runner: &FleetRunner) -> bool {
    runner.state() == RunnerState::Alive
}

/// What a cluster scales by. There is a value for what nobody waits for: without one a scaler does
/// nothing.
fn of_queues(fleet: &FleetReport, page: &mut Page) {
    let mut depth: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    depth.insert(Labels::default().to_string(), (0, 0.0));
    for runner in fleet.runners.iter().filter(|one| is_alive(one)) {
        if let Some(about) = &runner.about {
            depth.insert(about.labels.to_string(), (0, 0.0));
        }
    }
    let now = Timestamp::now();
    for queue in &fleet.queues {
        let age = now.duration_since(queue.oldest_ready_at);
        let (ready, oldest) = depth.entry(queue.labels.to_string()).or_default();
        *ready += queue.ready;
        *oldest = oldest.max(age.as_secs_f64());
    }
    let name = "codespar_ready_tasks";
    page.head(
        name,
        "gauge",
        "Tasks that wait for nothing but a process, by labels",
    );
    for (labels, (ready, _)) in &depth {
        page.value(name, &[("labels", labels)], *ready as f64);
    }
    let name = "codespar_ready_task_age_seconds";
    page.head(
        name,
        "gauge",
        "For how long the oldest of them has waited, by labels; 0 without one",
    );
    for (labels, (_, age)) in &depth {
        page.value(name, &[("labels", labels)], *age);
    }
}

fn of_limits(limits: &[LimitUse], page: &mut Page) {
    let mut each = |name: &str, help: &str, value: fn(&LimitUse) -> f64| {
        page.head(name, "gauge", help);
        for one in limits {
            let labels = [
                ("scope", one.limit.scope.as_str()),
                ("name", one.limit.name.as_str()),
            ];
            page.value(name, &labels, value(one));
        }
    };
    each(
        "codespar_limit_running",
        "Tasks that run under a limit; of one for each repository or user, the most that one has",
        |one| one.running as f64,
    );
    each(
        "codespar_limit_max",
        "How many tasks a limit lets run at once",
        |one| f64::from(one.limit.limit),
    );
}

/// A call without a known price is counted apart: its cost would otherwise look like nothing.
fn of_models(counts: &Counts, page: &mut Page) {
    let name = "codespar_model_calls_total";
    page.head(
        name,
        "counter",
        "Answers of models to agents of this process",
    );
    for (model, of_model) in &counts.models {
        page.value(name, &[("model", model)], of_model.calls as f64);
    }
    let name = "codespar_model_tokens_total";
    page.head(name, "counter", "Tokens of these answers");
    for (model, of_model) in &counts.models {
        let usage = of_model.usage;
        let kinds = [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_write", usage.cache_creation_input_tokens),
            ("cache_read", usage.cache_read_input_tokens),
        ];
        for (kind, tokens) in kinds {
            page.value(name, &[("model", model), ("kind", kind)], tokens as f64);
        }
    }
    let name = "codespar_model_cost_usd_total";
    page.head(name, "counter", "What the answers with a known price cost");
    for (model, of_model) in &counts.models {
        page.value(name, &[("model", model)], of_model.cost.dollars());
    }
    let name = "codespar_model_unpriced_calls_total";
    page.head(name, "counter", "Answers of models without a known price");
    for (model, of_model) in &counts.models {
        page.value(name, &[("model", model)], of_model.unpriced as f64);
    }
    page.one(
        "codespar_model_retries_total",
        "counter",
        "Model calls that failed and were tried again",
        counts.retries as f64,
    );
    page.one(
        "codespar_failed_runs_total",
        "counter",
        "Runs of agents that ended with an error",
        counts.failed_runs as f64,
    );
    let name = "codespar_http_responses_total";
    page.head(name, "counter", "Responses of the HTTP API by class");
    for (class, count) in &counts.responses {
        page.value(name, &[("class", &format!("{class}xx"))], *count as f64);
    }
}

/// What is of this process alone and of no agent.
fn of_server(state: &Shared, page: &mut Page) {
    let name = "codespar_webhooks_total";
    page.head(name, "counter", "Webhooks of chat channels by outcome");
    for ((channel, outcome), count) in state.metrics.webhooks.0.lock().iter() {
        let labels = [("channel", channel.as_str()), ("outcome", outcome.as_str())];
        page.value(name, &labels, *count as f64);
    }
    page.one(
        "codespar_event_streams",
        "gauge",
        "Clients that follow live events",
        state.events.clients() as f64,
    );
    page.one(
        "codespar_uptime_seconds",
        "gauge",
        "Since the server was started",
        state.began.elapsed().as_secs_f64(),
    );
}

/// The text of a page of metrics.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.value(name, &[], value);
    }
}

/// As the format wants it. A label is text of others, and must not begin another line.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out_of_their_quotes() {
        let mut page = Page::default();
        page.value("m", &[("model", "a\"} 1\nm{x=\"\\")], 2.0);
        assert_eq!(page.0, "m{model=\"a\\\"} 1\\nm{x=\\\"\\\\\"} 2\n");
    }

    #[test]
    fn names_without_number_are_counted_together() {
        let webhooks = WebhookOutcomes::default();
        for name in 0..2 * MOST_LABELS {
            webhooks.count(&name.to_string(), "accepted");
        }
        webhooks.count("0", "accepted");
        let counts = webhooks.0.lock();
        assert_eq!(counts.len(), MOST_LABELS);
        assert_eq!(counts[&("0".to_owned(), "accepted".to_owned())], 2);
    }
}
