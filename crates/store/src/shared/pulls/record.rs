//! Rows of pull requests.
//!
//! States are `open`, `closed` and `merged`. A merged one stays merged; a closed one can be opened
//! again while its head has no other open one.

use codespar_protocol::{CommitId, PullRequest, PullRequestState};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int, time},
        words::from_word,
    },
    damaged,
};
use crate::engine::{self, Connection, Row};
use crate::{NewPull, PullChange, StoreError, pull_sql as sql};

/// The open pull request of the same head is returned as it is; title, body and base of `new` are
/// not compared with it.
pub(super) async fn create(
    connection: &mut Connection,
    repository: &str,
    new: &NewPull,
    at: Timestamp,
) -> Result<PullRequest, Failure> {
    if let Some(open) = open_of_head(connection, repository, &new.head).await? {
        return Ok(open);
    }
    let row = engine::query(sql::INSERT_PULL)
        .bind(repository)
        .bind(new.title.as_str())
        .bind(new.body.as_str())
        .bind(new.draft)
        .bind(new.head.as_str())
        .bind(new.head_commit.0.as_str())
        .bind(new.base.as_str())
        .bind(new.author.as_str())
        .bind(at.as_microsecond())
        .bind(int(new.above))
        .fetch_one(&mut *connection)
        .await?;
    let number = count(&row, "number").map_err(damaged(0))?;
    pull(connection, repository, number).await
}

pub(super) async fn pull(
    connection: &mut Connection,
    repository: &str,
    number: u64,
) -> Result<PullRequest, Failure> {
    let row = engine::query(sql::PULL)
        .bind(repository)
        .bind(int(number))
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or(StoreError::NoSuchPull { number })?;
    Ok(read(&row).map_err(damaged(number))?)
}

async fn open_of_head(
    connection: &mut Connection,
    repository: &str,
    head: &str,
) -> Result<Option<PullRequest>, Failure> {
    let row = engine::query(sql::OPEN_PULL_OF_HEAD)
        .bind(repository)
        .bind(head)
        .fetch_optional(connection)
        .await?;
    let open = row.as_ref().map(read).transpose();
    Ok(open.map_err(damaged(0))?)
}

pub(super) async fn listed(
    connection: &mut Connection,
    repository: &str,
    state: Option<PullRequestState>,
) -> Result<Vec<PullRequest>, Failure> {
    let query = match state {
        Some(state) => engine::query(sql::PULLS_IN_STATE)
            .bind(repository)
            .bind(state.as_str()),
        None => engine::query(sql::PULLS).bind(repository),
    };
    let rows = query.fetch_all(connection).await?;
    let pulls: Result<_, String> = rows.iter().map(read).collect();
    Ok(pulls.map_err(damaged(0))?)
}

/// Fields that are not given keep their value; the time of the last change is always set.
pub(super) async fn change(
    connection: &mut Connection,
    repository: &str,
    number: u64,
    change: PullChange,
    at: Timestamp,
) -> Result<PullRequest, Failure> {
    let before = pull(connection, repository, number).await?;
    let state = change.state.unwrap_or(before.state);
    if before.state == PullRequestState::Merged && state != before.state {
        return Err(StoreError::PullMerged { number }.into());
    }
    if before.state != state && state == PullRequestState::Open {
        refuse_second(connection, repository, &before).await?;
    }
    let merge_commit = change.merge_commit.or(before.merge_commit);
    engine::query(sql::CHANGE_PULL)
        .bind(repository)
        .bind(int(number))
        .bind(change.title.unwrap_or(before.title))
        .bind(change.body.unwrap_or(before.body))
        .bind(state.as_str())
        .bind(change.draft.unwrap_or(before.draft))
        .bind(change.head_commit.unwrap_or(before.head_commit).0)
        .bind(merge_commit.map(|commit| commit.0))
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    pull(connection, repository, number).await
}

async fn refuse_second(
    connection: &mut Connection,
    repository: &str,
    closed: &PullRequest,
) -> Result<(), Failure> {
    match open_of_head(connection, repository, &closed.head).await? {
        Some(open) => {
            let head = closed.head.clone();
            let number = open.number;
            Err(StoreError::HeadHasPull { head, number }.into())
        }
        None => Ok(()),
    }
}

fn read(row: &Row) -> Result<PullRequest, String> {
    Ok(PullRequest {
        number: count(row, "number")?,
        title: field(row, "title")?,
        body: field(row, "body")?,
        state: from_word(row, "state")?,
        draft: field(row, "draft")?,
        head: field(row, "head")?,
        head_commit: CommitId(field(row, "head_commit")?),
        base: field(row, "base")?,
        author: field(row, "author")?,
        url: None,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        merge_commit: field::<Option<String>>(row, "merge_commit")?.map(CommitId),
    })
}
