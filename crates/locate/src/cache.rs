//! Keeps an index on disk; whatever does not fit is as if it were not there.
//!
//! ```text
//! "csplocat"  8 bytes
//! version     8 bytes, little endian
//! checksum    8 bytes, of all that follows
//! index       see `Index::put_into`
//! ```
//!
//! There is one file for each repository and way of reading it (work tree or commit); a newer index
//! replaces the older one by a rename.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{codec::Take, index::Index, words};

/// Changes whenever the bytes or the way terms are made change. An index of another version is not
/// converted: it is made anew.
const VERSION: u64 = 3;
const MAGIC: &[u8; 8] = b"csplocat";

/// Where the index of a repository is kept. Without a directory it loads and stores nothing.
pub(crate) struct Cache {
    file: Option<PathBuf>,
}

impl Cache {
    /// `subject` names the repository and how it is read.
    pub(crate) fn new(directory: Option<&Path>, subject: &str) -> Self {
        let name = format!("locate-{:016x}.index", words::hash(subject.as_bytes()));
        Self {
            file: directory.map(|directory| directory.join(name)),
        }
    }

    /// The index that was kept, if it is whole and of this version.
    pub(crate) fn load(&self) -> Option<Index> {
        let bytes = fs::read(self.file.as_ref()?).ok()?;
        let mut take = Take(&bytes);
        let magic = take.exactly(MAGIC.len())?;
        let version = take.fixed()?;
        let sum = take.fixed()?;
        if magic != MAGIC || version != VERSION || sum != checksum(take.0) {
            return None;
        }
        let index = Index::take(&mut take)?;
        take.0.is_empty().then_some(index)
    }

    /// Keeps an index. Without room or right to write there is no cache, which costs time alone.
    pub(crate) fn store(&self, index: &Index) {
        if let Some(file) = &self.file {
            let _ = write(file, index);
        }
    }
}

fn write(file: &Path, index: &Index) -> io::Result<()> {
    let mut payload = Vec::new();
    index.put_into(&mut payload);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    // Another process may write the same: each has a name of its own until it is whole.
    let temporary = file.with_extension(format!("{}.part", std::process::id()));
    let written = fs::File::create(&temporary).and_then(|mut out| {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&checksum(&payload).to_le_bytes())?;
        out.write_all(&payload)
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, file));
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

/// Four lanes, since it goes over all bytes each time. It finds damage, not tampering: who can
/// write the cache can also write a matching sum. What is read is therefore checked again where it
/// is used.
fn checksum(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9fb2_1c65_1e98_df25;
    let mut lanes = [1u64, 2, 3, 4];
    let (chunks, rest) = bytes.as_chunks::<32>();
    for chunk in chunks {
        let (words, _) = chunk.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = (*lane ^ u64::from_le_bytes(*word))
                .wrapping_mul(K)
                .rotate_left(29);
        }
    }
    let mut sum = words::hash(rest) ^ bytes.len() as u64;
    for lane in lanes {
        sum = (sum ^ lane).wrapping_mul(K).rotate_left(31);
    }
    sum
}
