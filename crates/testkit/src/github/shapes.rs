//! The JSON of people, repositories and commits.
//!
//! Only fields that a client could look at, with the names and types of the real API. Addresses
//! lead back to the fake.

use serde_json::{Value, json};

use super::{
    git::{Commit, Person},
    room::Room,
    state::{Level, State},
};

/// A name that ends in `[bot]` is an app.
pub(super) fn user(login: &str) -> Value {
    let kind = if login.ends_with("[bot]") {
        "Bot"
    } else {
        "User"
    };
    json!({
        "login": login,
        "id": id_of(login),
        "node_id": format!("U_{login}"),
        "type": kind,
        "site_admin": false,
    })
}

/// The same for the same name.
pub(super) fn id_of(login: &str) -> u32 {
    login.bytes().fold(7, |id: u32, byte| {
        id.wrapping_mul(31).wrapping_add(byte.into()) >> 1
    })
}

/// The ways of merging are shown only to those who may merge, as at GitHub.
pub(super) fn repo(room: &Room, state: &State, level: Level) -> Value {
    let mut repo = json!({
        "id": 1,
        "node_id": "R_1",
        "name": room.name,
        "full_name": format!("{}/{}", room.owner, room.name),
        "private": true,
        "owner": user(&room.owner),
        "html_url": room.page(""),
        "url": room.api(""),
        "default_branch": room.default_branch,
        "permissions": {
            "admin": level >= Level::Admin,
            "push": level >= Level::Write,
            "pull": level >= Level::Read,
        },
    });
    if level >= Level::Write {
        repo["allow_merge_commit"] = state.merge_methods.merge.into();
        repo["allow_squash_merge"] = state.merge_methods.squash.into();
        repo["allow_rebase_merge"] = state.merge_methods.rebase.into();
    }
    repo
}

fn person(person: &Person) -> Value {
    json!({"name": person.name, "email": person.email, "date": person.date})
}

fn parents(room: &Room, commit: &Commit) -> Vec<Value> {
    let parent = |sha: &String| {
        json!({
            "sha": sha,
            "url": room.api(&format!("/git/commits/{sha}")),
            "html_url": room.page(&format!("/commit/{sha}")),
        })
    };
    commit.parents.iter().map(parent).collect()
}

/// As the git data API tells it.
pub(super) fn git_commit(room: &Room, commit: &Commit) -> Value {
    json!({
        "sha": commit.sha,
        "node_id": format!("C_{}", commit.sha),
        "url": room.api(&format!("/git/commits/{}", commit.sha)),
        "html_url": room.page(&format!("/commit/{}", commit.sha)),
        "author": person(&commit.author),
        "committer": person(&commit.committer),
        "message": commit.message,
        "tree": {
            "sha": commit.tree,
            "url": room.api(&format!("/git/trees/{}", commit.tree)),
        },
        "parents": parents(room, commit),
    })
}

/// As lists tell it.
pub(super) fn listed_commit(room: &Room, commit: &Commit) -> Value {
    json!({
        "sha": commit.sha,
        "node_id": format!("C_{}", commit.sha),
        "url": room.api(&format!("/commits/{}", commit.sha)),
        "html_url": room.page(&format!("/commit/{}", commit.sha)),
        "commit": {
            "message": commit.message,
            "author": person(&commit.author),
            "committer": person(&commit.committer),
            "tree": {"sha": commit.tree, "url": room.api(&format!("/git/trees/{}", commit.tree))},
            "url": room.api(&format!("/git/commits/{}", commit.sha)),
            "comment_count": 0,
        },
        "author": null,
        "committer": null,
        "parents": parents(room, commit),
    })
}
