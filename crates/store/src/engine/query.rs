//! One way to run a statement on either database.
//!
//! `query(text).bind(value).fetch_all(connection)` reads as it does with the driver itself. Values
//! are texts, whole numbers, truth values and bytes, because nothing else is stored.

use std::{borrow::Cow, marker::PhantomData};

use sqlx::{
    AssertSqlSafe, Decode, Postgres, Row as _, SqlSafeStr, SqlStr, Sqlite, SqliteConnection, Type,
    pool::PoolConnection, postgres::PgRow, sqlite::SqliteRow,
};

use super::Access;

/// A connection, and what it was begun for.
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) access: Access,
}

/// The driver's own connection.
pub(crate) enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgLink),
}

/// A connection of the pool. Dropped before `give_back` it is closed: its transaction, or an answer
/// that nobody read, must not meet the next user.
pub(crate) struct PgLink(Option<PoolConnection<Postgres>>);

impl PgLink {
    pub(crate) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self(Some(connection))
    }

    /// For others to use.
    pub(crate) fn give_back(mut self) {
        drop(self.0.take());
    }

    /// `None` only once it was given back, which consumes it.
    pub(crate) fn connection(&mut self) -> Result<&mut PoolConnection<Postgres>, sqlx::Error> {
        self.0.as_mut().ok_or(sqlx::Error::PoolClosed)
    }
}

impl Drop for PgLink {
    fn drop(&mut self) {
        if let Some(mut connection) = self.0.take() {
            connection.close_on_drop();
        }
    }
}

/// One row of either database.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// A type that both databases have.
pub(crate) trait Column<'r>:
    Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>
{
}

impl<'r, T> Column<'r> for T where
    T: Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>
{
}

impl Row {
    pub(crate) fn try_get<'r, T: Column<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    fn first<'r, T: Column<'r>>(&'r self) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(0),
            Self::Postgres(row) => row.try_get(0),
        }
    }
}

/// What can be bound.
pub(crate) enum Value<'q> {
    Text(Option<Cow<'q, str>>),
    Int(Option<i64>),
    Bool(bool),
    Bytes(Option<Cow<'q, [u8]>>),
}

macro_rules! value_from {
    ($($from:ty => |$value:ident| $make:expr),+ $(,)?) => {
        $(impl<'q> From<$from> for Value<'q> {
            fn from($value: $from) -> Self {
                $make
            }
        })+
    };
}

value_from!(
    &'q str => |value| Self::Text(Some(value.into())),
    &'q String => |value| Self::Text(Some(value.as_str().into())),
    String => |value| Self::Text(Some(value.into())),
    Option<&'q str> => |value| Self::Text(value.map(Into::into)),
    Option<String> => |value| Self::Text(value.map(Into::into)),
    i64 => |value| Self::Int(Some(value)),
    Option<i64> => |value| Self::Int(value),
    Option<i32> => |value| Self::Int(value.map(Into::into)),
    bool => |value| Self::Bool(value),
    Option<&'q [u8]> => |value| Self::Bytes(value.map(Into::into)),
    Option<Vec<u8>> => |value| Self::Bytes(value.map(Into::into)),
);

/// A statement with its values.
pub(crate) struct Query<'q> {
    text: SqlStr,
    values: Vec<Value<'q>>,
    is_persistent: bool,
    /// What PostgreSQL adds to the text.
    lock: RowLock,
}

#[derive(Clone, Copy)]
enum RowLock {
    None,
    Wait,
    Skip,
}

/// How many rows a statement changed.
pub(crate) struct Done(u64);

impl Done {
    pub(crate) fn rows_affected(&self) -> u64 {
        self.0
    }
}

pub(crate) fn query<'q>(text: impl SqlSafeStr) -> Query<'q> {
    Query {
        text: text.into_sql_str(),
        values: Vec::new(),
        is_persistent: true,
        lock: RowLock::None,
    }
}

/// A query for one column.
pub(crate) fn query_scalar<'q, T>(text: impl SqlSafeStr) -> Scalar<'q, T> {
    Scalar(query(text), PhantomData)
}

/// The driver's call with the values bound, for one of the two.
macro_rules! run {
    ($query:expr, $connection:expr, $call:ident) => {{
        let query = $query;
        let text = query.text_for($connection);
        match &mut $connection.link {
            Link::Sqlite(connection) => {
                let mut call = sqlx::query(text).persistent(query.is_persistent);
                for value in query.values {
                    call = match value {
                        Value::Text(text) => call.bind(text),
                        Value::Int(number) => call.bind(number),
                        Value::Bool(flag) => call.bind(flag),
                        Value::Bytes(bytes) => call.bind(bytes.map(Cow::into_owned)),
                    };
                }
                Answer::Sqlite(call.$call(connection).await?)
            }
            Link::Postgres(link) => {
                let mut call = sqlx::query(text).persistent(query.is_persistent);
                for value in query.values {
                    call = match value {
                        Value::Text(text) => call.bind(text.map(without_nul)),
                        Value::Int(number) => call.bind(number),
                        Value::Bool(flag) => call.bind(flag),
                        Value::Bytes(bytes) => call.bind(bytes.map(Cow::into_owned)),
                    };
                }
                Answer::Postgres(call.$call(&mut **link.connection()?).await?)
            }
        }
    }};
}

enum Answer<S, P> {
    Sqlite(S),
    Postgres(P),
}

