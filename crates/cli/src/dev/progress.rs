//! The steps of a run as they happen: lines, and on a terminal a line that lives.

use std::{
    io::{IsTerminal, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_protocol::Event;
use parking_lot::Mutex;

use crate::plain::plain;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const TICK: Duration = Duration::from_millis(120);
/// Nothing turns for what is quick.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the lines go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Stdout,
    Stderr,
    Nowhere,
}

/// Shows the steps of a run.
#[derive(Clone)]
pub(crate) struct Progress(Arc<State>);

struct State {
    to: To,
    is_live: bool,
    now: Mutex<Now>,
}

struct Now {
    doing: String,
    since: Instant,
    is_drawn: bool,
}

impl Progress {
    /// For people: on standard output.
    pub(crate) fn for_people() -> Self {
        Self::new(To::Stdout, std::io::stdout().is_terminal())
    }

    /// Beside JSON: on a terminal's standard error, otherwise nowhere.
    pub(crate) fn beside_json() -> Self {
        let is_live = std::io::stderr().is_terminal();
        Self::new(if is_live { To::Stderr } else { To::Nowhere }, is_live)
    }

    fn new(to: To, is_live: bool) -> Self {
        let now = Now {
            doing: String::new(),
            since: Instant::now(),
            is_drawn: false,
        };
        let progress = Self(Arc::new(State {
            to,
            is_live,
            now: Mutex::new(now),
        }));
        if is_live {
            let weak = Arc::downgrade(&progress.0);
            tokio::spawn(async move {
                let mut frame = 0;
                loop {
                    tokio::time::sleep(TICK).await;
                    let Some(state) = weak.upgrade() else {
                        return;
                    };
                    state.turn(FRAMES[frame % FRAMES.len()]);
                    frame += 1;
                }
            });
        }
        progress
    }

    /// Shows what a step says.
    pub(crate) fn event(&self, event: &Event) {
        let text = match event {
            Event::Step { text, .. } => text.clone(),
            Event::Subagent { event, .. } => return self.event(event),
            Event::ToolStarted { tool, summary, .. } => format!("   {tool} {summary}"),
            Event::Notice { text, .. } => text.clone(),
            _ => return,
        };
        self.line(&plain(&text));
    }

    /// Shows a line.
    pub(crate) fn line(&self, text: &str) {
        let mut now = self.0.now.lock();
        self.0.wipe(&mut now);
        self.0.put(&format!("{text}\n"));
        now.doing = text.lines().next().unwrap_or_default().trim().to_owned();
        now.since = Instant::now();
    }

    /// Nothing is under way any more.
    pub(crate) fn rest(&self) {
        let mut now = self.0.now.lock();
        self.0.wipe(&mut now);
        now.doing.clear();
    }
}

impl State {
    fn turn(&self, frame: &str) {
        let mut now = self.now.lock();
        let long = now.since.elapsed();
        if now.doing.is_empty() || long < PATIENCE {
            return;
        }
        let words: String = now.doing.chars().take(60).collect();
        self.put(&format!("\r\x1b[2K{frame} {words} {} s", long.as_secs()));
        now.is_drawn = true;
    }

    fn wipe(&self, now: &mut Now) {
        if self.is_live && now.is_drawn {
            self.put("\r\x1b[2K");
            now.is_drawn = false;
        }
    }

    fn put(&self, text: &str) {
        // Nobody reading is no reason to stop the work.
        let _ = match self.to {
            To::Stdout => {
                let mut out = anstream::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            To::Stderr => {
                let mut out = anstream::stderr().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            To::Nowhere => Ok(()),
        };
    }
}
