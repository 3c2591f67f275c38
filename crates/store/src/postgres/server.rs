//! The pool of connections to the server.

use std::{str::FromStr, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::sync::{Mutex, MutexGuard};

use super::{failure, schema};
use crate::{
    StoreError,
    engine::{Access, Connection, Home, Link, PgLink, Work, failure::Failure},
};

/// Connections of one process. More would only wait for each other's locks.
const CONNECTIONS: u32 = 8;
/// How long a server that does not answer is waited for at the start.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// How long one that answered before is waited for: it may be starting again.
const PATIENCE: Duration = Duration::from_secs(30);
/// A connection that was idle for longer is tried before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(2);

/// How long a change waits for its turn among those of this process.
const TURN: Duration = Duration::from_secs(60);

/// Settings of every connection, so that nobody is kept waiting by a process that is frozen, or
/// whose host is gone: its transaction ends, its locks are free. A transaction only waits for its
/// process between two statements, so seconds are much; all others stand still meanwhile.
const SETTINGS: &[(&str, &str)] = &[
    ("lock_timeout", "60s"),
    ("idle_in_transaction_session_timeout", "5s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

/// One schema on a server.
pub(crate) struct Server {
    pub(super) pool: PgPool,
    pub(super) options: PgConnectOptions,
    /// Where it is, without the password; what messages name.
    pub(super) place: String,
    pub(super) names: Names,
    /// Held by the change of this process whose turn it is. The others wait here and not at the
    /// server: it would give the lock to each of them in turn, also while the process is frozen or
    /// cut off, and everybody would wait for each to be given up.
    turn: Mutex<()>,
}

/// What belongs to this schema and not to another of the same database.
pub(super) struct Names {
    pub(super) schema: String,
    /// The key of the lock that makes changes one at a time.
    writer: i64,
    /// Where commits are told of.
    pub(super) channel: String,
}

impl Server {
    /// The first connection is made without the pool, whose error for anything would be a timeout.
    pub(super) async fn connect(url: &str) -> Result<Self, StoreError> {
        let options = options(url)?;
        let place = place_of(&options);
        let said = |error| failure::sql_error(&error, &place);
        let connecting = PgConnection::connect_with(&options);
        let mut first = match tokio::time::timeout(FIRST_ANSWER, connecting).await {
            Ok(connected) => connected.map_err(said)?,
            Err(_) => return Err(failure::no_answer(&place, FIRST_ANSWER)),
        };
        let made = schema::make(&mut first, &place).await;
        made.map_err(|failure| failure::into_store_error(failure, &place))?;
        let names = names(&mut first).await.map_err(said)?;
        first.close().await.ok();
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .test_before_acquire(false)
            .before_acquire(|connection, met| {
                Box::pin(async move {
                    Ok(met.idle_for < TRUSTED_FOR || connection.ping().await.is_ok())
                })
            })
            .connect_lazy_with(options.clone());
        Ok(Self {
            pool,
            options,
            place,
            names,
            turn: Mutex::default(),
        })
    }

    pub(crate) fn error(&self, failure: Failure) -> StoreError {
        failure::into_store_error(failure, &self.place)
    }

    async fn turn(&self) -> Result<MutexGuard<'_, ()>, StoreError> {
        let waiting = tokio::time::timeout(TURN, self.turn.lock());
        waiting.await.map_err(|_| StoreError::Busy {
            path: self.place.clone().into(),
        })
    }

    /// A change waits here until it is its turn. What begins it is one trip.
    pub(super) async fn begin(&self, access: Access) -> Result<Work<'_>, StoreError> {
        let turn = match access {
            Access::Change => Some(self.turn().await?),
            _ => None,
        };
        let begun = async {
            let mut link = PgLink::new(self.pool.acquire().await?);
            let statements = match access {
                Access::Single => None,
                Access::Look => Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".to_owned()),
                Access::Claim => Some("BEGIN ISOLATION LEVEL READ COMMITTED".to_owned()),
                Access::Change => Some(format!(
                    "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({})",
                    self.names.writer
                )),
            };
            if let Some(statements) = statements {
                let statements = sqlx::raw_sql(AssertSqlSafe(statements));
                statements.execute(&mut **link.connection()?).await?;
            }
            Ok(link)
        };
        let link = begun
            .await
            .map_err(|error: sqlx::Error| self.error(Failure::Sql(error)))?;
        let connection = Connection {
            link: Link::Postgres(link),
            access,
        };
        Ok(Work::new(connection, Home::Postgres { server: self, turn }))
    }
}

async fn names(connection: &mut PgConnection) -> Result<Names, sqlx::Error> {
    const NAMES: &str = "SELECT current_schema()::TEXT, \
         hashtextextended('codespar writer ' || current_schema(), 0), \
         'codespar_' || md5(current_schema())";
    let (schema, writer, channel) = sqlx::query_as(NAMES).fetch_one(connection).await?;
    Ok(Names {
        schema,
        writer,
        channel,
    })
}

/// What is wrong with the URL is said without quoting it: it may hold a password anywhere.
fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let bad = |message: &str| StoreError::Unreachable {
        place: "the URL of the database".to_owned(),
        message: format!("{message}; write postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
    };
    if !["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        return Err(bad("it does not begin with postgres://"));
    }
    let options = PgConnectOptions::from_str(url).map_err(|_| bad("it cannot be read"))?;
    let name = options
        .get_application_name()
        .unwrap_or("codespar")
        .to_owned();
    Ok(options
        .application_name(&name)
        .statement_cache_capacity(256)
        .options(SETTINGS.iter().copied())
        .disable_statement_logging())
}

/// Without the scheme of a URL: where the address has no password, the whole of it would be the value of
/// a secret variable and be redacted.
fn place_of(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let database = options
        .get_database()
        .unwrap_or_else(|| options.get_username());
    format!(
        "{}@{host}:{}/{database}",
        options.get_username(),
        options.get_port()
    )
}