/// PostgreSQL keeps no NUL in a text. JSON never has one (it is escaped there); in other texts the
/// replacement character takes its place, so that one byte of a program's output does not lose the
/// message that it is part of.
fn without_nul(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}").into(),
        false => text,
    }
}

impl<'q> Query<'q> {
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Whether the statement is kept prepared for the next time.
    pub(crate) fn persistent(mut self, is_persistent: bool) -> Self {
        self.is_persistent = is_persistent;
        self
    }

    /// Within a change, keeps the rows from changing until it ends, and waits for whoever changes
    /// them. SQLite has one writer, so nothing is needed there.
    pub(crate) fn for_update(mut self) -> Self {
        self.lock = RowLock::Wait;
        self
    }

    /// Takes the rows that nobody else is about to take.
    pub(crate) fn skip_locked(mut self) -> Self {
        self.lock = RowLock::Skip;
        self
    }

    fn text_for(&self, connection: &Connection) -> SqlStr {
        let changes = matches!(connection.access, Access::Change | Access::Claim);
        let lock = match (&connection.link, self.lock) {
            (Link::Postgres(_), RowLock::Wait) if changes => " FOR UPDATE",
            (Link::Postgres(_), RowLock::Skip) if changes => " FOR UPDATE SKIP LOCKED",
            _ => return self.text.clone(),
        };
        AssertSqlSafe(format!("{}{lock}", self.text.as_str())).into_sql_str()
    }

    pub(crate) async fn execute(self, connection: &mut Connection) -> Result<Done, sqlx::Error> {
        Ok(Done(match run!(self, connection, execute) {
            Answer::Sqlite(done) => done.rows_affected(),
            Answer::Postgres(done) => done.rows_affected(),
        }))
    }

    pub(crate) async fn fetch_all(
        self,
        connection: &mut Connection,
    ) -> Result<Vec<Row>, sqlx::Error> {
        Ok(match run!(self, connection, fetch_all) {
            Answer::Sqlite(rows) => rows.into_iter().map(Row::Sqlite).collect(),
            Answer::Postgres(rows) => rows.into_iter().map(Row::Postgres).collect(),
        })
    }

    pub(crate) async fn fetch_optional(
        self,
        connection: &mut Connection,
    ) -> Result<Option<Row>, sqlx::Error> {
        Ok(match run!(self, connection, fetch_optional) {
            Answer::Sqlite(row) => row.map(Row::Sqlite),
            Answer::Postgres(row) => row.map(Row::Postgres),
        })
    }

    pub(crate) async fn fetch_one(self, connection: &mut Connection) -> Result<Row, sqlx::Error> {
        let row = self.fetch_optional(connection).await?;
        row.ok_or(sqlx::Error::RowNotFound)
    }
}

/// A query of which the first column is wanted.
pub(crate) struct Scalar<'q, T>(Query<'q>, PhantomData<fn() -> T>);

impl<'q, T: for<'r> Column<'r>> Scalar<'q, T> {
    pub(crate) fn bind(self, value: impl Into<Value<'q>>) -> Self {
        Self(self.0.bind(value), PhantomData)
    }

    pub(crate) async fn fetch_one(self, connection: &mut Connection) -> Result<T, sqlx::Error> {
        self.0.fetch_one(connection).await?.first()
    }

    pub(crate) async fn fetch_optional(
        self,
        connection: &mut Connection,
    ) -> Result<Option<T>, sqlx::Error> {
        let row = self.0.fetch_optional(connection).await?;
        row.as_ref().map(Row::first).transpose()
    }

    pub(crate) async fn fetch_all(
        self,
        connection: &mut Connection,
    ) -> Result<Vec<T>, sqlx::Error> {
        let rows = self.0.fetch_all(connection).await?;
        rows.iter().map(Row::first).collect()
    }
}

/// Until the transaction ends, no other counts what runs in order to begin more. Taken before rows
/// are locked. SQLite has one writer, so nothing is needed there.
pub(crate) async fn lock_admission(connection: &mut Connection) -> Result<(), sqlx::Error> {
    const LOCK: &str = "SELECT pg_advisory_xact_lock(\
         hashtextextended('codespar admission ' || current_schema(), 0))";
    if let Link::Postgres(_) = connection.link {
        query(LOCK).execute(connection).await?;
    }
    Ok(())
}

/// How many arguments a statement takes; they are numbered from 1.
fn arguments_of(statement: &str) -> usize {
    let numbers = statement.split('$').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
    });
    let numbers = numbers.filter_map(|number| number.parse().ok());
    numbers.max().unwrap_or_default()
}

/// Several statements that share their arguments: one trip to SQLite, one each to PostgreSQL, which
/// refuses arguments that a statement does not use.
pub(crate) async fn script<'q>(
    connection: &mut Connection,
    statements: &[&'static str],
    bind: impl Fn(Query<'q>) -> Query<'q>,
) -> Result<(), sqlx::Error> {
    match &connection.link {
        Link::Sqlite(_) => {
            let text = AssertSqlSafe(statements.join("; "));
            bind(query(text)).execute(connection).await?;
        }
        Link::Postgres(_) => {
            for statement in statements {
                let mut query = bind(query(*statement));
                query.values.truncate(arguments_of(statement));
                query.execute(connection).await?;
            }
        }
    }
    Ok(())
}
