//! Rows of reviews.
//!
//! A review is known by the key that its author gave it. Adding one under a key that exists changes
//! nothing and returns the first. Its id for callers is `NUMBER.PLACE`.

use codespar_protocol::{CommitId, Review};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int, message_of, time},
        words::{from_word, word_of},
    },
    damaged, record,
};
use crate::engine::{self, Connection, Row};
use crate::{NewPullReview, StoreError, pull_sql as sql};

pub(super) async fn add(
    connection: &mut Connection,
    repository: &str,
    number: u64,
    new: &NewPullReview,
    at: Timestamp,
) -> Result<Review, Failure> {
    record::pull(connection, repository, number).await?;
    let comments = serde_json::to_string(&new.comments)
        .map_err(|error| StoreError::Database(error.to_string()))?;
    engine::query(sql::INSERT_REVIEW)
        .bind(repository)
        .bind(int(number))
        .bind(new.key.as_str())
        .bind(new.author.as_str())
        .bind(word_of(new.verdict)?)
        .bind(new.body.as_str())
        .bind(comments)
        .bind(new.commit.0.as_str())
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    let row = engine::query(sql::REVIEW_BY_KEY)
        .bind(repository)
        .bind(int(number))
        .bind(new.key.as_str())
        .fetch_one(connection)
        .await?;
    Ok(read(&row, number).map_err(damaged(number))?)
}

pub(super) async fn listed(
    connection: &mut Connection,
    repository: &str,
    number: u64,
) -> Result<Vec<Review>, Failure> {
    record::pull(connection, repository, number).await?;
    let rows = engine::query(sql::REVIEWS)
        .bind(repository)
        .bind(int(number))
        .fetch_all(connection)
        .await?;
    let reviews: Result<_, String> = rows.iter().map(|row| read(row, number)).collect();
    Ok(reviews.map_err(damaged(number))?)
}

fn read(row: &Row, number: u64) -> Result<Review, String> {
    Ok(Review {
        id: format!("{number}.{}", count(row, "place")?),
        author: field(row, "author")?,
        verdict: from_word(row, "verdict")?,
        body: field(row, "body")?,
        comments: serde_json::from_str(field(row, "comments")?).map_err(message_of)?,
        commit: CommitId(field(row, "commit_id")?),
        at: time(row, "at")?,
    })
}
