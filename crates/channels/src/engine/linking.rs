//! Linking an account of a chat with one of the forge, by the person who has both.
//!
//! ```text
//! page    signed in at the forge      gets a code, which is shown to nobody else
//! chat    writes the code             the page shows whose account wrote it
//! page    confirms that account       linked
//! ```
//!
//! What is gained by a link are the rights of the forge's account, so its owner has the first and the
//! last word, on a page that they opened themselves: a link that somebody sends around leads to no
//! more than the reader's own page. The code shows that both accounts are of people who talk to each
//! other; that they are the same person is what the owner confirms, with the account's name before
//! them. A code counts for the first account that writes it, for minutes, once, in this process.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use codespar_protocol::TokenId;
use codespar_store::{
    ChannelMessage, ChannelPerson, MessageChange, NewAudit, StoreError, ThreadRef,
};
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};

use super::{
    ChannelCore,
    reply::{Audited, Verdict},
};
use crate::{SpeakerKind, WEB, message::KeptMessage};

const TIME: Duration = Duration::from_secs(10 * 60);
const MOST_WAITING: usize = 1_000;
const PREFIX: &str = "LINK-";
/// Without letters that are taken for others. 32 of them: five bits each.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_LETTERS: usize = 16;

/// Codes that wait; they end with the process.
#[derive(Default)]
pub(crate) struct Links {
    /// The page that gives codes.
    address: OnceLock<String>,
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    owner: LinkOwner,
    code: String,
    began: Instant,
    claim: Option<Claim>,
}

/// Who asks for a code: somebody who signed in at the forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOwner {
    pub token: TokenId,
    /// The name of the token, for the record.
    pub name: String,
    /// The account at the forge.
    pub login: String,
}

/// An account of a chat that wrote a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedAccount {
    pub channel: String,
    pub user: String,
    /// What the account calls itself; not to be relied on alone.
    pub name: String,
}

#[derive(Clone)]
struct Claim {
    account: ClaimedAccount,
    at: ThreadRef,
    identity: String,
}

/// A link that is not made yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLink {
    pub code: String,
    pub claim: Option<ClaimedAccount>,
}

impl Links {
    /// Those that are in time.
    fn with<T>(&self, act: impl FnOnce(&mut Vec<Waiting>) -> T) -> T {
        let mut waiting = self.waiting.lock();
        waiting.retain(|one| one.began.elapsed() < TIME);
        act(&mut waiting)
    }
}

impl ChannelCore {
    /// People are told of the page at this address.
    pub fn offer_linking(&self, address: String) {
        let _ = self.links.address.set(address);
    }

    /// The page at which somebody without an account of the forge can link one.
    pub(crate) fn link_address(&self) -> Option<&str> {
        self.links.address.get().map(String::as_str)
    }

    /// A new code; one that the same person got before ends.
    pub fn begin_link(&self, owner: LinkOwner) -> Result<String, std::io::Error> {
        let mut bytes = [0_u8; CODE_LETTERS];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
        let letters = bytes.iter().map(|byte| LETTERS[usize::from(byte % 32)]);
        let code = format!("{PREFIX}{}", letters.map(char::from).collect::<String>());
        self.links.with(|waiting| {
            waiting.retain(|one| one.owner.token != owner.token);
            if waiting.len() >= MOST_WAITING {
                return Err(std::io::Error::other("too many links wait"));
            }
            waiting.push(Waiting {
                owner,
                code: code.clone(),
                began: Instant::now(),
                claim: None,
            });
            Ok(code)
        })
    }

    /// What waits for this person.
    pub fn pending_link(&self, token: &TokenId) -> Option<PendingLink> {
        self.links.with(|waiting| {
            let found = waiting.iter().find(|one| one.owner.token == *token)?;
            Some(PendingLink {
                code: found.code.clone(),
                claim: found.claim.as_ref().map(|claim| claim.account.clone()),
            })
        })
    }

