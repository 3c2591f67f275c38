//! Signs of progress of calls under way: they extend the time of a call, and are shown.
//!
//! A sign names its call by a token of ours. One for a call that is over, or that never was, is
//! dropped.

use std::{collections::HashMap, sync::Arc};

use codespar_policy::printable;
use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::watch;

/// Characters of a message that are shown.
const MAX_MESSAGE: usize = 200;

/// Shows one line of a call.
pub(super) type ShowProgress = Arc<dyn Fn(String) + Send + Sync>;

struct InProgress {
    signs: watch::Sender<u64>,
    show: Option<ShowProgress>,
}

/// The calls of a server that are under way.
#[derive(Clone, Default)]
pub(super) struct CallsInProgress(Arc<Mutex<HashMap<ProgressToken, InProgress>>>);

/// Ends the watch of a call when it is dropped.
pub(super) struct ProgressWatch {
    calls: CallsInProgress,
    token: ProgressToken,
    pub(super) signs: watch::Receiver<u64>,
}

impl Drop for ProgressWatch {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.token);
    }
}

impl CallsInProgress {
    pub(super) fn watch(&self, token: ProgressToken, show: Option<ShowProgress>) -> ProgressWatch {
        let (signs, receiver) = watch::channel(0);
        let call = InProgress { signs, show };
        self.0.lock().insert(token.clone(), call);
        ProgressWatch {
            calls: self.clone(),
            token,
            signs: receiver,
        }
    }

    pub(super) fn report(&self, said: &ProgressNotificationParam) {
        let show = match self.0.lock().get(&said.progress_token) {
            Some(call) => {
                call.signs.send_modify(|count| *count += 1);
                call.show.clone()
            }
            None => return,
        };
        if let Some(show) = show {
            show(line(said.progress, said.total, said.message.as_deref()));
        }
    }
}

/// One line, without anything that a terminal would obey.
fn line(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let count = match total {
        Some(total) if total > 0.0 => {
            format!("{:.0}%", (progress / total * 100.0).clamp(0.0, 100.0))
        }
        _ => format!("{progress}"),
    };
    let message = message.unwrap_or_default().replace(['\n', '\r'], " ");
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    match message.trim() {
        "" => count,
        message => format!("{count} {}", printable(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_one_short_line() {
        assert_eq!(line(3.0, Some(4.0), None), "75%");
        assert_eq!(line(9.0, Some(4.0), Some("almost")), "100% almost");
        assert_eq!(line(2.0, None, Some("a\nb")), "2 a b");
        let long = line(1.0, None, Some(&"x".repeat(10_000)));
        assert_eq!(long.chars().count(), 2 + MAX_MESSAGE);
        assert!(!line(1.0, None, Some("\u{1b}[2J")).contains('\u{1b}'));
    }
}
