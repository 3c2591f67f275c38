//! Output too long for the conversation, on disk: whole up to a cap, beyond it without its middle.
//!
//! ```text
//! first `head` bytes   written to the file as they come
//! the rest             goes round in the ring, which keeps the last `tail` bytes
//! ```
//!
//! Others can follow the file while it is written. [`Spill::finish`] appends the ring to it, after
//! a line that says how much is missing. If the process is killed before that, the file has its
//! beginning and the ring is gone: it is an anonymous file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// How large the two kept ends are at most. In bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cap {
    pub(super) head: u64,
    pub(super) tail: u64,
}

/// 64 MiB in all.
pub(super) const CAP: Cap = Cap {
    head: 32 << 20,
    tail: 32 << 20,
};

/// A file that takes any amount and keeps its two ends.
pub(super) struct Spill {
    file: File,
    path: PathBuf,
    cap: Cap,
    /// Bytes taken so far, kept or not.
    written: u64,
    /// The tail, written round and round; anonymous.
    ring: Option<File>,
}

impl Spill {
    /// A new file in `directory`, readable by its owner only.
    pub(super) fn create(directory: &Path, name: &str, cap: Cap) -> io::Result<Self> {
        let (file, path) = crate::bound::output_file(directory, name)?;
        Ok(Self {
            file,
            path,
            cap,
            written: 0,
            ring: None,
        })
    }

    /// This very file, made or continued; what it holds counts towards the cap. One that has
    /// reached `cap.head` only gets a new tail, so it grows by a tail each time it is continued.
    pub(super) fn continue_at(path: &Path, cap: Cap) -> io::Result<Self> {
        let mut options = File::options();
        options.create(true).read(true).append(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        Ok(Self {
            written: file.metadata()?.len().min(cap.head),
            file,
            path: path.to_path_buf(),
            cap,
            ring: None,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// After an error the file is incomplete, and the caller stops writing.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let room = self.cap.head.saturating_sub(self.written);
        let direct = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        self.file.write_all(&bytes[..direct])?;
        self.written += direct as u64;
        bytes = &bytes[direct..];
        while !bytes.is_empty() {
            bytes = self.write_round(bytes)?;
        }
        Ok(())
    }

    /// Writes as much as fits before the ring's end; returns the rest.
    fn write_round<'a>(&mut self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        let place = (self.written - self.cap.head) % self.cap.tail;
        let room = self.cap.tail - place;
        let length = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        if self.ring.is_none() {
            let directory = self.path.parent().unwrap_or(Path::new("."));
            self.ring = Some(tempfile::tempfile_in(directory)?);
        }
        if let Some(ring) = &mut self.ring {
            ring.seek(SeekFrom::Start(place))?;
            ring.write_all(&bytes[..length])?;
        }
        self.written += length as u64;
        Ok(&bytes[length..])
    }

    /// Joins the ends; returns how many bytes of the middle were dropped. `0` means that the file
    /// is whole.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        let Some(mut ring) = self.ring.take() else {
            return Ok(0);
        };
        let beyond = self.written - self.cap.head;
        let mut dropped = beyond.saturating_sub(self.cap.tail);
        if dropped == 0 {
            ring.seek(SeekFrom::Start(0))?;
            io::copy(&mut ring, &mut self.file)?;
            return Ok(0);
        }
        let oldest = beyond % self.cap.tail;
        let mut turned = Turned::new(&mut ring, oldest, self.cap.tail);
        dropped += turned.skip_line()?;
        write!(
            self.file,
            "\n… {dropped} bytes left out here: the output was too long to be kept whole …\n"
        )?;
        io::copy(&mut turned, &mut self.file)?;
        Ok(dropped)
    }
}

/// Reads the ring from its oldest byte.
struct Turned<'a> {
    ring: &'a mut File,
    place: u64,
    size: u64,
    left: u64,
}

impl<'a> Turned<'a> {
    fn new(ring: &'a mut File, oldest: u64, size: u64) -> Self {
        Self {
            ring,
            place: oldest,
            size,
            left: size,
        }
    }

    /// Skips to the next line, so that no half line (or half character) comes first. Gives up
    /// after a while: the output may be one line.
    fn skip_line(&mut self) -> io::Result<u64> {
        let (place, left) = (self.place, self.left);
        let mut start = Vec::new();
        self.by_ref().take(64 << 10).read_to_end(&mut start)?;
        let skipped = memchr::memchr(b'\n', &start).map_or(0, |end| end as u64 + 1);
        self.place = (place + skipped) % self.size;
        self.left = left - skipped;
        Ok(skipped)
    }
}

impl Read for Turned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let span = self.left.min(self.size - self.place);
        let length = usize::try_from(span).map_or(buffer.len(), |span| span.min(buffer.len()));
        if length == 0 {
            return Ok(0);
        }
        self.ring.seek(SeekFrom::Start(self.place))?;
        let read = self.ring.read(&mut buffer[..length])?;
        self.left -= read as u64;
        self.place = (self.place + read as u64) % self.size;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pieces: &[&str], cap: Cap) -> (String, u64) {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::create(directory.path(), "test", cap).unwrap();
        for piece in pieces {
            spill.write(piece.as_bytes()).unwrap();
        }
        let path = spill.path().to_path_buf();
        let dropped = spill.finish().unwrap();
        (std::fs::read_to_string(path).unwrap(), dropped)
    }

    const SMALL: Cap = Cap { head: 4, tail: 12 };

    #[test]
    fn up_to_the_cap_everything_is_kept() {
        assert_eq!(
            kept(&["ab\ncd\n", "ef\ngh\nijk\n"], SMALL),
            ("ab\ncd\nef\ngh\nijk\n".to_owned(), 0)
        );
    }

    #[test]
    fn beyond_the_cap_the_middle_goes_and_the_file_says_so() {
        assert_eq!(
            kept(&["ab\n1", "2345678\n", "next\n", "last\nend\n"], SMALL),
            (
                "ab\n1\n… 13 bytes left out here: the output was too long to be kept whole …\nlast\nend\n"
                    .to_owned(),
                13
            )
        );
    }
}
