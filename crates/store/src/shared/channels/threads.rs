//! What threads are about, and the repositories of conversations.

use codespar_protocol::SessionId;
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{field, int, message_of},
    },
    damaged,
};
use crate::engine::{self, Connection, Row};
use crate::{RepositoryLink, ThreadBinding, ThreadRef, channel_sql as sql};

pub(super) async fn binding(
    connection: &mut Connection,
    at: &ThreadRef,
) -> Result<ThreadBinding, Failure> {
    let row = engine::query(sql::THREAD)
        .bind(at.channel.as_str())
        .bind(at.conversation.as_str())
        .bind(at.thread.as_str())
        .fetch_optional(connection)
        .await?;
    match row {
        Some(row) => Ok(read(&row).map_err(damaged)?),
        None => Ok(ThreadBinding::default()),
    }
}

pub(super) async fn bind(
    connection: &mut Connection,
    at: &ThreadRef,
    binding: &ThreadBinding,
    now: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::BIND_THREAD)
        .bind(at.channel.as_str())
        .bind(at.conversation.as_str())
        .bind(at.thread.as_str())
        .bind(binding.repository.as_deref())
        .bind(binding.session.map(|session| session.to_string()))
        .bind(binding.pull_request.map(int))
        .bind(now.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn link(
    connection: &mut Connection,
    (channel, conversation): (&str, &str),
    repository: &str,
    by: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::NO_DEFAULT_LINK)
        .bind(channel)
        .bind(conversation)
        .execute(&mut *connection)
        .await?;
    engine::query(sql::LINK)
        .bind(channel)
        .bind(conversation)
        .bind(repository)
        .bind(by)
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn unlink(
    connection: &mut Connection,
    place: (&str, &str),
) -> Result<Option<String>, Failure> {
    let linked = links(connection, place).await?;
    let Some(default) = linked.first() else {
        return Ok(None);
    };
    engine::query(sql::UNLINK)
        .bind(place.0)
        .bind(place.1)
        .bind(default.repository.as_str())
        .execute(&mut *connection)
        .await?;
    if let Some(next) = linked.get(1) {
        engine::query(sql::MAKE_DEFAULT_LINK)
            .bind(place.0)
            .bind(place.1)
            .bind(next.repository.as_str())
            .execute(connection)
            .await?;
    }
    Ok(Some(default.repository.clone()))
}

/// The default first, then those linked last.
pub(super) async fn links(
    connection: &mut Connection,
    (channel, conversation): (&str, &str),
) -> Result<Vec<RepositoryLink>, Failure> {
    let rows = engine::query(sql::LINKS)
        .bind(channel)
        .bind(conversation)
        .fetch_all(connection)
        .await?;
    let links: Result<Vec<(i64, RepositoryLink)>, String> = rows.iter().map(link_of).collect();
    let mut links = links.map_err(damaged)?;
    links.sort_by_key(|(at, link)| (!link.is_default, std::cmp::Reverse(*at)));
    Ok(links.into_iter().map(|(_, link)| link).collect())
}

fn link_of(row: &Row) -> Result<(i64, RepositoryLink), String> {
    let link = RepositoryLink {
        repository: field(row, "repository")?,
        is_default: field(row, "is_default")?,
        linked_by: field(row, "linked_by")?,
    };
    Ok((field(row, "linked_at")?, link))
}

fn read(row: &Row) -> Result<ThreadBinding, String> {
    let session: Option<&str> = field(row, "session_id")?;
    let pull: Option<i64> = field(row, "pull_request")?;
    Ok(ThreadBinding {
        repository: field(row, "repository")?,
        session: session
            .map(str::parse::<SessionId>)
            .transpose()
            .map_err(message_of)?,
        pull_request: pull.and_then(|number| u64::try_from(number).ok()),
    })
}
