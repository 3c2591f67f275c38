//! A question to a person: exactly what is asked, and a button for each answer that the client may
//! give.
//!
//! A card is the same on the inbox and on the page of a task. It shows what the answer is about in
//! full: for an edit the hunks as they would be written, for a command its input without secrets,
//! and whether it would run in the sandbox. What cannot be allowed over a network, a command
//! without a sandbox, has no button for it and says where it can be answered.

use codespar_protocol::{
    AccessRole, ClarificationRequest, Confinement, ElicitationRequest, PermissionRequest, Question,
    QuestionRequest,
};
use maud::{Markup, html};
use serde_json::Value;

use super::{diff, layout::may, markdown, text, tool_call};
use crate::{access::Client, scope::ProjectKey, state::Shared};

/// Its id begins with that of the question, so that the script of the page replaces the right card
/// when the question changes.
pub(super) fn card(state: &Shared, client: &Client, question: &Question) -> Markup {
    let id = question.id.as_str();
    let root = &question.project_root;
    let project = root.file_name().unwrap_or(root.as_os_str());
    html! {
        article.panel.question id={ "question-" (id) } data-item aria-labelledby={ "title-" (id) } {
            (asked(state, client, question))
            p.facts {
                @if let Some(task) = &question.task_id { a href={ "/tasks/" (task) } { (task) } }
                @else { a href={ "/sessions/" (question.session_id) } { "session" } }
                a href={ "/board?project=" (ProjectKey::of(root).as_str()) } {
                    (text::clean(state, &project.to_string_lossy()))
                }
                span { "asked " (text::ago(question.asked_at)) }
            }
        }
    }
}

/// Each kind of question has a form of its own, since each wants another kind of answer.
fn asked(state: &Shared, client: &Client, question: &Question) -> Markup {
    let id = question.id.as_str();
    match &question.request {
        QuestionRequest::Permission(asked) => permission(state, client, id, asked),
        QuestionRequest::Clarification(asked) => clarification(state, client, id, asked),
        QuestionRequest::Elicitation(asked) => elicitation(state, client, id, asked),
    }
}

fn title(id: &str, content: &Markup) -> Markup {
    html! { h2 id={ "title-" (id) } { (content) } }
}

/// The input of the call is redacted before it is shown. Where the call is a change of a file, its
/// hunks say more than its input, and take its place.
fn permission(state: &Shared, client: &Client, id: &str, asked: &PermissionRequest) -> Markup {
    let is_open = matches!(
        asked.confinement,
        Some(Confinement::Unavailable | Confinement::SwitchedOff)
    );
    let mut input = asked.input.clone();
    state.runtime.redactor().redact_json(&mut input);
    html! {
        (title(id, &html! { "Allow " (text::clean(state, &asked.tool)) "?" }))
        @match &asked.change {
            Some(change) => {
                p.mono { (text::clean(state, &change.path)) }
                @for hunk in &change.hunks {
                    (diff::replacement(
                        &text::clean(state, &hunk.old),
                        &text::clean(state, &hunk.new),
                    ))
                }
            }
            None => {
                @if input.is_null() { pre tabindex="0" { (text::clean(state, &asked.summary)) } }
                @else { (tool_call::input(&asked.tool, &input)) }
                @if let Some(preview) = &asked.preview {
                    details id={ "preview-" (id) } {
                        summary { "Preview" }
                        pre tabindex="0" { (text::clean(state, preview)) }
                    }
                }
            }
        }
        p.note { "Asked because: " (text::clean(state, &asked.reason)) }
        @match asked.confinement {
            Some(Confinement::Sandboxed) => p.note { "It would run in the sandbox." },
            Some(_) => p.problem { "It would run without a sandbox." },
            None => {}
        }
        @if may(client, AccessRole::Write) {
            (permission_form(state, client, id, asked, is_open.then_some(NO_SANDBOX)))
        }
    }
}

/// Said in the place of the buttons. The API refuses such an answer as well (`api/questions.rs`).
const NO_SANDBOX: &str = "A command without a sandbox can only be allowed at a terminal of the \
                          server:";

