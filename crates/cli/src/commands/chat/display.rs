//! Messages of the record as lines of a terminal.
//!
//! Nothing is rewritten: of a message that was edited, the lines that are new are printed.

use std::{collections::HashMap, sync::Arc};

use codespar_channels::{Outbound, OutboundKind, TERMINAL};
use codespar_store::{Database, OutboxRow};

use super::ROOM;
use crate::{error::CommandError, printer, style};

/// Messages that are looked at for news.
const LOOKED_AT: u32 = 200;
/// Messages of the thread that are shown again at the beginning.
const EARLIER: usize = 5;

pub(super) struct Display {
    store: Arc<dyn Database>,
    /// What was shown of each message, by its key.
    shown: HashMap<String, Shown>,
}

#[derive(Default)]
struct Shown {
    revision: u64,
    lines: Vec<String>,
}

impl Display {
    pub(super) fn new(store: Arc<dyn Database>) -> Self {
        Self {
            store,
            shown: HashMap::new(),
        }
    }

    /// Shows the last messages of a thread; of others, only what comes.
    pub(super) async fn begin(&mut self, thread: &str) -> Result<(), CommandError> {
        let rows = self.store.sent_to(TERMINAL, ROOM, LOOKED_AT).await?;
        let of_thread = rows.iter().filter(|row| row.at.thread == thread).count();
        let mut skipped = of_thread.saturating_sub(EARLIER);
        for row in rows.iter().filter(|row| row.sent_revision > 0) {
            let is_here = row.at.thread == thread;
            if is_here && skipped == 0 {
                self.show_row(row)?;
                continue;
            }
            if is_here {
                skipped -= 1;
            }
            let shown = Shown {
                revision: row.sent_revision,
                lines: lines_of(row),
            };
            self.shown.insert(row.key.clone(), shown);
        }
        Ok(())
    }

    /// Shows what is new.
    pub(super) async fn show(&mut self) -> Result<(), CommandError> {
        for row in self.store.sent_to(TERMINAL, ROOM, LOOKED_AT).await? {
            self.show_row(&row)?;
        }
        Ok(())
    }

    fn show_row(&mut self, row: &OutboxRow) -> Result<(), CommandError> {
        let shown = self.shown.entry(row.key.clone()).or_default();
        if row.sent_revision <= shown.revision {
            return Ok(());
        }
        let lines = lines_of(row);
        let thread = printer::plain(&row.at.thread);
        let mut text = String::new();
        for line in lines.iter().filter(|line| !shown.lines.contains(line)) {
            text.push_str(&format!(
                "{} {}\n",
                style::faint(format!("{thread} │")),
                printer::plain(line)
            ));
        }
        shown.revision = row.sent_revision;
        shown.lines = lines;
        Ok(printer::out(format_args!("{text}"))?)
    }
}

fn lines_of(row: &OutboxRow) -> Vec<String> {
    match serde_json::from_str::<Outbound>(&row.body) {
        Ok(message) => lines(&message),
        Err(_) => Vec::new(),
    }
}

fn lines(message: &Outbound) -> Vec<String> {
    let mut text = message.text.clone();
    if let Some(mention) = &message.mention {
        text = format!("@{} {text}", mention.name);
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match message.kind {
        OutboundKind::Question => {
            for choice in &message.choices {
                lines.push(format!("  {}. {}", choice.value, choice.label));
            }
        }
        // Stopping is in the help; a line for it would be printed with every task.
        OutboundKind::Progress => {}
        _ if message.choices.is_empty() => {}
        _ => {
            let values = message.choices.iter().map(|choice| choice.value.as_str());
            let values: Vec<&str> = values.collect();
            lines.push(format!("  → @codespar {}", values.join(" · ")));
        }
    }
    lines
}
