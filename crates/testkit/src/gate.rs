//! Holds an answer back until a test has seen what it waits for.
//!
//! A delay guesses how long something takes; a gate waits for it. The test keeps one clone, gives
//! the turn another, and opens it when the moment has come:
//!
//! ```text
//! let gate = Gate::closed();
//! Script::new().turn(Turn::text("late").held_by(&gate))
//! ...                   // look at what happens while the answer is awaited
//! gate.open();
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How often a held answer looks whether it may go.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// Closed until it is opened; clones are the same gate. It cannot be closed again. Two are equal if
/// they are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    pub fn closed() -> Self {
        Self::default()
    }

    /// Lets answers go, those that wait and those to come.
    pub fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
