//! The events of a monitor: numbered lines in the task's output, and what they come to.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use codespar_policy::Redactor;
use codespar_tools::process::Capture;
use jiff::Timestamp;

/// How many events a summary quotes.
const QUOTED: usize = 10;

/// Numbers go on where an earlier runner stopped.
pub(super) struct Journal {
    file: Capture,
    redactor: Arc<Redactor>,
    count: u32,
    by_kind: BTreeMap<String, u32>,
    last: Vec<String>,
}

impl Journal {
    pub(super) fn open(path: &Path, redactor: &Arc<Redactor>) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(refused)?;
        }
        let earlier = std::fs::read_to_string(path).unwrap_or_default();
        let mut journal = Self {
            file: Capture::to_file(path, redactor).map_err(refused)?,
            redactor: redactor.clone(),
            count: 0,
            by_kind: BTreeMap::new(),
            last: Vec::new(),
        };
        for line in earlier.lines() {
            let mut fields = line.splitn(3, ' ').skip(1);
            if let (Some(Ok(_)), Some(event)) =
                (fields.next().map(str::parse::<u32>), fields.next())
            {
                journal.count_in(event, line);
            }
        }
        Ok(journal)
    }

    fn count_in(&mut self, event: &str, line: &str) {
        self.count += 1;
        let kind = event.split(':').next().unwrap_or_default().to_owned();
        *self.by_kind.entry(kind).or_default() += 1;
        self.last.push(line.to_owned());
        let surplus = self.last.len().saturating_sub(QUOTED);
        self.last.drain(..surplus);
    }

    /// A line that is no event.
    pub(super) fn note(&mut self, text: &str) {
        let text = self.redactor.redact(text);
        self.write(&format!("{} {}", now(), one_line(&text)));
    }

    /// An event; its line.
    pub(super) fn event(&mut self, text: &str) -> String {
        let event = one_line(&self.redactor.redact(text));
        let line = format!("{} {} {event}", now(), self.count + 1);
        self.write(&line);
        self.count_in(&event, &line);
        line
    }

    fn write(&mut self, line: &str) {
        self.file.add_text(&format!("{line}\n"));
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// How many of what, and the last of them.
    pub(super) fn summary(&self) -> String {
        if self.count == 0 {
            return "no events".to_owned();
        }
        let kinds: Vec<String> = self
            .by_kind
            .iter()
            .map(|(kind, count)| format!("{count} × {kind}"))
            .collect();
        let events = if self.count == 1 { "event" } else { "events" };
        format!(
            "{} {events}: {}\n{}",
            self.count,
            kinds.join(", "),
            self.last.join("\n")
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

    #[test]
    fn events_are_numbered_on_by_the_next_runner_and_summed_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out/m-1.txt");
        let mut first = Journal::open(&path, &Arc::new(Redactor::by_shape())).unwrap();
        first.note("watching `s`");
        first.event("resource updated: note:///a");
        first.event("log warning: 2 lines\n7 forged");
        first.finish();
        let mut second = Journal::open(&path, &Arc::new(Redactor::by_shape())).unwrap();
        assert_eq!(second.count(), 2);
        second.event("resource updated: note:///b");
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
