//! The shell commands of an agent: how each ended, and what it printed.
//!
//! Read from the transcript, so a command that runs now is there as soon as it began. Output is shown
//! as text, with control characters made visible, and cut at its end.

use codespar_protocol::{ContentBlock, Entry, EntryBody, SessionId};
use maud::{Markup, html};
use serde_json::Value;

use super::{text, tool_call, transcript};
use crate::{error::ApiError, state::Shared};

/// Entries of the conversation that are looked at, the last ones.
const LOOKED_AT: u64 = 600;
const MOST: usize = 50;

/// With what came back, if it has come back.
struct ShellCall {
    command: String,
    seq: u64,
    /// None while it runs.
    result: Option<(String, Ended)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    With(i64),
    /// By a signal, a time limit or the user.
    Otherwise,
}

/// All commands of a conversation, the latest first; nothing where there are none.
pub(super) async fn panel(state: &Shared, session: SessionId) -> Result<Markup, ApiError> {
    let last = state.store().session(session).await?.last_seq;
    let from = last.saturating_sub(LOOKED_AT) + 1;
    let found = state
        .store()
        .entries_page(session, from, LOOKED_AT as u32)
        .await?;
    let mut entries = Vec::with_capacity(found.len());
    for entry in &found {
        entries.push(transcript::without_secrets(state, entry)?);
    }
    let calls = calls(&entries);
    Ok(html! {
        div id="commands" data-live="entry task" {
            @if !calls.is_empty() {
                section.panel aria-labelledby="commands-title" {
                    h2 id="commands-title" { "Commands" }
                    @for call in calls.iter().rev().take(MOST) { (shown(call)) }
                }
            }
        }
    })
}

fn shown(call: &ShellCall) -> Markup {
    let (class, word) = match &call.result {
        None => ("status running", "running".to_owned()),
        Some((_, Ended::With(0))) => ("status success", "exit code 0".to_owned()),
        Some((_, Ended::With(code))) => ("status failure", format!("exit code {code}")),
        Some((_, Ended::Otherwise)) => ("status failure", "failed".to_owned()),
    };
    html! {
        details.call id={ "command-" (call.seq) } {
            summary {
                span.what { (text::shortened(&codespar_runtime::printable(&call.command), 80)) } " "
                span class=(class) { (word) }
            }
            div {
                (tool_call::block(&call.command))
                @if let Some((output, _)) = &call.result { h4 { "Output" } (tool_call::block(output)) }
                a href={ "#e-" (call.seq) } { "In the conversation" }
            }
        }
    }
}

fn calls(entries: &[Entry]) -> Vec<ShellCall> {
    let mut calls: Vec<(String, ShellCall)> = Vec::new();
    for entry in entries {
        match &entry.body {
            EntryBody::Assistant { message, .. } => {
                for block in &message.content {
                    let ContentBlock::ToolUse(call) = block else {
                        continue;
                    };
                    let input: Value = serde_json::from_str(call.input.get()).unwrap_or_default();
                    if let ("Bash", Some(command)) = (&*call.name, input["command"].as_str()) {
                        let shell = ShellCall {
                            command: command.to_owned(),
                            seq: entry.seq,
                            result: None,
                        };
                        calls.push((call.id.0.to_string(), shell));
                    }
                }
            }
            EntryBody::ToolResult {
                result: ContentBlock::ToolResult(result),
                ..
            } => {
                let id = result.tool_use_id.0.as_str();
                if let Some((_, call)) = calls.iter_mut().find(|(known, _)| known == id) {
                    let output = result.content.text();
                    let ended = match result.is_error {
                        false => Ended::With(0),
                        true => exit_code(&output),
                    };
                    call.result = Some((output, ended));
                }
            }
            _ => {}
        }
    }
    calls.into_iter().map(|(_, call)| call).collect()
}

/// The result of a command that failed says how it ended in a line of its own, after the output.
fn exit_code(output: &str) -> Ended {
    let mut lines = output.lines().rev();
    let code = lines.find_map(|line| {
        let rest = line.strip_prefix("exit code ")?;
        rest.split(' ').next()?.parse().ok()
    });
    code.map_or(Ended::Otherwise, Ended::With)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_about_an_exit_code_counts() {
        assert_eq!(exit_code("exit code 3\nmore\nexit code 2"), Ended::With(2));
        assert_eq!(
            exit_code("x\nexit code 137 (killed, SIGKILL)\na note"),
            Ended::With(137)
        );
        assert_eq!(exit_code("stopped: cancelled"), Ended::Otherwise);
    }
}
