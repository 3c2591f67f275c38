//! Adding to a transcript: entries, usage and the session's sums in one transaction.
//!
//! An append happens on every turn of every agent, so it is one trip to the database: a script of
//! all its statements with one list of arguments for SQLite (`sqlite/script.rs`), one statement for
//! PostgreSQL (`postgres/append.rs`). It walks through in three steps:
//!
//! 1. `drafts` gives ids, places and a time, and serialises the bodies, before the connection is
//!    taken.
//! 2. `append` sends them in parts. Each statement does nothing unless the session still ends where
//!    the caller thinks, so no part has to look first.
//! 3. The last part returns a row if it all took place. If none comes back, `found_at` finds out
//!    why.
//!
//! The sums in the session's row are kept up by adding, never by reading the transcript: the cost
//! does not grow with the session.

use codespar_protocol::{Cost, Entry, EntryBody, EntryId, SessionId, Usage};
use sqlx::AssertSqlSafe;

use super::{
    failure::Failure,
    now,
    rows::{self, int},
};
use crate::{
    StoreError,
    engine::{self, Backend, Connection, Link, Query, Row},
    postgres,
    sqlite::AppendScript,
    title::title_of,
};

/// Entries in one script. More of them make several scripts of one transaction, because a script
/// has a largest size.
const AT_ONCE: usize = 64;

/// Scripts of so few entries come again and are kept prepared.
const OFTEN: usize = 4;

/// An entry and the text that is kept of it, made before the database is locked.
pub(crate) struct Draft {
    pub(crate) entry: Entry,
    pub(crate) text: String,
}

/// Where an append goes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    id: SessionId,
    /// The last place that the caller knows.
    after: u64,
    /// Of the hold of this process, if it has one that can be lost.
    hold_epoch: Option<i64>,
}

impl Place {
    pub(super) fn of(store: &impl Backend, id: SessionId, after: u64) -> Self {
        Self {
            id,
            after,
            hold_epoch: store.hold_epoch(id),
        }
    }
}

/// Whose transaction an append is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// Begun and committed by the script itself, without a further trip.
    Own,
    /// The caller's, who has begun it and ends it.
    Callers,
}

/// Gives the entries their ids, places and time. Nothing is taken from the database: places are
/// counted from `after`, and an append that finds the session elsewhere writes none of them.
pub(super) fn drafts(after: u64, bodies: Vec<EntryBody>) -> Result<Vec<Draft>, StoreError> {
    let at = now();
    let draft = |(body, nth)| {
        let seq = after.saturating_add(nth);
        let text = serde_json::to_string(&body)
            .map_err(|error| StoreError::Database(format!("cannot write an entry: {error}")))?;
        let id = EntryId::new();
        let entry = Entry { id, seq, at, body };
        Ok(Draft { entry, text })
    };
    bodies.into_iter().zip(1..).map(draft).collect()
}

/// The entries as they are on record now. Refused with `MovedOn`, `HoldLost` or `NoSuchSession`;
/// then nothing was written, also where the append is a part of the caller's transaction. An append
/// of nothing still checks the place.
pub(super) async fn append(
    connection: &mut Connection,
    place: Place,
    mut drafts: Vec<Draft>,
    frame: Frame,
) -> Result<Vec<Entry>, Failure> {
    let sums = Sums::of(&drafts);
    let Place { id, after, .. } = place;
    let is_written = match &connection.link {
        Link::Sqlite(_) => by_script(connection, place, &mut drafts, &sums, frame).await?,
        Link::Postgres(_) => {
            let epoch = place.hold_epoch;
            postgres::append(connection, id, after, &mut drafts, &sums, epoch).await?
        }
    };
    if !is_written {
        found_at(connection, place).await?;
    }
    Ok(drafts.into_iter().map(|draft| draft.entry).collect())
}

/// Whether the append took place.
async fn by_script(
    connection: &mut Connection,
    Place { id, after, .. }: Place,
    drafts: &mut [Draft],
    sums: &Sums,
    frame: Frame,
) -> Result<bool, Failure> {
    let mut place = 0;
    let mut written = Vec::new();
    while written.is_empty() && place < drafts.len() {
        let end = drafts.len().min(place + AT_ONCE);
        let part = Part {
            id,
            after,
            place,
            frame,
            sums: (end == drafts.len()).then_some(sums),
            drafts: &mut drafts[place..end],
        };
        written = part.run(connection).await?;
        place = end;
    }
    Ok(!written.is_empty())
}

