//! Pastes of terminals that do not mark them (no bracketed paste).
//!
//! Such a paste arrives as keys, only faster than a person types. The rule:
//!
//! - A burst is at least three plain characters, tabs or line ends that came in one read, or in
//!   reads at most 8 ms apart. Below that, keys pass as they are: one fast Enter after typed text
//!   submits.
//! - What belongs to a burst is given as one [`Input::Paste`], line ends as `\n`. An Enter in a
//!   burst submits nothing.
//! - A burst ends when nothing came for 60 ms (a busy program reads late, so this is longer than
//!   what it takes to begin one), or with a key that is not text.
//! - A terminal that marked a paste, or that told its version or its kitty keyboard flags, marks
//!   all of them. From then on nothing is guessed.
//!
//! In reads of single keys the first two have passed as keys before the burst is known. They are
//! inserted where the paste goes, so the text is the same.

use std::time::{Duration, Instant};

use crate::{
    keys::{Input, Key, KeyCode, TerminalReply},
    newlines::with_newlines,
};

/// Keys that far apart may be one burst.
const FAST: Duration = Duration::from_millis(8);
/// So long a silence ends a burst.
const SILENCE: Duration = Duration::from_millis(60);
/// So many fast keys are a burst.
const SEVERAL: usize = 3;

/// Stands between [`KeyParser::feed`](crate::keys::KeyParser::feed) and whoever handles the inputs.
#[derive(Debug, Default)]
pub struct Burst {
    marks_pastes: bool,
    /// When the last text came, and how many fast keys in a row it ended.
    last: Option<Instant>,
    fast: usize,
    /// What the burst has brought since it was known to be one.
    collected: String,
}

impl Burst {
    pub fn new() -> Self {
        Self::default()
    }

    /// What the inputs of one read mean. All of one read came at the same time. Keys that are not
    /// text keep their place between pastes and keys.
    pub fn on_read(&mut self, inputs: Vec<Input>, now: Instant) -> Vec<Input> {
        let mut meant = self.on_time(now);
        if self.last.is_none_or(|last| now - last > FAST) && self.collected.is_empty() {
            self.fast = 0;
        }
        let mut run: Vec<(Input, char)> = Vec::new();
        for input in inputs {
            match text_of(&input).filter(|_| !self.marks_pastes) {
                Some(c) => run.push((input, c)),
                None => {
                    self.on_run(std::mem::take(&mut run), now, &mut meant);
                    self.on_other(input, &mut meant);
                }
            }
        }
        self.on_run(run, now, &mut meant);
        meant
    }

    /// When [`on_time`](Self::on_time) must be called, if nothing is read before.
    pub fn deadline(&self) -> Option<Instant> {
        let last = self.last.filter(|_| !self.collected.is_empty())?;
        Some(last + SILENCE)
    }

    /// The paste, once the burst has ended.
    pub fn on_time(&mut self, now: Instant) -> Vec<Input> {
        let mut meant = Vec::new();
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            self.end(&mut meant);
        }
        meant
    }

    /// Text keys that came without another input between them.
    fn on_run(&mut self, run: Vec<(Input, char)>, now: Instant, meant: &mut Vec<Input>) {
        if run.is_empty() {
            return;
        }
        self.last = Some(now);
        self.fast += run.len();
        if self.collected.is_empty() && self.fast < SEVERAL {
            meant.extend(run.into_iter().map(|(input, _)| input));
        } else {
            self.collected.extend(run.into_iter().map(|(_, c)| c));
        }
    }

    fn on_other(&mut self, input: Input, meant: &mut Vec<Input>) {
        match input {
            Input::Paste(_)
            | Input::Reply(TerminalReply::Version(_) | TerminalReply::KittyFlags(_)) => {
                self.end(meant);
                self.marks_pastes = true;
            }
            Input::Key(_) => self.end(meant),
            _ => {}
        }
        meant.push(input);
    }

    fn end(&mut self, meant: &mut Vec<Input>) {
        self.fast = 0;
        if !self.collected.is_empty() {
            let text = std::mem::take(&mut self.collected);
            meant.push(Input::Paste(with_newlines(&text).into_owned()));
        }
    }
}

