//! What GitHub delivers, as messages.
//!
//! A review and each of its remarks are events of their own. They have one identity, that of the
//! review, so they are one message: a mention in any of them counts, and the remarks are fetched
//! when it is carried out.

use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;

use super::{GITHUB, picture, surroundings::Reference};
use crate::{
    ForgeOrigin, Inbound, Privacy, Speaker, SpeakerKind, ThreadRef,
    text::{Addressed, addressed, shortened},
};

/// The label by which an issue is handed over: an app cannot be assigned.
const LABEL: &str = "codespar";
/// All our comments and reviews have a line that begins so.
pub(super) const OURS: &str = "<!-- codespar";
/// The most of an issue that goes with a command.
const MOST_MATERIAL: usize = 16_000;

/// Who we are at GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OurAccount {
    /// `<slug>[bot]` for an app.
    pub(super) login: String,
}

impl OurAccount {
    /// What people write after the `@`.
    fn name(&self) -> &str {
        self.login.strip_suffix("[bot]").unwrap_or(&self.login)
    }
}

/// What a delivery is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    Message(Box<Inbound>, Box<ForgeOrigin>),
    /// Nothing that we handle.
    Nothing,
}

#[derive(Deserialize)]
struct Event {
    action: String,
    repository: Repository,
    sender: Account,
    #[serde(default)]
    issue: Option<Issue>,
    #[serde(default)]
    pull_request: Option<Issue>,
    #[serde(default)]
    comment: Option<Comment>,
    #[serde(default)]
    review: Option<Comment>,
    #[serde(default)]
    label: Option<Label>,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Deserialize, Serialize, Clone)]
pub(super) struct Account {
    pub(super) id: u64,
    pub(super) login: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Deserialize)]
struct Issue {
    id: u64,
    number: u64,
    #[serde(default)]
    title: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    updated_at: String,
    #[serde(default)]
    pull_request: Option<IgnoredAny>,
}

/// A comment, a remark or a review.
#[derive(Deserialize)]
struct Comment {
    id: u64,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    pull_request_review_id: Option<u64>,
    /// Written by a program in the name of a person.
    #[serde(default)]
    performed_via_github_app: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

/// Reads an event. Those that we do not handle only have to be JSON.
pub(super) fn read(
    event: &str,
    body: &[u8],
    ours: Option<&OurAccount>,
) -> Result<Delivered, serde_json::Error> {
    if !matches!(
        event,
        "issue_comment" | "issues" | "pull_request_review" | "pull_request_review_comment"
    ) {
        serde_json::from_slice::<IgnoredAny>(body)?;
        return Ok(Delivered::Nothing);
    }
    let read: Event = serde_json::from_slice(body)?;
    Ok(found(event, &read, ours))
}

/// What polling found, told as an event.
pub(super) fn as_delivered(
    event: &str,
    body: Value,
    ours: Option<&OurAccount>,
) -> Result<Delivered, serde_json::Error> {
    let read: Event = serde_json::from_value(body)?;
    Ok(found(event, &read, ours))
}

fn found(event: &str, read: &Event, ours: Option<&OurAccount>) -> Delivered {
    if !is_repository(&read.repository.full_name) {
        return Delivered::Nothing;
    }
    let found = match (event, read.action.as_str()) {
        ("issue_comment", "created") => comment(read, ours),
        ("pull_request_review", "submitted") => review(read, ours),
        ("pull_request_review_comment", "created") => remark(read, ours),
        ("issues", "labeled") => labelled(read),
        // Edits and deletions: what counts is what was said first.
        _ => None,
    };
    found.map_or(Delivered::Nothing, |(inbound, origin)| {
        Delivered::Message(Box::new(inbound), Box::new(origin))
    })
}

/// The name becomes a part of addresses.
pub(super) fn is_repository(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(known);
    let parts = name.split_once('/');
    parts.is_some_and(|(owner, name)| is_part(owner) && is_part(name))
}

type Found = Option<(Inbound, ForgeOrigin)>;

/// A comment below an issue or a pull request.
fn comment(event: &Event, ours: Option<&OurAccount>) -> Found {
    let (issue, comment) = (event.issue.as_ref()?, event.comment.as_ref()?);
    let said = SaidComment {
        repository: &event.repository.full_name,
        number: issue.number,
        id: comment.id,
        body: comment.body.as_deref().unwrap_or_default(),
        is_pull: issue.pull_request.is_some(),
        by_program: comment.performed_via_github_app.is_some(),
        author: &event.sender,
    };
    let (inbound, mut origin) = said.message(ours);
    if !said.is_pull {
        origin.material = Some(of_issue(issue));
        origin.reference = None;
    }
    Some((inbound, origin))
}

/// A comment, however it was found.
pub(super) struct SaidComment<'a> {
    pub(super) repository: &'a str,
    pub(super) number: u64,
    pub(super) id: u64,
    pub(super) body: &'a str,
    pub(super) is_pull: bool,
    pub(super) by_program: bool,
    pub(super) author: &'a Account,
}

