//! A run of the dev agent as a message that is edited in place, and what it came to as a new one.
//!
//! Both are functions of what is on record: a process that takes over draws the same text and finds
//! that nothing is to be edited. The message of the progress carries the button that stops the run;
//! it goes when the run is over. The result is a message of its own, because an edit notifies
//! nobody.

use codespar_dev::{DevProgress, DevReport, DevTests, TestVerdict};
use codespar_protocol::{TaskRecord, TaskStatus, TaskType};

use crate::{Addressee, Outbound, OutboundKind, ReplyChoice, text::shortened};

/// Files that are named.
const NAMED: usize = 5;

/// The message of a task that has only been decided on.
pub(crate) fn starting(repository: &str, what: &str) -> Outbound {
    progress(format!("🔍 {repository} · {what}"), Vec::new())
}

fn progress(text: String, choices: Vec<ReplyChoice>) -> Outbound {
    Outbound {
        kind: OutboundKind::Progress,
        mention: None,
        text,
        choices,
    }
}

/// The message of a task as it stands. The same record gives the same message.
pub(crate) fn drawn(repository: &str, record: &TaskRecord, run: &DevProgress) -> Outbound {
    let mut lines = vec![located_line(repository, run)];
    lines.extend(change_line(run));
    lines.extend(run.tests.as_ref().map(tests_line));
    lines.extend(end_lines(record, run));
    let choices = match record.status.is_final() {
        true => Vec::new(),
        false => vec![ReplyChoice {
            label: "Stop".to_owned(),
            value: format!("stop {}", record.task_id),
        }],
    };
    progress(lines.join("\n"), choices)
}

/// Present from the beginning, so that the message keeps its first line as it grows.
fn located_line(repository: &str, run: &DevProgress) -> String {
    let Some(files) = &run.located else {
        return format!("🔍 {repository} · Searching…");
    };
    let mut named: Vec<&str> = files.iter().take(NAMED).map(String::as_str).collect();
    if files.len() > NAMED {
        named.push("…");
    }
    match files.len() {
        0 => format!("🔍 {repository} · Found no relevant file"),
        1 => format!("🔍 {repository} · Found 1 relevant file: {}", named[0]),
        count => format!(
            "🔍 {repository} · Found {count} relevant files: {}",
            named.join(" · ")
        ),
    }
}

/// Nothing before the files are known, as the change comes after them.
fn change_line(run: &DevProgress) -> Option<String> {
    run.located.as_ref()?;
    let Some(change) = &run.change else {
        return Some("🤖 Writing the change…".to_owned());
    };
    Some(match (change.is_simulated, change.files) {
        (true, _) => "🤖 Simulated: no model was asked".to_owned(),
        (false, 1) => format!("🤖 Changing 1 file with {}", change.model),
        (false, files) => format!("🤖 Changing {files} files with {}", change.model),
    })
}

/// Names the command: whether "passed" says anything depends on what was run.
fn tests_line(tests: &DevTests) -> String {
    match tests {
        DevTests::NotRun { reason } => format!("🧪 Not verified: {reason}"),
        DevTests::Run {
            command,
            before,
            after,
        } => {
            let before = before.as_deref().map(|text| format!("before {text} → "));
            let after = after.as_deref();
            let after = after.map_or_else(|| "…".to_owned(), |text| format!("after {text}"));
            format!("🧪 {command}: {}{after}", before.unwrap_or_default())
        }
    }
}

/// Why a run failed is its first line here; the whole reason is in the result.
fn end_lines(record: &TaskRecord, run: &DevProgress) -> Vec<String> {
    match (record.status, &run.report) {
        (TaskStatus::Completed, Some(report)) => vec![
            format!("{} {}", mark(report), pull_line(report)),
            format!("   {}", facts(record, report)),
        ],
        (TaskStatus::Completed, None) => vec!["✅ Done".to_owned()],
        (TaskStatus::Failed, _) => vec![format!("❌ Failed: {}", reason(record))],
        (TaskStatus::Killed, _) => vec![format!("⏹ Stopped: {}", reason(record))],
        (TaskStatus::Pending | TaskStatus::Running, _) => Vec::new(),
    }
}

/// A draft whose tests fail is no success, though its task completed.
fn mark(report: &DevReport) -> &'static str {
    match (report.simulated, report.verdict()) {
        (true, _) | (_, TestVerdict::TestsFail) => "⚠️",
        (false, TestVerdict::Verified | TestVerdict::NotVerified) => "✅",
    }
}

fn pull_line(report: &DevReport) -> String {
    let pull = &report.pull_request;
    let draft = if pull.draft { " (draft)" } else { "" };
    format!("PR #{}{draft}: {}", pull.number, pull.title)
}

/// `codespar/task-a1b2c3d4 · 2 files · risk low · $0.031 · 48 s`
fn facts(record: &TaskRecord, report: &DevReport) -> String {
    let files = match report.files.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let mut facts = vec![
        report.branch.clone(),
        files,
        format!("risk {}", report.risk.level),
        report.cost.clone(),
    ];
    if let Some(ended) = record.ended_at {
        let seconds = ended.duration_since(record.created_at).as_secs();
        facts.push(format!("{seconds} s"));
    }
    facts.join(" · ")
}

fn reason(record: &TaskRecord) -> String {
    let error = record.error.as_deref().unwrap_or("without a reason");
    let first = error.lines().next().unwrap_or_default();
    shortened(first, 300)
}

/// What a task came to, for the person who asked for it.
pub(crate) fn result(mention: Addressee, record: &TaskRecord, run: &DevProgress) -> Outbound {
    let id = &record.task_id;
    let (text, choices) = match (record.status, &run.report) {
        (TaskStatus::Completed, Some(report)) => (success(report), next_steps(report)),
        (TaskStatus::Completed, None) => (format!("{id} is done"), Vec::new()),
        (status, _) => {
            let how = match status {
                TaskStatus::Killed => "was stopped",
                _ => "failed",
            };
            let error = record.error.as_deref().unwrap_or("without a reason");
            let again = ReplyChoice {
                label: "Retry".to_owned(),
                value: format!("retry {id}"),
            };
            let text = format!("{id} {how}: {}", shortened(error, 1_500));
            (text, vec![again])
        }
    };
    Outbound {
        kind: OutboundKind::Result,
        mention: Some(mention),
        text,
        choices,
    }
}

/// Says whether it was verified before it says where it is: that is what a reader has to know
/// before merging.
fn success(report: &DevReport) -> String {
    let pull = &report.pull_request;
    let what = match (report.simulated, report.verdict()) {
        (true, _) => "simulated, nothing was changed",
        (_, TestVerdict::Verified) => "the tests pass with it",
        (_, TestVerdict::TestsFail) => "the tests do not pass with it",
        (_, TestVerdict::NotVerified) => "not verified",
    };
    let place = match &pull.url {
        Some(url) => url.clone(),
        None => format!("codespar pr diff {}", pull.number),
    };
    format!("{} is ready ({what})\n{place}", pull_line(report))
}

/// As buttons where the platform has them; the text of each is a command that can be typed as well.
fn next_steps(report: &DevReport) -> Vec<ReplyChoice> {
    let number = report.pull_request.number;
    let choice = |label: &str, verb: &str| ReplyChoice {
        label: label.to_owned(),
        value: format!("{verb} PR #{number}"),
    };
    vec![choice("Review", "review"), choice("Merge", "merge")]
}

/// The type of task that work of a channel is.
pub(crate) const WORK: TaskType = TaskType::LocalWorkflow;
