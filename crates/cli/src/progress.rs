//! What a long command does, as it happens: lines of steps, and on a terminal a line that lives.
//!
//! The live line says what is under way and for how long, once that is more than a second. It is
//! wiped before anything else is printed. In a pipe, with `TERM=dumb` and while somebody else draws
//! on the terminal there is none, and no timer runs for it. While nothing is under way, or nothing
//! that turns, the process is not woken either.
//!
//! ```text
//!                 steps                       live line
//! for_people      standard output             on the same terminal
//! beside_json     standard error, terminal    on the same terminal
//! beside_result   none                        standard error: the result is on standard output
//! nowhere         none                        none
//! ```

use std::{
    future::Future,
    io::{BufRead, IsTerminal},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use codespar_protocol::{Event, retry_text};
use parking_lot::Mutex;
use tokio::sync::watch;
use unicode_width::UnicodeWidthChar;

use crate::{
    printer::{self, To},
    signals, style,
};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Clears the line that the cursor is in.
const WIPE: &str = "\r\x1b[2K";
/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);
/// Nothing turns for what is quick.
const PATIENCE: Duration = Duration::from_secs(1);
/// Columns for the text of the live line, where the terminal has them.
const WIDTH: usize = 60;
/// Columns for the spinner and the time.
const AROUND: usize = 12;

/// Shows what a command does. The live line ends with the last clone.
#[derive(Clone)]
pub(crate) struct Progress(Arc<State>);

struct State {
    /// Where steps go; `None`: nobody wants them.
    steps: Option<To>,
    /// Where the live line is; `None`: there is none.
    live: Option<To>,
    now: Mutex<Now>,
    /// Told when `now` is another; closed with the last clone.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Now {
    doing: Option<Doing>,
    is_drawn: bool,
}

/// What is under way.
struct Doing {
    text: Text,
    since: Instant,
    pace: Pace,
}

type Text = Box<dyn Fn() -> String + Send>;

/// Whether the live line is drawn again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// With a spinner and the time.
    Turning,
    /// Once, without them.
    Still,
}

impl Progress {
    /// For people: on standard output.
    pub(crate) fn for_people() -> Self {
        let is_live = std::io::stdout().is_terminal() && !printer::is_diverted() && can_move();
        Self::new(Some(To::Stdout), is_live.then_some(To::Stdout))
    }

    /// Beside JSON: on a terminal's standard error, otherwise nowhere.
    pub(crate) fn beside_json() -> Self {
        let to = std::io::stderr().is_terminal().then_some(To::Stderr);
        Self::new(to, to.filter(|_| can_move()))
    }

    /// Beside a result on standard output: no steps, and the live line on a terminal's standard
    /// error.
    pub(crate) fn beside_result() -> Self {
        let is_live = std::io::stderr().is_terminal() && !printer::is_diverted() && can_move();
        Self::new(None, is_live.then_some(To::Stderr))
    }

    pub(crate) fn nowhere() -> Self {
        Self::new(None, None)
    }

    fn new(steps: Option<To>, live: Option<To>) -> Self {
        let (changed, changes) = watch::channel(());
        let progress = Self(Arc::new(State {
            steps,
            live,
            now: Mutex::default(),
            changed,
        }));
        if live.is_some() {
            tokio::spawn(draw(Arc::downgrade(&progress.0), changes));
        }
        progress
    }

    /// Whether there is somebody to keep the live line up to date for.
    pub(crate) fn is_live(&self) -> bool {
        self.0.live.is_some()
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

    /// Prints a step. It is what is under way, until the next one or [`Progress::rest`].
    pub(crate) fn line(&self, text: &str) {
        let mut now = self.0.now.lock();
        self.0.wipe(&mut now);
        self.0.print(&format!("{text}\n"));
        let first = text.lines().next().unwrap_or_default().trim().to_owned();
        let is_something = !first.is_empty();
        let doing = Doing::new(Box::new(move || first.clone()), Instant::now());
        self.0.put(&mut now, is_something.then_some(doing));
    }

    /// This is under way, and is not printed as a step. The time is that since the last
    /// [`Progress::rest`]: steps that are quick on their own may take long together.
    pub(crate) fn doing(&self, text: impl Into<String>) {
        let text = text.into();
        self.doing_now(move || text.clone());
    }

    /// The same with a text that changes. It is asked for each time the line is drawn, under a
    /// lock: it must not use this progress itself.
    pub(crate) fn doing_now(&self, text: impl Fn() -> String + Send + 'static) {
        let mut now = self.0.now.lock();
        let since = now.doing.as_ref().map_or_else(Instant::now, |it| it.since);
        self.0
            .put(&mut now, Some(Doing::new(Box::new(text), since)));
    }

    /// This is under way since then, whatever was before.
    pub(crate) fn doing_since(&self, text: impl Into<String>, since: Instant) {
        let text = text.into();
        let mut now = self.0.now.lock();
        self.0.wipe(&mut now);
        let doing = Doing::new(Box::new(move || text.clone()), since);
        self.0.put(&mut now, Some(doing));
    }

    /// Nothing is under way; the text says what is waited for, without spinner and time.
    pub(crate) fn waiting(&self, text: impl Into<String>) {
        let text = text.into();
        let mut now = self.0.now.lock();
        self.0.wipe(&mut now);
        let doing = Doing {
            pace: Pace::Still,
            ..Doing::new(Box::new(move || text.clone()), Instant::now())
        };
        self.0.put(&mut now, Some(doing));
    }

    /// Says what is under way for as long as the work takes.
    pub(crate) async fn during<T>(
        &self,
        text: impl Into<String>,
        work: impl Future<Output = T>,
    ) -> T {
        self.doing(text);
        let done = work.await;
        self.rest();
        done
    }

    /// A signal ends the command, with the live line wiped: for commands that do not watch signals
    /// themselves. Without a live line signals do what they always do.
    pub(crate) fn until_signal(self) -> Self {
        if self.is_live() {
            let state = Arc::downgrade(&self.0);
            let last = move || {
                if let Some(state) = state.upgrade() {
                    // For good: nothing is drawn without the lock.
                    let mut now = state.now.lock();
                    state.wipe(&mut now);
                    std::mem::forget(now);
                }
            };
            // A line that stays is better than no result.
            let _ = signals::end_after(last);
        }
        self
    }

    /// Nothing is under way any more.
    pub(crate) fn rest(&self) {
        let mut now = self.0.now.lock();
        self.0.wipe(&mut now);
        self.0.put(&mut now, None);
    }

    /// A line that is typed here. `None` when nobody reads or writes here any more. If the question
    /// is settled elsewhere the read stays behind on its thread; the next line is lost to it.
    pub(crate) async fn ask(&self, prompt: &str) -> Option<String> {
        self.rest();
        printer::out(format_args!("{} › ", style::faint(prompt))).ok()?;
        let read = || {
            let mut line = String::new();
            let length = std::io::stdin().lock().read_line(&mut line).ok()?;
            (length > 0).then_some(line)
        };
        tokio::task::spawn_blocking(read).await.ok()?
    }
}

impl Doing {
    fn new(text: Text, since: Instant) -> Self {
        Self {
            text,
            since,
            pace: Pace::Turning,
        }
    }

