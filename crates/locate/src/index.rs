//! The index of a repository: its files, their terms, its history.
//!
//! The files of an index are never changed in place. [`Index::refreshed`] makes a new one from the
//! old one and a list of the files that are there now: unchanged files keep their postings under a
//! new number, only the others are read. The result is the same as that of an index made from
//! nothing.
//!
//! On disk, in this order:
//!
//! ```text
//! files        count, then each: path, stamp (8 bytes), kind and origin (1), length, base length (1)
//! directories  count, then each: path, stamp (8 bytes)
//! postings     see `postings.rs`
//! history      tip, count, then each commit: hash of its name, hashes of its terms and of its paths
//! ```

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    LocateError,
    codec::{Put, Take},
    document::{Reader, Summary},
    history::History,
    kind::FileKind,
    postings::{GatheredPostings, Postings},
    progress::IndexProgress,
};

/// A file that is there, with what tells whether it changed. The path is relative to the root and
/// has forward slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: String,
    /// Differs when the text differs: the object, or size and time.
    pub(crate) stamp: u64,
    pub(crate) origin: Origin,
}

/// How a file came to be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is in the tree of the commit, or the walk came upon it.
    Found,
    /// The walk left it out because an ignore file says so, but git tracks it all the same.
    Tracked,
}

/// The bit beside the kind that says that a file is listed because git tracks it.
const TRACKED: u8 = 0x80;

impl Origin {
    fn mark(self) -> u8 {
        match self {
            Self::Found => 0,
            Self::Tracked => TRACKED,
        }
    }
}

/// Gives the texts of files. Several threads ask at the same time, each for its own part of the
/// files.
pub(crate) trait Texts: Sync {
    /// Calls `visit` with the place in `wanted` and the text of each file that can be read.
    ///
    /// Texts may come in any order, and may be cut. A file that is not visited counts as empty; an
    /// error is for what concerns all files, and ends the indexing.
    fn each(
        &self,
        wanted: &[&Listed],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), LocateError>;
}

/// A file of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Indexed {
    pub(crate) listed: Listed,
    pub(crate) summary: Summary,
}

/// All that is known of a repository. The number of a file is its place in `files`; postings and
/// everything in the ranking use that number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// In the order of their paths.
    pub(crate) files: Vec<Indexed>,
    /// The directories that were walked; none for a commit. Their stamps tell at the next opening
    /// whether the walk can be skipped.
    pub(crate) directories: Vec<Listed>,
    pub(crate) postings: Postings,
    pub(crate) history: History,
}

/// The summaries of files that were read, by their numbers.
type Read = Vec<(u32, Summary)>;

impl Index {
    /// Whether the files are exactly these; `listed` is in the order of paths.
    pub(crate) fn is_of(&self, listed: &[Listed]) -> bool {
        self.files.len() == listed.len()
            && self
                .files
                .iter()
                .zip(listed)
                .all(|(own, one)| own.listed == *one)
    }

    /// An index of the files that are listed in the order of their paths. Only those that this
    /// one does not have as they are get read. Directories and history are the caller's.
    pub(crate) fn refreshed(
        &self,
        listed: Vec<Listed>,
        texts: &dyn Texts,
        progress: &IndexProgress,
    ) -> Result<Self, LocateError> {
        let known: HashMap<&str, usize> = self
            .files
            .iter()
            .enumerate()
            .map(|(number, file)| (file.listed.path.as_str(), number))
            .collect();
        let mut now = vec![None; self.files.len()];
        let mut summaries: Vec<Option<Summary>> = vec![None; listed.len()];
        let mut fresh = Vec::new();
        for (number, one) in listed.iter().enumerate() {
            match known.get(one.path.as_str()) {
                Some(old) if self.files[*old].listed.stamp == one.stamp => {
                    now[*old] = Some(number as u32);
                    summaries[number] = Some(self.files[*old].summary.clone());
                }
                _ => fresh.push(number),
            }
        }
        progress.expect(fresh.len());
        let (mut gathered, read) = read(&listed, &fresh, texts, progress)?;
        for (number, summary) in read {
            summaries[number as usize] = Some(summary);
        }
        for mut posting in self.postings.iter() {
            if let Some(Some(number)) = now.get(posting.file as usize) {
                posting.file = *number;
                gathered.push(posting);
            }
        }
        let files = listed.into_iter().zip(summaries);
        Ok(Self {
            files: files
                .map(|(listed, summary)| Indexed {
                    summary: summary.unwrap_or(Summary {
                        kind: FileKind::of(&listed.path),
                        length: 0,
                        base_length: 0,
                    }),
                    listed,
                })
                .collect(),
            postings: Postings::of(gathered, threads()),
            directories: Vec::new(),
            history: History::default(),
        })
    }

