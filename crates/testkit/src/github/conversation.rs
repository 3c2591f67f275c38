//! Issues, comments below issues and pull requests, reactions, and the files that comments show.
//!
//! A file is named by an address that says nothing about who may see it. `body_html` has a signed
//! address instead, which needs no token; both lead to the fake.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    FakeGitHub,
    answer::{Answer, Answered, plain_page},
    events::issue_or_pull,
    room::Room,
    route::{Asked, HandlerContext, not_found},
    shapes,
    state::{Comment, Issue, LabelEvent, Reaction, State, now},
};

const ATTACHMENTS: &str = "/user-attachments/assets/";
const SIGNED: &str = "/private-user-images/";

/// A comment as it stands, with what it said before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHubComment {
    pub id: u64,
    pub number: u64,
    pub author: String,
    pub body: String,
    pub former: Vec<String>,
    /// Who reacted how: `("alice", "eyes")`.
    pub reactions: Vec<(String, String)>,
}

/// Endpoints below `…/issues`.
pub(super) fn answer(context: &mut HandlerContext<'_>, parts: &[&str]) -> Answered {
    match (context.asked.method.as_str(), parts) {
        ("GET", ["comments"]) => recent(context),
        ("GET", ["events"]) => events(context),
        ("GET", ["comments", id]) => one(context, id),
        ("PATCH", ["comments", id]) => edit(context, id),
        ("POST", ["comments", id, "reactions"]) => {
            let id = number(id)?;
            let is_there = context.state.comments.iter().any(|one| one.id == id);
            is_there.then_some(()).ok_or_else(not_found)?;
            react(context, format!("comments/{id}"))
        }
        ("GET", [issue, "comments"]) => {
            let issue = number(issue)?;
            let of = context.state.comments.iter();
            let of = of.filter(|comment| comment.pull == issue);
            let all: Vec<Value> = of.map(|one| shown(context, one)).collect();
            plain_page(context.asked, &all)
        }
        ("POST", [issue, "comments"]) => {
            let issue = number(issue)?;
            exists(context.state, issue)?;
            let body = context.asked.text("body")?;
            let id = context.state.add_comment(issue, &context.who.login, body);
            let made = find(context.state, id)?;
            Ok(Answer::json(201, &shown(context, made)))
        }
        ("POST", [issue, "reactions"]) => {
            exists(context.state, number(issue)?)?;
            react(context, (*issue).to_owned())
        }
        ("GET", [issue]) => {
            let issue = number(issue)?;
            let found = context.state.issues.iter().find(|one| one.number == issue);
            let found = found.ok_or_else(not_found)?;
            Ok(Answer::json(200, &issue_json(context.room, found)))
        }
        _ => Err(not_found()),
    }
}

fn number(text: &str) -> Result<u64, Answer> {
    text.parse().map_err(|_| not_found())
}

fn exists(state: &State, number: u64) -> Result<(), Answer> {
    let is_issue = state.issues.iter().any(|one| one.number == number);
    let is_pull = state.pulls.iter().any(|one| one.number == number);
    (is_issue || is_pull).then_some(()).ok_or_else(not_found)
}

fn find(state: &State, id: u64) -> Result<&Comment, Answer> {
    let found = state.comments.iter().find(|one| one.id == id);
    found.ok_or_else(not_found)
}

fn shown(context: &HandlerContext<'_>, comment: &Comment) -> Value {
    let mut json = comment_json(context.room, context.state, comment);
    if context.asked.accepts("full+json") {
        json["body_html"] = html(&context.room.host, &comment.body).into();
    }
    json
}

