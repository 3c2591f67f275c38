//! What failed in a test run, read from what the runner printed.
//!
//! Output is foreign and can be of any size: it is read once, line by line, in bounded memory. Each
//! family of runners has a reader of its own that sees every line and keeps what it recognises.
//!
//! Families are independent and may find the same failure; the first one in the list wins by name.
//! Only if none finds anything do lines with the usual words count (`generic`). Lines are read as
//! UTF-8 with replacements, and the paths of the run are taken out first, since they differ each
//! time.

mod build;
mod cargo;
mod clip;
mod ctest;
mod found;
mod generic;
mod go;
mod java;
mod jest;
mod junit;
mod listed;
mod node;
mod python;
mod render;
mod tap;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    io::{self, BufRead},
};

pub use found::{FailureKind, TestFailure};
pub(crate) use go::GoEvent;
pub(crate) use junit::attribute;
pub use render::{REPORT_LIMIT, report};

use self::clip::{Clip, cut};
use super::{
    counts::{Counts, Tally},
    missing::{Missing, MissingReader},
};

/// A longer line is read as several.
const LONGEST_LINE: usize = 64 << 10;
/// How much of the end of the output is kept for people and for repairs.
const TAIL: usize = 6_000;
/// How much of its beginning.
const HEAD: usize = 2_000;
/// What all messages together may take in a record.
const MESSAGES: usize = 192 << 10;

/// Recognises the failures of some runners. A reader must bear any line at any time: outputs of
/// parallel programs are mixed, and a test may print whatever it likes.
trait Family {
    /// Takes the next line, without its end.
    fn line(&mut self, line: &str);

    fn finish(self: Box<Self>) -> Vec<TestFailure>;
}

/// What an output says.
#[derive(Debug, Default)]
pub(crate) struct ReadOutput {
    pub(crate) counts: Option<Counts>,
    pub(crate) failures: Vec<TestFailure>,
    /// The beginning, if it is not part of the end.
    pub(crate) head: String,
    pub(crate) tail: String,
    /// Programs and modules that are not there.
    pub(crate) missing: Vec<Missing>,
}

struct Reader {
    families: Vec<Box<dyn Family>>,
    fallback: Box<generic::Generic>,
    tally: Tally,
    missing: MissingReader,
    head: Clip,
    tail: Clip,
    bytes: u64,
}

impl Reader {
    fn new() -> Self {
        Self {
            families: vec![
                Box::<build::Build>::default(),
                Box::<cargo::Cargo>::default(),
                Box::<python::Python>::default(),
                Box::<go::Go>::default(),
                Box::<tap::Tap>::default(),
                Box::<node::Node>::default(),
                Box::<jest::Jest>::default(),
                Box::<listed::Listed>::default(),
                Box::<java::Java>::default(),
                Box::<ctest::Ctest>::default(),
                Box::<junit::Junit>::default(),
            ],
            fallback: Box::default(),
            tally: Tally::default(),
            missing: MissingReader::default(),
            head: Clip::new(HEAD, 0),
            tail: Clip::new(0, TAIL),
            bytes: 0,
        }
    }

    fn line(&mut self, line: &str) {
        for family in &mut self.families {
            family.line(line);
        }
        self.fallback.line(line);
        self.tally.line(line);
        self.missing.line(line);
        self.head.push(line);
        self.tail.push(line);
        self.bytes += line.len() as u64 + 1;
    }

    /// Messages share `MESSAGES` equally, so a run with a thousand failures is not larger on record
    /// than one with ten.
    fn finish(self) -> ReadOutput {
        let mut failures: Vec<TestFailure> = Vec::new();
        let mut names = HashSet::new();
        for family in self.families {
            let found = family.finish().into_iter();
            failures.extend(found.filter(|failure| names.insert(failure.name.clone())));
        }
        if failures.is_empty() {
            failures = self.fallback.finish();
        }
        let share = MESSAGES / failures.len().max(1);
        for failure in &mut failures {
            failure.message = cut(&failure.message, share.max(160));
        }
        let is_whole = self.bytes <= TAIL as u64;
        ReadOutput {
            counts: self.tally.finish(),
            missing: self.missing.finish(),
            failures,
            head: if is_whole {
                String::new()
            } else {
                self.head.first_lines().trim_end().to_owned()
            },
            tail: self.tail.last_lines().trim_end().to_owned(),
        }
    }
}

/// Reads an output to its end. `hidden` are paths that stand for the directory of the run, and are
/// left out: they differ from run to run and tell a reader nothing.
pub(crate) fn read_output(mut input: impl BufRead, hidden: &[String]) -> io::Result<ReadOutput> {
    let mut reader = Reader::new();
    let mut line = Vec::new();
    while next_line(&mut input, &mut line)? {
        let text = String::from_utf8_lossy(&line);
        let mut text = text.into_owned();
        for path in hidden {
            if text.contains(path.as_str()) {
                text = text
                    .replace(&format!("{path}/"), "")
                    .replace(path.as_str(), ".");
            }
        }
        reader.line(&text);
    }
    Ok(reader.finish())
}

/// Reads a line without its end, or the next piece of a long one; `false` at the end.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut is_read = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(is_read);
        }
        is_read = true;
        let room = &available[..available.len().min(LONGEST_LINE - line.len())];
        if let Some(end) = room.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&room[..end]);
            input.consume(end + 1);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(true);
        }
        let taken = room.len();
        line.extend_from_slice(room);
        input.consume(taken);
        if line.len() == LONGEST_LINE {
            return Ok(true);
        }
    }
}
