//! Pull requests.
//!
//! A pull request is a pair of branches. Before it is shown, its commits follow the branches, so a
//! push is seen by the next request as at GitHub. Whether it can be merged is not known at first:
//! `mergeable` is null for the first looks at each pair of commits, which clients must wait out.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered, plain_page},
    merge::{Standing, standing},
    route::{HandlerContext, broken, not_found},
    shapes,
    state::{Level, Pull, now},
};

const WRITE: &str = "pull_requests=write";

/// Follows the branches of an open one; an error if there is none.
pub(super) fn refresh(context: &mut HandlerContext<'_>, number: u64) -> Result<(), Answer> {
    let branches = context.room.git.branches().map_err(broken)?;
    let pull = context.state.pull(number).ok_or_else(not_found)?;
    follow(pull, &branches);
    Ok(())
}

/// A branch that was deleted leaves the last commit as it was.
fn follow(pull: &mut Pull, branches: &HashMap<String, String>) {
    if !pull.open {
        return;
    }
    if let Some(head) = branches
        .get(&pull.head)
        .filter(|head| **head != pull.head_sha)
    {
        pull.head_sha.clone_from(head);
        pull.updated_at = now();
    }
    if let Some(base) = branches.get(&pull.base) {
        pull.base_sha.clone_from(base);
    }
}

/// Head and base are in the same repository; a fork is one in name only.
fn side(context: &HandlerContext<'_>, branch: &str, sha: &str) -> Value {
    json!({
        "label": format!("{}:{branch}", context.room.owner),
        "ref": branch,
        "sha": sha,
        "user": shapes::user(&context.room.owner),
        "repo": shapes::repo(context.room, context.state, context.who.level),
    })
}

fn head_side(context: &HandlerContext<'_>, pull: &Pull) -> Value {
    let mut head = side(context, &pull.head, &pull.head_sha);
    if let Some(owner) = context.state.forks.get(&pull.number) {
        head["label"] = format!("{owner}:{}", pull.head).into();
        head["repo"]["full_name"] = format!("{owner}/{}", context.room.name).into();
    }
    head
}

/// As lists tell it.
pub(super) fn pull_json(context: &HandlerContext<'_>, pull: &Pull) -> Value {
    let number = pull.number;
    json!({
        "id": 5000 + number,
        "node_id": format!("PR_{number}"),
        "number": number,
        "state": if pull.open { "open" } else { "closed" },
        "locked": false,
        "title": pull.title,
        "body": pull.body,
        "draft": pull.draft,
        "user": shapes::user(&pull.author),
        "head": head_side(context, pull),
        "base": side(context, &pull.base, &pull.base_sha),
        "url": context.room.api(&format!("/pulls/{number}")),
        "html_url": context.room.page(&format!("/pull/{number}")),
        "diff_url": context.room.page(&format!("/pull/{number}.diff")),
        "created_at": pull.created_at.to_string(),
        "updated_at": pull.updated_at.to_string(),
        "closed_at": pull.closed_at.map(|at| at.to_string()),
        "merged_at": pull.merged.as_ref().map(|(_, at)| at.to_string()),
        "merge_commit_sha": pull.merged.as_ref().map(|(sha, _)| sha),
    })
}

/// As one alone is told: also whether it can be merged, once that is known.
fn full_json(context: &mut HandlerContext<'_>, number: u64) -> Result<Value, Answer> {
    let delay = context.state.mergeable_delay;
    let pull = context.state.pull(number).ok_or_else(not_found)?;
    let (head, base, asked) = &mut pull.judged;
    if (&*head, &*base) != (&pull.head_sha, &pull.base_sha) {
        (*head, *base, *asked) = (pull.head_sha.clone(), pull.base_sha.clone(), 0);
    }
    *asked += 1;
    let known = *asked > delay && pull.open;
    let Some(pull) = context
        .state
        .pulls
        .iter()
        .find(|pull| pull.number == number)
    else {
        return Err(not_found());
    };
    let standing = standing(context, pull)?;
    let mut json = pull_json(context, pull);
    json["merged"] = pull.merged.is_some().into();
    json["comments"] = 0.into();
    json["commits"] = context
        .room
        .git
        .count_between(&pull.base_sha, &pull.head_sha)
        .into();
    json["mergeable"] = Value::Null;
    json["mergeable_state"] = "unknown".into();
    if known {
        json["mergeable"] = (standing != Standing::Dirty).into();
        json["mergeable_state"] = standing.word().into();
    }
    Ok(json)
}

