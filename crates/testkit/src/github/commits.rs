//! Commits in a row, and code search.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered, page, plain_page},
    route::{HandlerContext, broken, not_found},
    shapes,
};

/// From a branch or a commit (`sha`), by default the default branch; newest first.
pub(super) fn list(context: &HandlerContext<'_>) -> Answered {
    let git = &context.room.git;
    let from = context
        .asked
        .query("sha")
        .unwrap_or(&context.room.default_branch);
    let from = git
        .branch(from)
        .or_else(|| git.kind(from).map(|_| from.to_owned()));
    let log = git.log(&from.ok_or_else(not_found)?, &[]).map_err(broken)?;
    let all: Vec<Value> = log
        .iter()
        .map(|commit| shapes::listed_commit(context.room, commit))
        .collect();
    plain_page(context.asked, &all)
}

/// Files of the default branch that have all the words, in upper or lower case. The query must name
/// this repository by `repo:`, and no other place.
pub(super) fn search(context: &HandlerContext<'_>) -> Answered {
    let query = context.asked.query("q").unwrap_or_default();
    let (places, words): (Vec<&str>, Vec<&str>) = query
        .split_whitespace()
        .partition(|word| word.contains(':'));
    let here = format!("repo:{}/{}", context.room.owner, context.room.name);
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
    args.push(&context.room.default_branch);
    // It ends with 1 where nothing is found.
    let found = context.room.git.text(&args).unwrap_or_default();
    let file = |line: &str| {
        let path = line.split_once(':').map(|(_, path)| path)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(json!({
            "name": name,
            "path": path,
            "sha": "0".repeat(40),
            "url": context.room.api(&format!("/contents/{path}")),
            "git_url": context.room.api("/git/blobs"),
            "html_url": context.room.page(&format!("/blob/{path}")),
            "score": 1.0,
        }))
    };
    let all: Vec<Value> = found.split('\0').filter_map(file).collect();
    let count = all.len();
    page(
        context.asked,
        &all,
        |items| json!({"total_count": count, "incomplete_results": false, "items": items}),
    )
}
