//! Which files were read, and as what: nobody overwrites what they have not seen.
//!
//! Read, Write and Edit record each file as it was shown or written. Write and Edit check it before
//! they replace a file, so an agent cannot overwrite what the user or another program changed after
//! it looked. A command that changes a file makes it "changed" as well: it has to be read again.
//!
//! Edit has two exceptions for a file that was never read. A text that is in it exactly once is
//! known to whoever wrote it down; and lines that Grep showed were seen, as long as they are what
//! they were. Neither makes the file a read one.
//!
//! The records survive a restart by way of the transcript ([`FileLedger::seen`],
//! [`FileLedger::take_shown`], [`FileLedger::restore`]). They are per agent: what one has read,
//! another has not.

use std::{
    collections::{BTreeMap, HashMap},
    fs::Metadata,
    hash::{DefaultHasher, Hasher},
    ops::Range,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_protocol::{SeenFile, SeenLines};
use parking_lot::Mutex;

/// Larger files are told apart by size, time and inode alone. It is also the largest file that Edit
/// takes.
pub(crate) const HASHED_BYTES: u64 = 32 * 1024 * 1024;

/// The files an agent has seen, as it saw them. Clones share one ledger.
#[derive(Debug, Clone, Default)]
pub struct FileLedger(Arc<Mutex<Records>>);

#[derive(Debug, Default)]
struct Records {
    files: HashMap<PathBuf, Seen>,
    /// Of files that were not read: hashes of single lines by their number, from 1.
    lines: HashMap<PathBuf, HashMap<usize, u128>>,
    /// Those of them that no transcript has yet.
    new_lines: BTreeMap<PathBuf, BTreeMap<usize, u128>>,
    /// What an earlier process showed, as its transcript has it.
    earlier: HashMap<PathBuf, Vec<Run>>,
}

/// Neighbouring lines, told by one hash: that of the hashes of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: usize,
    count: usize,
    hash: u128,
}

/// Lines of one file that are remembered.
const MOST_LINES: usize = 5_000;
/// Runs of lines that one result records, of all files, and that are remembered of one file.
const MOST_RUNS: usize = 500;

/// Why a file may not be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerProblem {
    /// Nobody looked at it.
    #[error("it has not been read yet; read it first")]
    NotRead,
    /// Somebody else changed it.
    #[error("it has changed since it was read; read it again")]
    Changed,
}

/// A file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// By the hash of its content.
    Content(u128),
    /// Too long to hash.
    Stat {
        size: u64,
        modified_ns: i128,
        inode: u64,
    },
}

impl FileLedger {
    /// Remembers that the file was seen with this content.
    pub fn record(&self, path: &Path, metadata: &Metadata, content: &[u8]) {
        let mut hash = ContentHash::default();
        hash.update(content);
        self.record_hash(path, metadata, Some(hash));
    }

    /// The same for a file read in pieces; without a hash if it was too long to read whole.
    pub(crate) fn record_hash(&self, path: &Path, metadata: &Metadata, hash: Option<ContentHash>) {
        let seen = match hash {
            Some(hash) => Seen::Content(hash.finish()),
            None => Seen::of_long(metadata),
        };
        let mut records = self.0.lock();
        records.forget_lines(path);
        records.files.insert(path.to_owned(), seen);
    }

    /// Remembers that one line of the file was shown.
    pub(crate) fn record_line(&self, path: &Path, number: usize, line: &str) {
        let mut records = self.0.lock();
        if !records.lines.contains_key(path) {
            records.lines.insert(path.to_owned(), HashMap::new());
        }
        if let Some(lines) = records.lines.get_mut(path)
            && lines.len() < MOST_LINES
        {
            let hash = hash_of(line.as_bytes());
            lines.insert(number, hash);
            let new = records.new_lines.entry(path.to_owned()).or_default();
            new.insert(number, hash);
        }
    }