/// Nothing was written: there was nothing to write, or this says why not.
async fn found_at(connection: &mut Connection, place: Place) -> Result<(), Failure> {
    let Place { id, after, .. } = place;
    let found = rows::session(connection, id).await?.last_seq;
    if let Some(epoch) = place.hold_epoch {
        let query = engine::query_scalar(postgres::IS_HELD).bind(id.to_string());
        let is_held: bool = query.bind(epoch).fetch_one(connection).await?;
        if !is_held {
            return Err(StoreError::HoldLost(id).into());
        }
    }
    if found == after {
        return Ok(());
    }
    let refusal = StoreError::MovedOn {
        id,
        expected: after,
        found,
    };
    Err(refusal.into())
}

/// The model call that an entry accounts for: what becomes a row of `usage` and part of the sums.
pub(crate) fn call_in(body: &EntryBody) -> Option<(&str, &Usage, Cost)> {
    match body {
        EntryBody::Assistant {
            model, usage, cost, ..
        }
        | EntryBody::SideCall {
            model, usage, cost, ..
        }
        | EntryBody::Compaction {
            model, usage, cost, ..
        } => Some((model, usage, *cost)),
        EntryBody::User { .. }
        | EntryBody::ToolStarted { .. }
        | EntryBody::ToolResult { .. }
        | EntryBody::Rewound { .. } => None,
    }
}

/// What the session's own row takes from an append.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) title: Option<String>,
    /// Prompts tell the sessions that somebody uses apart, so their time is exact.
    pub(crate) has_prompt: bool,
    /// In the order of `counts`.
    pub(crate) tokens: [u64; 5],
    pub(crate) cost: Cost,
}

impl Sums {
    fn of(drafts: &[Draft]) -> Self {
        let mut sums = Self::default();
        for draft in drafts {
            let body = &draft.entry.body;
            sums.has_prompt |= matches!(body, EntryBody::User { .. });
            if sums.title.is_none() {
                sums.title = title_of(body);
            }
            if let Some((_, usage, cost)) = call_in(body) {
                for (sum, count) in sums.tokens.iter_mut().zip(counts(usage)) {
                    *sum = sum.saturating_add(count);
                }
                sums.cost += cost;
            }
        }
        sums
    }
}

/// The order of these five is that of the columns, in the scripts as well.
pub(crate) fn counts(usage: &Usage) -> [u64; 5] {
    [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_1h_input_tokens,
    ]
}

/// What goes to the database in one trip.
struct Part<'a> {
    id: SessionId,
    after: u64,
    /// Entries of this append that went before.
    place: usize,
    frame: Frame,
    drafts: &'a mut [Draft],
    /// Of the whole append; with its last part.
    sums: Option<&'a Sums>,
}

impl Part<'_> {
    /// The rows that come back: one from the last part of an append that took place, none
    /// otherwise.
    async fn run(self, connection: &mut Connection) -> Result<Vec<Row>, Failure> {
        let query = engine::query(AssertSqlSafe(self.script()))
            .persistent(self.place == 0 && self.drafts.len() <= OFTEN);
        Ok(self.bind(query).fetch_all(connection).await?)
    }

    fn script(&self) -> String {
        let mut script = match (self.place, self.frame) {
            (0, Frame::Own) => AppendScript::begin(),
            (place, _) => AppendScript::after(place),
        };
        for draft in &*self.drafts {
            script.entry();
            if call_in(&draft.entry.body).is_some() {
                script.usage();
            }
        }
        if let Some(sums) = self.sums {
            match sums.has_prompt {
                true => script.exact_use_time(),
                false => script.use_time(),
            }
            script.end();
            if self.frame == Frame::Own {
                script.commit();
            }
        }
        script.text()
    }

    /// Binds in the order in which `script` asked for arguments: the two must be read side by side.
    /// Takes the texts out of the drafts instead of copying them.
    fn bind<'q>(self, query: Query<'q>) -> Query<'q> {
        let at = self.drafts.first().map_or_else(now, |draft| draft.entry.at);
        let mut query = query
            .bind(self.id.to_string())
            .bind(int(self.after))
            .bind(at.as_microsecond());
        for draft in self.drafts {
            query = query
                .bind(draft.entry.id.to_string())
                .bind(std::mem::take(&mut draft.text));
            if let Some((model, usage, cost)) = call_in(&draft.entry.body) {
                query = bind_counts(query.bind(model.to_owned()), counts(usage))
                    .bind(cost.known().map(|usd| int(usd.nanos())));
            }
        }
        match self.sums {
            Some(sums) => bind_counts(query.bind(sums.title.clone()), sums.tokens)
                .bind(int(sums.cost.at_least().nanos()))
                .bind(sums.cost.known().is_none()),
            None => query,
        }
    }
}

fn bind_counts(query: Query<'_>, counts: [u64; 5]) -> Query<'_> {
    counts
        .into_iter()
        .fold(query, |query, count| query.bind(int(count)))
}
