//! A command's output with bounded memory: both ends here, the whole on disk if it is long.
//!
//! Bytes pass through plain text, redaction and what is kept. The first two may hold some back
//! until more has come: a line that is not complete, a text that may be the beginning of a secret.
//! So a secret that arrives in two pieces is redacted too, and [`Capture::finish`] must be called
//! for the last bytes to arrive.
//!
//! ```text
//! Whole  -- more than RESULT_LIMIT characters --> Ends    (Capture::new)
//! File                                                    (Capture::to_file)
//! ```

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_policy::{RedactedStream, Redactor};

use crate::{
    bound::{END, Place, RESULT_LIMIT, first, join, last},
    live_output::LiveTail,
};

use super::{
    plain::PlainText,
    spill::{CAP, Spill},
};

/// The tail is shortened only once it has grown to this, not at every piece. Shortening moves the
/// whole tail.
const TAIL_SLACK: usize = 256 << 10;

/// Takes output as it comes.
pub struct Capture {
    directory: PathBuf,
    name: String,
    plain: PlainText,
    /// Before anything is kept: what is in a file is read by others later.
    redacted: RedactedStream,
    kept: Kept,
    /// For whoever watches the command.
    live: Option<Arc<LiveTail>>,
}

/// Once output has become [`Kept::Ends`] it stays so.
enum Kept {
    /// All of it, still short.
    Whole(String),
    /// Both ends; the file has the rest.
    Ends(Box<Ends>),
    /// Nothing here, all of it in a file from the start. After an error the rest is dropped; the
    /// command goes on.
    File(io::Result<Spill>),
}

struct Ends {
    head: String,
    /// The last [`END`] characters at least, of all output including the head.
    tail: String,
    /// Characters so far.
    count: usize,
    /// The error is told in the result in place of the path.
    file: Result<Spill, String>,
}

impl Capture {
    /// Output that, if it gets long, goes to a file in `directory` named after `name`; without
    /// secrets.
    pub fn new(directory: &Path, name: &str, redactor: &Arc<Redactor>) -> Self {
        Self {
            directory: directory.to_path_buf(),
            name: name.to_owned(),
            plain: PlainText::default(),
            redacted: RedactedStream::new(redactor.clone()),
            kept: Kept::Whole(String::new()),
            live: None,
        }
    }

    /// What is kept is also seen here, as it comes.
    pub(crate) fn watched_by(mut self, live: Option<Arc<LiveTail>>) -> Self {
        self.live = live;
        self
    }

    /// Output that goes to this file as it comes, for people to follow; beyond the cap without its
    /// middle. An existing file is continued. [`Capture::finish`] then returns an empty text, or
    /// that the output could not be kept.
    pub fn to_file(path: &Path, redactor: &Arc<Redactor>) -> io::Result<Self> {
        let file = Spill::continue_at(path, CAP)?;
        Ok(Self {
            directory: PathBuf::new(),
            name: String::new(),
            plain: PlainText::default(),
            redacted: RedactedStream::new(redactor.clone()),
            kept: Kept::File(Ok(file)),
            live: None,
        })
    }

    /// Takes text of our own.
    pub fn add_text(&mut self, text: &str) {
        self.push(text.as_bytes());
    }

    /// Takes a line of our own, after what there is.
    pub(super) fn add_line(&mut self, line: &str) {
        if !self.plain.is_at_line_start() {
            self.push(b"\n");
        }
        self.push(line.as_bytes());
        self.push(b"\n");
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut text = String::new();
        self.plain.push(bytes, &mut text);
        if !text.is_empty() {
            let mut settled = String::new();
            self.redacted.push(&text, &mut settled);
            self.keep(&settled);
        }
    }

    /// Takes text that is plain and free of secrets.
    fn keep(&mut self, text: &str) {
        if let Some(live) = &self.live {
            live.push(text);
        }
        match &mut self.kept {
            Kept::Ends(ends) => ends.add(text),
            Kept::File(file) => {
                if let Ok(spill) = file
                    && let Err(error) = spill.write(text.as_bytes())
                {
                    *file = Err(error);
                }
            }
            Kept::Whole(whole) => {
                whole.push_str(text);
                let long = whole.len() > RESULT_LIMIT && whole.chars().count() > RESULT_LIMIT;
                if long {
                    let file = Spill::create(&self.directory, &self.name, CAP)
                        .map_err(|error| error.to_string());
                    self.kept = Kept::Ends(Box::new(Ends::new(whole, file)));
                }
            }
        }
    }

