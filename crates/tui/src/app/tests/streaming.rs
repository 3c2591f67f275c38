//! What it costs to show an answer while it comes: bytes, memory, and wake-ups.

use super::*;
use crate::pace::{Pace, Urgency};

/// Sentences, code and tables as models write them, the same each time.
struct Author(u64);

const WORDS: &str = "the value of a request that is held by the server until its lock ends and \
    then goes back to the pool where another thread may find it because every caller waits for \
    one answer only while configuration files are read again after each change of their contents \
    so errors which come from disk should never be shown twice in a row to the same user";

const CODE: &str = "/// Reads the settings, or the defaults where there are none.
pub fn load(path: &Path) -> Result<Settings, LoadError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Settings::default()),
        Err(error) => return Err(LoadError::Unreadable(path.to_owned(), error)),
    };
    let settings: Settings = toml::from_str(&text)?;
    if settings.retries > 10 {
        return Err(LoadError::TooMany { retries: settings.retries, most: 10 });
    }

    // What is not set is taken from the environment.
    Ok(settings.with_defaults())
}
";

impl Author {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn word(&mut self) -> &'static str {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        words[self.below(words.len() as u64) as usize]
    }

    fn words(&mut self, count: u64) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn sentence(&mut self) -> String {
        let long = 5 + self.below(9);
        let (begin, end) = (self.words(4), self.words(long));
        match self.below(9) {
            0 => format!("The **{begin}** {end}."),
            1 => format!("Call `load_{}()` when {begin}, or {end}.", self.word()),
            2 => format!("It doesn’t {begin} — {end}."),
            3 => format!("See *{begin}* in `src/{}.rs`: {end}.", self.word()),
            _ => format!("Then {begin} {end}."),
        }
    }

    fn paragraph(&mut self) -> String {
        let count = 2 + self.below(6);
        let sentences: Vec<String> = (0..count).map(|_| self.sentence()).collect();
        sentences.join(" ") + "\n\n"
    }

    fn section(&mut self, number: usize) -> String {
        let mut text = format!("## The {}\n\n{}", self.words(3), self.paragraph());
        text += &self.paragraph();
        for _ in 0..2 + self.below(4) {
            text += &format!("- **{}**: {}\n", self.word(), self.sentence());
        }
        text += &format!("\n{}", self.paragraph());
        match number % 4 {
            0 => {
                text += "| Setting | Default | What it does |\n|---|---|---|\n";
                for _ in 0..4 {
                    let (name, does) = (self.word(), self.words(6));
                    text += &format!("| `{name}` | {} | {does} |\n", self.below(5000));
                }
                text += "\n";
            }
            2 => {}
            _ => text += &format!("```rust\n{CODE}```\n\n"),
        }
        text
    }

    fn answer(size: usize) -> String {
        let mut author = Self(0x9e37_79b9_7f4a_7c15);
        let mut text = String::new();
        for number in 0.. {
            if text.len() >= size {
                break;
            }
            text += &author.section(number);
        }
        text
    }
}

/// So many bytes each, never within a character.
fn pieces(text: &str, size: usize) -> Vec<&str> {
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Plays an answer to the screen as the thread that has the terminal would, millisecond by
/// millisecond. Returns how many bytes were written.
fn stream(stage: &mut Stage, text: &str, pieces_per_second: u64) -> u64 {
    let mut pace = Pace::default();
    stage.message(Message::TurnStarted);
    stage.paint();
    pace.painted(stage.now);
    let before = stage.painter.bytes_written();
    let begin = stage.now;
    let mut sent = 0;
    let mut wake = stage.now;
    let all = pieces(text, 20);
    while sent < all.len() {
        stage.wait(1);
        let elapsed = stage.now.duration_since(begin).as_millis() as u64;
        while sent < all.len() && sent as u64 * 1_000 <= elapsed * pieces_per_second {
            let message = Message::Event(Event::TextDelta {
                text: all[sent].to_owned(),
            });
            pace.changed(Urgency::of(&message));
            stage.message(message);
            sent += 1;
        }
        if stage.now >= wake {
            pace.changed(Urgency::Streamed);
        }
        if pace.is_due(stage.now) {
            stage.paint();
            pace.painted(stage.now);
        }
        let next = stage.app.next_time(stage.now).unwrap();
        wake = stage.now + next;
    }
    stage.message(Message::TurnEnded);
    stage.paint();
    stage.painter.bytes_written() - before
}

#[test]
fn an_answer_costs_at_most_twice_its_bytes() {
    let text = Author::answer(60_000);
    for (columns, rows) in [(80, 24), (120, 40)] {
        for rate in [30, 100] {
            let mut stage = Stage::new(columns, rows).moving();
            let written = stream(&mut stage, &text, rate);
            let ratio = written as f64 / text.len() as f64;
            println!("{columns}x{rows}, {rate} pieces a second: {ratio:.2}");
            assert!(ratio <= 2.0, "{written} bytes for {}", text.len());
        }
    }
}
