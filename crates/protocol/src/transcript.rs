//! What a session remembers: an append-only list of entries.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ContentBlock, Cost, EntryId, Message, StopReason, ToolUseId, Usage};

/// How a session works; remembered so that resuming it finds the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// One agent with tools.
    #[default]
    Normal,
    /// An agent that only directs others.
    Coordinator,
}

/// One entry with its place in the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its own name.
    pub id: EntryId,
    /// Its place, counted from 1 without gaps.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What it says.
    pub body: EntryBody,
}

/// What an entry says. The serialised form is what the store keeps and `session export` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
// Externally tagged on purpose: the other forms buffer, and buffering loses raw JSON.
#[serde(rename_all = "snake_case")]
pub enum EntryBody {
    /// The user's words, or words put in on their side (a notice, a request to go on).
    User {
        message: Message,
        /// Not typed by the user.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        synthetic: bool,
    },
    /// What the model answered, with what it cost.
    Assistant {
        /// The message, blocks as they came.
        message: Message,
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The model that answered.
        model: String,
        /// Why it stopped.
        stop_reason: StopReason,
        /// Tokens of this call.
        usage: Usage,
        /// Cost of this call.
        cost: Cost,
    },
    /// Written before a tool that changes things is started: a call with this entry and no
    /// result may or may not have taken effect.
    ToolStarted { tool_use_id: ToolUseId },
    /// One tool's answer: a `tool_result` block. Neighbours form one user message.
    ToolResult {
        result: ContentBlock,
        /// The files that the agent has seen by this call, read or written.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<SeenFile>,
    },
    /// A model call beside the conversation (reading a fetched page): counted, not replayed.
    SideCall {
        purpose: String,
        /// The model that answered.
        model: String,
        /// Its tokens.
        usage: Usage,
        /// Its price.
        cost: Cost,
    },
    /// Everything before `keep_from` is replaced by the summary from here on.
    Compaction {
        /// What the older turns came to.
        summary: String,
        /// The first entry that stays whole.
        keep_from: u64,
        /// Tokens and cost of writing the summary.
        usage: Usage,
        /// Its price.
        cost: Cost,
        /// The model that wrote it.
        model: String,
    },
    /// The user went back: the conversation goes on from the entry at `to` as it was then, and
    /// what was said since is not part of it. Undoing that is another such entry, which leads to
    /// where the first one left.
    Rewound {
        /// 0 for an empty conversation. The entry before this one where only files were restored.
        to: u64,
        /// The place of the rewind that this one undoes; 0 for one that a crash kept off the record
        /// after it had restored files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undoes: Option<u64>,
    },
}

/// The entries that make up the conversation, in their order: those that no rewind took out.
/// `entries` is a transcript from its first entry on.
pub fn conversation(entries: &[Entry]) -> Vec<&Entry> {
    let mut live = Vec::with_capacity(entries.len());
    let mut left = entries;
    while let Some((last, before)) = left.split_last() {
        left = match last.body {
            EntryBody::Rewound { to, .. } => {
                &before[..before.partition_point(|entry| entry.seq <= to)]
            }
            _ => {
                live.push(last);
                before
            }
        };
    }
    live.reverse();
    live
}

/// A file as an agent saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// Absolute, without links.
    pub path: String,
    /// A hash of its content; empty if it was not read, and only `lines` of it were shown.
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SeenLines>,
}

/// Neighbouring lines of a file that a search showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenLines {
    /// The number of the first, from 1.
    pub first: usize,
    pub count: usize,
    /// A hash of their content.
    pub content: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that say `-`, or lead back to a place.
    fn transcript(rewinds: &[Option<u64>]) -> Vec<Entry> {
        let entry = |(index, to): (usize, &Option<u64>)| Entry {
            id: EntryId::new(),
            seq: index as u64 + 1,
            at: Timestamp::UNIX_EPOCH,
            body: match *to {
                None => EntryBody::User {
                    message: Message::user("-"),
                    synthetic: false,
                },
                Some(to) => EntryBody::Rewound { to, undoes: None },
            },
        };
        rewinds.iter().enumerate().map(entry).collect()
    }

    fn places(rewinds: &[Option<u64>]) -> Vec<u64> {
        let entries = transcript(rewinds);
        conversation(&entries)
            .iter()
            .map(|entry| entry.seq)
            .collect()
    }

    #[test]
    fn a_conversation_is_what_no_rewind_took_out() {
        let said = None;
        assert_eq!(places(&[]), [0; 0]);
        assert_eq!(places(&[said, said]), [1, 2]);
        assert_eq!(places(&[said, said, said, Some(1)]), [1]);
        assert_eq!(places(&[said, said, Some(1), said]), [1, 4]);
        assert_eq!(places(&[said, said, Some(0)]), [0; 0]);
        // Undone, and undone again.
        assert_eq!(places(&[said, said, Some(1), said, Some(2)]), [1, 2]);
        assert_eq!(
            places(&[said, said, Some(1), said, Some(2), Some(4)]),
            [1, 4]
        );
        // Twice back, and one that leads to itself or further on, which nobody writes.
        assert_eq!(places(&[said, said, said, Some(2), said, Some(1)]), [1]);
        assert_eq!(places(&[said, Some(2), said, Some(9)]), [1, 3]);
    }

    #[test]
    fn an_assistant_entry_keeps_the_text_of_its_tool_input() {
        let json = r#"{"id":"0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e5f","seq":3,"at":"2026-01-02T03:04:05Z","body":{"assistant":{"message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"b": 1,"a":2}}]},"model":"m","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation_1h_input_tokens":0},"cost":null}}}"#;
        let entry: Entry = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&entry).unwrap(), json);
    }
}