pub(super) fn comment_json(room: &Room, state: &State, comment: &Comment) -> Value {
    let number = comment.pull;
    let kind = match state.pulls.iter().any(|one| one.number == number) {
        true => "pull",
        false => "issues",
    };
    json!({
        "id": comment.id,
        "node_id": format!("IC_{}", comment.id),
        "user": shapes::user(&comment.author),
        "body": comment.body,
        "html_url": room.page(&format!("/{kind}/{number}#issuecomment-{}", comment.id)),
        "issue_url": room.api(&format!("/issues/{number}")),
        "url": room.api(&format!("/issues/comments/{}", comment.id)),
        "created_at": comment.at.to_string(),
        "updated_at": comment.updated_at.to_string(),
        "author_association": "OWNER",
    })
}

pub(super) fn issue_json(room: &Room, issue: &Issue) -> Value {
    json!({
        "id": issue.id,
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "state": "open",
        "user": shapes::user(&issue.author),
        "html_url": room.page(&format!("/issues/{}", issue.number)),
        "created_at": issue.at.to_string(),
        "updated_at": issue.updated_at.to_string(),
        "labels": [],
    })
}

/// As much of a renderer as pictures need.
fn html(host: &str, body: &str) -> String {
    let mut html = String::new();
    let mut rest = body;
    while let Some(at) = rest.find("![") {
        html.push_str(&rest[..at]);
        let after = &rest[at..];
        let (Some(open), Some(close)) = (after.find("]("), after.find(')')) else {
            break;
        };
        let address = &after[open + 2..close];
        let own = address.strip_prefix(&format!("{host}{ATTACHMENTS}"));
        let source = match own {
            Some(name) => format!("{host}{SIGNED}{name}?jwt=signed&amp;v=1"),
            None => format!("https://camo.githubusercontent.com/{}", address.len()),
        };
        html.push_str(&format!("<p><img src=\"{source}\" alt=\"x\"></p>"));
        rest = &after[close + 1..];
    }
    html + rest
}

/// A signed address: no token is asked for.
pub(super) fn attachment(room: &Room, asked: &Asked) -> Option<Answer> {
    let name = asked.path.strip_prefix(SIGNED)?;
    let state = room.state.lock();
    let file = state.attachments.get(name);
    Some(match (file, asked.query("jwt")) {
        (Some(file), Some("signed")) => Answer::bytes(200, "image/png", file.clone()),
        _ => not_found(),
    })
}

/// What happened to issues of the repository, the newest first.
fn events(context: &HandlerContext<'_>) -> Answered {
    let shown = |one: &LabelEvent| {
        json!({
            "id": one.id,
            "event": "labeled",
            "actor": shapes::user(&one.actor),
            "label": {"name": one.label},
            "issue": issue_or_pull(context.room, context.state, one.issue),
            "created_at": one.at.to_string(),
        })
    };
    let all: Vec<Value> = context.state.label_events.iter().rev().map(shown).collect();
    plain_page(context.asked, &all)
}

/// Of the whole repository, those that changed since a time.
fn recent(context: &HandlerContext<'_>) -> Answered {
    let since = context.asked.query("since").unwrap_or_default();
    let since: Timestamp = since.parse().unwrap_or(Timestamp::MIN);
    let mut all: Vec<&Comment> = context.state.comments.iter().collect();
    all.retain(|one| one.updated_at >= since);
    all.sort_by_key(|one| (one.updated_at, one.id));
    let all: Vec<Value> = all.into_iter().map(|one| shown(context, one)).collect();
    plain_page(context.asked, &all)
}

fn one(context: &HandlerContext<'_>, id: &str) -> Answered {
    let comment = find(context.state, number(id)?)?;
    Ok(Answer::json(200, &shown(context, comment)))
}

/// Only one's own, or of those who may push.
fn edit(context: &mut HandlerContext<'_>, id: &str) -> Answered {
    let id = number(id)?;
    let body = context.asked.text("body")?.to_owned();
    context
        .state
        .edit_comment(id, &body)
        .ok_or_else(not_found)?;
    Ok(Answer::json(200, &shown(context, find(context.state, id)?)))
}