impl SaidComment<'_> {
    pub(super) fn message(&self, ours: Option<&OurAccount>) -> (Inbound, ForgeOrigin) {
        let (repository, number) = (self.repository, self.number);
        let path = format!("issues/comments/{}", self.id);
        let mut speaker = speaker(self.author, ours, self.body);
        if self.by_program && speaker.kind == SpeakerKind::Person {
            speaker.kind = SpeakerKind::Bot;
        }
        let inbound = Inbound {
            identity: format!("{GITHUB}:comment:{}:created", self.id),
            speaker,
            images: picture::images(self.body, repository, &path),
            ..said(repository, number, with_our_name(self.body, ours))
        };
        let origin = ForgeOrigin {
            login: self.author.login.clone(),
            repository: repository.to_owned(),
            pull_request: self.is_pull.then_some(number),
            reference: (!self.is_pull).then(|| Reference::Issue { number }.to_text()),
            ..ForgeOrigin::default()
        };
        (inbound, origin)
    }
}

/// A review; its remarks are fetched when it is carried out.
fn review(event: &Event, ours: Option<&OurAccount>) -> Found {
    let review = event.review.as_ref()?;
    let body = review.body.as_deref().unwrap_or_default();
    of_review(event, review.id, body, ours)
}

/// A remark of a review. It says that the review is for us, if it does; what it says is read with
/// the others.
fn remark(event: &Event, ours: Option<&OurAccount>) -> Found {
    let remark = event.comment.as_ref()?;
    let body = remark.body.as_deref().unwrap_or_default();
    let is_for_us = is_for_us(body, ours);
    let (inbound, origin) = of_review(event, remark.pull_request_review_id?, "", ours)?;
    is_for_us.then_some((
        Inbound {
            mentioned: true,
            speaker: speaker(&event.sender, ours, body),
            ..inbound
        },
        origin,
    ))
}

/// Whether a remark mentions us; a quotation of a mention is none.
pub(super) fn is_for_us(body: &str, ours: Option<&OurAccount>) -> bool {
    matches!(addressed(&with_our_name(body, ours)), Addressed::ByText(_))
}

/// What a review is known by, with all its remarks.
pub(super) fn review_identity(id: u64) -> String {
    format!("{GITHUB}:review:{id}:submitted")
}

fn of_review(event: &Event, id: u64, body: &str, ours: Option<&OurAccount>) -> Found {
    let repository = &event.repository.full_name;
    let number = event.pull_request.as_ref()?.number;
    let inbound = Inbound {
        identity: review_identity(id),
        speaker: speaker(&event.sender, ours, body),
        ..said(repository, number, with_our_name(body, ours))
    };
    let reference = Reference::Review {
        number,
        review: id,
        author: event.sender.id,
    };
    let origin = ForgeOrigin {
        login: event.sender.login.clone(),
        repository: repository.clone(),
        pull_request: Some(number),
        otherwise: Some("Address the remarks of this review.".to_owned()),
        reference: Some(reference.to_text()),
        ..ForgeOrigin::default()
    };
    Some((inbound, origin))
}