    /// Links the account that wrote a code. It must be the one that the person was shown.
    pub async fn confirm_link(
        &self,
        token: &TokenId,
        code: &str,
        shown: &ClaimedAccount,
    ) -> Result<bool, StoreError> {
        let taken = self.links.with(|waiting| {
            let place = waiting.iter().position(|one| {
                let is_shown = one.claim.as_ref().is_some_and(|claim| {
                    (&claim.account.channel, &claim.account.user) == (&shown.channel, &shown.user)
                });
                one.owner.token == *token && one.code == code && is_shown
            })?;
            let taken = waiting.remove(place);
            taken.claim.map(|claim| (taken.owner, claim))
        });
        let Some((owner, claim)) = taken else {
            return Ok(false);
        };
        let ClaimedAccount { channel, user, .. } = claim.account;
        let known = self.store().person(&channel, &user).await?;
        let person = ChannelPerson {
            role: known.and_then(|one| one.role),
            forge_login: Some(owner.login.clone()),
            set_by: owner.name.clone(),
            channel,
            user_id: user.clone(),
        };
        self.store().set_person(person).await?;
        let entry = NewAudit {
            at: claim.at,
            identity: claim.identity,
            speaker: user,
            role: None,
            action: "link account".to_owned(),
            decision: "done".to_owned(),
            detail: format!("{} at the forge, confirmed by {}", owner.login, owner.name),
            repository: None,
            task_id: None,
        };
        self.store().append_audit(entry).await?;
        Ok(true)
    }

    /// Takes a code that somebody writes: whoever they are, since a role may be what they lack.
    /// Whether it was one; what is none is decided about as anything else is.
    pub(crate) async fn claimed(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
        text: &str,
    ) -> Result<bool, StoreError> {
        let speaker = &kept.speaker;
        let is_person = speaker.kind == SpeakerKind::Person;
        let is_elsewhere = message.at.channel != WEB && kept.forge.is_none();
        let Some(code) = code_in(text).filter(|_| is_person && is_elsewhere) else {
            return Ok(false);
        };
        let claim = Claim {
            account: ClaimedAccount {
                channel: message.at.channel.clone(),
                user: message.speaker.clone(),
                name: speaker.name.clone(),
            },
            at: message.at.clone(),
            identity: message.identity.clone(),
        };
        let is_taken = self.links.with(|waiting| {
            let found = waiting.iter_mut().find(|one| one.code == code);
            let Some(found) = found else { return false };
            match &found.claim {
                Some(before) => before.identity == claim.identity,
                None => {
                    found.claim = Some(claim);
                    true
                }
            }
        });
        if !is_taken {
            return Ok(false);
        }
        let said = format!(
            "go back to the page that gave you the code and confirm {} ({}). Nothing is linked before.",
            speaker.name, speaker.id
        );
        let audited = Audited {
            role: None,
            action: "link code",
            verdict: Verdict::Done,
            detail: "",
            task: None,
        };
        let change = MessageChange {
            outbound: vec![self.answer(message, kept, said, Vec::new())],
            audit: vec![self.entry(message, &audited)],
            ..MessageChange::default()
        };
        self.settle(message, change).await?;
        Ok(true)
    }
}

/// `whoami CODE`, in any case.
fn code_in(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [verb, code] = words[..] else { return None };
    let code = code.to_ascii_uppercase();
    let is_code = code.len() == PREFIX.len() + CODE_LETTERS && code.starts_with(PREFIX);
    (verb.eq_ignore_ascii_case("whoami") && is_code).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_only_where_somebody_means_it() {
        let code = "LINK-ABCDEFGHJKLMNPQR";
        assert_eq!(code_in(&format!("whoami {code}")).as_deref(), Some(code));
        let lower = format!("WhoAmI  {}", code.to_lowercase());
        assert_eq!(code_in(&lower).as_deref(), Some(code));
        for other in [
            "whoami",
            code,
            "whoami LINK-ABC",
            "fix LINK-ABCDEFGHJKLMNPQR",
            "whoami LINK-ABCDEFGHJKLMNPQR please",
        ] {
            assert_eq!(code_in(other), None, "{other}");
        }
    }
}
