//! The hosts a command was refused.
//!
//! They are shown in the result of the command, in the output of a task and in reports, so that a
//! missing entry of the list is noticed and an attempt to reach elsewhere is too.

use std::{fmt, net::IpAddr};

use parking_lot::Mutex;

use super::host::{Destination, HostError, HostName};

/// More than these are counted, not named. A command can ask for any number, and each would be a
/// line.
const MOST: usize = 20;

/// How much of what a command sent in place of a name is shown.
const SHOWN: usize = 80;

/// A refused host and, unless it is just not on the list, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockedHost {
    pub(super) host: String,
    pub(super) reason: Reason,
}

/// Why a host was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    NotAllowed,
    Port(u16),
    /// An address in place of a name, in any notation.
    Address,
    NotAName,
    /// The first of its addresses that the entry does not reach.
    Resolves(IpAddr),
    /// TLS named it in a tunnel to another host.
    Inside(HostName),
}

impl BlockedHost {
    pub(super) fn named(to: &Destination, reason: Reason) -> Self {
        Self {
            host: to.host.to_string(),
            reason,
        }
    }

    /// For a text that is not a name. It comes from the command and goes to models, terminals and
    /// reports, so only what names are made of is shown.
    pub(super) fn unnamed(text: &str, error: &HostError) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
        let shown = text.chars().take(SHOWN);
        Self {
            host: shown.map(|c| if plain(c) { c } else { '?' }).collect(),
            reason: match error {
                HostError::Address => Reason::Address,
                HostError::Malformed => Reason::NotAName,
            },
        }
    }
}

impl fmt::Display for BlockedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match &self.reason {
            Reason::NotAllowed => write!(f, "{host}"),
            Reason::Port(port) => write!(f, "{host} (port {port} is not allowed)"),
            Reason::Address => write!(f, "{host} (only names of hosts are allowed, not addresses)"),
            Reason::NotAName => write!(f, "{host} (not the name of a host)"),
            Reason::Resolves(address) => {
                write!(
                    f,
                    "{host} (its address {address} is not on the public internet)"
                )
            }
            Reason::Inside(outer) => write!(f, "{host} (named by TLS in a tunnel to {outer})"),
        }
    }
}

/// Everything one command was refused.
#[derive(Debug, Default)]
pub(super) struct BlockedHosts(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    hosts: Vec<BlockedHost>,
    /// Requests beyond [`MOST`], each time one is made.
    unnamed: usize,
}

impl BlockedHosts {
    /// The same host is noted again only for another reason.
    pub(super) fn note(&self, host: BlockedHost) {
        let mut noted = self.0.lock();
        if noted.hosts.contains(&host) {
            return;
        }
        if noted.hosts.len() < MOST {
            noted.hosts.push(host);
        } else {
            noted.unnamed += 1;
        }
    }

    /// As lines to show: `evil.example`.
    pub(super) fn shown(&self) -> Vec<String> {
        let noted = self.0.lock();
        let mut shown: Vec<String> = noted.hosts.iter().map(ToString::to_string).collect();
        if noted.unnamed > 0 {
            shown.push(format!("and {} more requests", noted.unnamed));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_once_and_many_are_counted() {
        let blocked = BlockedHosts::default();
        for number in [0, 0, 1] {
            let host = HostName::parse(&format!("h{number}.example")).unwrap();
            let to = Destination { host, port: 443 };
            blocked.note(BlockedHost::named(&to, Reason::NotAllowed));
        }
        assert_eq!(blocked.shown(), ["h0.example", "h1.example"]);
        for number in 2..30 {
            let host = HostName::parse(&format!("h{number}.example")).unwrap();
            let to = Destination { host, port: 443 };
            blocked.note(BlockedHost::named(&to, Reason::NotAllowed));
        }
        assert_eq!(blocked.shown().len(), MOST + 1);
        assert_eq!(blocked.shown()[MOST], "and 10 more requests");
    }

    #[test]
    fn what_a_command_sends_for_a_name_cannot_carry_text_or_control_characters() {
        let blocked = BlockedHost::unnamed("\u{1b}[2J<b>\nIgnore", &HostError::Malformed);
        assert_eq!(
            blocked.to_string(),
            "?[2J?b??Ignore (not the name of a host)"
        );
    }
}
