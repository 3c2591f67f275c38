//! Check runs, statuses, and who may do what.
//!
//! GitHub has two systems for the same thing: check runs with a conclusion, and statuses with a
//! state. A client must look at both, so the fake keeps them apart.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered, page},
    route::{HandlerContext, not_found},
    shapes,
    state::{CheckRun, Level, Status, TokenKind, now},
};

fn run_json(context: &HandlerContext<'_>, run: &CheckRun) -> Value {
    json!({
        "id": run.id,
        "node_id": format!("CR_{}", run.id),
        "name": run.name,
        "head_sha": run.commit,
        "status": if run.conclusion.is_some() { "completed" } else { "in_progress" },
        "conclusion": run.conclusion,
        "started_at": run.at.to_string(),
        "completed_at": run.conclusion.as_ref().map(|_| run.at.to_string()),
        "html_url": context.room.page(&format!("/runs/{}", run.id)),
        "details_url": context.room.page(&format!("/runs/{}", run.id)),
        "output": {"title": run.title, "summary": run.output, "text": null, "annotations_count": 0,
                   "annotations_url": context.room.api(&format!("/check-runs/{}/annotations", run.id))},
    })
}

fn status_json(context: &HandlerContext<'_>, status: &Status) -> Value {
    json!({
        "id": status.id,
        "node_id": format!("SC_{}", status.id),
        "url": context.room.api(&format!("/statuses/{}", status.commit)),
        "context": status.context,
        "state": status.state,
        "description": null,
        "target_url": context.room.page(&format!("/statuses/{}", status.id)),
        "created_at": status.at.to_string(),
        "updated_at": status.at.to_string(),
    })
}

/// 422 for a commit that is not there, as at GitHub, not 404.
fn exists(context: &HandlerContext<'_>, sha: &str) -> Result<(), Answer> {
    match context.room.git.kind(sha).as_deref() {
        Some("commit") => Ok(()),
        _ => Err(Answer::error(
            422,
            &format!("No commit found for SHA: {sha}"),
        )),
    }
}

/// As for a token without the permission.
fn readable(context: &HandlerContext<'_>, permission: &str) -> Result<(), Answer> {
    match context.state.checks_refused {
        None => Ok(()),
        Some(404) => Err(not_found()),
        Some(status) => {
            let refused = Answer::error(status, "Resource not accessible by personal access token");
            Err(refused.header("X-Accepted-GitHub-Permissions", permission))
        }
    }
}

pub(super) fn runs(context: &HandlerContext<'_>, sha: &str) -> Answered {
    readable(context, "checks=read")?;
    exists(context, sha)?;
    let of_commit = context
        .state
        .check_runs
        .iter()
        .filter(|run| run.commit == sha);
    let all: Vec<Value> = of_commit.map(|run| run_json(context, run)).collect();
    let count = all.len();
    page(
        context.asked,
        &all,
        |runs| json!({"total_count": count, "check_runs": runs}),
    )
}

/// Pending where there is no status at all, as at GitHub.
pub(super) fn combined(context: &HandlerContext<'_>, sha: &str) -> Answered {
    readable(context, "statuses=read")?;
    exists(context, sha)?;
    let of_commit: Vec<&Status> = context
        .state
        .statuses
        .iter()
        .filter(|status| status.commit == sha)
        .collect();
    let any = |states: &[&str]| {
        of_commit
            .iter()
            .any(|status| states.contains(&status.state.as_str()))
    };
    let state = if any(&["failure", "error"]) {
        "failure"
    } else if of_commit.is_empty() || any(&["pending"]) {
        "pending"
    } else {
        "success"
    };
    let all: Vec<Value> = of_commit
        .iter()
        .map(|status| status_json(context, status))
        .collect();
    let count = all.len();
    page(context.asked, &all, |statuses| {
        json!({
            "state": state,
            "sha": sha,
            "total_count": count,
            "statuses": statuses,
            "url": context.room.api(&format!("/commits/{sha}/status")),
            "commit_url": context.room.api(&format!("/commits/{sha}")),
        })
    })
}

/// Only an app may.
pub(super) fn post_run(context: &mut HandlerContext<'_>) -> Answered {
    if context.who.kind != TokenKind::App {
        return Err(Answer::error(
            403,
            "You must authenticate via a GitHub App.",
        ));
    }
    let asked = &context.asked.json;
    let commit = context.asked.text("head_sha")?.to_owned();
    exists(context, &commit)?;
    let run = CheckRun {
        name: context.asked.text("name")?.to_owned(),
        title: asked["output"]["title"].as_str().map(str::to_owned),
        output: asked["output"]["summary"].as_str().map(str::to_owned),
        conclusion: asked["conclusion"].as_str().map(str::to_owned),
        id: context.state.next_id(),
        commit,
        at: now(),
    };
    let answer = Answer::json(201, &run_json(context, &run));
    context.state.check_runs.push(run);
    Ok(answer)
}

/// A description has at most 140 characters.
pub(super) fn post_status(context: &mut HandlerContext<'_>, sha: &str) -> Answered {
    context.needs(Level::Write, "statuses=write")?;
    exists(context, sha)?;
    let asked = &context.asked.json;
    let description = asked["description"].as_str().unwrap_or_default();
    if description.chars().count() > 140 {
        return Err(Answer::error(422, "description is too long"));
    }
    let (name, state) = (context.asked.text("context")?, context.asked.text("state")?);
    context.state.set_status(sha, name, state);
    Ok(Answer::json(201, &json!({"state": state, "context": name})))
}

/// 204 if someone was let in, whatever everybody may.
pub(super) fn collaborator(context: &HandlerContext<'_>, login: &str) -> Answered {
    match context.state.level_of(login) {
        Some(Level::None) | None => Err(not_found()),
        Some(_) => Ok(Answer::empty(204)),
    }
}

/// Only those who may push can ask.
pub(super) fn permission(context: &HandlerContext<'_>, login: &str) -> Answered {
    if context.who.level < Level::Write {
        return Err(Answer::error(
            403,
            "Must have push access to view collaborator permission.",
        ));
    }
    let everybody = context.state.public.then_some(Level::Read);
    let level = context.state.level_of(login).max(everybody);
    let level = level.ok_or_else(not_found)?;
    Ok(Answer::json(
        200,
        &json!({"permission": level.word(), "role_name": level.word(), "user": shapes::user(login)}),
    ))
}
