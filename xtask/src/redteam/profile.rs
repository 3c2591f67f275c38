//! Under which sandbox and as whom an attack is tried.
//!
//! Every sandbox is tried by itself, since the program picks the best that works and the others
//! would never be attacked. As root, because much that the kernel refuses an ordinary user is then
//! refused by the sandbox alone.

use serde::Deserialize;

/// The user that attacks run as when this program is root; nobody on every Linux system.
pub(super) const ORDINARY_USER: u32 = 65_534;

/// A sandbox and a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Profile {
    Namespaces,
    Bubblewrap,
    Landlock,
    NamespacesRoot,
    BubblewrapRoot,
    LandlockRoot,
    /// The sandbox is off: an attack on it must succeed here, or the case proves nothing.
    Unconfined,
}

impl Profile {
    /// Under these an attack must fail.
    pub(super) const CONFINED: [Self; 6] = [
        Self::Namespaces,
        Self::Bubblewrap,
        Self::Landlock,
        Self::NamespacesRoot,
        Self::BubblewrapRoot,
        Self::LandlockRoot,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::NamespacesRoot => "namespaces-root",
            Self::BubblewrapRoot => "bubblewrap-root",
            Self::LandlockRoot => "landlock-root",
            Self::Unconfined => "unconfined",
        }
    }

    /// The value of `sandbox.mode` in the user's settings.
    pub(super) const fn sandbox_mode(self) -> &'static str {
        match self {
            Self::Namespaces | Self::NamespacesRoot => "namespaces",
            Self::Bubblewrap | Self::BubblewrapRoot => "bubblewrap",
            Self::Landlock | Self::LandlockRoot => "landlock",
            Self::Unconfined => "off",
        }
    }

    pub(super) const fn is_root(self) -> bool {
        matches!(
            self,
            Self::NamespacesRoot | Self::BubblewrapRoot | Self::LandlockRoot
        )
    }
}
