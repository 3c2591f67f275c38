//! What it costs to show an answer while it comes: bytes, memory, and wake-ups.

use super::{allocated::Allocated, *};
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
            stage.paint_unseen();
            pace.painted(stage.now);
        }
        let next = stage.app.next_time(stage.now).unwrap();
        wake = stage.now + next;
    }
    stage.message(Message::TurnEnded);
    stage.paint();
    stage.painter.bytes_written() - before
}

fn costs_at_most_twice_its_bytes(text: &str) {
    for (columns, rows) in [(80, 24), (120, 40)] {
        for rate in [30, 100] {
            let mut stage = Stage::new(columns, rows).moving();
            let written = stream(&mut stage, text, rate);
            let ratio = written as f64 / text.len() as f64;
            println!("{columns}x{rows}, {rate} pieces a second: {ratio:.2}");
            assert!(ratio <= 2.0, "{written} bytes for {}", text.len());
        }
    }
}

#[test]
fn an_answer_costs_at_most_twice_its_bytes() {
    costs_at_most_twice_its_bytes(&Author::answer(60_000));
}

#[test]
fn an_answer_with_a_table_every_600_bytes_costs_at_most_twice_its_bytes() {
    let mut author = Author(0x9e37_79b9_7f4a_7c15);
    let mut text = String::new();
    for _ in 0..40 {
        while text.len() % 600 < 470 {
            text += &author.paragraph();
        }
        text += "| File | Lines | What it does |\n|---|---|---|\n";
        for _ in 0..2 {
            let (name, does) = (author.word(), author.words(3));
            text += &format!("| `src/{name}.rs` | {} | {does} |\n", author.below(900));
        }
        text += "\n";
    }
    costs_at_most_twice_its_bytes(&text);
}

#[test]
fn a_hundred_thousand_lines_are_shown_in_constant_memory() {
    let code = format!("```rust\n{}```\n", "let x = f(1);\n".repeat(400));
    let part = "Two words.\n\n".repeat(50) + "- an **item**\n".repeat(100).as_str() + "\n" + &code;
    let lines = part.lines().count();
    let mut stage = Stage::new(80, 24).moving();
    stage.message(Message::TurnStarted);
    let mut shown = 0;
    let mut first = None;
    while shown < 100_000 {
        let held = Allocated::now();
        Allocated::forget_most();
        for piece in pieces(&part, 1_000) {
            stage.text(piece);
            stage.wait(16);
            stage.paint_unseen();
        }
        let most = Allocated::most() - held;
        shown += lines;
        // While the first parts come, buffers get their size.
        if shown > 2 * lines {
            let (held_before, most_before) = *first.get_or_insert((held, most));
            let (held, most) = (held - held_before, most - most_before);
            assert!(held < 4_096, "{held} bytes more are held at line {shown}");
            assert!(most < 4_096, "{most} bytes more are needed at line {shown}");
        }
    }
}

/// How many bytes are written for a key after so many prompts, calls and answers.
fn bytes_of_a_key(entries: usize) -> u64 {
    let mut stage = Stage::new(80, 24);
    for number in 0..entries {
        stage.message(Message::TurnStarted);
        stage.text("A short answer with `code`.\n\n");
        let id = format!("t{number}");
        stage.call(&id, "Bash", "cargo test", json!({"command": "cargo test"}));
        stage.result(&id, "Bash", false, "ok\n");
        stage.message(Message::TurnEnded);
        if number % 50 == 9 {
            stage.paint_unseen();
        }
    }
    stage.paint_unseen();
    let before = stage.painter.bytes_written();
    stage.typed("x");
    stage.paint_unseen();
    stage.painter.bytes_written() - before
}

#[test]
fn a_key_costs_the_same_after_ten_thousand_entries() {
    let few = bytes_of_a_key(10);
    assert!(few > 0);
    assert_eq!(bytes_of_a_key(10_000), few);
}

type IdleState = (&'static str, fn(&mut Stage));

/// Where nobody but the user can go on.
fn idle_states() -> Vec<IdleState> {
    vec![
        ("first prompt", |_| {}),
        ("after a turn", |stage| {
            stage.message(Message::TurnStarted);
            stage.text("An answer.");
            stage.message(Message::TurnEnded);
        }),
        ("a draft", |stage| stage.typed("half a thought")),
        ("a notice", |stage| {
            let level = codespar_protocol::NoticeLevel::Warning;
            stage.message(Message::Notice(level, "the key is old".into()));
        }),
        ("a list of commands", |stage| stage.typed("/m")),
        ("a search", |stage| stage.keys(&["ctrl-r"])),
        ("ctrl-c was pressed once", |stage| stage.keys(&["ctrl-c"])),
        ("a list to choose from", |stage| {
            let (reply, _) = oneshot::channel();
            stage.message(Message::Pick {
                title: "Sessions".into(),
                choices: Vec::new(),
                reply,
            });
        }),
        ("a question without a turn", |stage| {
            std::mem::forget(stage.ask(command("ls")));
        }),
        ("a question in a turn", |stage| {
            stage.message(Message::TurnStarted);
            std::mem::forget(stage.ask(command("ls")));
        }),
        ("a question that was given the focus", |stage| {
            stage.message(Message::TurnStarted);
            stage.typed("text");
            std::mem::forget(stage.ask(command("ls")));
            stage.keys(&["tab"]);
        }),
        ("a question behind a draft", |stage| {
            stage.message(Message::TurnStarted);
            stage.typed("text");
            std::mem::forget(stage.ask(command("ls")));
        }),
        ("the reason of a no", |stage| {
            stage.message(Message::TurnStarted);
            std::mem::forget(stage.ask(command("ls")));
            stage.wait(2_000);
            stage.typed("n");
        }),
    ]
}

#[test]
fn nothing_wakes_up_while_only_the_user_can_go_on() {
    for motion in [Motion::Full, Motion::Reduced] {
        for (name, prepare) in idle_states() {
            let mut stage = Stage::new(60, 20);
            stage.app.motion = motion;
            prepare(&mut stage);
            // What is due soon: drafts are saved, questions get the focus.
            for _ in 0..4 {
                stage.wait(1_000);
                stage.paint_unseen();
            }
            assert_eq!(stage.app.next_time(stage.now), None, "{name}");
            let before = stage.painter.bytes_written();
            stage.wait(3_600_000);
            stage.paint_unseen();
            assert_eq!(stage.painter.bytes_written(), before, "{name}");
        }
    }
}

#[test]
fn something_wakes_up_while_something_is_under_way() {
    let mut stage = Stage::new(60, 20).moving();
    stage.message(Message::TurnStarted);
    assert!(stage.app.next_time(stage.now).is_some());
    std::mem::forget(stage.ask(command("ls")));
    stage.call("t2", "Bash", "sleep 9", json!({}));
    stage.wait(5_000);
    assert!(stage.app.next_time(stage.now).is_some());
}
