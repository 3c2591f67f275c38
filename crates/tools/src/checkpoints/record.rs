//! What is recorded of one change to one file.

use std::{fmt::Write as _, path::PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// One change to one file, recorded before it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRecord {
    pub at: Timestamp,
    pub cause: ChangeCause,
    #[serde(with = "path_text")]
    pub path: PathBuf,
    pub before: FileState,
    pub after: FileState,
    /// How many of the directories around it the change made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub new_dirs: usize,
}

/// Who made a change. Places are those of entries in the transcript of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeCause {
    /// The agent of the session, in the turn that this prompt began; 0 before the first.
    Turn { prompt: u64 },
    /// Another agent of its tree, at the time of the record: it does not know the conversation.
    Subagent,
    /// The user's rewind, after this entry.
    Rewind { place: u64 },
    /// The undoing of one.
    Undo { place: u64 },
}

/// A file at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    Absent,
    Content {
        /// SHA-256 of it, in hexadecimal.
        hash: String,
        size: u64,
        /// Permissions; those of a file that was not there yet are 0.
        mode: u32,
    },
    /// It was too large to be kept, or the session had kept too much.
    NotKept {
        size: u64,
    },
}

impl FileState {
    pub(crate) fn of(content: &[u8], mode: u32) -> Self {
        let mut hash = String::with_capacity(64);
        for byte in Sha256::digest(content) {
            // Writing to a string cannot fail.
            let _ = write!(hash, "{byte:02x}");
        }
        Self::Content {
            hash,
            size: content.len() as u64,
            mode: mode & 0o777,
        }
    }

    /// Whether both have the same content. Modes are not compared: no tool changes them, so a
    /// difference is the work of a command. States that were not kept are like no other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Content { hash: one, .. }, Self::Content { hash: two, .. }) => one == two,
            _ => false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Text where it is UTF-8, else its bytes.
mod path_text {
    use std::{
        ffi::OsString,
        os::unix::ffi::{OsStrExt as _, OsStringExt as _},
        path::{Path, PathBuf},
    };

    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum PathText {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => to.serialize_str(text),
            None => path.as_os_str().as_bytes().serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match PathText::deserialize(from)? {
            PathText::Text(text) => PathBuf::from(text),
            PathText::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_also_with_a_path_that_is_no_text() {
        for path in [&b"/a b/\xc3\xa9.rs"[..], b"/a/\xff.rs"] {
            let record = ChangeRecord {
                at: Timestamp::UNIX_EPOCH,
                cause: ChangeCause::Turn { prompt: 3 },
                path: PathBuf::from(OsString::from_vec(path.to_vec())),
                before: FileState::Absent,
                after: FileState::of(b"x", 0),
                new_dirs: 2,
            };
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<ChangeRecord>(&text).unwrap(), record);
        }
    }
}
