//! The events of a monitor: numbered lines in the task's output, and what they come to.
//!
//! ```text
//! 2026-03-04T05:06:07Z watching `notes`: note:///a
//! 2026-03-04T05:06:09Z 1 resource updated: note:///a
//! 2026-03-04T05:07:00Z 2 down: it has ended
//! ```
//!
//! Lines with a number are events. The count, the kinds and the last ten are a step of the task's
//! ledger, so a monitor that another process takes over goes on counting.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use codespar_policy::Redactor;
use codespar_tools::process::Capture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::StepLedger;

/// How many events a summary quotes.
const QUOTED: usize = 10;

/// Numbers go on where an earlier runner stopped.
pub(super) struct Journal {
    file: Capture,
    redactor: Arc<Redactor>,
    ledger: StepLedger,
    events: Events,
}

/// The step of the ledger that holds `Events`.
const STEP: &str = "events";

/// What was told so far, over all runners.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Events {
    count: u32,
    by_kind: BTreeMap<String, u32>,
    /// The last of them, as they were told.
    last: Vec<String>,
}

impl Events {
    /// The kind is the text before the first colon.
    fn add(&mut self, event: &str, line: &str) {
        self.count += 1;
        let kind = event.split(':').next().unwrap_or_default().to_owned();
        *self.by_kind.entry(kind).or_default() += 1;
        self.last.push(line.to_owned());
        let surplus = self.last.len().saturating_sub(QUOTED);
        self.last.drain(..surplus);
    }
}

impl Journal {
    pub(super) fn open(
        path: &Path,
        redactor: &Arc<Redactor>,
        ledger: StepLedger,
    ) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(refused)?;
        }
        let events = ledger.known(STEP).map_err(|error| error.to_string())?;
        Ok(Self {
            file: Capture::to_file(path, redactor).map_err(refused)?,
            redactor: redactor.clone(),
            ledger,
            events: events.unwrap_or_default(),
        })
    }

    /// A line that is no event.
    pub(super) fn note(&mut self, text: &str) {
        let text = self.redactor.redact(text);
        self.write(&format!("{} {}", now(), one_line(&text)));
    }

    /// An event, on record when this returns; its line. The line is in the file before the step is
    /// recorded; after a crash in between, the next event has the same number.
    pub(super) async fn event(&mut self, text: &str) -> String {
        let event = one_line(&self.redactor.redact(text));
        let line = format!("{} {} {event}", now(), self.events.count + 1);
        self.write(&line);
        self.events.add(&event, &line);
        // Whoever cannot record it has lost the task, or the store, and hears of that elsewhere.
        let _ = self.ledger.record(STEP, &self.events).await;
        line
    }

    fn write(&mut self, line: &str) {
        self.file.add_text(&format!("{line}\n"));
    }

    pub(super) fn count(&self) -> u32 {
        self.events.count
    }

    /// How many of what, and the last of them.
    pub(super) fn summary(&self) -> String {
        if self.events.count == 0 {
            return "no events".to_owned();
        }
        let kinds: Vec<String> = self
            .events
            .by_kind
            .iter()
            .map(|(kind, count)| format!("{count} × {kind}"))
            .collect();
        let events = if self.events.count == 1 {
            "event"
        } else {
            "events"
        };
        format!(
            "{} {events}: {}\n{}",
            self.events.count,
            kinds.join(", "),
            self.events.last.join("\n")
        )
    }

    /// Writes what is left.
    pub(super) fn finish(self) {
        self.file.finish();
    }
}

fn now() -> String {
    format!("{:.0}", Timestamp::now())
}

/// What a server says must not look like lines of ours.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_numbered_on_by_the_next_runner_and_summed_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out/m-1.txt");
        let (store, task, epoch) = crate::ledger::tests::claimed_task(dir.path()).await;
        let redactor = Arc::new(Redactor::by_shape());
        let open = async || {
            let ledger = StepLedger::of_task(store.clone(), task.clone(), epoch).await;
            Journal::open(&path, &redactor, ledger.unwrap()).unwrap()
        };
        let mut first = open().await;
        first.note("watching `s`");
        first.event("resource updated: note:///a").await;
        first.event("log warning: 2 lines\n7 forged").await;
        first.finish();
        let mut second = open().await;
        assert_eq!(second.count(), 2);
        second.event("resource updated: note:///b").await;
        let summary = second.summary();
        second.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        let told: Vec<&str> = text
            .lines()
            .map(|line| line.split_once(' ').unwrap().1)
            .collect();
        assert_eq!(
            told,
            [
                "watching `s`",
                "1 resource updated: note:///a",
                "2 log warning: 2 lines 7 forged",
                "3 resource updated: note:///b"
            ]
        );
        assert_eq!(
            summary.lines().next(),
            Some("3 events: 1 × log warning, 2 × resource updated")
        );
        assert_eq!(summary.lines().count(), 4);
    }
}
