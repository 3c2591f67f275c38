//! The lists of work that the members of teams share: who takes what, and what goes back.
//!
//! An item is a task that nothing runs. A member of the team owns it while it is running, and it
//! goes through these steps:
//!
//! ```text
//! pending, no owner  --take-->  running, owned  --member marks it-->  completed | failed
//!         ^                           |
//!         +--given back, member ended without completing, team deleted--+
//! ```
//!
//! Taking it, starting it and the message to the member are one transaction. A member that has
//! completed is idle, and the message makes it pending again; no process has to wait for work to
//! appear.

use std::collections::{HashMap, VecDeque};

use codespar_protocol::{AttemptOptions, SessionId, TaskId, TaskRecord, TaskSpec, TaskStatus};
use jiff::Timestamp;

use super::{
    super::{failure::Failure, rows::field},
    change, mail, read,
    row::{damaged, list_of, task_id},
};
use crate::engine::{self, Connection};
use crate::{OwnerRule, TaskChange, task_sql as sql};

/// Whom a member hears of an item from.
const SENDER: &str = "the task list";

/// Where a member is reached: session, team and its own name.
struct MemberAddress<'a> {
    session: SessionId,
    team: &'a str,
    name: &'a str,
}

impl<'a> MemberAddress<'a> {
    /// `None` for a task that is no teammate, or has no session.
    fn of(member: &'a TaskRecord) -> Option<Self> {
        let Some(TaskSpec::Teammate(teammate)) = &member.spec else {
            return None;
        };
        Some(Self {
            session: member.session_id?,
            team: &teammate.team,
            name: &teammate.name,
        })
    }
}

/// What is taken is begun with it. The step that a new owner implies; `None` where the change takes
/// no item.
pub(super) fn step_of(item: &TaskRecord, change: &TaskChange) -> Option<TaskStatus> {
    let is_taken = item.team_list().is_some() && matches!(change.owner, Some(Some(_)));
    (is_taken && item.status == TaskStatus::Pending).then_some(TaskStatus::Running)
}

/// Whether the change puts an item back on its list.
pub(super) fn gives_back(item: &TaskRecord, change: &TaskChange) -> bool {
    item.team_list().is_some()
        && matches!(change.owner, Some(None))
        && item.status == TaskStatus::Running
}

/// Puts an item back, as it was before it was taken.
pub(super) async fn free(
    connection: &mut Connection,
    item: &TaskId,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::GIVE_BACK)
        .bind(item.as_str())
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

/// Puts back what one member of a team has taken and not ended.
pub(super) async fn give_back(
    connection: &mut Connection,
    session: SessionId,
    team: &str,
    member: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::GIVE_BACK_ALL)
        .bind(session.to_string())
        .bind(list_of(team))
        .bind(member)
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

/// The same for a task that may be a member.
pub(super) async fn give_back_of(
    connection: &mut Connection,
    task: &TaskRecord,
    at: Timestamp,
) -> Result<(), Failure> {
    match MemberAddress::of(task) {
        Some(address) => {
            give_back(connection, address.session, address.team, address.name, at).await
        }
        None => Ok(()),
    }
}

/// Whether there is anything to assign: most of the time there is not, and nobody is kept from
/// writing to find that out.
pub(super) async fn any_free(connection: &mut Connection) -> Result<bool, Failure> {
    let row = engine::query(sql::FREE_ITEMS)
        .fetch_optional(connection)
        .await?;
    Ok(row.is_some())
}

