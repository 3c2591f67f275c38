//! The steps of a run, with what each gave and cost, and its report.
//!
//! Steps are JSON whose form belongs to the pipeline that wrote it. The page knows a few fields,
//! which are the same in all of them (`text`, `model`, `usd`, `exit_code`), and shows the rest as
//! it is: a step that is added later appears without a change here.

use std::collections::HashMap;

use maud::{Markup, html};
use serde_json::Value;

use super::{markdown, text, tool_call};

/// What a step is called, by its name on record.
fn title(name: &str) -> &str {
    match name {
        "base" => "Base commit",
        "locate" => "Files located",
        "read" => "Files read",
        "answer-pick" => "Files picked by the model",
        "agent" => "Change by an agent",
        "agent_task" => "Agent started",
        "written" => "Change written",
        "test_command" => "Test command",
        "before" => "Tests without the change",
        "proven" => "Verified",
        "published" => "Published",
        "report" => "Report",
        "commit" => "Commit",
        "pull_request" => "Pull request",
        "new_tests" => "New tests without the change",
        "simulated" => "Model",
        other if other.starts_with("answer-") => "Answer of the model",
        other if other.starts_with("agent-repair-") => "Repair by the agent",
        other if other.starts_with("after") => "Tests with the change",
        other => other,
    }
}

/// Marks of the scheduler are no steps.
pub(super) fn is_shown((name, _): &(String, Value)) -> bool {
    !name.starts_with("attempt ")
}

/// `steps` without secrets.
pub(super) fn list(steps: &[(String, Value)], took: &HashMap<String, String>) -> Markup {
    html! {
        ol.steps {
            @for (index, (name, result)) in steps.iter().enumerate().filter(|(_, step)| is_shown(step)) {
                li {
                    details id={ "step-" (index) } {
                        summary {
                            (codespar_runtime::printable(title(name)))
                            @if let Some(fact) = fact(result) { " " span.note { (fact) } }
                            @if let Some(time) = took.get(name) { " " span.note { "· " (time) } }
                        }
                        p.note.mono { (codespar_runtime::printable(name)) }
                        @match result.get("text").and_then(Value::as_str) {
                            Some(said) => (markdown::render(said)),
                            None => (tool_call::input("", result)),
                        }
                    }
                }
            }
        }
    }
}

/// What there is to say of a step in a few words.
fn fact(result: &Value) -> Option<String> {
    if let (Some(model), Some(usd)) = (result["model"].as_str(), result["usd"].as_f64()) {
        let model = codespar_runtime::printable(model);
        let mark = if result["is_priced"] == false {
            "≥ "
        } else {
            ""
        };
        return Some(format!("{model}, {mark}{}", text::dollars(usd)));
    }
    if result.get("exit_code").is_some() {
        let seconds = result["duration_ms"].as_f64().unwrap_or_default() / 1e3;
        return Some(format!("{}, {seconds:.1} s", test_run(result)));
    }
    match result {
        Value::String(said) => {
            let first = said.lines().next().unwrap_or_default();
            Some(text::shortened(&codespar_runtime::printable(first), 24))
        }
        _ => None,
    }
}

/// A run of the tests in a few words.
pub(super) fn test_run(run: &Value) -> String {
    if let Some(problem) = run["problem"].as_str() {
        return text::shortened(&codespar_runtime::printable(problem), 120);
    }
    let counts = &run["counts"];
    match (counts["passed"].as_u64(), counts["failed"].as_u64()) {
        (Some(passed), Some(failed)) => format!("{passed} passed, {failed} failed"),
        _ => match run["exit_code"].as_i64() {
            Some(0) => "passed".to_owned(),
            Some(code) => format!("exit code {code}"),
            None => "no result".to_owned(),
        },
    }
}

/// The tests before and after the change, as the report of a run has them.
pub(super) fn verification(report: &Value) -> Markup {
    let proof = &report["verification"];
    let reasons = report["risk"]["reasons"].as_array();
    html! {
        @if proof.is_object() {
            table.wide {
                caption.hidden { "Verification" }
                tbody {
                    tr { th { "Tests" } td { code { (shown(&proof["command"])) } } }
                    tr { th { "Before" } td { (test_run(&proof["before"])) } }
                    tr { th { "After" } td { (test_run(&proof["after"])) } }
                }
            }
        } @else {
            p.note { "Not verified: " (shown(&report["not_verified"])) }
        }
        @if let Some(level) = report["risk"]["level"].as_str() {
            p {
                "Risk: " (codespar_runtime::printable(level))
                @for reason in reasons.into_iter().flatten() { span.note { " · " (shown(reason)) } }
            }
        }
    }
}

/// For text without a form, from a record that a model had a part in.
pub(super) fn shown(value: &Value) -> String {
    codespar_runtime::printable(value.as_str().unwrap_or_default()).into_owned()
}
