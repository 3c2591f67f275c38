//! What is under way: the spinner, what it says, and the calls that run.
//!
//! It exists from the beginning of a turn to its end. While only the user can go on, no timer runs
//! for it.

use std::time::{Duration, Instant};

use codespar_protocol::{ToolUseId, short_count};
use codespar_terminal::{Line, Span, theme::Theme, width};

use crate::text::duration;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long a frame of the spinner is shown.
const FRAME: Duration = Duration::from_millis(125);
/// The same while an answer comes: that moves enough.
const SLOW_FRAME: Duration = Duration::from_millis(250);
/// Between two changes of the numbers.
const SECOND: Duration = Duration::from_secs(1);
/// Running calls that are shown, the newest.
const SHOWN_CALLS: usize = 6;
/// Lines of output that are shown below a running call.
const OUTPUT_LINES: usize = 3;

/// Whether things may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Motion {
    #[default]
    Full,
    /// Nothing spins; times are counted in seconds.
    Reduced,
}

/// What the agent waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Model,
    Thinking,
    Answering,
    /// Why, and which try failed.
    Retrying(String),
    Tools,
    Person,
}

/// A call that runs.
struct RunningCall {
    id: ToolUseId,
    tool: String,
    summary: String,
    since: Instant,
    /// A box shows what becomes of it.
    is_boxed: bool,
    /// The last lines of its output.
    output: Vec<String>,
}

/// A turn under way.
pub(crate) struct Activity {
    since: Instant,
    phase: Phase,
    /// Of the answers so far.
    tokens: u64,
    /// Characters of the answer that comes, until its tokens are known.
    characters: usize,
    calls: Vec<RunningCall>,
    /// Seconds and tokens as they are shown.
    shown: (u64, u64),
}

impl Activity {
    /// Begins with the turn and not with the first answer: the wait before it is what a person
    /// watches.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            phase: Phase::Model,
            tokens: 0,
            characters: 0,
            calls: Vec::new(),
            shown: (0, 0),
        }
    }

    /// The numbers change once a second: each change is painted. Tokens of the answer that comes
    /// are guessed as a quarter of its characters, until the provider counts them.
    fn count(&mut self, now: Instant) {
        let seconds = self.elapsed(now).as_secs();
        if seconds != self.shown.0 || self.shown.1 == 0 {
            self.shown = (seconds, self.tokens + self.characters as u64 / 4);
        }
    }

    pub(crate) fn asks_model(&mut self) {
        self.phase = Phase::Model;
    }

    pub(crate) fn thinks(&mut self, characters: usize) {
        self.phase = Phase::Thinking;
        self.characters += characters;
    }

    pub(crate) fn answers(&mut self, characters: usize) {
        self.phase = Phase::Answering;
        self.characters += characters;
    }

    pub(crate) fn retries(&mut self, text: String) {
        self.phase = Phase::Retrying(text);
    }

    pub(crate) fn waits_for_person(&mut self) {
        self.phase = Phase::Person;
    }

    pub(crate) fn answered(&mut self, output_tokens: u64) {
        self.tokens += output_tokens;
        self.characters = 0;
    }

    pub(crate) fn call_started(
        &mut self,
        id: ToolUseId,
        tool: String,
        summary: String,
        now: Instant,
    ) {
        self.phase = Phase::Tools;
        self.calls.push(RunningCall {
            id,
            tool,
            summary,
            since: now,
            is_boxed: false,
            output: Vec::new(),
        });
    }

    /// The call has a box from now on and needs no line.
    pub(crate) fn call_boxed(&mut self, id: &ToolUseId) {
        for call in self.calls.iter_mut().filter(|call| call.id == *id) {
            call.is_boxed = true;
        }
    }

    /// Those that have a line.
    fn lone_calls(&self) -> Vec<&RunningCall> {
        self.calls.iter().filter(|call| !call.is_boxed).collect()
    }

    /// The newest last.
    pub(crate) fn call_wrote(&mut self, id: &ToolUseId, mut lines: Vec<String>) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            let over = lines.len().saturating_sub(OUTPUT_LINES);
            call.output = lines.split_off(over);
        }
    }

    /// Calls of one answer may run side by side; the phase changes with the last.
    pub(crate) fn call_ended(&mut self, id: &ToolUseId) {
        self.calls.retain(|call| call.id != *id);
        if self.calls.is_empty() {
            self.phase = Phase::Model;
        }
    }

    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        now.duration_since(self.since)
    }

    /// Nothing runs until the user has answered.
    fn is_waiting_for_person(&self) -> bool {
        self.phase == Phase::Person && self.calls.is_empty()
    }

    fn spin(&self) -> Duration {
        match self.phase {
            Phase::Answering => SLOW_FRAME,
            _ => FRAME,
        }
    }

    /// When something shown changes by itself. In steps that are counted from the beginning of the
    /// turn.
    pub(crate) fn next_change(&self, now: Instant, motion: Motion) -> Option<Duration> {
        let step = match motion {
            _ if self.is_waiting_for_person() => return None,
            Motion::Full => self.spin(),
            Motion::Reduced => SECOND,
        };
        let over = self.elapsed(now).as_millis() % step.as_millis();
        Some(step - Duration::from_millis(over as u64))
    }

    /// Running calls, then the line with the spinner.
    pub(crate) fn lines(
        &mut self,
        now: Instant,
        columns: u16,
        theme: Theme,
        motion: Motion,
        interrupt_key: &str,
    ) -> Vec<Line<'static>> {
        self.count(now);
        let frame = self.frame(now, motion);
        let columns = usize::from(columns);
        let calls = self.lone_calls();
        let hidden = calls.len().saturating_sub(SHOWN_CALLS);
        let mut lines: Vec<Line<'static>> = calls[hidden..]
            .iter()
            .flat_map(|call| {
                let line = call_line(call, frame, now, columns, theme);
                std::iter::once(line).chain(output_lines(call, columns, theme))
            })
            .collect();
        if hidden > 0 {
            let text = format!("  +{hidden} more calls");
            lines.insert(0, Line::styled(text, theme.faint()));
        }
        let (seconds, tokens) = self.shown;
        let mut detail = match self.is_waiting_for_person() {
            true => String::new(),
            false => format!(" {}", duration(seconds)),
        };
        if tokens > 0 {
            detail.push_str(&format!(" · {} tokens", short_count(tokens)));
        }
        if !interrupt_key.is_empty() {
            detail.push_str(&format!(" · {interrupt_key} interrupts"));
        }
        let what = self.what();
        let room = columns.saturating_sub(2 + width::of(&what));
        lines.push(Line::from(vec![
            Span::styled(format!("{frame} "), theme.accent()),
            Span::styled(
                width::shortened(&what, columns.saturating_sub(2)),
                theme.accent(),
            ),
            Span::styled(width::shortened(&detail, room), theme.faint()),
        ]));
        lines
    }

    fn frame(&self, now: Instant, motion: Motion) -> &'static str {
        match motion {
            Motion::Full if !self.is_waiting_for_person() => {
                let elapsed = now.duration_since(self.since).as_millis();
                FRAMES[(elapsed / self.spin().as_millis()) as usize % FRAMES.len()]
            }
            _ => "•",
        }
    }

    fn what(&self) -> String {
        match &self.phase {
            Phase::Model => "Waiting for the model".to_owned(),
            Phase::Thinking => "Thinking".to_owned(),
            Phase::Answering => "Answering".to_owned(),
            Phase::Retrying(text) => format!("Retrying: {text}"),
            Phase::Tools => match self.lone_calls().len() {
                0 => "Waiting for subagents".to_owned(),
                1 => "Running a tool".to_owned(),
                calls => format!("Running {calls} tools"),
            },
            Phase::Person => "Waiting for your answer".to_owned(),
        }
    }
}

