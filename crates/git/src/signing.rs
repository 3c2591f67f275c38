//! Signing commits, where the user's settings ask for it.
//!
//! The programs that sign are those of the user's own settings. Of a trusted repository it counts
//! whether it wants signatures and with which key; of any other nothing does: it could have the
//! user sign with a key that is meant for something else.

use std::{env, time::Duration};

use crate::{GitCall, GitLimits, Trust};

/// What a trusted repository may set.
const CHOICE: &[&str] = &["commit.gpgsign", "user.signingkey", "gpg.format"];

/// What names a program: the user's alone.
const PROGRAMS: &[&str] = &[
    "gpg.program",
    "gpg.openpgp.program",
    "gpg.x509.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultkeycommand",
];

/// What `gpg` and `ssh-keygen` find keys, agents and the user by. No terminal: a passphrase that is
/// asked for there would disturb what is shown.
const VARIABLES: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

/// The user may be asked for a passphrase in a window, or for a touch of a key.
const TIME: Duration = Duration::from_secs(60);

/// How commits are to be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    /// Settings for the calls that sign.
    settings: Vec<(String, String)>,
}

/// Takes a setting if it is about signing and may be set there. Later ones replace earlier ones.
pub(crate) fn take(
    settings: &mut Vec<(String, String)>,
    key: &str,
    value: &str,
    is_persons: bool,
    trust: Trust,
) {
    let is_allowed = match CHOICE.contains(&key) {
        true => is_persons || trust == Trust::Trusted,
        false => is_persons && PROGRAMS.contains(&key),
    };
    if is_allowed {
        settings.retain(|(known, _)| known != key);
        settings.push((key.to_owned(), value.to_owned()));
    }
}

impl Signing {
    /// `None` unless commits are to be signed.
    pub(crate) fn wanted(settings: &[(String, String)]) -> Option<Self> {
        let (_, value) = settings.iter().find(|(key, _)| key == "commit.gpgsign")?;
        let value = value.to_ascii_lowercase();
        matches!(value.as_str(), "true" | "yes" | "on" | "1").then(|| Self {
            settings: settings.to_vec(),
        })
    }
}

impl GitCall {
    /// Lets a `commit-tree` sign: with the user's keys and programs.
    #[must_use]
    pub fn signed(mut self, signing: &Signing) -> Self {
        self = self.flag_after_command("-S");
        self = self.without_guard("commit.gpgSign");
        self = self.without_guard("gpg.program");
        for name in VARIABLES {
            if let Some(value) = env::var_os(name) {
                self = self.env(*name, value);
            }
        }
        self.with_config(&signing.settings).limits(GitLimits {
            time: TIME,
            ..GitLimits::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_chooses_a_key_only_if_it_is_trusted_and_never_a_program() {
        let read = |trust: Trust| {
            let mut settings = Vec::new();
            let mut add = |key: &str, value: &str, is_persons| {
                take(&mut settings, key, value, is_persons, trust);
            };
            add("commit.gpgsign", "true", true);
            add("gpg.program", "/usr/bin/gpg2", true);
            add("user.signingkey", "AAAA", true);
            add("user.signingkey", "BBBB", false);
            add("gpg.program", "./evil", false);
            add("gpg.ssh.defaultkeycommand", "./evil", false);
            settings
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let common = [
            pair("commit.gpgsign", "true"),
            pair("gpg.program", "/usr/bin/gpg2"),
        ];
        let with_key = |key: &str| [&common[..], &[pair("user.signingkey", key)]].concat();
        assert_eq!(read(Trust::Untrusted), with_key("AAAA"));
        assert_eq!(read(Trust::Trusted), with_key("BBBB"));
    }

    #[test]
    fn without_the_wish_nothing_is_signed() {
        let wish = |value: &str| {
            let settings = [("commit.gpgsign".to_owned(), value.to_owned())];
            Signing::wanted(&settings).is_some()
        };
        assert!(wish("true") && wish("Yes") && wish("1"));
        assert!(!wish("false") && !wish("") && !wish("0"));
        assert_eq!(Signing::wanted(&[]), None);
    }
}