    pub(crate) fn put_into(&self, buffer: &mut Vec<u8>) {
        buffer.put_number(self.files.len() as u64);
        for file in &self.files {
            buffer.put_bytes(file.listed.path.as_bytes());
            buffer.extend_from_slice(&file.listed.stamp.to_le_bytes());
            buffer.push(file.summary.kind as u8 | file.listed.origin.mark());
            buffer.put_number(u64::from(file.summary.length));
            buffer.push(file.summary.base_length);
        }
        buffer.put_number(self.directories.len() as u64);
        for directory in &self.directories {
            buffer.put_bytes(directory.path.as_bytes());
            buffer.extend_from_slice(&directory.stamp.to_le_bytes());
        }
        self.postings.put_into(buffer);
        self.history.put_into(buffer);
    }

    /// The counterpart of [`Index::put_into`]. Postings of a damaged cache may name files that are
    /// not there; whoever uses them checks the number.
    pub(crate) fn take(from: &mut Take) -> Option<Self> {
        let count = from.count()?;
        let files = (0..count).map(|_| take_file(from)).collect::<Option<_>>()?;
        let count = from.count()?;
        let directories = (0..count)
            .map(|_| take_listed(from))
            .collect::<Option<_>>()?;
        Some(Self {
            files,
            directories,
            postings: Postings::take(from)?,
            history: History::take(from)?,
        })
    }
}

fn take_file(from: &mut Take) -> Option<Indexed> {
    let listed = take_listed(from)?;
    let mark = from.byte()?;
    let kind = *FileKind::ALL.get(usize::from(mark & !TRACKED))?;
    let origin = match mark & TRACKED {
        0 => Origin::Found,
        _ => Origin::Tracked,
    };
    let length = u32::try_from(from.number()?).ok()?;
    let base_length = from.byte()?;
    Some(Indexed {
        listed: Listed { origin, ..listed },
        summary: Summary {
            kind,
            length,
            base_length,
        },
    })
}

fn take_listed(from: &mut Take) -> Option<Listed> {
    let path = std::str::from_utf8(from.bytes()?).ok()?.to_owned();
    let stamp = from.fixed()?;
    let origin = Origin::Found;
    Some(Listed {
        path,
        stamp,
        origin,
    })
}

/// As many as help: reading is bound by the processor.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(8))
}

/// Reads the fresh ones of the files on all processors.
///
/// Threads take the next part as they finish one, because parts differ in size. An error does not
/// stop the other parts; the last one is returned.
fn read(
    listed: &[Listed],
    fresh: &[usize],
    texts: &dyn Texts,
    progress: &IndexProgress,
) -> Result<(GatheredPostings, Read), LocateError> {
    let threads = threads();
    // Few enough parts that a process a part costs nothing, enough that none waits long.
    let size = fresh.len().div_ceil(threads * 4).max(64);
    let parts: Vec<&[usize]> = fresh.chunks(size).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new((GatheredPostings::new(), Vec::new()));
    let outcome = Mutex::new(Ok(()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(parts.len()) {
            scope.spawn(|| {
                let mut reader = Reader::new();
                let mut gathered = GatheredPostings::new();
                let mut summaries = Vec::new();
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let read = read_part(listed, part, texts, &mut reader, |summary, postings| {
                        progress.add_one();
                        summaries.push(summary);
                        postings.iter().for_each(|posting| gathered.push(*posting));
                    });
                    if let (Err(error), Ok(mut outcome)) = (read, outcome.lock()) {
                        *outcome = Err(error);
                    }
                }
                if let Ok(mut done) = done.lock() {
                    done.0.append(gathered);
                    done.1.append(&mut summaries);
                }
            });
        }
    });
    outcome.into_inner().unwrap_or(Ok(()))?;
    Ok(done
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner()))
}

/// Files of a kind whose text is not read are not asked for at all; they have the terms of their
/// path.
fn read_part(
    listed: &[Listed],
    part: &[usize],
    texts: &dyn Texts,
    reader: &mut Reader,
    mut each: impl FnMut((u32, Summary), &[crate::document::Posting]),
) -> Result<(), LocateError> {
    let (texted, silent): (Vec<usize>, Vec<usize>) = part
        .iter()
        .partition(|number| FileKind::of(&listed[**number].path).readable_bytes() > 0);
    let wanted: Vec<&Listed> = texted.iter().map(|number| &listed[*number]).collect();
    let mut seen = vec![false; texted.len()];
    let mut index = |number: usize, text: &[u8]| {
        let (summary, postings) = reader.read(number as u32, &listed[number].path, text);
        each((number as u32, summary), postings);
    };
    texts.each(&wanted, &mut |place, text| {
        seen[place] = true;
        index(texted[place], text);
    })?;
    // A file whose text cannot be had still has a name.
    let unread = texted.iter().zip(&seen).filter(|(_, seen)| !**seen);
    for number in unread.map(|(number, _)| *number).chain(silent) {
        index(number, b"");
    }
    Ok(())
}
