//! What the two databases have in common, as the shared work on them sees it (`shared/`).
//!
//! ```text
//! Backend     begins work: one statement, a consistent look, a change, a claim
//! Work        the connection for one piece of work; ends by `settle`
//! Connection  to SQLite or to PostgreSQL; `query` runs one text on either
//! ```
//!
//! One text serves both: numbered arguments, and the few functions that PostgreSQL lacks
//! (`json_each`, `json_extract`) are defined in its schema. Where the two must differ, the query
//! says so by name (`Query::for_update`), not the caller.

pub(crate) mod failure;
mod query;
mod work;

pub(crate) use query::{
    Column, Connection, Link, PgLink, Query, Row, Value, lock_admission, query, query_scalar,
    script,
};
pub(crate) use work::{Access, Backend, Home, Work, Writes};