    /// Whether each of these lines of a text, numbered from 1, was shown as it is there.
    pub(crate) fn has_shown(&self, path: &Path, text: &str, lines: Range<usize>) -> bool {
        let records = self.0.lock();
        let now = records.lines.get(path);
        let earlier = records.earlier.get(path).into_iter().flatten();
        let earlier: Vec<&Run> = earlier.filter(|run| run.is_in(text)).collect();
        let (first, count) = (lines.start, lines.len());
        let there = text.lines().skip(first.saturating_sub(1)).take(count);
        let is_shown = |(number, line): &(usize, &str)| {
            let mut earlier = earlier.iter();
            let known = now.and_then(|lines| lines.get(number));
            known == Some(&hash_of(line.as_bytes())) || earlier.any(|run| run.has(*number))
        };
        count > 0 && (first..).zip(there).filter(is_shown).count() == count
    }

    /// The lines that were shown since this was last asked, for the transcript. A file that was read
    /// meanwhile needs none. Past a bound they are left out: whoever resumes reads the file.
    pub fn take_shown(&self) -> Vec<SeenFile> {
        let mut records = self.0.lock();
        let new = std::mem::take(&mut records.new_lines);
        let mut left = MOST_RUNS;
        let mut files = Vec::new();
        for (path, lines) in new {
            let Some(path) = path.to_str() else {
                continue;
            };
            let runs = Run::all(&lines);
            let lines: Vec<SeenLines> = runs.iter().take(left).map(Run::seen).collect();
            left -= lines.len();
            if !lines.is_empty() {
                files.push(SeenFile {
                    path: path.to_owned(),
                    content: String::new(),
                    lines,
                });
            }
        }
        files
    }

    /// The file counts as unread again.
    pub(crate) fn forget(&self, path: &Path) {
        let mut records = self.0.lock();
        records.files.remove(path);
        records.forget_lines(path);
    }

    /// A file as it was seen, for the transcript. A file too long to hash is not kept: whoever
    /// resumes reads it again.
    pub fn seen(&self, path: &Path) -> Option<SeenFile> {
        match self.0.lock().files.get(path)? {
            Seen::Content(hash) => Some(SeenFile {
                path: path.to_str()?.to_owned(),
                content: format!("{hash:032x}"),
                lines: Vec::new(),
            }),
            Seen::Stat { .. } => None,
        }
    }

    /// Remembers what an earlier process recorded. A file that was changed since is found out like
    /// any other.
    pub fn restore(&self, files: &[SeenFile]) {
        let mut records = self.0.lock();
        for file in files {
            let path = PathBuf::from(&file.path);
            match u128::from_str_radix(&file.content, 16) {
                Ok(hash) => {
                    records.forget_lines(&path);
                    records.files.insert(path, Seen::Content(hash));
                }
                Err(_) => {
                    let runs = records.earlier.entry(path).or_default();
                    runs.extend(file.lines.iter().filter_map(Run::restored));
                    // The newest are most like the file as it is.
                    let old = runs.len().saturating_sub(MOST_RUNS);
                    runs.drain(..old);
                }
            }
        }
    }

    /// Forgets everything and remembers this: the conversation went back to an earlier message, and
    /// whoever goes on has not seen what was shown since.
    pub fn replace(&self, files: &[SeenFile]) {
        *self.0.lock() = Records::default();
        self.restore(files);
    }

    /// Checks that the file, now with this content, is as it was seen. A file that was only
    /// touched is.
    pub fn check(
        &self,
        path: &Path,
        metadata: &Metadata,
        content: &[u8],
    ) -> Result<(), LedgerProblem> {
        let seen = self.0.lock().files.get(path).copied();
        let seen = seen.ok_or(LedgerProblem::NotRead)?;
        let unchanged = match seen {
            Seen::Content(before) => hash_of(content) == before,
            Seen::Stat { .. } => Seen::of_long(metadata) == seen,
        };
        if unchanged {
            Ok(())
        } else {
            Err(LedgerProblem::Changed)
        }
    }

    /// Whether the file was read.
    pub fn has_read(&self, path: &Path) -> bool {
        self.0.lock().files.contains_key(path)
    }

