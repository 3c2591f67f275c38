//! The panels of the health page about all processes: who runs what, what waits, and the limits.

use codespar_store::{
    EngineState, FleetRunner, FleetTask, LEASES, LimitScope, LimitUse, RunnerId, RunnerState,
};
use maud::{Markup, html};

use super::text;
use crate::{
    fleet::{VisibleFleet, VisibleQueue, VisibleRunner},
    state::Shared,
};

pub(super) fn panels(state: &Shared, fleet: &VisibleFleet) -> Markup {
    html! {
        section.panel aria-labelledby="runners-title" {
            h2 id="runners-title" { "Workers" }
            @if fleet.runners.is_empty() { p.problem { "Nobody runs tasks: start " code { "codespar worker" } "." } }
            ul.list { @for runner in &fleet.runners { (worker(state, runner)) } }
        }
        @if !fleet.queues.is_empty() { (queues(state, &fleet.queues)) }
        @if !fleet.limits.is_empty() { (limits(state, &fleet.limits)) }
    }
}

fn worker(state: &Shared, shown: &VisibleRunner) -> Markup {
    let VisibleRunner { runner, others } = shown;
    let kind = match RunnerId(runner.id.clone()).is_worker() {
        true => "worker",
        false => "session",
    };
    html! {
        li {
            (standing(runner.state()))
            div.grow {
                span.mono { (text::line(state, &runner.id)) }
                (about(state, runner))
                @if !runner.running.is_empty() {
                    ul.list { @for task in &runner.running { (running(state, task)) } }
                }
                @if *others > 0 { p.note { (others) " running of other projects" } }
            }
            span.note { (kind) }
        }
    }
}

fn standing(standing: RunnerState) -> Markup {
    let class = match standing {
        RunnerState::Alive => "status completed",
        RunnerState::Silent | RunnerState::Gone => "status failed",
    };
    html! { span class=(class) { (standing.as_str()) } }
}

/// What it says of itself; nothing until its first heartbeat.
fn about(state: &Shared, runner: &FleetRunner) -> Markup {
    html! {
        @if let Some(about) = &runner.about {
            p.facts {
                span { (text::line(state, &about.host)) }
                span { "version " (text::line(state, &about.version)) }
                span { "started " (text::ago(about.started_at)) }
                @if !about.labels.is_empty() { span { "labels " (text::line(state, &about.labels.to_string())) } }
                @if about.engine != LEASES { span { (text::line(state, &about.engine)) } }
                @if about.engine_state == EngineState::Unreachable { span.status.failed { "not reached" } }
            }
        }
    }
}

fn running(state: &Shared, task: &FleetTask) -> Markup {
    html! {
        li data-item {
            div.grow {
                a href={ "/tasks/" (task.task_id) } { (text::line(state, &task.subject)) }
                p.facts {
                    span.mono { (task.task_id) }
                    span { (text::type_name(task.task_type)) }
                    span { (text::line(state, &task.repository)) }
                    @if let Some(at) = task.started_at { span { "started " (text::ago(at)) } }
                    @if task.take_overs > 0 { span { "taken over" } }
                    @if let Some(page) = state.runtime.engine_page(&task.task_id) {
                        a href=(page) rel="noreferrer" { "in Temporal" }
                    }
                }
            }
        }
    }
}

fn queues(state: &Shared, queues: &[VisibleQueue]) -> Markup {
    html! {
        section.panel aria-labelledby="queues-title" {
            h2 id="queues-title" { "Ready to run" }
            div.scroll tabindex="0" role="region" aria-labelledby="queues-title" { table.wide {
                thead { tr {
                    th { "Type" } th { "Labels" } th { "Repository" } th.number { "Tasks" } th { "The oldest since" }
                } }
                tbody {
                    @for queue in queues {
                        tr {
                            td { (text::type_name(queue.task_type)) }
                            td { (text::line(state, &queue.labels.to_string())) }
                            td {
                                @match &queue.repository {
                                    Some(name) => (text::line(state, name)),
                                    None => span.note { "other projects" },
                                }
                            }
                            td.number { (queue.ready) }
                            td { (text::ago(queue.oldest_ready_at)) }
                        }
                    }
                }
            } }
        }
    }
}

fn limits(state: &Shared, limits: &[LimitUse]) -> Markup {
    html! {
        section.panel aria-labelledby="limits-title" {
            h2 id="limits-title" { "Limits" }
            div.scroll tabindex="0" role="region" aria-labelledby="limits-title" { table.wide {
                thead { tr { th { "Limit" } th.number { "Running" } th.number { "At most" } } }
                tbody {
                    @for one in limits {
                        tr {
                            td { (text::line(state, &named(one))) }
                            td.number { (one.running) }
                            td.number { (one.limit.limit) }
                        }
                    }
                }
            } }
        }
    }
}

fn named(one: &LimitUse) -> String {
    match (one.limit.scope, one.limit.name.as_str()) {
        (LimitScope::All, _) => "all".to_owned(),
        (scope, "") => format!("each {scope}"),
        (scope, name) => format!("{scope} {name}"),
    }
}