/// As JSON, or as a diff for `Accept: …diff`; a diff over the limit is refused with 406.
pub(super) fn get(context: &mut HandlerContext<'_>, number: u64) -> Answered {
    if !context.asked.accepts("diff") || context.state.json_only {
        return Ok(Answer::json(200, &full_json(context, number)?));
    }
    let diff = diff(context, number, &[])?;
    if diff.len() > context.state.diff_limit {
        let errors = json!([{"resource": "PullRequest", "field": "diff", "code": "too_large"}]);
        let mut refused = Answer::invalid(
            "Sorry, the diff exceeded the maximum number of lines (20000)",
            &errors,
        );
        refused.status = 406;
        return Err(refused);
    }
    Ok(Answer::bytes(
        200,
        "application/vnd.github.diff; charset=utf-8",
        diff,
    ))
}

pub(super) fn diff(
    context: &mut HandlerContext<'_>,
    number: u64,
    more: &[&str],
) -> Result<Vec<u8>, Answer> {
    let git = &context.room.git;
    let pull = context.state.pull(number).ok_or_else(not_found)?;
    git.diff(&pull.base_sha, &pull.head_sha, more)
        .map_err(broken)
}

/// By state, head (`owner:branch`) and base; newest first unless the request says otherwise.
pub(super) fn list(context: &mut HandlerContext<'_>) -> Answered {
    let branches = context.room.git.branches().map_err(broken)?;
    for pull in &mut context.state.pulls {
        follow(pull, &branches);
    }
    let asked = context.asked;
    let state = asked.query("state").unwrap_or("open");
    let head = asked.query("head").filter(|head| head.contains(':'));
    let fits = |pull: &&Pull| {
        let state_fits = state == "all" || pull.open == (state == "open");
        let label = format!("{}:{}", context.room.owner, pull.head);
        let base_fits = asked.query("base").is_none_or(|base| pull.base == base);
        state_fits && base_fits && head.is_none_or(|head| head == label)
    };
    let mut those: Vec<&Pull> = context.state.pulls.iter().filter(fits).collect();
    if asked.query("sort") == Some("updated") {
        those.sort_by_key(|pull| pull.updated_at);
    }
    let shown = those.into_iter().map(|pull| pull_json(context, pull));
    let mut all: Vec<Value> = shown.collect();
    let created = asked.query("sort").unwrap_or("created") == "created";
    if asked.query("direction") == Some("desc") || (created && asked.query("direction").is_none()) {
        all.reverse();
    }
    plain_page(asked, &all)
}

fn refused(message: &str) -> Answer {
    let errors = json!([{"resource": "PullRequest", "code": "custom", "message": message}]);
    Answer::invalid("Validation Failed", &errors)
}

