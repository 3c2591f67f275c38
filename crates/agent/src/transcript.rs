//! The conversation: what the store holds of it, and the messages it comes to.
//!
//! The store has a list of entries; the model sees messages. Entries become messages by four
//! rules: what a rewind took out is left out, neighbours of one role are joined, results stand in
//! the order of their calls, and everything before the last compaction is replaced by its summary.
//! Entries that only keep the books (`ToolStarted`, `SideCall`) are part of no message.
//!
//! One process holds a session at a time, by a lock that ends with it. Appends name the last entry
//! that this process knows, so a second writer would be refused, never interleaved.
//!
//! After a crash, opening the session finds calls without results. They are answered like this:
//!
//! ```text
//! started, no result         "interrupted, outcome unknown"; never run again
//! not started, none asked    "interrupted"; changed nothing
//! not started, and a call of the message was put to the user
//!                            stays open; the agent makes it and finds the answer
//! ```

use std::{
    collections::{HashMap, HashSet},
    iter,
    sync::Arc,
};

use codespar_protocol::{
    ContentBlock, Entry, EntryBody, EntryId, Message, Question, QuestionStatus, Role, SeenFile,
    SessionId, Todo, ToolUse, ToolUseId, conversation,
};
use codespar_store::{QuestionFilter, SessionHold, Store, StoreError, TaskLease};

/// A session's conversation, held for this process. Whatever is appended is durable when the
/// call returns.
///
/// Not safe to cancel: if an append is dropped half-way, the entry may be in the store and not
/// here. The next append then fails with `StoreError::MovedOn`, and the session must be opened
/// anew.
pub struct Transcript {
    store: Arc<dyn Store>,
    session: SessionId,
    last_seq: u64,
    last_entry: Option<EntryId>,
    /// The place of the last message of the conversation that the user typed; 0 if there is none.
    last_prompt: u64,
    /// As the model sees them. Shared with requests under way, and copied when one is changed.
    messages: Vec<Arc<Message>>,
    /// The place of the first entry that went into each message, for choosing where to cut.
    origins: Vec<u64>,
    _hold: SessionHold,
}

/// What was found when a session was opened again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recovered {
    /// Calls that may or may not have taken effect: they had begun and left no result.
    pub outcome_unknown: Vec<String>,
    /// Calls that had not begun.
    pub never_started: Vec<String>,
    /// The list of steps as it was.
    pub todos: Vec<Todo>,
    /// The files that were seen, in that order: the last word about a file counts.
    pub files: Vec<SeenFile>,
}

impl Transcript {
    /// Opens a session: takes hold of it, reads it, and gives every call that has no result one
    /// that says so. Nothing is run again. Calls that had not begun stay open where one of them
    /// waits for the user's answer: the agent makes them when it goes on.
    ///
    /// Fails with `StoreError::SessionInUse` while another process holds the session. The answers
    /// to interrupted calls are appended before this returns.
    pub async fn open(
        store: Arc<dyn Store>,
        session: SessionId,
    ) -> Result<(Self, Recovered), StoreError> {
        let hold = store.hold_session(session).await?;
        Self::read(store, session, hold).await
    }

    /// The same for the agent of a task: a process that is frozen or cut off, and holds the session
    /// under an earlier lease, loses it.
    pub async fn open_for(
        store: Arc<dyn Store>,
        session: SessionId,
        lease: &TaskLease,
    ) -> Result<(Self, Recovered), StoreError> {
        let hold = store.hold_session_for(session, lease).await?;
        Self::read(store, session, hold).await
    }

    async fn read(
        store: Arc<dyn Store>,
        session: SessionId,
        hold: SessionHold,
    ) -> Result<(Self, Recovered), StoreError> {
        let entries = store.entries(session, 0).await?;
        let mut transcript = Self {
            store,
            session,
            last_seq: entries.last().map_or(0, |entry| entry.seq),
            last_entry: entries.last().map(|entry| entry.id),
            last_prompt: 0,
            messages: Vec::new(),
            origins: Vec::new(),
            _hold: hold,
        };
        let live = conversation(&entries);
        transcript.rebuild(&live);
        let recovered = transcript.answer_what_was_interrupted(&live).await?;
        Ok((transcript, recovered))
    }

    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The place of the newest entry; 0 if there is none.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The newest entry.
    pub fn last_entry(&self) -> Option<EntryId> {
        self.last_entry
    }