/// What a key would be in a pasted text. Ctrl-J is byte 10, a line end in a paste of some
/// terminals.
fn text_of(input: &Input) -> Option<char> {
    let Input::Key(key) = input else {
        return None;
    };
    match key.code {
        KeyCode::Char(c) if key.modifiers.is_empty() => Some(c),
        KeyCode::Enter if key.modifiers.is_empty() => Some('\r'),
        KeyCode::Tab if key.modifiers.is_empty() => Some('\t'),
        _ if *key == Key::ctrl('j') => Some('\n'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyParser;

    struct Session {
        parser: KeyParser,
        burst: Burst,
        now: Instant,
    }

    impl Session {
        fn new() -> Self {
            Self {
                parser: KeyParser::new(),
                burst: Burst::new(),
                now: Instant::now(),
            }
        }

        fn read(&mut self, after: u64, bytes: &str) -> Vec<Input> {
            self.now += Duration::from_millis(after);
            let inputs = self.parser.feed(bytes.as_bytes());
            self.burst.on_read(inputs, self.now)
        }

        fn silence(&mut self) -> Vec<Input> {
            let deadline = self.burst.deadline().expect("a burst is open");
            self.burst.on_time(deadline)
        }
    }

    fn keys(text: &str) -> Vec<Input> {
        KeyParser::new().feed(text.as_bytes())
    }

    fn paste(text: &str) -> Vec<Input> {
        vec![Input::Paste(text.to_owned())]
    }

    #[test]
    fn an_unmarked_paste_in_two_reads_is_one_paste_and_submits_nothing() {
        let mut session = Session::new();
        assert_eq!(session.read(0, "first\rsec"), []);
        assert_eq!(session.read(20, "ond\r\n\tthird\r"), []);
        assert_eq!(session.silence(), paste("first\nsecond\n\tthird\n"));
        assert_eq!(session.burst.deadline(), None);
    }

    #[test]
    fn an_enter_soon_after_typed_text_submits() {
        let mut session = Session::new();
        for letter in ["h", "e", "l", "l", "o"] {
            assert_eq!(session.read(40, letter), keys(letter));
        }
        assert_eq!(session.read(2, "\r"), keys("\r"));
        assert_eq!(session.read(100, "y\r"), keys("y\r"));
    }

    #[test]
    fn an_enter_right_after_a_paste_is_a_line_of_it_and_a_later_one_submits() {
        let mut session = Session::new();
        session.read(0, "pasted text");
        assert_eq!(session.read(30, "\r"), []);
        assert_eq!(
            session.read(200, "\r"),
            [paste("pasted text\n"), keys("\r")].concat()
        );
    }

    #[test]
    fn single_keys_become_a_burst_at_the_third() {
        let mut session = Session::new();
        assert_eq!(session.read(0, "a"), keys("a"));
        assert_eq!(session.read(3, "b"), keys("b"));
        assert_eq!(session.read(3, "\r"), []);
        assert_eq!(session.read(3, "c"), []);
        assert_eq!(session.silence(), paste("\nc"));
    }

    #[test]
    fn a_key_that_is_no_text_ends_the_burst() {
        let mut session = Session::new();
        let inputs = session.read(0, "abc\r\x03");
        assert_eq!(inputs, [paste("abc\n"), keys("\x03")].concat());
    }

    #[test]
    fn a_terminal_that_marks_pastes_is_believed_that_the_rest_is_typed() {
        let mut session = Session::new();
        session.read(0, "\x1b[200~x\x1b[201~");
        assert_eq!(session.read(1, "make test\r"), keys("make test\r"));
        let mut session = Session::new();
        let reply = "\x1bP>|tmux 3.5a\x1b\\";
        let inputs = session.read(0, &format!("typed ahead{reply}"));
        assert_eq!(inputs, [paste("typed ahead"), keys(reply)].concat());
        assert_eq!(session.read(1, "make test\r"), keys("make test\r"));
    }
}
