//! The steps of a run as they happen: lines, and on a terminal a line that lives.
//!
//! On a terminal the last step is shown again below with the time it takes, if that is more than a
//! second. In a pipe there are only whole lines. With `--json` steps go to standard error, and
//! nowhere if that is no terminal.

use std::{
    io::IsTerminal,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_protocol::{Event, retry_text};
use parking_lot::Mutex;

use crate::printer::{self, To};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Clears the line that the cursor is in.
const WIPE: &str = "\r\x1b[2K";
/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);
/// Nothing turns for what is quick.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows the steps of a run.
#[derive(Clone)]
pub(crate) struct Progress(Arc<State>);

struct State {
    /// `None`: nobody wants them.
    to: Option<To>,
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
        Self::new(Some(To::Stdout), std::io::stdout().is_terminal())
    }

    /// Beside JSON: on a terminal's standard error, otherwise nowhere.
    pub(crate) fn beside_json() -> Self {
        let is_live = std::io::stderr().is_terminal();
        Self::new(is_live.then_some(To::Stderr), is_live)
    }

    /// The task that draws holds a weak reference and ends with the last clone.
    fn new(to: Option<To>, is_live: bool) -> Self {
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

    /// Shows what a step says. Events of subagents are shown like those of the run itself.
    pub(crate) fn event(&self, event: &Event) {
        let text = match event {
            Event::Step { text, .. } => text.clone(),
            Event::Subagent { event, .. } => return self.event(event),
            Event::ToolStarted { tool, summary, .. } => format!("   {tool} {summary}"),
            Event::Notice { text, .. } => text.clone(),
            Event::Retrying {
                attempt,
                delay_ms,
                reason,
            } => format!("   {}", retry_text(*attempt, *delay_ms, reason)),
            _ => return,
        };
        self.line(&text);
    }

    /// The text becomes what is under way, until the next line or [`Progress::rest`].
    pub(crate) fn line(&self, text: &str) {
        let mut now = self.0.now.lock();
        self.0.wipe(&mut now);
        self.0.put("", &format!("{text}\n"));
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
        let doing: String = now.doing.chars().take(60).collect();
        let line = format!("{frame} {doing} {} s", long.as_secs());
        self.put(WIPE, &line);
        now.is_drawn = true;
    }

    /// Only what was drawn: a line of somebody else must not be cleared.
    fn wipe(&self, now: &mut Now) {
        if self.is_live && now.is_drawn {
            self.put(WIPE, "");
            now.is_drawn = false;
        }
    }

    /// Moves the cursor, then writes.
    fn put(&self, moves: &str, text: &str) {
        if let Some(to) = self.to {
            let text = printer::rendered(to, text);
            // Nobody reading is no reason to stop the work.
            let _ = printer::send(to, &format!("{moves}{text}"));
        }
    }
}