    /// Where the turn that is under way began: the place of the last message that the user typed.
    pub(crate) fn last_prompt(&self) -> u64 {
        self.last_prompt
    }

    /// Everything on record, also what a rewind took out.
    pub(crate) async fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        self.store.entries(self.session, 0).await
    }

    /// The place of the entry that comes next.
    pub(crate) fn next_seq(&self) -> u64 {
        self.last_seq + 1
    }

    /// The conversation waits for the model: there is something it has not answered.
    pub fn is_unfinished(&self) -> bool {
        self.messages
            .last()
            .is_some_and(|message| message.role == Role::User)
    }

    /// The text of the last answer; empty if there is none.
    pub fn last_answer(&self) -> String {
        let answers = self.messages.iter().rev();
        let mut answers = answers.filter(|message| message.role == Role::Assistant);
        answers
            .next()
            .map_or_else(String::new, |message| message.text())
    }

    /// What the model has said last, oldest first, in at most this many characters: the texts of
    /// the latest answers as far as they fit, at least the end of the last. Empty if it has said
    /// nothing.
    pub fn latest_texts(&self, most: usize) -> String {
        let answers = self.messages.iter().rev();
        let answers = answers.filter(|message| message.role == Role::Assistant);
        let (mut texts, mut length) = (Vec::new(), 0);
        for text in answers.map(|message| message.text()) {
            let text = text.trim();
            let count = text.chars().count();
            if text.is_empty() {
                continue;
            }
            if length + count > most {
                if texts.is_empty() {
                    texts.push(text.chars().skip(count - most).collect());
                }
                break;
            }
            length += count + 2;
            texts.push(text.to_owned());
        }
        texts.reverse();
        texts.join("\n\n")
    }

    /// Where the last answer of the model begins; 0 if there is none.
    pub(crate) fn last_answer_place(&self) -> u64 {
        let mut messages = self.messages.iter();
        let last = messages.rposition(|message| message.role == Role::Assistant);
        last.and_then(|at| self.origins.get(at).copied())
            .unwrap_or(0)
    }

    /// What tells the question about a call from all others of the session. With the place of the
    /// message: providers may give an id twice, and an answer counts for one call.
    pub(crate) fn question_key(place: u64, call: &ToolUseId) -> String {
        format!("{place}/{call}")
    }

    /// The conversation as the model sees it.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Each message with the place of its first entry.
    pub(crate) fn with_origins(&self) -> impl Iterator<Item = (u64, &Arc<Message>)> {
        self.origins.iter().copied().zip(&self.messages)
    }

    /// Adds one entry, durably, and to the conversation.
    pub async fn append(&mut self, body: EntryBody) -> Result<Entry, StoreError> {
        self.append_with(body, None).await
    }

    /// Adds an entry and one that follows from it, in one transaction. Gives back the first. Either
    /// both are on record or neither.
    pub(crate) async fn append_with(
        &mut self,
        body: EntryBody,
        next: Option<EntryBody>,
    ) -> Result<Entry, StoreError> {
        let bodies = iter::once(body).chain(next).collect();
        let entries = self
            .store
            .append(self.session, self.last_seq, bodies)
            .await?;
        let mut entries = entries.into_iter();
        let Some(entry) = entries.next() else {
            return Err(StoreError::Database(
                "an append came back without its entry".to_owned(),
            ));
        };
        self.take_in(&entry).await?;
        for next in entries {
            self.take_in(&next).await?;
        }
        Ok(entry)
    }

    /// Makes an entry that is on record part of the conversation. A compaction and a rewind change
    /// what the earlier entries mean, so they rebuild the messages from the store.
    async fn take_in(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.last_seq = entry.seq;
        self.last_entry = Some(entry.id);
        match &entry.body {
            EntryBody::Compaction { .. } | EntryBody::Rewound { .. } => {
                let mut all = self.entries().await?;
                // Those after it are taken in by themselves.
                all.retain(|known| known.seq <= entry.seq);
                self.rebuild(&conversation(&all));
            }
            _ => {
                self.note_prompt(entry);
                self.include(entry);
            }
        }
        Ok(())
    }

    fn note_prompt(&mut self, entry: &Entry) {
        if is_prompt(entry) {
            self.last_prompt = entry.seq;
        }
    }

    /// Adds entries through `write`, which must put them after the place it is given; for appends
    /// that are one transaction with something else.
    pub async fn append_by<Written>(
        &mut self,
        write: impl FnOnce(SessionId, u64) -> Written,
    ) -> Result<(), StoreError>
    where
        Written: Future<Output = Result<Vec<Entry>, StoreError>>,
    {
        for entry in write(self.session, self.last_seq).await? {
            self.take_in(&entry).await?;
        }
        Ok(())
    }

    /// Puts the results of the last message's calls in the order of the calls.
    pub(crate) fn settle_results(&mut self) {
        let [.., calls, results] = self.messages.as_mut_slice() else {
            return;
        };
        // Looked up, not searched for: a message may have a thousand calls.
        let order: HashMap<&ToolUseId, usize> = calls
            .tool_uses()
            .enumerate()
            .map(|(place, call)| (&call.id, place))
            .collect();
        let place = |block: &ContentBlock| match block {
            ContentBlock::ToolResult(result) => order.get(&result.tool_use_id).copied(),
            _ => None,
        };
        let place = |block: &ContentBlock| place(block).unwrap_or(order.len());
        if !results.content.is_sorted_by_key(place) {
            Arc::make_mut(results).content.sort_by_key(place);
        }
    }

    /// From the last compaction on. Its summary becomes the first message, with the place of the
    /// first entry that stays whole.
    fn rebuild(&mut self, entries: &[&Entry]) {
        self.messages.clear();
        self.origins.clear();
        self.last_prompt = 0;
        entries.iter().for_each(|entry| self.note_prompt(entry));
        let compaction = entries.iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Compaction {
                summary, keep_from, ..
            } => Some((summary, *keep_from)),
            _ => None,
        });
        let keep_from = match compaction {
            Some((summary, keep_from)) => {
                self.push(keep_from, Message::user(summary.clone()));
                keep_from
            }
            None => 0,
        };
        for entry in entries.iter().filter(|entry| entry.seq >= keep_from) {
            self.include(entry);
        }
    }

    /// Neighbours of the same role become one message: results of several calls, a prompt after
    /// results, an answer that was paused and went on.
    fn include(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::User { message, .. } | EntryBody::Assistant { message, .. } => {
                self.push(entry.seq, message.clone());
            }
            EntryBody::ToolResult { result, .. } => {
                let content = vec![result.clone()];
                self.push(
                    entry.seq,
                    Message {
                        role: Role::User,
                        content,
                    },
                );
                self.settle_results();
            }
            EntryBody::ToolStarted { .. }
            | EntryBody::SideCall { .. }
            | EntryBody::Compaction { .. }
            | EntryBody::Rewound { .. } => {}
        }
    }

    fn push(&mut self, seq: u64, mut message: Message) {
        // Providers refuse empty texts and empty messages, even their own.
        message.content.retain(|block| block.as_text() != Some(""));
        if message.content.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(last) if last.role == message.role => {
                Arc::make_mut(last).content.extend(message.content);
            }
            _ => {
                self.messages.push(Arc::new(message));
                self.origins.push(seq);
            }
        }
    }

    /// Only the last answer of the model can have open calls: the next is not asked for before
    /// every call has its result.
    async fn answer_what_was_interrupted(
        &mut self,
        entries: &[&Entry],
    ) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered {
            todos: last_todos(entries),
            files: seen_files(entries),
            ..Recovered::default()
        };
        let started: HashSet<&ToolUseId> = entries
            .iter()
            .filter_map(|entry| match &entry.body {
                EntryBody::ToolStarted { tool_use_id } => Some(tool_use_id),
                _ => None,
            })
            .collect();
        let unanswered = self.unanswered();
        let waits = self.waits_for_person(&unanswered).await?;
        for call in unanswered {
            let text = if started.contains(&call.id) {
                recovered.outcome_unknown.push(describe(&call));
                "interrupted, outcome unknown: the program ended while this call was running, and \
                 it was not run again. Look at the state of things before repeating it."
            } else if waits {
                continue;
            } else {
                recovered.never_started.push(describe(&call));
                "interrupted: the program ended before this call had a result. It changed nothing; \
                 make it again if it is still wanted."
            };
            let result = ContentBlock::tool_result(call.id, text, true);
            let files = Vec::new();
            self.append(EntryBody::ToolResult { result, files }).await?;
        }
        Ok(recovered)
    }

    /// Whether one of these calls has been put to the user. Answered questions count: the answer
    /// came while nobody waited, and still holds for the call.
    async fn waits_for_person(&self, calls: &[ToolUse]) -> Result<bool, StoreError> {
        if calls.is_empty() {
            return Ok(false);
        }
        let asked = self
            .store
            .questions(QuestionFilter::OfSession(self.session))
            .await?;
        let place = self.last_answer_place();
        let keys: Vec<String> = calls
            .iter()
            .map(|call| Transcript::question_key(place, &call.id))
            .collect();
        let is_one = |question: &Question| {
            question.status != QuestionStatus::Withdrawn && keys.contains(&question.key)
        };
        Ok(asked.iter().any(is_one))
    }

    /// Calls of the last assistant message that have no result.
    pub(crate) fn unanswered(&self) -> Vec<ToolUse> {
        let Some(at) = self
            .messages
            .iter()
            .rposition(|m| m.role == Role::Assistant)
        else {
            return Vec::new();
        };
        let answered: HashSet<&ToolUseId> = self.messages[at + 1..]
            .iter()
            .flat_map(|message| &message.content)
            .filter_map(|block| match block {
                ContentBlock::ToolResult(result) => Some(&result.tool_use_id),
                _ => None,
            })
            .collect();
        self.messages[at]
            .tool_uses()
            .filter(|call| !answered.contains(&call.id))
            .cloned()
            .collect()
    }
}