fn call_line(
    call: &RunningCall,
    frame: &'static str,
    now: Instant,
    columns: usize,
    theme: Theme,
) -> Line<'static> {
    let seconds = now.duration_since(call.since).as_secs();
    let elapsed = match seconds {
        0 => String::new(),
        _ => format!(" {}", duration(seconds)),
    };
    let used = 3 + width::of(&call.tool) + width::of(&elapsed);
    let summary = width::shortened(&call.summary, columns.saturating_sub(used));
    Line::from(vec![
        Span::styled(format!("{frame} "), theme.accent()),
        Span::styled(call.tool.clone(), theme.strong()),
        Span::raw(format!(" {summary}")),
        Span::styled(elapsed, theme.faint()),
    ])
}

fn output_lines(
    call: &RunningCall,
    columns: usize,
    theme: Theme,
) -> impl Iterator<Item = Line<'static>> {
    let line = move |text: &String| {
        let text = width::shortened(text, columns.saturating_sub(4));
        Line::styled(format!("  │ {text}"), theme.faint())
    };
    call.output.iter().map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_waited_for() {
        let begin = Instant::now();
        let theme = Theme::default();
        let mut activity = Activity::new(begin);
        let later = begin + Duration::from_secs(75);
        let texts = |activity: &mut Activity| -> Vec<String> {
            let lines = activity.lines(later, 60, theme, Motion::Reduced, "esc");
            lines.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            texts(&mut activity),
            ["• Waiting for the model 1 m 15 s · esc interrupts"]
        );
        activity.retries("try 2 failed (overloaded); next in 4.0 s".to_owned());
        assert!(texts(&mut activity)[0].starts_with("• Retrying: try 2 failed (overloaded)"));
        let id: ToolUseId = serde_json::from_str("\"t1\"").unwrap();
        activity.call_started(id.clone(), "Bash".into(), "cargo test".into(), begin);
        assert_eq!(texts(&mut activity)[0], "• Bash cargo test 1 m 15 s");
        activity.call_ended(&id);
        assert_eq!(texts(&mut activity).len(), 1);
    }
}
