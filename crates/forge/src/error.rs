//! What a forge can say no with.

use codespar_protocol::CommitId;

/// Why a forge did not do it. Callers distinguish the variants: [`ForgeError::Unavailable`] and
/// [`ForgeError::RateLimited`] are worth another try, the others need a change first. The texts are
/// shown to users as they are and never contain the token.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// There is no such thing.
    #[error("not found: {0}")]
    NotFound(String),
    /// We may not.
    #[error("{what}: the forge does not allow it: {reason}")]
    Forbidden {
        /// What was tried.
        what: String,
        /// What it says.
        reason: String,
    },
    /// A branch is not where it was.
    #[error("{branch} has moved to {}; expected {}", found.short(), expected.short())]
    Moved {
        branch: String,
        found: CommitId,
        /// Where it was to be.
        expected: CommitId,
    },
    /// It cannot be merged.
    #[error("it conflicts with its base{}", in_files(.0))]
    Conflict(Vec<String>),
    /// The forge refuses for a reason of its own.
    #[error("{0}")]
    Refused(String),
    /// The forge cannot be reached or answers nonsense; trying again later may help.
    #[error("{what}: {reason}")]
    Unavailable {
        /// What was tried.
        what: String,
        /// What went wrong.
        reason: String,
    },
    /// The limit on requests is used up.
    #[error("the forge's limit on requests is used up; it lets us in again {0}")]
    RateLimited(String),
}

fn in_files(files: &[String]) -> String {
    if files.is_empty() {
        return String::new();
    }
    format!(" in {}", files.join(", "))
}