/// `blocked` says why it cannot be allowed here.
fn permission_form(
    state: &Shared,
    client: &Client,
    id: &str,
    asked: &PermissionRequest,
    blocked: Option<&str>,
) -> Markup {
    let rules: Vec<String> = asked
        .suggested_rules
        .iter()
        .map(|rule| text::clean(state, rule))
        .collect();
    let can_keep = !rules.is_empty() && may(client, AccessRole::Admin);
    let address = format!("/api/v1/questions/{id}/answer");
    html! {
        @if let Some(reason) = blocked {
            p.note { (reason) " " code { "codespar task answer " (id) } }
        } @else {
            form data-api=(address) data-answer="permission" data-done="Allowed" method="post" {
                div.row {
                    button.primary name="answer" value="yes" { "Allow once" }
                    @if can_keep { button name="answer" value="always" { "Always allow" } }
                }
                @if can_keep {
                    p.note { "“Always allow” saves " @for rule in &rules { code { (rule) } " " } }
                }
                p.problem role="alert" {}
            }
        }
        // A form of its own: Enter in the field must not allow anything.
        form data-api=(address) data-answer="permission" data-done="Refused" method="post" {
            div.row {
                button.danger name="answer" value="no" { "Refuse" }
                input.grow type="text" name="reason" maxlength="2000"
                    aria-label="Reason for refusing" placeholder="Reason for refusing (optional)";
            }
            p.problem role="alert" {}
        }
    }
}

/// The text is of a model: it is rendered as markdown, which lets no element of it through.
fn clarification(
    state: &Shared,
    client: &Client,
    id: &str,
    asked: &ClarificationRequest,
) -> Markup {
    html! {
        (title(id, &html! { "An agent asks" }))
        (markdown::render(&state.runtime.redactor().redact(&asked.text)))
        @if may(client, AccessRole::Write) {
            form data-api={ "/api/v1/questions/" (id) "/answer" } data-done="Answered" method="post" {
                label for={ "answer-" (id) } { "Answer" }
                textarea id={ "answer-" (id) } name="answer" required maxlength="20000" {}
                div.row { button.primary { "Send" } }
                p.problem role="alert" {}
            }
        }
    }
}

/// A form of an MCP server. The server is named with the question, because its text may pretend to
/// be somebody else's.
fn elicitation(state: &Shared, client: &Client, id: &str, asked: &ElicitationRequest) -> Markup {
    html! {
        (title(id, &html! { (text::clean(state, &asked.server)) " asks" }))
        p { (text::clean(state, &asked.message)) }
        @if may(client, AccessRole::Write) {
            form data-api={ "/api/v1/questions/" (id) "/answer" } data-answer="fields"
                data-done="Answered" method="post" {
                @for (name, is_required) in asked.fields() {
                    (field(state, id, asked, name, is_required))
                }
                div.row {
                    button.primary { "Send" }
                    button.danger name="answer" value="no" formnovalidate { "Refuse" }
                }
                p.problem role="alert" {}
            }
        }
    }
}

/// The schema decides the control: a list of values is a choice, a boolean is yes or no, everything
/// else a line of text. The API checks the answer.
fn field(
    state: &Shared,
    id: &str,
    asked: &ElicitationRequest,
    name: &str,
    is_required: bool,
) -> Markup {
    let schema = asked.schema.get("properties").and_then(|all| all.get(name));
    let kind = schema.and_then(|field| field.get("type")?.as_str());
    let choices = schema.and_then(|field| field.get("enum")?.as_array());
    let place = format!("field-{id}-{name}");
    html! {
        p {
            label for=(place) { (text::clean(state, name)) @if is_required { " (required)" } }
            " "
            @if let Some(choices) = choices {
                select id=(place) name=(name) required[is_required] {
                    @if !is_required { option value="" { "–" } }
                    @for choice in choices {
                        @let shown = choice_text(choice);
                        option value=(shown) { (text::clean(state, &shown)) }
                    }
                }
            } @else if kind == Some("boolean") {
                select id=(place) name=(name) required[is_required] {
                    @if !is_required { option value="" { "–" } }
                    option value="true" { "yes" }
                    option value="false" { "no" }
                }
            } @else {
                input id=(place) name=(name) required[is_required]
                    type=(if matches!(kind, Some("integer" | "number")) { "number" } else { "text" })
                    step=[(kind == Some("number")).then_some("any")];
            }
        }
    }
}

fn choice_text(choice: &Value) -> String {
    match choice {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
