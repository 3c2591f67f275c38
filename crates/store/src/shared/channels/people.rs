//! What admins have said of people.

use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{field, message_of},
    },
    damaged,
};
use crate::engine::{self, Connection, Row};
use crate::{ChannelPerson, channel_sql as sql};

pub(super) async fn set(
    connection: &mut Connection,
    person: &ChannelPerson,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::SET_PERSON)
        .bind(person.channel.as_str())
        .bind(person.user_id.as_str())
        .bind(person.role.map(|role| role.as_str()))
        .bind(person.forge_login.as_deref())
        .bind(person.set_by.as_str())
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn person(
    connection: &mut Connection,
    channel: &str,
    user_id: &str,
) -> Result<Option<ChannelPerson>, Failure> {
    let row = engine::query(sql::PERSON)
        .bind(channel)
        .bind(user_id)
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(read).transpose().map_err(damaged)?)
}

/// Whether there was something to take back.
pub(super) async fn remove(
    connection: &mut Connection,
    channel: &str,
    user_id: &str,
) -> Result<bool, Failure> {
    let removed = engine::query(sql::REMOVE_PERSON)
        .bind(channel)
        .bind(user_id)
        .execute(connection)
        .await?;
    Ok(removed.rows_affected() > 0)
}

pub(super) async fn listed(connection: &mut Connection) -> Result<Vec<ChannelPerson>, Failure> {
    let rows = engine::query(sql::PEOPLE)
        .bind("")
        .fetch_all(connection)
        .await?;
    let people: Result<_, String> = rows.iter().map(read).collect();
    Ok(people.map_err(damaged)?)
}

fn read(row: &Row) -> Result<ChannelPerson, String> {
    let role: Option<&str> = field(row, "role")?;
    Ok(ChannelPerson {
        channel: field(row, "channel")?,
        user_id: field(row, "user_id")?,
        role: role.map(str::parse).transpose().map_err(message_of)?,
        forge_login: field(row, "forge_login")?,
        set_by: field(row, "set_by")?,
    })
}
