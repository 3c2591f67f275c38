//! Questions: recorded once, answered once.
//!
//! Both are write transactions that look before they write, so two processes that ask under one key
//! get the same question, and two that answer it cannot both succeed. That a question expires is
//! kept with it but not enforced here: whoever asked waits until then and answers it with no.

use codespar_protocol::{Answer, Question, QuestionId, QuestionStatus};
use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    failure::Failure,
    rows::{field, message_of, path_text, time},
    tasks::read,
};
use crate::engine::{self, Connection, Row};
use crate::{NewQuestion, QuestionFilter, StoreError, question_sql as sql};

/// Whoever asks for a task that it lost gets no answer either, not even one that is there: it would
/// act on it. The request and the time limit of a question that is known already are not replaced by
/// those of `new`.
pub(super) async fn ask(
    connection: &mut Connection,
    new: &NewQuestion,
    at: Timestamp,
) -> Result<Question, Failure> {
    if let Some(lease) = &new.asked_under {
        read::check_attempt(connection, lease).await?;
    }
    let known = engine::query(sql::QUESTION_BY_KEY)
        .bind(new.session_id.to_string())
        .bind(new.key.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    if let Some(row) = known {
        return Ok(question_of(&row)?);
    }
    let id = QuestionId::new();
    engine::query(sql::INSERT_QUESTION)
        .bind(id.as_str())
        .bind(new.session_id.to_string())
        .bind(new.task_id.as_ref().map(|task| task.as_str().to_owned()))
        .bind(path_text(&new.project_root)?)
        .bind(new.key.as_str())
        .bind(json(&new.request)?)
        .bind(at.as_microsecond())
        .bind(new.expires_at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    question(connection, &id).await
}

pub(super) async fn question(
    connection: &mut Connection,
    id: &QuestionId,
) -> Result<Question, Failure> {
    let row = engine::query(sql::QUESTION)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or_else(|| StoreError::NoSuchQuestion(id.to_string()))?;
    Ok(question_of(&row)?)
}

pub(super) async fn questions(
    connection: &mut Connection,
    filter: &QuestionFilter,
) -> Result<Vec<Question>, Failure> {
    let rows = match filter {
        QuestionFilter::Open => engine::query(sql::OPEN_QUESTIONS),
        QuestionFilter::OfSession(session) => {
            engine::query(sql::QUESTIONS_OF_SESSION).bind(session.to_string())
        }
    };
    let rows = rows.fetch_all(connection).await?;
    let questions: Result<Vec<Question>, StoreError> = rows.iter().map(question_of).collect();
    Ok(questions?)
}

/// Checks that it is open and that the answer fits the request (a form must have its required
/// fields) before it writes. A no fits every request.
pub(super) async fn answer(
    connection: &mut Connection,
    id: &QuestionId,
    answer: &Answer,
    by: &str,
    at: Timestamp,
) -> Result<Question, Failure> {
    let before = question(connection, id).await?;
    if before.status != QuestionStatus::Open {
        return Err(StoreError::QuestionNotOpen {
            id: id.clone(),
            status: before.status,
            by: before.answered_by,
        }
        .into());
    }
    before
        .request
        .check(answer)
        .map_err(|reason| StoreError::WrongAnswer {
            id: id.clone(),
            reason,
        })?;
    engine::query(sql::ANSWER_QUESTION)
        .bind(id.as_str())
        .bind(json(answer)?)
        .bind(by)
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    question(connection, id).await
}

/// No error where the question is not open, or does not exist: nobody needs it in either case.
pub(super) async fn withdraw(connection: &mut Connection, id: &QuestionId) -> Result<(), Failure> {
    engine::query(sql::WITHDRAW_QUESTION)
        .bind(id.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Database(format!("it cannot be written down: {error}")))
}

/// The error names the question as far as its row can be read.
fn question_of(row: &Row) -> Result<Question, StoreError> {
    read(row).map_err(|message| {
        let id: String = field(row, "id").unwrap_or_default();
        StoreError::Database(format!("question {id} is damaged: {message}"))
    })
}

fn read(row: &Row) -> Result<Question, String> {
    let task: Option<&str> = field(row, "task_id")?;
    let answer: Option<&str> = field(row, "answer")?;
    let answered_at: Option<i64> = field(row, "answered_at")?;
    Ok(Question {
        id: field::<&str>(row, "id")?.parse().map_err(message_of)?,
        session_id: field::<&str>(row, "session_id")?
            .parse()
            .map_err(message_of)?,
        task_id: task.map(str::parse).transpose().map_err(message_of)?,
        project_root: field::<&str>(row, "project_root")?.into(),
        key: field(row, "key")?,
        request: parsed(field(row, "request")?)?,
        asked_at: time(row, "asked_at")?,
        expires_at: time(row, "expires_at")?,
        status: parsed(&format!("\"{}\"", field::<&str>(row, "status")?))?,
        answer: answer.map(parsed).transpose()?,
        answered_by: field(row, "answered_by")?,
        answered_at: answered_at
            .map(Timestamp::from_microsecond)
            .transpose()
            .map_err(message_of)?,
    })
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(message_of)
}