    /// The live line, as wide as the terminal allows.
    fn shown(&self, to: To, frame: &str) -> String {
        let columns = columns(to).map_or(WIDTH, |all| all.saturating_sub(AROUND).min(WIDTH));
        let text = printer::visible(&(self.text)()).replace('\t', " ");
        let text = cut(&text, columns);
        match self.pace {
            Pace::Turning => format!("{frame} {text} {} s", self.since.elapsed().as_secs()),
            Pace::Still => text.to_owned(),
        }
    }
}

impl State {
    fn put(&self, now: &mut Now, doing: Option<Doing>) {
        now.doing = doing;
        self.changed.send_replace(());
    }

    /// Draws what is under way if it is time to, and says when to look again: `None` if nothing
    /// is to be drawn until something else is under way.
    fn turn(&self, to: To, frame: &str) -> Option<Duration> {
        let mut now = self.now.lock();
        let doing = now.doing.as_ref()?;
        let wait = PATIENCE.saturating_sub(doing.since.elapsed());
        if !wait.is_zero() {
            return Some(wait);
        }
        let line = printer::rendered(to, &doing.shown(to, frame));
        let next = (doing.pace == Pace::Turning).then_some(TICK);
        // Nobody reading is no reason to stop the work.
        let _ = printer::send(to, &format!("{WIPE}{line}"));
        now.is_drawn = true;
        next
    }

    /// Only what was drawn: a line of somebody else must not be cleared.
    fn wipe(&self, now: &mut Now) {
        if let (Some(to), true) = (self.live, now.is_drawn) {
            let _ = printer::send(to, WIPE);
            now.is_drawn = false;
        }
    }

    fn print(&self, text: &str) {
        if let Some(to) = self.steps {
            let _ = printer::write(to, text);
        }
    }
}

/// Whatever ends a command, an error too, is printed on an empty line.
impl Drop for State {
    fn drop(&mut self) {
        let mut now = std::mem::take(self.now.get_mut());
        self.wipe(&mut now);
    }
}

/// Draws the live line until the last clone is dropped.
async fn draw(state: Weak<State>, mut changes: watch::Receiver<()>) {
    for frame in FRAMES.iter().cycle() {
        let next = match state.upgrade() {
            Some(state) => state.live.and_then(|to| state.turn(to, frame)),
            None => return,
        };
        let changed = match next {
            Some(pause) => tokio::time::timeout(pause, changes.changed()).await,
            None => Ok(changes.changed().await),
        };
        if let Ok(Err(_)) = changed {
            return;
        }
    }
}

/// Whether the terminal can clear a line, and nothing else writes to it: the log does not know of
/// the live line.
fn can_move() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !is_dumb && std::env::var_os("CODESPAR_LOG").is_none()
}

fn columns(to: To) -> Option<usize> {
    let size = match to {
        To::Stdout => rustix::termios::tcgetwinsize(std::io::stdout()),
        To::Stderr => rustix::termios::tcgetwinsize(std::io::stderr()),
    };
    let columns = usize::from(size.ok()?.ws_col);
    (columns > 0).then_some(columns)
}

/// A line that is longer than the terminal is wide could not be wiped.
fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    end.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_by_columns() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc");
        assert_eq!(cut("日本語", 5), "日本");
        assert_eq!(cut("", 0), "");
    }

    #[tokio::test]
    async fn nothing_is_drawn_for_what_is_quick_or_over() {
        let progress = Progress::nowhere();
        let state = &progress.0;
        assert_eq!(state.turn(To::Stderr, "⠋"), None);
        progress.doing("something");
        let wait = state.turn(To::Stderr, "⠋").unwrap();
        assert!(wait <= PATIENCE);
        assert!(!state.now.lock().is_drawn);
        progress.rest();
        assert_eq!(state.turn(To::Stderr, "⠋"), None);
    }

    #[tokio::test]
    async fn what_follows_without_a_rest_keeps_the_time() {
        let progress = Progress::nowhere();
        let since = || progress.0.now.lock().doing.as_ref().map(|it| it.since);
        progress.doing("one");
        let began = since();
        progress.doing("two");
        assert_eq!(since(), began);
        progress.rest();
        assert_eq!(since(), None);
    }
}