/// Something that the user typed; it begins a turn.
pub(crate) fn is_prompt(entry: &Entry) -> bool {
    let body = &entry.body;
    matches!(body, EntryBody::User { synthetic, .. } if !synthetic)
}

/// A call in one line, for people.
fn describe(call: &ToolUse) -> String {
    let input: String = call.input.get().chars().take(120).collect();
    format!("{} {input}", call.name)
}

/// What each recorded result says it showed or wrote; the agent may edit those that have not
/// changed.
pub(crate) fn seen_files(entries: &[&Entry]) -> Vec<SeenFile> {
    let files = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::ToolResult { files, .. } => Some(files),
        _ => None,
    });
    files.flatten().cloned().collect()
}

/// The list of steps as the last TodoWrite left it. Taken from the call, not from its result: the
/// latest one whose input can be read.
pub(crate) fn last_todos(entries: &[&Entry]) -> Vec<Todo> {
    #[derive(serde::Deserialize)]
    struct Input {
        todos: Vec<Todo>,
    }
    entries
        .iter()
        .rev()
        .filter_map(|entry| match &entry.body {
            EntryBody::Assistant { message, .. } => Some(message),
            _ => None,
        })
        .flat_map(|message| message.tool_uses().collect::<Vec<_>>().into_iter().rev())
        .filter(|call| call.name == "TodoWrite")
        .find_map(|call| serde_json::from_str::<Input>(call.input.get()).ok())
        .map(|input| input.todos)
        .unwrap_or_default()
}
