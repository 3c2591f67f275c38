//! Teams of a session.
//!
//! A team is a name and an ordered list of members in one session. The tasks of its members are
//! tasks like others; deleting the team does not end them.

use codespar_protocol::SessionId;
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{self, field},
    },
    items,
    row::{damaged, task_id},
};
use crate::engine::{self, Connection};
use crate::{StoreError, Team, task_sql as sql};

/// The members' tasks need not be on record yet: the caller creates them in the same transaction.
pub(super) async fn create(
    connection: &mut Connection,
    session: SessionId,
    team: &Team,
) -> Result<(), Failure> {
    rows::session(connection, session).await?;
    let done = engine::query(sql::INSERT_TEAM)
        .bind(session.to_string())
        .bind(team.name.as_str())
        .execute(&mut *connection)
        .await?;
    if done.rows_affected() == 0 {
        let name = team.name.clone();
        return Err(StoreError::TeamExists { name }.into());
    }
    for ((name, task), place) in team.members.iter().zip(1_i64..) {
        engine::query(sql::INSERT_MEMBER)
            .bind(session.to_string())
            .bind(team.name.as_str())
            .bind(place)
            .bind(name.as_str())
            .bind(task.as_str())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// By name, each with its members in the order they were given in.
pub(super) async fn of_session(
    connection: &mut Connection,
    session: SessionId,
) -> Result<Vec<Team>, Failure> {
    let rows = engine::query(sql::TEAMS)
        .bind(session.to_string())
        .fetch_all(connection)
        .await?;
    let mut teams: Vec<Team> = Vec::new();
    for row in &rows {
        let name: String = field(row, "team").map_err(damaged)?;
        if teams.last().is_none_or(|team| team.name != name) {
            let members = Vec::new();
            teams.push(Team { name, members });
        }
        let member: Option<String> = field(row, "name").map_err(damaged)?;
        if let (Some(member), Some(team)) = (member, teams.last_mut()) {
            let task = task_id(row, "task_id").map_err(damaged)?;
            team.members.push((member, task));
        }
    }
    Ok(teams)
}

/// Gives the team as it was. The refusal lists the teams there are.
pub(super) async fn delete(
    connection: &mut Connection,
    session: SessionId,
    name: &str,
    at: Timestamp,
) -> Result<Team, Failure> {
    let teams = of_session(connection, session).await?;
    let known = teams.iter().map(|team| team.name.clone()).collect();
    let Some(team) = teams.into_iter().find(|team| team.name == name) else {
        let name = name.to_owned();
        return Err(StoreError::NoSuchTeam { name, known }.into());
    };
    for (member, _) in &team.members {
        items::give_back(connection, session, name, member, at).await?;
    }
    engine::query(sql::DELETE_TEAM)
        .bind(session.to_string())
        .bind(name)
        .execute(connection)
        .await?;
    Ok(team)
}
