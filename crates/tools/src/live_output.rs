//! The last lines of a running command, for whoever watches it.
//!
//! The text comes from the capture of the command, after colours and secrets are taken out of it, so
//! a line is seen when it is complete and no secret can go on in the next. Where nobody watches
//! there is none of this.

use std::{sync::Arc, time::Duration};

use codespar_protocol::ToolUseId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Hears the last lines of a running call, the newest last. Called from the task of the call, so it
/// must be quick.
pub type OutputWatch = Arc<dyn Fn(&ToolUseId, Vec<String>) + Send + Sync>;

/// Between two reports of one command.
const INTERVAL: Duration = Duration::from_millis(200);
/// Lines of a report.
const LINES: usize = 5;
/// In characters; longer lines are cut.
const LINE_LENGTH: usize = 400;
/// Of the text that is held, in bytes: enough for a report.
const HELD: usize = 8 << 10;

/// The end of a command's output.
#[derive(Default)]
pub(crate) struct LiveTail {
    text: Mutex<String>,
    changed: Notify,
}

impl LiveTail {
    /// Takes the next piece, which is plain and without secrets.
    pub(crate) fn push(&self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let mut text = self.text.lock();
        text.push_str(end_of(piece));
        if text.len() > 2 * HELD {
            *text = end_of(&text).to_owned();
        }
        drop(text);
        self.changed.notify_one();
    }

    fn lines(&self) -> Vec<String> {
        let text = self.text.lock();
        let last: Vec<&str> = text.lines().rev().take(LINES).collect();
        let cut = |line: &&str| line.chars().take(LINE_LENGTH).collect();
        last.iter().rev().map(cut).collect()
    }

    /// Waits for `running` and tells of the lines that come meanwhile. Nothing is told after its
    /// end.
    pub(crate) async fn watched<T>(
        &self,
        running: impl Future<Output = T>,
        tell: impl Fn(Vec<String>),
    ) -> T {
        tokio::pin!(running);
        let mut pause = Duration::ZERO;
        loop {
            let next = async {
                tokio::time::sleep(pause).await;
                self.changed.notified().await;
            };
            tokio::select! {
                biased;
                done = &mut running => return done,
                () = next => tell(self.lines()),
            }
            pause = INTERVAL;
        }
    }
}

fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(HELD))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_held_and_a_long_one_is_cut() {
        let tail = LiveTail::default();
        for number in 0..100_000 {
            tail.push(&format!("line {number}\n"));
        }
        assert_eq!(tail.lines().len(), LINES);
        assert_eq!(tail.lines()[4], "line 99999");
        for _ in 0..100 {
            tail.push(&"é".repeat(50_000));
        }
        assert!(tail.text.lock().len() <= 2 * HELD);
        let lines = tail.lines();
        assert_eq!(lines.last().unwrap().chars().count(), LINE_LENGTH);
    }

    #[tokio::test]
    async fn reports_are_few_and_the_last_line_is_not_missed() {
        let tail = LiveTail::default();
        let told = Mutex::new(Vec::new());
        let running = async {
            for number in 0..1_000 {
                tail.push(&format!("{number}\n"));
                tokio::task::yield_now().await;
            }
            while told.lock().last().is_none_or(|line| line != "999") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let watched = tail.watched(running, |mut lines| told.lock().extend(lines.pop()));
        let deadline = Duration::from_secs(30);
        tokio::time::timeout(deadline, watched).await.unwrap();
        assert!(told.lock().len() < 100, "{:?}", told.lock());
    }
}
