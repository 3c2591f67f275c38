//! A server somewhere else, as `codespar dev --server` sees it.
//!
//! The work is the server's: a connection that is lost ends nothing, and Ctrl-C only stops following.

mod address;
mod api;
mod events;

pub(crate) use address::ServerAddress;
pub(crate) use api::{RemoteError, RemoteProject, RemoteServer, RemoteTask};
pub(crate) use events::{RemoteEvent, RemoteEvents};
