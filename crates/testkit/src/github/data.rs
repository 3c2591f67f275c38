//! Git's own objects: refs, blobs, trees, commits.
//!
//! This is the API by which a commit is made without a push: blobs, a tree on top of another, a
//! commit, and a branch that moves to it. Nothing is visible before the last step. A branch only
//! moves forward unless the request forces it.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered},
    git::Person,
    route::{HandlerContext, broken, not_found},
    shapes,
    state::{Level, now},
};

/// What a refusal names as the missing permission.
const WRITE: &str = "contents=write";

fn reference(context: &HandlerContext<'_>, branch: &str, sha: &str) -> Value {
    json!({
        "ref": format!("refs/heads/{branch}"),
        "node_id": format!("REF_{branch}"),
        "url": context.room.api(&format!("/git/refs/heads/{branch}")),
        "object": {
            "type": "commit",
            "sha": sha,
            "url": context.room.api(&format!("/git/commits/{sha}")),
        },
    })
}

/// An empty repository is a conflict (409), a missing branch is not found, as at GitHub.
pub(super) fn get_ref(context: &HandlerContext<'_>, branch: &str) -> Answered {
    match context.room.git.branch(branch) {
        Some(sha) => Ok(Answer::json(200, &reference(context, branch, &sha))),
        None if context.room.git.is_empty() => Err(Answer::error(409, "Git Repository is empty.")),
        None => Err(not_found()),
    }
}

pub(super) fn get_commit(context: &HandlerContext<'_>, sha: &str) -> Answered {
    let commit = context.room.git.commit(sha).ok_or_else(not_found)?;
    Ok(Answer::json(
        200,
        &shapes::git_commit(context.room, &commit),
    ))
}

/// More entries than the limit are left out, and `truncated` says so.
fn tree_json(context: &HandlerContext<'_>, sha: &str, recursive: &[&str]) -> Result<Value, Answer> {
    let entries = context.room.git.entries(sha, recursive).map_err(broken)?;
    let truncated = entries.len() > context.state.tree_limit;
    let entry = |entry: super::git::Entry| {
        let mut json = json!({
            "path": entry.path,
            "mode": entry.mode,
            "type": entry.kind,
            "sha": entry.sha,
        });
        // A submodule has no address here.
        if entry.kind != "commit" {
            json["url"] = context
                .room
                .api(&format!("/git/{}s/{}", entry.kind, entry.sha))
                .into();
        }
        if let Some(size) = entry.size {
            json["size"] = size.into();
        }
        json
    };
    let tree: Vec<Value> = entries
        .into_iter()
        .take(context.state.tree_limit)
        .map(entry)
        .collect();
    Ok(json!({
        "sha": sha,
        "url": context.room.api(&format!("/git/trees/{sha}")),
        "tree": tree,
        "truncated": truncated,
    }))
}

/// Any value of `recursive` is a yes, as at GitHub.
pub(super) fn get_tree(context: &HandlerContext<'_>, sha: &str) -> Answered {
    match context.room.git.kind(sha).as_deref() {
        Some("commit" | "tree") => {}
        _ => return Err(not_found()),
    }
    let recursive: &[&str] = if context.asked.query("recursive").is_some() {
        &["-r", "-t"]
    } else {
        &[]
    };
    Ok(Answer::json(200, &tree_json(context, sha, recursive)?))
}

/// Base64 in JSON, or the bytes themselves for `Accept: …raw`.
pub(super) fn get_blob(context: &HandlerContext<'_>, sha: &str) -> Answered {
    if context.room.git.kind(sha).as_deref() != Some("blob") {
        return Err(not_found());
    }
    let content = context
        .room
        .git
        .bytes(&["cat-file", "blob", sha])
        .map_err(broken)?;
    if context.asked.accepts("raw") && !context.state.json_only {
        return Ok(Answer::bytes(
            200,
            "application/vnd.github.raw+json; charset=utf-8",
            content,
        ));
    }
    Ok(Answer::json(
        200,
        &json!({
            "sha": sha,
            "node_id": format!("B_{sha}"),
            "size": content.len(),
            "url": context.room.api(&format!("/git/blobs/{sha}")),
            "content": STANDARD.encode(content),
            "encoding": "base64",
        }),
    ))
}

pub(super) fn post_blob(context: &HandlerContext<'_>) -> Answered {
    context.needs(Level::Write, WRITE)?;
    let content = context.asked.text("content")?;
    let content = match context.asked.json["encoding"].as_str() {
        Some("base64") => STANDARD
            .decode(content)
            .map_err(|_| Answer::error(422, "content is not valid Base64"))?,
        _ => content.as_bytes().to_vec(),
    };
    let sha = context.room.git.write_blob(&content).map_err(broken)?;
    let url = context.room.api(&format!("/git/blobs/{sha}"));
    Ok(Answer::json(201, &json!({"sha": sha, "url": url})))
}

/// Entries change the base tree; a `sha` of null removes a path that must be there. Without a base
/// they are the whole tree.
pub(super) fn post_tree(context: &HandlerContext<'_>) -> Answered {
    context.needs(Level::Write, WRITE)?;
    let base = context.asked.json["base_tree"].as_str();
    if base.is_some_and(|base| context.room.git.kind(base).is_none()) {
        return Err(Answer::error(422, "base_tree is not a valid tree"));
    }
    let entries = context.asked.json["tree"].as_array();
    let entries = entries.ok_or_else(|| Answer::error(422, "Invalid tree info"))?;
    let known: Vec<String> = match base {
        Some(base) => {
            let listed = context.room.git.entries(base, &["-r"]).map_err(broken)?;
            listed.into_iter().map(|entry| entry.path).collect()
        }
        None => Vec::new(),
    };
    let mut changes = Vec::new();
    for entry in entries {
        changes.extend(index_line(context, entry, &known)?.into_bytes());
    }
    let sha = context
        .room
        .git
        .write_tree(base, &changes)
        .map_err(broken)?;
    Ok(Answer::json(201, &tree_json(context, &sha, &[])?))
}