/// 200 if it was there already.
fn react(context: &mut HandlerContext<'_>, to: String) -> Answered {
    let content = context.asked.text("content")?.to_owned();
    let known = [
        "+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes",
    ];
    if !known.contains(&content.as_str()) {
        return Err(Answer::error(422, "content is not a reaction"));
    }
    let author = context.who.login.clone();
    let is_it = |one: &&Reaction| (&one.to, &one.author, &one.content) == (&to, &author, &content);
    let (status, id) = match context.state.reactions.iter().find(is_it) {
        Some(known) => (200, known.id),
        None => (201, context.state.next_id()),
    };
    if status == 201 {
        context.state.reactions.push(Reaction {
            id,
            to,
            author,
            content: content.clone(),
        });
    }
    Ok(Answer::json(status, &json!({"id": id, "content": content})))
}

impl State {
    pub(super) fn edit_comment(&mut self, id: u64, body: &str) -> Option<()> {
        let comment = self.comments.iter_mut().find(|one| one.id == id)?;
        let former = std::mem::replace(&mut comment.body, body.to_owned());
        comment.former.push(former);
        comment.updated_at = now();
        Some(())
    }

    fn reactions_to(&self, to: &str) -> Vec<(String, String)> {
        let of = self.reactions.iter().filter(|one| one.to == to);
        of.map(|one| (one.author.clone(), one.content.clone()))
            .collect()
    }
}

impl FakeGitHub {
    /// Someone opens an issue; gives its number.
    pub fn open_issue(&self, login: &str, title: &str, body: &str) -> u64 {
        self.change(|state| {
            let number = state.next_number();
            let issue = Issue {
                id: state.next_id(),
                number,
                title: title.to_owned(),
                body: body.to_owned(),
                author: login.to_owned(),
                at: now(),
                updated_at: now(),
            };
            state.issues.push(issue);
            number
        })
    }

    /// Someone changes a comment.
    pub fn edit_comment(&self, id: u64, body: &str) {
        self.change(|state| state.edit_comment(id, body));
    }

    /// The comments below an issue or a pull request, the oldest first.
    pub fn comments(&self, number: u64) -> Vec<GitHubComment> {
        self.change(|state| {
            let of = state.comments.iter().filter(|one| one.pull == number);
            let shown = |one: &Comment| GitHubComment {
                id: one.id,
                number,
                author: one.author.clone(),
                body: one.body.clone(),
                former: one.former.clone(),
                reactions: state.reactions_to(&format!("comments/{}", one.id)),
            };
            of.map(shown).collect()
        })
    }

    /// Reactions to the issue itself.
    pub fn issue_reactions(&self, number: u64) -> Vec<(String, String)> {
        self.change(|state| state.reactions_to(&number.to_string()))
    }

    /// A file that comments can show; gives its address.
    pub fn attach(&self, name: &str, bytes: &[u8]) -> String {
        self.change(|state| state.attachments.insert(name.to_owned(), bytes.to_vec()));
        format!("{}{ATTACHMENTS}{name}", self.room.host)
    }

    /// Everybody may read the repository.
    pub fn make_public(&self) {
        self.change(|state| state.public = true);
    }

    /// The branch of a pull request is in somebody's fork.
    pub fn set_fork(&self, number: u64, owner: &str) {
        self.change(|state| state.forks.insert(number, owner.to_owned()));
    }

    /// What is said of a commit: names and conclusions of its check runs, then names and states of
    /// its statuses.
    pub fn said_of(&self, commit: &str) -> HashMap<String, String> {
        self.change(|state| {
            let runs = state.check_runs.iter().filter(|run| run.commit == commit);
            let runs = runs.map(|run| (run.name.clone(), run.conclusion.clone()));
            let runs = runs.map(|(name, conclusion)| (name, conclusion.unwrap_or_default()));
            let statuses = state.statuses.iter().filter(|one| one.commit == commit);
            let statuses = statuses.map(|one| (one.context.clone(), one.state.clone()));
            runs.chain(statuses).collect()
        })
    }
}
