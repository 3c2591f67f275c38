//! Text from outside, and values, as people read them.

use codespar_protocol::{Cost, TaskStatus, TaskType, Usage};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::state::Shared;

/// Without secrets, and with characters visible that would show others in another order or that
/// nobody sees. Markup escapes the rest.
pub(super) fn clean(state: &Shared, text: &str) -> String {
    let text = state.runtime.redactor().redact(text);
    codespar_runtime::printable(&text).into_owned()
}

/// The first line, shortened.
pub(super) fn line(state: &Shared, text: &str) -> String {
    let cleaned = clean(state, text);
    let first = cleaned.trim_start().lines().next().unwrap_or_default();
    shortened(first, 160)
}

/// At most so many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The beginning of a text, cut at a character.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A moment, as how long ago it was. The script keeps that up to date.
pub(super) fn ago(at: Timestamp) -> Markup {
    let exact = at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let seconds = Timestamp::now().as_second() - at.as_second();
    html! { time datetime=(at) title=(exact) data-ago { (ago_text(seconds)) } }
}

fn ago_text(seconds: i64) -> String {
    match seconds {
        ..5 => "now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

pub(super) fn duration(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// A time that may be short.
pub(super) fn short_time(millis: i64) -> String {
    match millis.max(0) {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms @ 1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        ms => duration(ms / 1_000),
    }
}

/// How long something took, or has taken so far.
pub(super) fn elapsed(from: Option<Timestamp>, until: Option<Timestamp>) -> Option<String> {
    let until = until.unwrap_or_else(Timestamp::now);
    Some(duration(until.as_second() - from?.as_second()))
}

pub(super) fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        tiny if tiny < 0.0001 => "< $0.0001".to_owned(),
        small if small < 0.01 => format!("${small:.4}"),
        amount => format!("${amount:.2}"),
    }
}

/// What is known of a cost; at least that where a price is missing.
pub(super) fn cost(cost: Cost) -> String {
    match cost.known() {
        Some(usd) => dollars(usd.dollars()),
        None => format!("≥ {}", dollars(cost.at_least().dollars())),
    }
}

pub(super) fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{:.1} k", number as f64 / 1e3),
        _ => format!("{:.1} M", number as f64 / 1e6),
    }
}

pub(super) fn tokens(usage: &Usage) -> String {
    format!("{} tokens", count(usage.total_tokens()))
}

pub(super) fn type_name(kind: TaskType) -> &'static str {
    match kind {
        TaskType::LocalBash => "command",
        TaskType::LocalAgent => "agent",
        TaskType::RemoteAgent => "remote agent",
        TaskType::InProcessTeammate => "teammate",
        TaskType::LocalWorkflow => "run",
        TaskType::MonitorMcp => "monitor",
        TaskType::Dream => "notes",
    }
}

/// The state of a task as a word with a coloured mark; the word says it without the colour.
pub(super) fn status(status: TaskStatus) -> Markup {
    let word = match status {
        TaskStatus::Pending => "queued",
        TaskStatus::Running => "running",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed => "stopped",
    };
    html! { span class={ "status " (status.as_str()) } { (word) } }
}

/// A task that runs, or would, and that somebody has to answer first.
pub(super) fn waiting() -> Markup {
    html! { span.status.waiting { "waiting" } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        assert_eq!(duration(59), "59 s");
        assert_eq!(duration(3661), "1 h 1 min");
        assert_eq!(short_time(999), "999 ms");
        assert_eq!(short_time(1_500), "1.5 s");
        assert_eq!(short_time(61_000), "1 min 1 s");
        assert_eq!(dollars(0.0), "$0");
        assert_eq!(dollars(0.00004), "< $0.0001");
        assert_eq!(dollars(0.0042), "$0.0042");
        assert_eq!(dollars(12.345), "$12.35");
        assert_eq!(count(9_999), "9999");
        assert_eq!(count(12_300), "12.3 k");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(shortened("äöü", 2), "äö…");
        assert_eq!(head("aäb", 2), "a");
        assert_eq!(head("ab", 5), "ab");
    }
}
