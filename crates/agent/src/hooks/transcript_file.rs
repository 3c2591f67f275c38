//! The conversation as a file, for hooks: `transcript_path` of their input.
//!
//! One JSON object per line, in the shape that scripts for Claude Code read: `type`, `sessionId`
//! and `message`. It is written when a hook is about to run and the conversation has changed; the
//! store stays the only record. In the directory of outputs, which commands can read and not write.

use std::path::{Path, PathBuf};

use codespar_protocol::{Message, Role, SessionId};
use parking_lot::Mutex;
use serde::Serialize;

use crate::Transcript;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    session_id: SessionId,
    message: &'a Message,
}

/// The file of one agent.
pub(super) struct TranscriptFile {
    path: PathBuf,
    /// The last entry of what is in the file.
    written: Mutex<Option<u64>>,
}

impl TranscriptFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            written: Mutex::new(None),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it anew if something was said since. A file that cannot be written is not there, as
    /// hooks find out themselves.
    pub(super) fn write(&self, transcript: &Transcript, session: SessionId) {
        let mut written = self.written.lock();
        if *written == Some(transcript.last_seq()) {
            return;
        }
        let mut text = String::new();
        for message in transcript.messages() {
            let kind = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            let line = Line {
                kind,
                session_id: session,
                message,
            };
            if let Ok(line) = serde_json::to_string(&line) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        if std::fs::write(&self.path, text).is_ok() {
            *written = Some(transcript.last_seq());
        }
    }
}