    /// Every file read or written so far, in order of name.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.0.lock().files.keys().cloned().collect();
        paths.sort_unstable();
        paths
    }
}

impl Records {
    fn forget_lines(&mut self, path: &Path) {
        self.lines.remove(path);
        self.new_lines.remove(path);
        self.earlier.remove(path);
    }
}

impl Run {
    /// Lines by their numbers, neighbours together.
    fn all(lines: &BTreeMap<usize, u128>) -> Vec<Self> {
        let numbers: Vec<usize> = lines.keys().copied().collect();
        let runs = numbers.chunk_by(|one, next| one + 1 == *next);
        runs.map(|run| Self {
            first: run[0],
            count: run.len(),
            hash: joined(run.iter().map(|number| lines[number])),
        })
        .collect()
    }

    fn seen(&self) -> SeenLines {
        SeenLines {
            first: self.first,
            count: self.count,
            content: format!("{:032x}", self.hash),
        }
    }

    fn restored(lines: &SeenLines) -> Option<Self> {
        Some(Self {
            first: lines.first,
            count: lines.count,
            hash: u128::from_str_radix(&lines.content, 16).ok()?,
        })
    }

    /// Whether the lines of a text are still these.
    fn is_in(&self, text: &str) -> bool {
        let lines = text.lines().skip(self.first.saturating_sub(1));
        let lines: Vec<&str> = lines.take(self.count).collect();
        lines.len() == self.count
            && joined(lines.iter().map(|line| hash_of(line.as_bytes()))) == self.hash
    }

    fn has(&self, number: usize) -> bool {
        number >= self.first && number - self.first < self.count
    }
}

/// One hash for several.
fn joined(hashes: impl Iterator<Item = u128>) -> u128 {
    let mut all = ContentHash::default();
    hashes.for_each(|hash| all.update(&hash.to_le_bytes()));
    all.finish()
}

