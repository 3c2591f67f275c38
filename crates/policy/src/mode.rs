//! Permission modes.
//!
//! Rules are compared first. The mode decides what they leave open, with two exceptions that go
//! before allow rules: [`Mode::Plan`] refuses every change, and [`Mode::BypassPermissions`] allows
//! everything that no deny rule forbids.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use serde::{Deserialize, Serialize};

/// What happens to calls that no rule speaks of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reading in the workspace is free, the rest is asked about.
    #[default]
    Default,
    /// Edits in the workspace are free too.
    AcceptEdits,
    /// Read-only: nothing that changes anything, whatever the rules allow.
    Plan,
    /// What would be asked about is denied. For runs where nobody can answer. The reason of the
    /// denial says what would have been asked.
    DontAsk,
    /// Everything is free, but deny rules still hold. Ask rules and protected paths do not count in
    /// this mode; a missing sandbox does not either.
    BypassPermissions,
}

/// The text names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a permission mode: choose one of {}", Mode::choices())]
pub struct ModeError {
    /// What was written.
    pub text: String,
}

impl Mode {
    pub const ALL: [Self; 5] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::DontAsk,
        Self::BypassPermissions,
    ];

    /// The mode as written in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }

    /// How much the mode allows, from the strictest up.
    fn reach(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::DontAsk => 1,
            Self::Default => 2,
            Self::AcceptEdits => 3,
            Self::BypassPermissions => 4,
        }
    }

    /// The stricter of two modes: plan, dontAsk, default, acceptEdits, bypassPermissions.
    ///
    /// This is how an agent's own mode is combined with that of its parent, so that a definition
    /// file can only narrow what the parent was given.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.reach() < self.reach() {
            other
        } else {
            self
        }
    }

    fn choices() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

/// The mode of a session, which its user may change while its agent works. Clones share it.
#[derive(Debug, Clone)]
pub struct SharedMode(Arc<AtomicU8>);

impl SharedMode {
    pub fn get(&self) -> Mode {
        let place = usize::from(self.0.load(Ordering::Acquire));
        Mode::ALL.get(place).copied().unwrap_or(Mode::Plan)
    }

    /// Holds for every decision from now on; calls that run go on.
    pub fn set(&self, mode: Mode) {
        self.0.store(place(mode), Ordering::Release);
    }
}

impl From<Mode> for SharedMode {
    fn from(mode: Mode) -> Self {
        Self(Arc::new(AtomicU8::new(place(mode))))
    }
}

fn place(mode: Mode) -> u8 {
    let found = Mode::ALL.iter().position(|other| *other == mode);
    found.map_or(u8::MAX, |place| place as u8)
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| ModeError {
                text: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_written_and_read_under_the_same_name_everywhere() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
        }
    }

    #[test]
    fn the_stricter_mode_wins_whoever_names_it() {
        let order = [
            Mode::Plan,
            Mode::DontAsk,
            Mode::Default,
            Mode::AcceptEdits,
            Mode::BypassPermissions,
        ];
        for (place, strict) in order.into_iter().enumerate() {
            for loose in order.into_iter().skip(place) {
                assert_eq!(strict.stricter(loose), strict);
                assert_eq!(loose.stricter(strict), strict);
            }
        }
    }

    #[test]
    fn a_shared_mode_is_the_same_for_all_who_have_it() {
        let mode = SharedMode::from(Mode::Default);
        let other = mode.clone();
        for wanted in Mode::ALL {
            mode.set(wanted);
            assert_eq!(other.get(), wanted);
        }
    }

    #[test]
    fn an_unknown_mode_lists_the_choices() {
        assert_eq!(
            "yolo".parse::<Mode>().unwrap_err().to_string(),
            "`yolo` is not a permission mode: choose one of default, acceptEdits, plan, dontAsk, \
             bypassPermissions"
        );
    }
}
