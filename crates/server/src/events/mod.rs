//! Live events: what is committed to the database, by any process, and what agents of this process
//! say while they work.
//!
//! One task ([`hub`]) reads the changes and renders each once for all clients ([`render`]). A client
//! ([`stream`]) first reads what it missed from the database, then what the hub sends; whenever it
//! has fallen behind it reads the database again. What is rendered is kept only in the bounded
//! queue of the hub, so a client that does not read costs nothing but its connection.

mod frame;
mod hub;
mod render;
mod stream;

pub(crate) use self::{
    hub::EventHub,
    stream::{EventQuery, EventStream},
};
