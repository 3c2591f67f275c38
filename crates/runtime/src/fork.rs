//! Copies of sessions, and sessions as they were.
//!
//! A copy has the entries of the original at the same places, so that summaries and rewinds in it
//! mean the same. What the original cost stays the original's: a copy begins at nothing.

use codespar_protocol::{Cost, Entry, EntryBody, EntryId, SessionId, Usage};

use crate::{Project, RuntimeError};

/// Entries that are written in one transaction.
const BATCH: usize = 500;

impl Project {
    /// Goes back to how a session was after an entry. Nothing is written where it is the last.
    pub(crate) async fn go_back(&self, id: SessionId, at: EntryId) -> Result<(), RuntimeError> {
        // Nobody else may write meanwhile.
        let _hold = self.store.hold_session(id).await?;
        let entries = self.store.entries(id, 0).await?;
        let to = place(&entries, id, at)?;
        let last = entries.last().map_or(0, |entry| entry.seq);
        if to < last {
            let body = EntryBody::Rewound { to, undoes: None };
            self.store.append(id, last, vec![body]).await?;
        }
        Ok(())
    }

    /// Makes a session of this id from the entries of another.
    pub(crate) async fn fork(
        &self,
        from: SessionId,
        at: Option<EntryId>,
        id: SessionId,
    ) -> Result<(), RuntimeError> {
        let mut entries = self.store.entries(from, 0).await?;
        if let Some(at) = at {
            let to = place(&entries, from, at)?;
            entries.retain(|entry| entry.seq <= to);
        }
        self.new_session_with(id).await?;
        let mut last = 0;
        let mut bodies = entries.into_iter().map(|entry| without_cost(entry.body));
        loop {
            let batch: Vec<EntryBody> = bodies.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let count = batch.len() as u64;
            self.store.append(id, last, batch).await?;
            last += count;
        }
    }
}

fn place(entries: &[Entry], session: SessionId, at: EntryId) -> Result<u64, RuntimeError> {
    let found = entries.iter().find(|entry| entry.id == at);
    found
        .map(|entry| entry.seq)
        .ok_or_else(|| RuntimeError::Usage(format!("the session {session} has no message {at}")))
}

fn without_cost(mut body: EntryBody) -> EntryBody {
    match &mut body {
        EntryBody::Assistant { usage, cost, .. }
        | EntryBody::SideCall { usage, cost, .. }
        | EntryBody::Compaction { usage, cost, .. } => {
            *usage = Usage::default();
            *cost = Cost::default();
        }
        EntryBody::User { .. }
        | EntryBody::ToolStarted { .. }
        | EntryBody::ToolResult { .. }
        | EntryBody::Rewound { .. } => {}
    }
    body
}
