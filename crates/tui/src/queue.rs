//! Messages that wait for the end of the turn. The last one can be taken back,
//! to be edited or dropped.

use std::collections::VecDeque;

use codespar_terminal::{Line, theme::Theme, width};

/// Messages in the order in which they will be sent.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<String>,
}

impl Queue {
    pub(crate) fn push(&mut self, text: String) {
        self.waiting.push_back(text);
    }

    pub(crate) fn next(&mut self) -> Option<String> {
        self.waiting.pop_front()
    }

    /// The last one, to be edited.
    pub(crate) fn take_last(&mut self) -> Option<String> {
        self.waiting.pop_back()
    }

    pub(crate) fn lines(&self, columns: u16, theme: Theme) -> Vec<Line<'static>> {
        let columns = usize::from(columns).saturating_sub(10);
        let lines = self.waiting.iter().map(|text| {
            let first = text.lines().next().unwrap_or_default();
            let text = width::shortened(first, columns);
            Line::styled(format!("  queued: {text}"), theme.faint())
        });
        lines.collect()
    }
}