/// Gives free items to members who have come to their end. Each member gets at most one, also where
/// more items are free: the next is given when it comes to its end again. Gives the members that
/// were woken.
pub(super) async fn assign(
    connection: &mut Connection,
    at: Timestamp,
) -> Result<Vec<TaskId>, Failure> {
    let rows = engine::query(sql::FREE_ITEMS)
        .fetch_all(&mut *connection)
        .await?;
    let mut idle: HashMap<(String, String), VecDeque<TaskId>> = HashMap::new();
    let mut woken = Vec::new();
    for row in &rows {
        let item = task_id(row, "id").map_err(damaged)?;
        let session: String = field(row, "session_id").map_err(damaged)?;
        let queue: String = field(row, "queue").map_err(damaged)?;
        let list = (session, queue);
        if !idle.contains_key(&list) {
            let members = idle_members(connection, &list).await?;
            idle.insert(list.clone(), members);
        }
        let next = idle.get_mut(&list).and_then(VecDeque::pop_front);
        if let Some(member) = next
            && take(connection, &member, Some(&item), at).await?.is_some()
        {
            woken.push(member);
        }
    }
    Ok(woken)
}

/// In the order in which the team was made.
async fn idle_members(
    connection: &mut Connection,
    (session, queue): &(String, String),
) -> Result<VecDeque<TaskId>, Failure> {
    let team = queue.split_once(':').map_or("", |(_, team)| team);
    let rows = engine::query(sql::IDLE_MEMBERS)
        .bind(session)
        .bind(team)
        .fetch_all(connection)
        .await?;
    let ids: Result<VecDeque<TaskId>, String> =
        rows.iter().map(|row| task_id(row, "task_id")).collect();
    Ok(ids.map_err(damaged)?)
}

/// Gives a member one item and tells it so. `None` if there is nothing free, or if the task is not
/// (or no longer) a member. A named item that is not free is an error that names its owner.
pub(super) async fn take(
    connection: &mut Connection,
    member: &TaskId,
    item: Option<&TaskId>,
    at: Timestamp,
) -> Result<Option<TaskRecord>, Failure> {
    let found = read::found(connection, member).await?.record;
    let Some(address) = MemberAddress::of(&found) else {
        return Ok(None);
    };
    if !is_member(connection, &address, member).await? {
        return Ok(None);
    }
    let item = match item {
        Some(item) => item.clone(),
        None => match free_item(connection, &address).await? {
            Some(item) => item,
            None => return Ok(None),
        },
    };
    let claim = TaskChange {
        owner: Some(Some(address.name.to_owned())),
        owner_must_be_free: OwnerRule::ClaimFree,
        ..TaskChange::default()
    };
    let taken = change::change(connection, &item, claim, at).await?;
    let message = mail::Message {
        from: SENDER,
        body: &assignment_message(&taken),
        options: &AttemptOptions::default(),
    };
    mail::send(connection, member, &message, at).await?;
    Ok(Some(taken))
}

/// Whether a task is a member of a team that has come to its end for now.
pub(super) async fn rests(connection: &mut Connection, task: &TaskRecord) -> Result<bool, Failure> {
    match MemberAddress::of(task) {
        Some(address) if task.status == TaskStatus::Completed => {
            is_member(connection, &address, &task.task_id).await
        }
        _ => Ok(false),
    }
}

async fn is_member(
    connection: &mut Connection,
    address: &MemberAddress<'_>,
    member: &TaskId,
) -> Result<bool, Failure> {
    let is_member = engine::query_scalar(sql::IS_MEMBER)
        .bind(address.session.to_string())
        .bind(address.team)
        .bind(member.as_str())
        .fetch_one(connection)
        .await?;
    Ok(is_member)
}

async fn free_item(
    connection: &mut Connection,
    address: &MemberAddress<'_>,
) -> Result<Option<TaskId>, Failure> {
    let row = engine::query(sql::FREE_ITEM)
        .bind(address.session.to_string())
        .bind(list_of(address.team))
        .fetch_optional(connection)
        .await?;
    let id = row.as_ref().map(|row| task_id(row, "id")).transpose();
    Ok(id.map_err(damaged)?)
}

/// What a member is told of an item that is now its own.
fn assignment_message(item: &TaskRecord) -> String {
    let mut text = format!("{} is yours: {}", item.task_id, item.subject);
    let more = &item.description;
    if !more.is_empty() {
        text += &format!("\n{more}");
    }
    text += "\nWhen it is done, mark it with TaskUpdate: status `completed`, or `failed` if it \
              cannot be done.";
    text
}
