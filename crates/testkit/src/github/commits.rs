//! Commits in a row, and code search.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered, page, plain_page},
    route::{HandlerContext, broken, not_found},
    shapes,
};

pub(super) fn list(desk: &HandlerContext<'_>) -> Answered {
    let git = &desk.room.git;
    let from = desk.asked.query("sha").unwrap_or(&desk.room.default_branch);
    let from = git
        .branch(from)
        .or_else(|| git.kind(from).map(|_| from.to_owned()));
    let log = git.log(&from.ok_or_else(not_found)?, &[]).map_err(broken)?;
    let all: Vec<Value> = log
        .iter()
        .map(|commit| shapes::listed_commit(desk.room, commit))
        .collect();
    plain_page(desk.asked, &all)
}

/// Files of the default branch that have all the words.
pub(super) fn search(desk: &HandlerContext<'_>) -> Answered {
    let query = desk.asked.query("q").unwrap_or_default();
    let (places, words): (Vec<&str>, Vec<&str>) = query
        .split_whitespace()
        .partition(|word| word.contains(':'));
    let here = format!("repo:{}/{}", desk.room.owner, desk.room.name);
    if query.chars().count() > 256 || words.is_empty() {
        let errors = json!([{"resource": "Search", "field": "q", "code": "invalid"}]);
        return Err(Answer::invalid("Validation Failed", &errors));
    }
    if places != [here.as_str()] {
        let message = "The listed users and repositories cannot be searched either because the \
                       resources do not exist or you do not have permission to view them.";
        let errors =
            json!([{"message": message, "resource": "Search", "field": "q", "code": "invalid"}]);
        return Err(Answer::invalid("Validation Failed", &errors));
    }
    let mut args = vec!["grep", "-l", "-z", "-i", "-F", "--all-match"];
    for word in &words {
        args.extend(["-e", word]);
    }
    args.push(&desk.room.default_branch);
    // It ends with 1 where nothing is found.
    let found = desk.room.git.text(&args).unwrap_or_default();
    let file = |line: &str| {
        let path = line.split_once(':').map(|(_, path)| path)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(json!({
            "name": name,
            "path": path,
            "sha": "0".repeat(40),
            "url": desk.room.api(&format!("/contents/{path}")),
            "git_url": desk.room.api("/git/blobs"),
            "html_url": desk.room.page(&format!("/blob/{path}")),
            "score": 1.0,
        }))
    };
    let all: Vec<Value> = found.split('\0').filter_map(file).collect();
    let count = all.len();
    page(
        desk.asked,
        &all,
        |items| json!({"total_count": count, "incomplete_results": false, "items": items}),
    )
}