/// Refused with 422 as at GitHub: a missing branch, a second open one for the same pair, no commits
/// between them, a body that is too long, a draft where there are none.
pub(super) fn open(context: &mut HandlerContext<'_>) -> Answered {
    context.needs(Level::Write, WRITE)?;
    let asked = context.asked;
    let (title, head, base) = (
        asked.text("title")?,
        asked.text("head")?,
        asked.text("base")?,
    );
    let owner = format!("{}:", context.room.owner);
    let head = head.strip_prefix(&owner).unwrap_or(head);
    let draft = asked.json["draft"] == true;
    if asked.json["body"]
        .as_str()
        .is_some_and(|body| body.chars().count() > 65_536)
    {
        return Err(refused("body is too long (maximum is 65536 characters)"));
    }
    if draft && context.state.drafts_refused {
        return Err(refused(
            "Draft pull requests are not supported in this repository.",
        ));
    }
    let commit = |branch: &str, field: &str| {
        let errors = json!([{"resource": "PullRequest", "field": field, "code": "invalid"}]);
        let found = context.room.git.branch(branch);
        found.ok_or_else(|| Answer::invalid("Validation Failed", &errors))
    };
    let (head_sha, base_sha) = (commit(head, "head")?, commit(base, "base")?);
    let same = |pull: &&Pull| pull.open && pull.head == head && pull.base == base;
    if context.state.pulls.iter().any(|pull| same(&pull)) {
        return Err(refused(&format!(
            "A pull request already exists for {owner}{head}."
        )));
    }
    if context.room.git.count_between(&base_sha, &head_sha) == 0 {
        return Err(refused(&format!("No commits between {base} and {head}")));
    }
    let login = context.who.login.clone();
    let pull = context
        .state
        .new_pull(&login, (head, head_sha), (base, base_sha));
    let number = pull.number;
    context.state.pulls.push(Pull {
        title: title.to_owned(),
        body: asked.json["body"].as_str().map(str::to_owned),
        draft,
        ..pull
    });
    Ok(Answer::json(201, &full_json(context, number)?))
}

/// Title, body and state. A merged one cannot be opened again, nor one whose branch is gone.
pub(super) fn change(context: &mut HandlerContext<'_>, number: u64) -> Answered {
    context.needs(Level::Write, WRITE)?;
    let asked = context.asked;
    let git = &context.room.git;
    let pull = context.state.pull(number).ok_or_else(not_found)?;
    match asked.json["state"].as_str() {
        None => {}
        Some("closed") => {
            pull.open = false;
            pull.closed_at = Some(now());
        }
        Some("open") if pull.merged.is_some() => {
            return Err(refused(
                "state cannot be changed. The pull request was merged.",
            ));
        }
        Some("open") if git.branch(&pull.head).is_none() => {
            return Err(refused(&format!(
                "state cannot be changed. The {} branch was deleted.",
                pull.head
            )));
        }
        Some("open") => {
            pull.open = true;
            pull.closed_at = None;
        }
        Some(_) => return Err(refused("state is not one of open, closed")),
    }
    if let Some(title) = asked.json["title"].as_str() {
        pull.title = title.to_owned();
    }
    if let Some(body) = asked.json["body"].as_str() {
        pull.body = Some(body.to_owned());
    }
    pull.updated_at = now();
    Ok(Answer::json(200, &full_json(context, number)?))
}

/// With a diff each; counts of lines are always 0.
pub(super) fn files(context: &mut HandlerContext<'_>, number: u64) -> Answered {
    let named = diff(context, number, &["--name-status", "-z"])?;
    let text = String::from_utf8_lossy(&named).into_owned();
    let mut fields = text.split('\0').filter(|word| !word.is_empty());
    let mut all = Vec::new();
    while let Some(letter) = fields.next() {
        let (status, renamed) = match letter.as_bytes().first() {
            Some(b'A') => ("added", false),
            Some(b'D') => ("removed", false),
            Some(b'R') => ("renamed", true),
            _ => ("modified", false),
        };
        let before = if renamed { fields.next() } else { None };
        let path = fields.next().unwrap_or_default();
        let paths: Vec<&str> = ["--"].into_iter().chain(before).chain([path]).collect();
        let whole = String::from_utf8_lossy(&diff(context, number, &paths)?).into_owned();
        let hunks = whole
            .find("\n@@ ")
            .map(|start| whole[start + 1..].trim_end().to_owned());
        let mut file = json!({
            "sha": "0".repeat(40),
            "filename": path,
            "status": status,
            "additions": 0,
            "deletions": 0,
            "changes": 0,
        });
        if let Some(hunks) = hunks {
            file["patch"] = hunks.into();
        }
        if let Some(before) = before {
            file["previous_filename"] = before.into();
        }
        all.push(file);
    }
    plain_page(context.asked, &all)
}