impl Seen {
    fn of_long(metadata: &Metadata) -> Self {
        Self::Stat {
            size: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                + i128::from(metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

fn hash_of(content: &[u8]) -> u128 {
    let mut hash = ContentHash::default();
    hash.update(content);
    hash.finish()
}

/// A 128-bit hash of a content, fed in pieces: enough against accidents, which is all it is for.
#[derive(Debug, Clone)]
pub(crate) struct ContentHash {
    halves: [DefaultHasher; 2],
    length: u64,
}

impl Default for ContentHash {
    fn default() -> Self {
        let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
        halves[1].write_u8(1);
        Self { halves, length: 0 }
    }
}

impl ContentHash {
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        for half in &mut self.halves {
            half.write(piece);
        }
    }

    pub(crate) fn finish(mut self) -> u128 {
        let length = self.length;
        let [low, high] = self.halves.each_mut().map(|half| {
            half.write_u64(length);
            u128::from(half.finish())
        });
        high << 64 | low
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::SystemTime};

    use super::*;
    use crate::testing::Bench;

    fn check(ledger: &FileLedger, path: &Path) -> Result<(), LedgerProblem> {
        ledger.check(path, &fs::metadata(path).unwrap(), &fs::read(path).unwrap())
    }

    #[test]
    fn a_file_is_unchanged_when_touched_and_changed_when_its_bytes_are() {
        let bench = Bench::new();
        let path = bench.write("a.txt", "one");
        let ledger = FileLedger::default();
        assert_eq!(check(&ledger, &path), Err(LedgerProblem::NotRead));
        ledger.record(&path, &fs::metadata(&path).unwrap(), b"one");
        assert_eq!(check(&ledger, &path), Ok(()));
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(check(&ledger, &path), Ok(()));
        fs::write(&path, "two").unwrap();
        assert_eq!(check(&ledger, &path), Err(LedgerProblem::Changed));
        assert_eq!(ledger.paths(), vec![path]);
    }

    #[test]
    fn lines_that_were_shown_count_as_long_as_they_are_the_same() {
        let (ledger, path) = (FileLedger::default(), Path::new("/a.txt"));
        ledger.record_line(path, 2, "two");
        ledger.record_line(path, 3, "three");
        let shown = |text: &str, lines| ledger.has_shown(path, text, lines);
        assert!(shown("one\r\ntwo\r\nthree\r\n", 2..4));
        assert!(!shown("one\ntwo\nthree\n", 1..3) && !shown("two\nthree\n", 1..3));
        assert!(!shown("one\ntwo\n3\n", 2..4) && !shown("", 2..2));
        assert!(!ledger.has_read(path));
        ledger.forget(path);
        assert!(!ledger.has_shown(path, "one\ntwo\nthree\n", 2..4));
    }

    #[test]
    fn lines_that_an_earlier_process_showed_count_as_long_as_they_are_the_same() {
        let (earlier, path) = (FileLedger::default(), Path::new("/a.txt"));
        for (number, line) in [(2, "two"), (3, "three"), (5, "five")] {
            earlier.record_line(path, number, line);
        }
        let kept = earlier.take_shown();
        assert_eq!(kept.len(), 1);
        assert_eq!(
            kept[0]
                .lines
                .iter()
                .map(|run| (run.first, run.count))
                .collect::<Vec<_>>(),
            [(2, 2), (5, 1)]
        );
        assert_eq!(earlier.take_shown(), []);
        let ledger = FileLedger::default();
        ledger.restore(&kept);
        let text = "one\ntwo\nthree\nfour\nfive\n";
        let shown = |text: &str, lines| ledger.has_shown(path, text, lines);
        assert!(shown(text, 2..4) && shown(text, 3..4) && shown(text, 5..6));
        assert!(!shown(text, 2..5) && !shown(text, 1..2));
        assert!(!shown(&text.replace("two", "2"), 2..4));
        // Together with what is shown now.
        ledger.record_line(path, 4, "four");
        assert!(shown(text, 2..6) && !ledger.has_read(path));
        // What was read later is known by its content.
        let read = SeenFile {
            path: "/a.txt".to_owned(),
            content: "0".repeat(32),
            lines: Vec::new(),
        };
        ledger.restore(&[read]);
        assert!(!shown(text, 2..4) && ledger.has_read(path));
    }

    #[test]
    fn a_result_records_so_many_lines_and_no_more() {
        let (ledger, path) = (FileLedger::default(), Path::new("/a.txt"));
        (1..2_000).for_each(|number| ledger.record_line(path, number * 2, "x"));
        assert_eq!(ledger.take_shown()[0].lines.len(), MOST_RUNS);
    }

    #[test]
    fn a_file_too_long_to_hash_is_known_by_size_time_and_inode() {
        let bench = Bench::new();
        let path = bench.write("a.txt", "one");
        let ledger = FileLedger::default();
        ledger.record_hash(&path, &fs::metadata(&path).unwrap(), None);
        assert_eq!(check(&ledger, &path), Ok(()));
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(check(&ledger, &path), Err(LedgerProblem::Changed));
    }

    #[test]
    fn what_an_earlier_process_saw_counts_unless_the_file_changed_since() {
        let bench = Bench::new();
        let (same, changed) = (bench.write("a.txt", "one"), bench.write("b.txt", "one"));
        let earlier = FileLedger::default();
        for path in [&same, &changed] {
            earlier.record(path, &fs::metadata(path).unwrap(), b"one");
        }
        let kept = [&same, &changed].map(|path| earlier.seen(path).unwrap());
        fs::write(&changed, "two").unwrap();
        let ledger = FileLedger::default();
        ledger.restore(&kept);
        assert_eq!(check(&ledger, &same), Ok(()));
        assert_eq!(check(&ledger, &changed), Err(LedgerProblem::Changed));
        assert_eq!(earlier.seen(Path::new("/elsewhere")), None);
    }

    #[test]
    fn a_hash_does_not_depend_on_how_the_content_was_cut() {
        let mut whole = ContentHash::default();
        whole.update(b"some content");
        let mut pieces = ContentHash::default();
        pieces.update(b"some c");
        pieces.update(b"ontent");
        assert_eq!(whole.finish(), pieces.finish());
    }
}
