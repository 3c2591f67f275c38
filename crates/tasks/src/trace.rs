//! Links between the spans of different processes.
//!
//! A task is made by one process and runs in another; in a trace the second belongs below the
//! first. So the task carries the name of the span that made it. Spans are made with `tracing`
//! alone; what they are called outside knows only the exporter, which the binary puts in here.

use std::sync::OnceLock;

use tracing::Span;

/// The exporter's side of the links.
#[derive(Debug, Clone, Copy)]
pub struct TraceLinks {
    /// The current span by the name that other processes know it by.
    pub current: fn() -> Option<String>,
    /// Puts a span that was not entered yet below one of that name.
    pub set_parent: fn(&Span, &str),
}

static LINKS: OnceLock<TraceLinks> = OnceLock::new();

impl TraceLinks {
    /// For the whole process, once. Without it there are no links, as without an exporter.
    pub fn install(self) {
        let _ = LINKS.set(self);
    }
}

/// The current span, to be named as the parent of work that another process does.
pub fn current_trace() -> Option<String> {
    LINKS.get().and_then(|links| (links.current)())
}

/// `span` below the one of that name.
pub fn continue_trace(span: Span, parent: Option<&str>) -> Span {
    if let (Some(links), Some(parent)) = (LINKS.get(), parent) {
        (links.set_parent)(&span, parent);
    }
    span
}