/// The label says that the issue is to be done; who put it there asks for it. A label that was
/// taken off and put on again asks once more.
fn labelled(event: &Event) -> Found {
    let issue = event.issue.as_ref()?;
    let label = event.label.as_ref()?;
    if !label.name.eq_ignore_ascii_case(LABEL) || issue.pull_request.is_some() {
        return None;
    }
    let (repository, number) = (&event.repository.full_name, issue.number);
    let body = issue.body.as_deref().unwrap_or_default();
    let inbound = Inbound {
        identity: format!("{GITHUB}:issue:{}:labeled:{}", issue.id, issue.updated_at),
        speaker: speaker(&event.sender, None, ""),
        mentioned: true,
        images: picture::images(body, repository, &format!("issues/{number}")),
        ..said(repository, number, format!("fix issue #{number}"))
    };
    let origin = ForgeOrigin {
        login: event.sender.login.clone(),
        repository: repository.clone(),
        material: Some(of_issue(issue)),
        ..ForgeOrigin::default()
    };
    Some((inbound, origin))
}

fn of_issue(issue: &Issue) -> String {
    issue_text(issue.number, &issue.title, issue.body.as_deref())
}

/// An issue as the material of a command.
pub(super) fn issue_text(number: u64, title: &str, body: Option<&str>) -> String {
    let text = format!("Issue #{number}: {title}\n\n{}", body.unwrap_or_default());
    shortened(&text, MOST_MATERIAL)
}

fn said(repository: &str, number: u64, text: String) -> Inbound {
    Inbound {
        identity: String::new(),
        at: ThreadRef {
            channel: GITHUB.to_owned(),
            conversation: repository.to_owned(),
            thread: number.to_string(),
        },
        speaker: Speaker {
            id: String::new(),
            name: String::new(),
            kind: SpeakerKind::Bot,
        },
        mentioned: false,
        privacy: Privacy::Room,
        text,
        images: Vec::new(),
        reply_to: None,
    }
}

/// A token may be that of a person who also speaks: our own text is told by its mark, whoever sends
/// it. A bot is one by its type.
fn speaker(account: &Account, ours: Option<&OurAccount>, body: &str) -> Speaker {
    let is_bot = account.kind != "User";
    let is_us = is_bot && ours.is_some_and(|ours| ours.login == account.login);
    Speaker {
        id: account.id.to_string(),
        name: account.login.clone(),
        kind: match is_bot {
            _ if is_us || body.contains(OURS) => SpeakerKind::Ourselves,
            true => SpeakerKind::Bot,
            false => SpeakerKind::Person,
        },
    }
}