    /// The text for the model: all of it, or both ends and where the rest is. Everything that was
    /// held back is in it.
    pub fn finish(mut self) -> String {
        let mut rest = String::new();
        std::mem::take(&mut self.plain).finish(&mut rest);
        let mut settled = String::new();
        self.redacted.push(&rest, &mut settled);
        self.keep(&settled);
        settled.clear();
        let nothing = RedactedStream::new(Arc::new(Redactor::by_shape()));
        std::mem::replace(&mut self.redacted, nothing).finish(&mut settled);
        self.keep(&settled);
        match self.kept {
            Kept::Whole(whole) => whole,
            Kept::Ends(ends) => ends.finish(),
            Kept::File(file) => match file.and_then(Spill::finish) {
                Ok(_) => String::new(),
                Err(error) => format!("the output could not be kept: {error}"),
            },
        }
    }
}

impl Ends {
    fn new(text: &str, file: Result<Spill, String>) -> Self {
        let mut ends = Self {
            head: first(text, END).to_owned(),
            tail: String::new(),
            count: 0,
            file,
        };
        ends.add(text);
        ends
    }

    /// The tail is cut at a character; `last` cuts it at a line in the end.
    fn add(&mut self, text: &str) {
        self.count += text.chars().count();
        if let Ok(file) = &mut self.file
            && let Err(error) = file.write(text.as_bytes())
        {
            self.file = Err(error.to_string());
        }
        self.tail.push_str(text);
        if self.tail.len() > TAIL_SLACK {
            let start = self.tail.char_indices().rev().nth(END - 1);
            self.tail.drain(..start.map_or(0, |(start, _)| start));
        }
    }

    fn finish(self) -> String {
        let place = match self.file {
            Ok(file) => {
                let path = file.path().to_path_buf();
                match file.finish() {
                    Ok(0) => Place::Whole(path),
                    Ok(dropped) => Place::WithoutMiddle(path, dropped),
                    Err(error) => Place::Lost(error.to_string()),
                }
            }
            Err(error) => Place::Lost(error),
        };
        let tail = last(&self.tail, END);
        let shown = self.head.chars().count() + tail.chars().count();
        join(&self.head, tail, self.count.saturating_sub(shown), &place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Arc<Redactor> {
        Arc::new(Redactor::new([("K", "hunter22hunter22")]))
    }

    #[test]
    fn a_secret_that_comes_in_two_pieces_is_in_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("task.txt");
        let mut task = Capture::to_file(&file, &redactor()).unwrap();
        let mut long = Capture::new(directory.path(), "Bash", &redactor());
        for capture in [&mut task, &mut long] {
            for number in 0..10_000 {
                capture.push(format!("line {number}\n").as_bytes());
                if number == 5_000 {
                    capture.push(b"token ghp_0123456789abcd");
                    capture.push(b"efghijABCDEFGHIJ012345 and hunter22");
                    capture.push(b"hunter22 end\n-----BEGIN RSA PRIVATE KEY-----\n");
                    capture.push(b"MIIEowIBAAKCAQEAMARKER00000000000000\nAAAAAAAAAAAAAAAAAAAA");
                    capture.push(b"AAAA\n-----END RSA PRIVATE KEY-----\n");
                }
            }
        }
        task.finish();
        long.finish();
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(text.contains("token [redacted] and [redacted:K] end\n[redacted]\nline 5001"));
            assert!(!text.contains("MARKER"));
        }
    }

    #[test]
    fn a_long_output_has_both_ends_here_and_all_of_it_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(directory.path(), "Bash", &redactor());
        let mut all = String::new();
        for number in 0..20_000 {
            let line = format!("line {number}\n");
            capture.push(line.as_bytes());
            all.push_str(&line);
        }
        let text = capture.finish();
        let files: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(files.len(), 1);
        assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), all);
        assert!(text.starts_with("line 0\nline 1\n"), "{}", &text[..40]);
        assert!(text.ends_with("line 19998\nline 19999\n"));
        assert!(text.contains(&format!("; the whole is in {} …", files[0].display())));
        assert!(text.chars().count() <= RESULT_LIMIT);
    }

    #[test]
    fn a_directory_that_cannot_be_written_costs_the_middle_only() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut capture = Capture::new(&file, "Bash", &redactor());
        capture.push("x".repeat(40_000).as_bytes());
        let text = capture.finish();
        assert!(text.contains("… 11000 characters left out; they could not be kept in a file: "));
    }
}
