//! Temporal as the engine of a fleet: it delivers tasks to workers, notices lost ones, retries, and
//! shows operators what waits and what runs. The state of tasks stays in the database.
//!
//! A task that is offered is a *standalone activity* of Temporal (server 1.32 or later), named
//! `<task>.<number of the offer>`, on a task queue for its labels and class (`queues.rs`). Its input
//! is ids, never prompts, code or secrets. A worker's activity (`activity.rs`) begins the offer in the
//! database, waits for the end of the attempt with a heartbeat every two seconds, and tells Temporal
//! to forget it or to bring it again. No workflow code is involved.
//!
//! What happens to a worker or a server meanwhile is decided in `codespar_tasks::Dispatcher` and the
//! database:
//!
//! ```text
//! worker killed or cut off     the database calls it lost, and its tasks are offered anew; Temporal
//!                              brings the old activity again after its timeout, to no effect
//! worker leaves                hands its attempts back and fails the activities, to be brought at once
//! Temporal out of reach        attempts go on; what ended meanwhile is found over when it is brought
//!                              again; what was admitted and not offered is found by a sweep
//! Temporal lost its records    a sweep offers again whatever nobody works on
//! ```

mod activity;
mod connection;
mod engine;
mod options;
mod queues;

pub use engine::TemporalEngine;
pub use options::{TemporalOptions, TemporalOptionsError, TemporalTls};