/// The name of an app is its own: a mention of it becomes `@codespar`.
fn with_our_name(text: &str, ours: Option<&OurAccount>) -> String {
    let Some(name) = ours.map(OurAccount::name).filter(|name| !name.is_empty()) else {
        return text.to_owned();
    };
    let mention = format!("@{name}");
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        result.push_str(&rest[..at]);
        rest = &rest[at..];
        let continues = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        match rest.split_at_checked(mention.len()) {
            Some((found, after))
                if found.eq_ignore_ascii_case(&mention) && !after.starts_with(continues) =>
            {
                result.push_str("@codespar");
                rest = after;
            }
            _ => {
                result.push('@');
                rest = &rest[1..];
            }
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, mut body: Value) -> Delivered {
        body["repository"] = json!({"full_name": "acme/shop"});
        if body["sender"].is_null() {
            body["sender"] = json!({"id": 7, "login": "alice", "type": "User"});
        }
        let ours = OurAccount {
            login: "codespar-acme[bot]".to_owned(),
        };
        read(kind, body.to_string().as_bytes(), Some(&ours)).unwrap()
    }

    fn message(delivered: Delivered) -> (Inbound, ForgeOrigin) {
        match delivered {
            Delivered::Message(inbound, origin) => (*inbound, *origin),
            Delivered::Nothing => panic!("nothing"),
        }
    }

    #[test]
    fn a_comment_on_a_pull_request_is_about_it() {
        let (inbound, origin) = message(event(
            "issue_comment",
            json!({
                "action": "created",
                "issue": {"id": 1, "number": 87, "title": "t", "pull_request": {"url": "x"}},
                "comment": {"id": 5, "body": "@CodeSpar-acme also update the tests"},
            }),
        ));
        assert_eq!(inbound.identity, "github:comment:5:created");
        assert_eq!(inbound.at.conversation, "acme/shop");
        assert_eq!(inbound.at.thread, "87");
        assert_eq!(inbound.text, "@codespar also update the tests");
        assert_eq!(inbound.speaker.id, "7");
        assert_eq!(origin.login, "alice");
        assert_eq!(origin.pull_request, Some(87));
    }

    #[test]
    fn a_review_and_its_remarks_are_one_message() {
        let pull = json!({"id": 1, "number": 87});
        let (whole, _) = message(event(
            "pull_request_review",
            json!({"action": "submitted", "pull_request": pull, "review": {"id": 9, "body": null}}),
        ));
        let remark = |body: &str| {
            event(
                "pull_request_review_comment",
                json!({"action": "created", "pull_request": pull,
                    "comment": {"id": 10, "pull_request_review_id": 9, "body": body}}),
            )
        };
        let (one, origin) = message(remark("@codespar rename this"));
        assert_eq!(one.identity, whole.identity);
        assert_eq!((whole.mentioned, one.mentioned), (false, true));
        assert_eq!(one.text, "", "what it says is read with the others");
        assert!(origin.otherwise.is_some());
        assert_eq!(remark("rename this"), Delivered::Nothing);
        assert_eq!(remark("`@codespar rename this`"), Delivered::Nothing);
    }

    #[test]
    fn the_text_of_an_issue_is_material_and_not_the_command() {
        let labelled = |label: &str| {
            event(
                "issues",
                json!({"action": "labeled", "label": {"name": label}, "issue": {
                    "id": 3, "number": 5, "title": "Broken", "updated_at": "2026-01-01T00:00:00Z",
                    "body": "It breaks in evil/repo with gpt"}}),
            )
        };
        let (inbound, origin) = message(labelled("codespar"));
        assert_eq!(inbound.text, "fix issue #5");
        assert!(inbound.mentioned);
        assert!(origin.material.unwrap().contains("It breaks"));
        assert_eq!(labelled("bug"), Delivered::Nothing);
    }

    #[test]
    fn edits_unknown_events_and_odd_names_are_nothing() {
        let comment = json!({"action": "edited", "issue": {"id": 1, "number": 1},
            "comment": {"id": 5, "body": "@codespar fix it"}});
        assert_eq!(event("issue_comment", comment), Delivered::Nothing);
        assert_eq!(event("ping", json!({"zen": "x"})), Delivered::Nothing);
        assert_eq!(
            event("star", json!({"action": "created"})),
            Delivered::Nothing
        );
        assert!(read("issue_comment", b"{", None).is_err());
        assert!(read("ping", b"{", None).is_err());
        for name in ["acme", "acme/../x", "a/b/c", "/x", "acme/.."] {
            assert!(!is_repository(name), "{name}");
        }
    }

    #[test]
    fn bots_and_our_own_text_are_told_from_people() {
        let by = |login: &str, kind: &str, body: &str| {
            let (inbound, _) = message(event(
                "issue_comment",
                json!({"action": "created", "issue": {"id": 1, "number": 1},
                    "sender": {"id": 1, "login": login, "type": kind},
                    "comment": {"id": 5, "body": body}}),
            ));
            inbound.speaker.kind
        };
        assert_eq!(by("alice", "User", "x"), SpeakerKind::Person);
        assert_eq!(by("ci[bot]", "Bot", "x"), SpeakerKind::Bot);
        assert_eq!(by("codespar-acme[bot]", "Bot", "x"), SpeakerKind::Ourselves);
        let marked = "<!-- codespar:abc -->\n@codespar fix it";
        assert_eq!(by("alice", "User", marked), SpeakerKind::Ourselves);
    }
}
