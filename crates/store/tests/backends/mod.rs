//! Runs a suite on every back end: on SQLite always, on PostgreSQL where `CODESPAR_TEST_POSTGRES`
//! names a server. Each test there has a schema of its own, which is dropped at the end.

#![allow(dead_code, reason = "each test file uses its own part")]

use codespar_protocol::SessionId;
use codespar_store::PostgresStore;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// Each test is a function of a store.
#[macro_export]
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    let dir = tempfile::tempdir().unwrap();
                    let store = codespar_store::SqliteStore::open(dir.path()).await.unwrap();
                    super::$name(&store).await;
                    store.close().await.unwrap();
                }
            )+
        }

        mod postgres {
            $(
                #[tokio::test]
                #[ignore = "needs a server: cargo xtask test --only fleet"]
                async fn $name() {
                    let schema = $crate::backends::Schema::make().await;
                    let store = schema.open().await;
                    super::$name(&store).await;
                    store.close().await.unwrap();
                }
            )+
        }
    };
}

/// Each test is a function of two stores on one database.
#[macro_export]
macro_rules! on_two_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    use codespar_store::SqliteStore;
                    let dir = tempfile::tempdir().unwrap();
                    let one = std::sync::Arc::new(SqliteStore::open(dir.path()).await.unwrap());
                    let other = std::sync::Arc::new(SqliteStore::open(dir.path()).await.unwrap());
                    super::$name(one, other).await;
                }
            )+
        }

        mod postgres {
            $(
                #[tokio::test]
                #[ignore = "needs a server: cargo xtask test --only fleet"]
                async fn $name() {
                    let schema = $crate::backends::Schema::make().await;
                    let one = std::sync::Arc::new(schema.open().await);
                    let other = std::sync::Arc::new(schema.open().await);
                    super::$name(one, other).await;
                }
            )+
        }
    };
}

/// A schema of its own on the server of the tests.
pub(crate) struct Schema {
    server: String,
    name: String,
}

impl Schema {
    pub(crate) async fn make() -> Self {
        let server = std::env::var("CODESPAR_TEST_POSTGRES").expect(
            "CODESPAR_TEST_POSTGRES names a server; `cargo xtask test --only fleet` starts one",
        );
        let name = format!("test_{}", SessionId::new().to_string().replace('-', ""));
        let schema = Self { server, name };
        schema.run(&format!("CREATE SCHEMA {}", schema.name)).await;
        schema
    }

    /// The URL of the server with this schema in its search path.
    pub(crate) fn url(&self) -> String {
        let more = if self.server.contains('?') { '&' } else { '?' };
        let (server, name) = (&self.server, &self.name);
        format!("{server}{more}options=-csearch_path%3D{name}&application_name={name}")
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.url()).await.unwrap()
    }

    /// A connection like those of the store.
    pub(crate) async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }

    /// Ends all connections of stores on this schema: those with its name in their search path.
    pub(crate) async fn cut_connections(&self) {
        let mut connection = self.connection().await;
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE application_name = $1 AND pid <> pg_backend_pid()";
        sqlx::query(cut)
            .bind(self.name.as_str())
            .execute(&mut connection)
            .await
            .unwrap();
    }

    pub(crate) async fn run(&self, statement: &str) {
        let mut connection = PgConnection::connect(&self.server).await.unwrap();
        let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
        statement.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

impl Drop for Schema {
    /// Also when the test fails. In a thread of its own: the runtime of the test cannot be waited
    /// for from here.
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let mut connection = PgConnection::connect(&server).await?;
                let statement = format!("DROP SCHEMA {name} CASCADE");
                sqlx::raw_sql(AssertSqlSafe(statement))
                    .execute(&mut connection)
                    .await
                    .map(|_| ())
            })?;
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("a schema of a test stays behind: {error}");
        }
    }
}
