//! An append as one statement, and so one trip and one transaction.

use codespar_protocol::SessionId;

use crate::{
    engine::{Connection, Link, failure::Failure},
    shared::append::{Draft, Sums, call_in, counts},
};

/// The session's row is changed first and decides about the rest: where it is not at the place that
/// the caller knows, or was taken by another process, nothing is written and no row comes back. A
/// session that is held for a task is lost with the lease, also before the next holder takes it.
///
/// `$1` session, `$2` the last place the caller knows, `$3` time, `$4` the number of the hold.
const APPEND: &str = "WITH moved AS (\
     UPDATE sessions SET title = COALESCE(title, $5), last_seq = last_seq + $6, \
     input_tokens = CASE WHEN input_tokens > 9223372036854775807 - $7 \
         THEN 9223372036854775807 ELSE input_tokens + $7 END, \
     output_tokens = CASE WHEN output_tokens > 9223372036854775807 - $8 \
         THEN 9223372036854775807 ELSE output_tokens + $8 END, \
     cache_creation_input_tokens = \
         CASE WHEN cache_creation_input_tokens > 9223372036854775807 - $9 \
         THEN 9223372036854775807 ELSE cache_creation_input_tokens + $9 END, \
     cache_read_input_tokens = CASE WHEN cache_read_input_tokens > 9223372036854775807 - $10 \
         THEN 9223372036854775807 ELSE cache_read_input_tokens + $10 END, \
     cache_creation_1h_input_tokens = \
         CASE WHEN cache_creation_1h_input_tokens > 9223372036854775807 - $11 \
         THEN 9223372036854775807 ELSE cache_creation_1h_input_tokens + $11 END, \
     cost_nanos = CASE WHEN cost_nanos > 9223372036854775807 - $12 \
         THEN 9223372036854775807 ELSE cost_nanos + $12 END, \
     cost_unknown = cost_unknown OR $13, \
     updated_at = CASE WHEN $14 OR updated_at NOT BETWEEN $3 - 999999 AND $3 \
         THEN $3 ELSE updated_at END \
     WHERE id = $1 AND last_seq = $2 AND ($4 IS NULL OR hold_epoch = $4 AND NOT EXISTS ( \
         SELECT 1 FROM tasks t WHERE t.id = held_for_task AND t.lease_epoch > held_under_epoch)) \
     RETURNING id), \
     added AS (INSERT INTO entries (session_id, seq, id, at, body) \
     SELECT m.id, $2 + e.place, e.id, $3, e.body FROM moved m \
     CROSS JOIN UNNEST($15, $16) WITH ORDINALITY AS e (id, body, place) ORDER BY e.place), \
     called AS (INSERT INTO usage (session_id, seq, model, input_tokens, output_tokens, \
     cache_creation_input_tokens, cache_read_input_tokens, cache_creation_1h_input_tokens, \
     cost_nanos, at) \
     SELECT m.id, $2 + u.place, u.model, u.a, u.b, u.c, u.d, u.e, u.nanos, $3 FROM moved m \
     CROSS JOIN UNNEST($17, $18, $19, $20, $21, $22, $23, $24) \
     AS u (place, model, a, b, c, d, e, nanos)) \
     SELECT id FROM moved";

/// Whether `$2` is still the number of the hold, and the lease it was made under the newest one.
pub(crate) const IS_HELD: &str = "SELECT hold_epoch = $2 AND NOT EXISTS ( \
         SELECT 1 FROM tasks t WHERE t.id = held_for_task AND t.lease_epoch > held_under_epoch) \
     FROM sessions WHERE id = $1";

/// The columns of the calls of models, each a list.
#[derive(Default)]
struct Calls {
    places: Vec<i64>,
    models: Vec<String>,
    counts: [Vec<i64>; 5],
    nanos: Vec<Option<i64>>,
}

impl Calls {
    fn of(drafts: &[Draft]) -> Self {
        let mut calls = Self::default();
        for (draft, place) in drafts.iter().zip(1_i64..) {
            if let Some((model, usage, cost)) = call_in(&draft.entry.body) {
                calls.places.push(place);
                calls.models.push(model.to_owned());
                for (column, count) in calls.counts.iter_mut().zip(counts(usage)) {
                    column.push(int(count));
                }
                let nanos = cost.known().map(|usd| int(usd.nanos()));
                calls.nanos.push(nanos);
            }
        }
        calls
    }
}

/// Whether the append took place.
pub(crate) async fn append(
    connection: &mut Connection,
    id: SessionId,
    after: u64,
    drafts: &mut [Draft],
    sums: &Sums,
    hold_epoch: Option<i64>,
) -> Result<bool, Failure> {
    let (Link::Postgres(link), Some(first)) = (&mut connection.link, drafts.first()) else {
        return Ok(false);
    };
    let at = first.entry.at.as_microsecond();
    let calls = Calls::of(drafts);
    let ids: Vec<String> = drafts.iter().map(|one| one.entry.id.to_string()).collect();
    let texts = drafts.iter_mut().map(|one| std::mem::take(&mut one.text));
    let texts: Vec<String> = texts.collect();
    // A text of PostgreSQL has no NUL; those of entries are JSON, which escapes it.
    let title = sums
        .title
        .as_ref()
        .map(|title| title.replace('\0', "\u{fffd}"));
    let mut query = sqlx::query(APPEND)
        .bind(id.to_string())
        .bind(int(after))
        .bind(at)
        .bind(hold_epoch)
        .bind(title)
        .bind(int(ids.len() as u64));
    for count in sums.tokens {
        query = query.bind(int(count));
    }
    query = query
        .bind(int(sums.cost.at_least().nanos()))
        .bind(sums.cost.known().is_none())
        .bind(sums.has_prompt)
        .bind(ids)
        .bind(texts)
        .bind(calls.places)
        .bind(calls.models);
    for column in calls.counts {
        query = query.bind(column);
    }
    let query = query.bind(calls.nanos);
    let row = query.fetch_optional(&mut **link.connection()?).await?;
    Ok(row.is_some())
}

fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
