//! Conversations of agents, what their commands left, and what people were told.

use std::{collections::HashMap, fs};

use anyhow::Result;
use codespar_protocol::{ContentBlock, Entry, EntryBody, SessionId};
use codespar_store::Store;

use super::TrialCheck;
use crate::fleet::trial::{
    evidence::TrialDatabase,
    hosts::Host,
    workload::{MARKS, PlannedTask},
};

/// Each conversation reads as if one process had written it.
pub(crate) fn check_conversations(
    tasks: &[PlannedTask],
    database: &TrialDatabase,
) -> Result<TrialCheck> {
    let (mut problems, mut entries, mut interrupted) = (Vec::new(), 0, 0);
    for task in tasks {
        let found = database.wait(database.store.entries(task.session, 0))?;
        entries += found.len();
        for failure in found.iter().filter_map(failed_call) {
            match failure.starts_with("interrupted") {
                true => interrupted += 1,
                false => problems.push(format!("{}: a call failed: {failure}", task.id)),
            }
        }
        problems.extend(faults(&found).map(|fault| format!("{}: {fault}", task.id)));
    }
    Ok(TrialCheck {
        name: "each conversation is one, without gaps and repetitions",
        found: format!("{entries} entries, {interrupted} calls interrupted"),
        problems,
    })
}

/// What is said of a call that failed. Only the loss of its process is a reason here.
fn failed_call(entry: &Entry) -> Option<String> {
    match &entry.body {
        EntryBody::ToolResult {
            result: ContentBlock::ToolResult(result),
            ..
        } => result.is_error.then(|| result.content.text()),
        _ => None,
    }
}

/// The prompt first and once, each call answered once before the next answer, one last word.
fn faults(entries: &[Entry]) -> impl Iterator<Item = String> {
    let mut faults = Vec::new();
    let (mut open, mut prompts, mut last_words) = (HashMap::new(), 0, 0);
    for (entry, place) in entries.iter().zip(1..) {
        if entry.seq != place {
            faults.push(format!("entry {} is at place {place}", entry.seq));
        }
        match &entry.body {
            EntryBody::User { synthetic, .. } => prompts += usize::from(!synthetic),
            EntryBody::Assistant { message, .. } => {
                if open.values().any(|results| *results != 1) {
                    faults.push(format!("entry {place} comes before the results: {open:?}"));
                }
                let before = open.len();
                let calls = message.tool_uses().map(|call| (call.id.to_string(), 0));
                let calls: Vec<(String, usize)> = calls.collect();
                last_words += usize::from(calls.is_empty());
                let wanted = before + calls.len();
                open.extend(calls);
                if open.len() != wanted {
                    faults.push(format!("entry {place} repeats a call"));
                }
            }
            EntryBody::ToolResult {
                result: ContentBlock::ToolResult(result),
                ..
            } => *open.entry(result.tool_use_id.to_string()).or_insert(0) += 1,
            _ => {}
        }
    }
    let ends_well =
        matches!(entries.last(), Some(entry) if matches!(entry.body, EntryBody::Assistant { .. }));
    if prompts != 1 || last_words != 1 || open.len() != 2 || !ends_well {
        faults.push(format!(
            "{prompts} prompts, {} calls, {last_words} last words",
            open.len()
        ));
    }
    faults.into_iter()
}

/// The command of a task ran at most once, on one host; a call whose outcome is unknown is not made
/// again.
pub(crate) fn check_marks(tasks: &[PlannedTask], hosts: &[Host]) -> TrialCheck {
    let (mut ran, mut problems) = (0, Vec::new());
    for task in tasks {
        let lines = hosts.iter().map(|host| {
            let mark = host.project().join(MARKS).join(task.prompt());
            fs::read_to_string(mark).unwrap_or_default().lines().count()
        });
        let lines: usize = lines.sum();
        ran += usize::from(lines > 0);
        if lines > 1 {
            problems.push(format!("the command of {} ran {lines} times", task.id));
        }
    }
    TrialCheck {
        name: "no command ran twice",
        found: format!("{ran} of {} ran", tasks.len()),
        problems,
    }
}

/// Each notification of a session is in its conversation once.
pub(crate) fn check_deliveries(
    tasks: &[PlannedTask],
    people: &[SessionId],
    database: &TrialDatabase,
) -> Result<TrialCheck> {
    let (mut problems, mut count) = (Vec::new(), 0);
    for person in people {
        let entries = database.wait(database.store.entries(*person, 0))?;
        let texts: Vec<String> = entries.iter().filter_map(user_text).collect();
        let all = texts.join("\n");
        for task in tasks.iter().filter(|task| task.notifies == Some(*person)) {
            count += 1;
            let wanted = format!("<task-id>{}</task-id>", task.id);
            let found = all.matches(&wanted).count();
            if found != 1 {
                problems.push(format!("{person} was told {found} times of {}", task.id));
            }
        }
    }
    Ok(TrialCheck {
        name: "each notification is in the conversation of its session once",
        found: format!("{count} deliveries"),
        problems,
    })
}

fn user_text(entry: &Entry) -> Option<String> {
    match &entry.body {
        EntryBody::User { message, .. } => Some(message.text()),
        _ => None,
    }
}
