//! Who asked for what, with which rights, and what came of it; for admins.
//!
//! The log is append-only and shown as it is, with text of people escaped and cut.

use std::collections::HashMap;

use axum::{extract::State, response::Html};
use codespar_store::AuditEntry;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    layout::{self, View},
    text,
};
use crate::{
    access::Client,
    api::{Params, audit_page},
    error::ApiError,
    state::Shared,
};

const PAGE: u32 = 100;

#[derive(Deserialize, Default)]
pub(crate) struct AuditParams {
    /// Entries before this one.
    before: Option<u64>,
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Params(params): Params<AuditParams>,
) -> Result<Html<String>, ApiError> {
    let before = params.before.filter(|seq| i64::try_from(*seq).is_ok());
    let (entries, next) = audit_page(&state, before, PAGE).await?;
    let tokens = state.store().tokens().await?;
    let names: HashMap<String, String> = tokens
        .into_iter()
        .map(|token| (token.id.to_string(), token.name))
        .collect();
    let content = html! {
        div.head {
            div { h1 { "Audit" } p.note { "Who asked for what, with which rights. The log is append-only." } }
            a.button href="/api/v1/audit/export" download="codespar-audit.jsonl" { "Export" }
        }
        section.panel id="audit" data-live="message" {
            @if entries.is_empty() { p.empty { "Nothing was asked for yet." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Audit log" { table.wide.stacked {
                    thead { tr { th { "When" } th { "Who" } th { "Role" } th { "What" } th { "Decision" } th { "Said" } th { "Where" } } }
                    tbody { @for entry in &entries { (row(&state, &names, entry)) } }
                } }
            }
            @if let Some(next) = next { a.more href={ "/audit?before=" (next) } { "Older" } }
        }
    };
    layout::page(&state, &client, View::Audit, "Audit", content).await
}

fn row(state: &Shared, names: &HashMap<String, String>, entry: &AuditEntry) -> Markup {
    let said = &entry.entry;
    let class = match said.decision.as_str() {
        "allowed" | "done" => "status success",
        "refused" | "failed" => "status failure",
        _ => "status",
    };
    let who = names.get(&said.speaker).unwrap_or(&said.speaker);
    html! {
        tr data-item {
            td { (text::ago(entry.time)) }
            td { (text::line(state, who)) }
            td { (said.role.map_or("none", |role| role.as_str())) }
            td {
                (text::line(state, &said.action))
                @if let Some(task) = &said.task_id { " " a.mono href={ "/tasks/" (task) } { (task) } }
            }
            td { span class=(class) { (text::line(state, &said.decision)) } }
            td.said { (text::line(state, &said.detail)) }
            td.mono { (text::line(state, &said.at.channel)) }
        }
    }
}
