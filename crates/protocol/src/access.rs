//! What a person or a token may ask for, in a channel or over the API.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::short_id::{are_digits, fresh_digits};

/// Each role may do what the ones before it may. Without a role nothing is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessRole {
    /// See tasks, transcripts and pull requests; ask questions that change nothing.
    Read,
    /// Start, stop and answer work that changes code.
    Write,
    /// Merge pull requests.
    Merge,
    /// Link repositories and people, create tokens.
    Admin,
}

impl AccessRole {
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Merge, Self::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Merge => "merge",
            Self::Admin => "admin",
        }
    }

    /// Whether this role is enough where `needed` is asked for.
    pub fn allows(self, needed: Self) -> bool {
        self >= needed
    }
}

impl fmt::Display for AccessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AccessRole {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| {
                format!("`{text}` is not a role; the roles are read, write, merge and admin")
            })
    }
}

/// The name of a token of the API: `k-` and eight hexadecimal digits. No part of its secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct TokenId(String);

impl TokenId {
    #[allow(clippy::new_without_default)] // Every call makes another.
    pub fn new() -> Self {
        Self(format!("k-{}", fresh_digits()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TokenId {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("k-") {
            Some(digits) if are_digits(digits) => Ok(Self(text.to_owned())),
            _ => Err(format!(
                "`{text}` is not the id of a token; one looks like k-1f3c2b8a"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_tokens_are_read_back_and_others_refused() {
        let id = TokenId::new();
        assert_eq!(id.as_str().parse(), Ok(id));
        for text in ["", "k-", "k-123", "q-12345678", "k-1234567g"] {
            assert!(text.parse::<TokenId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_role_allows_what_the_ones_before_it_allow() {
        for (at, role) in AccessRole::ALL.into_iter().enumerate() {
            for (needed_at, needed) in AccessRole::ALL.into_iter().enumerate() {
                assert_eq!(role.allows(needed), at >= needed_at, "{role} for {needed}");
            }
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert!("owner".parse::<AccessRole>().is_err());
    }
}
