//! Whether a pull request can be merged, and merging it.
//!
//! The answer to "can it be merged" and the refusal of a merge come from one function, so they
//! never disagree. Of several obstacles the first counts: conflicts, a draft, the rule of the base
//! branch, checks that are not green. The last one does not stop a merge.

use serde_json::json;

use super::{
    answer::{Answer, Answered},
    git::Joined,
    route::{HandlerContext, broken, not_found},
    state::{BranchRule, Level, Pull, now},
};

/// GitHub's words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Clean,
    Unstable,
    Draft,
    Dirty,
    Blocked,
    Behind,
}

impl Standing {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Unstable => "unstable",
            Self::Draft => "draft",
            Self::Dirty => "dirty",
            Self::Blocked => "blocked",
            Self::Behind => "behind",
        }
    }
}

/// Joins the two commits each time, as they are now.
pub(super) fn standing(context: &HandlerContext<'_>, pull: &Pull) -> Result<Standing, Answer> {
    let git = &context.room.git;
    if let Joined::Conflict = git
        .join(None, &pull.base_sha, &pull.head_sha)
        .map_err(broken)?
    {
        return Ok(Standing::Dirty);
    }
    if pull.draft {
        return Ok(Standing::Draft);
    }
    let approved = || {
        let mut reviews = context.state.reviews.iter();
        reviews.any(|review| review.pull == pull.number && review.state == "APPROVED")
    };
    match context.state.rules.get(&pull.base) {
        Some(BranchRule::Approval) if !approved() => return Ok(Standing::Blocked),
        Some(BranchRule::UpToDate) if !git.is_ancestor(&pull.base_sha, &pull.head_sha) => {
            return Ok(Standing::Behind);
        }
        _ => {}
    }
    let runs = context
        .state
        .check_runs
        .iter()
        .filter(|run| run.commit == pull.head_sha);
    let statuses = context
        .state
        .statuses
        .iter()
        .filter(|status| status.commit == pull.head_sha);
    let good = runs.map(|run| run.conclusion.as_deref() == Some("success"));
    let all_good = good
        .chain(statuses.map(|status| status.state == "success"))
        .all(|good| good);
    Ok(if all_good {
        Standing::Clean
    } else {
        Standing::Unstable
    })
}

/// With `sha`, only if the head is still that commit (409 otherwise). 405 says that it cannot be
/// merged now, with the reason.
pub(super) fn merge(context: &mut HandlerContext<'_>, number: u64) -> Answered {
    context.needs(Level::Write, "contents=write")?;
    let Some(pull) = context
        .state
        .pulls
        .iter()
        .find(|pull| pull.number == number)
    else {
        return Err(not_found());
    };
    let asked = &context.asked.json;
    let method = asked["merge_method"].as_str().unwrap_or("merge");
    let refused = |message: &str| Err(Answer::error(405, message));
    if !pull.open {
        return refused("Pull Request is not mergeable");
    }
    if asked["sha"]
        .as_str()
        .is_some_and(|sha| sha != pull.head_sha)
    {
        let message = "Head branch was modified. Review and try the merge again.";
        return Err(Answer::error(409, message));
    }
    let methods = context.state.merge_methods;
    match method {
        "merge" if !methods.merge => {
            return refused("Merge commits are not allowed on this repository.");
        }
        "squash" if !methods.squash => {
            return refused("Squash merges are not allowed on this repository.");
        }
        "rebase" if !methods.rebase => {
            return refused("Rebase merges are not allowed on this repository.");
        }
        "merge" | "squash" | "rebase" => {}
        _ => {
            return Err(Answer::error(
                422,
                "merge_method is not one of merge, squash, rebase",
            ));
        }
    }
    match standing(context, pull)? {
        Standing::Dirty => return refused("Pull Request is not mergeable"),
        Standing::Draft => return refused("Pull Request is still a draft"),
        Standing::Blocked => {
            return refused(
                "At least 1 approving review is required by reviewers with write access.",
            );
        }
        Standing::Behind => return refused("Head branch is not up to date with the base branch."),
        Standing::Clean | Standing::Unstable => {}
    }
    let title = asked["commit_title"].as_str();
    let sha = match method {
        "rebase" => replay(context, pull)?,
        _ => join(context, pull, method, title)?,
    };
    context
        .room
        .git
        .set_branch(&pull.base, &sha)
        .map_err(broken)?;
    if let Some(pull) = context.state.pull(number) {
        pull.open = false;
        pull.merged = Some((sha.clone(), now()));
        pull.closed_at = Some(now());
        pull.updated_at = now();
    }
    let body = json!({"sha": sha, "merged": true, "message": "Pull Request successfully merged"});
    Ok(Answer::json(200, &body))
}

/// A merge commit with both parents, or for `squash` one with the base alone. A given title
/// replaces ours.
fn join(
    context: &HandlerContext<'_>,
    pull: &Pull,
    method: &str,
    title: Option<&str>,
) -> Result<String, Answer> {
    let git = &context.room.git;
    let Joined::Tree(tree) = git
        .join(None, &pull.base_sha, &pull.head_sha)
        .map_err(broken)?
    else {
        return Err(Answer::error(405, "Pull Request is not mergeable"));
    };
    let (parents, own_title) = if method == "squash" {
        (
            vec![pull.base_sha.clone()],
            format!("{} (#{})", pull.title, pull.number),
        )
    } else {
        let title = format!(
            "Merge pull request #{} from {}/{}",
            pull.number, context.room.owner, pull.head
        );
        (vec![pull.base_sha.clone(), pull.head_sha.clone()], title)
    };
    let message = title.map_or(own_title, str::to_owned);
    git.write_commit(&tree, &parents, &message, None)
        .map_err(broken)
}

/// One by one on top of the base. Authors, committers and messages stay.
fn replay(context: &HandlerContext<'_>, pull: &Pull) -> Result<String, Answer> {
    let git = &context.room.git;
    let range = format!("{}..{}", pull.base_sha, pull.head_sha);
    let commits = git
        .log(&range, &["--reverse", "--topo-order"])
        .map_err(broken)?;
    let mut top = pull.base_sha.clone();
    for commit in commits {
        let parent = commit.parents.first().map(String::as_str);
        let Joined::Tree(tree) = git.join(parent, &top, &commit.sha).map_err(broken)? else {
            return Err(Answer::error(
                405,
                "This branch can't be rebased due to conflicts",
            ));
        };
        top = git
            .write_commit(
                &tree,
                &[top],
                &commit.message,
                Some((&commit.author, &commit.committer)),
            )
            .map_err(broken)?;
    }
    Ok(top)
}