/// What `git update-index --index-info -z` reads.
fn index_line(
    context: &HandlerContext<'_>,
    entry: &Value,
    known: &[String],
) -> Result<String, Answer> {
    let invalid = |what: &str| Answer::error(422, what);
    let path = entry["path"].as_str().unwrap_or_default();
    let mode = entry["mode"].as_str().unwrap_or_default();
    let bad = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
    if path.split('/').any(bad) {
        return Err(invalid("tree.path contains a malformed path component"));
    }
    if !matches!(mode, "100644" | "100755" | "120000") {
        return Err(invalid(
            "tree.mode must be one of 100644, 100755, 040000, 160000, 120000",
        ));
    }
    match &entry["sha"] {
        Value::Null if entry.get("sha").is_some() => {
            if !known.iter().any(|known| known == path) {
                return Err(invalid("GitRPC::BadObjectState"));
            }
            Ok(format!("0 {}\t{path}\0", "0".repeat(40)))
        }
        Value::String(sha) if context.room.git.kind(sha).as_deref() == Some("blob") => {
            Ok(format!("{mode} {sha}\t{path}\0"))
        }
        _ => Err(invalid("tree.sha is not a valid blob")),
    }
}

/// Without an author the user of the token is one; without a committer the author is.
pub(super) fn post_commit(context: &HandlerContext<'_>) -> Answered {
    context.needs(Level::Write, WRITE)?;
    let git = &context.room.git;
    let message = context.asked.text("message")?;
    let tree = context.asked.text("tree")?;
    if git.kind(tree).as_deref() != Some("tree") {
        return Err(Answer::error(422, "Tree SHA does not exist"));
    }
    let parents = context.asked.json["parents"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let parents: Vec<String> = parents
        .iter()
        .filter_map(|sha| sha.as_str().map(str::to_owned))
        .collect();
    if parents
        .iter()
        .any(|sha| git.kind(sha).as_deref() != Some("commit"))
    {
        return Err(Answer::error(
            422,
            "Parent SHA does not exist or is not a commit object",
        ));
    }
    let author = person(&context.asked.json["author"], &context.who.login);
    let committer = match &context.asked.json["committer"] {
        Value::Null => author.clone(),
        given => person(given, &context.who.login),
    };
    let sha = git
        .write_commit(tree, &parents, message, Some((&author, &committer)))
        .map_err(broken)?;
    let commit = git.commit(&sha).ok_or_else(not_found)?;
    Ok(Answer::json(
        201,
        &shapes::git_commit(context.room, &commit),
    ))
}

fn person(given: &Value, login: &str) -> Person {
    let text = |name: &str| given[name].as_str().map(str::to_owned);
    Person {
        name: text("name").unwrap_or_else(|| login.to_owned()),
        email: text("email").unwrap_or_else(|| format!("{login}@users.noreply.github.com")),
        date: text("date").unwrap_or_else(|| now().to_string()),
    }
}

/// Refused if the branch exists: two that create it at once cannot both succeed.
pub(super) fn post_ref(context: &HandlerContext<'_>) -> Answered {
    context.needs(Level::Write, WRITE)?;
    let sha = context.asked.text("sha")?;
    let branch = context.asked.text("ref")?.strip_prefix("refs/heads/");
    let branch =
        branch.ok_or_else(|| Answer::error(422, "Reference name must start with 'refs/'."))?;
    if context.room.git.branch(branch).is_some() {
        return Err(Answer::error(422, "Reference already exists"));
    }
    if context.room.git.kind(sha).as_deref() != Some("commit") {
        return Err(Answer::error(422, "Object does not exist"));
    }
    let set = context.room.git.set_branch(branch, sha);
    set.map_err(|_| Answer::error(422, "Reference name is not valid"))?;
    Ok(Answer::json(201, &reference(context, branch, sha)))
}

/// Refused with "not a fast forward" unless the new commit has the old one behind it, or `force` is
/// set.
pub(super) fn patch_ref(context: &HandlerContext<'_>, branch: &str) -> Answered {
    context.needs(Level::Write, WRITE)?;
    let sha = context.asked.text("sha")?;
    let old = context.room.git.branch(branch);
    let old = old.ok_or_else(|| Answer::error(422, "Reference does not exist"))?;
    if context.room.git.kind(sha).as_deref() != Some("commit") {
        return Err(Answer::error(422, "Object does not exist"));
    }
    if context.asked.json["force"] != true && !context.room.git.is_ancestor(&old, sha) {
        return Err(Answer::error(422, "Update is not a fast forward"));
    }
    context.room.git.set_branch(branch, sha).map_err(broken)?;
    Ok(Answer::json(200, &reference(context, branch, sha)))
}

pub(super) fn delete_ref(context: &HandlerContext<'_>, branch: &str) -> Answered {
    context.needs(Level::Write, WRITE)?;
    if context.room.git.branch(branch).is_none() {
        return Err(Answer::error(422, "Reference does not exist"));
    }
    context.room.git.delete_branch(branch).map_err(broken)?;
    Ok(Answer::empty(204))
}
