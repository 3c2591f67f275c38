//! Lines the user types, read on a thread of their own so that nothing else waits for them.

use std::{io::BufRead, sync::Arc};

use tokio::sync::{Mutex, mpsc};

use super::Screen;

/// Lines as they come. One asker at a time: the prompt or a question.
pub(super) struct Input {
    lines: Mutex<mpsc::Receiver<String>>,
}

impl Input {
    /// Begins to read. The thread lives until the end of input; at the end of the process nobody
    /// waits for it.
    pub(super) fn start(screen: Arc<Screen>) -> Self {
        let (send, lines) = mpsc::channel(64);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                // The terminal has shown it, and begun a new row.
                screen.go_on();
                if send.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            lines: Mutex::new(lines),
        }
    }

    /// Forgets what was typed before now: an answer must follow its question.
    pub(super) async fn forget(&self) {
        let mut lines = self.lines.lock().await;
        while lines.try_recv().is_ok() {}
    }

    /// The next line; `None` at the end of input.
    pub(super) async fn line(&self) -> Option<String> {
        self.lines.lock().await.recv().await
    }

    /// The next line with those it continues onto: a line that ends in a backslash goes on, and
    /// lines pasted together arrive together.
    pub(super) async fn paragraph(&self) -> Option<String> {
        let mut lines = self.lines.lock().await;
        let mut text = lines.recv().await?;
        loop {
            if let Some(open) = text.strip_suffix('\\') {
                text = format!("{open}\n");
                text.push_str(&lines.recv().await.unwrap_or_default());
            } else if let Ok(next) = lines.try_recv() {
                text.push('\n');
                text.push_str(&next);
            } else {
                return Some(text);
            }
        }
    }
}
