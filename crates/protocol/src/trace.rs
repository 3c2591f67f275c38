//! What the spans of all crates have in common.

/// The target of spans that may be exported. They hold ids, names, counts and durations; what people,
/// models and repositories wrote does not belong into them.
pub const TRACE_TARGET: &str = "codespar::trace";
