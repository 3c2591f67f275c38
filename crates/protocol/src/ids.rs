//! Ids as types of their own, so that a session id is never taken for a tool call's.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text is not an id of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a {kind} id (expected a UUID such as 0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e5f)"
)]
pub struct ParseIdError {
    kind: &'static str,
    text: String,
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A fresh id; later ids sort after earlier ones.
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.parse()
                    .map(Self)
                    .map_err(|_| ParseIdError { kind: $kind, text: text.to_owned() })
            }
        }
    };
}

uuid_id!(
    /// One conversation, kept in the store.
    SessionId,
    "session"
);
uuid_id!(
    /// One line of a transcript.
    EntryId,
    "transcript entry"
);

/// The model's name for one of its tool calls. Opaque: providers choose the form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolUseId(pub String);

impl fmt::Display for ToolUseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ToolUseId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
