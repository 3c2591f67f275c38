//! Hears of an answer while it is written.

use std::{fmt, sync::Arc};

/// A part of an answer that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPiece {
    Text(String),
    /// What was written so far is void: the answer starts anew.
    Anew,
}

/// Told of each piece as it comes, as the model writes it: with secrets, if it writes any.
#[derive(Clone)]
pub struct AnswerWatcher(Arc<dyn Fn(AnswerPiece) + Send + Sync>);

impl AnswerWatcher {
    pub fn new(watch: impl Fn(AnswerPiece) + Send + Sync + 'static) -> Self {
        Self(Arc::new(watch))
    }

    pub(crate) fn tell(&self, piece: AnswerPiece) {
        (self.0)(piece);
    }
}

impl fmt::Debug for AnswerWatcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AnswerWatcher")
    }
}
