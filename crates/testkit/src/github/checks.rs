//! Check runs, statuses, and who may do what.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Answered, page},
    route::{HandlerContext, not_found},
    shapes,
    state::{CheckRun, Level, Status},
};

fn run_json(desk: &HandlerContext<'_>, run: &CheckRun) -> Value {
    json!({
        "id": run.id,
        "node_id": format!("CR_{}", run.id),
        "name": run.name,
        "head_sha": run.commit,
        "status": if run.conclusion.is_some() { "completed" } else { "in_progress" },
        "conclusion": run.conclusion,
        "started_at": run.at.to_string(),
        "completed_at": run.conclusion.as_ref().map(|_| run.at.to_string()),
        "html_url": desk.room.page(&format!("/runs/{}", run.id)),
        "details_url": desk.room.page(&format!("/runs/{}", run.id)),
        "output": {"title": null, "summary": null, "text": null, "annotations_count": 0,
                   "annotations_url": desk.room.api(&format!("/check-runs/{}/annotations", run.id))},
    })
}

fn status_json(desk: &HandlerContext<'_>, status: &Status) -> Value {
    json!({
        "id": status.id,
        "node_id": format!("SC_{}", status.id),
        "url": desk.room.api(&format!("/statuses/{}", status.commit)),
        "context": status.context,
        "state": status.state,
        "description": null,
        "target_url": desk.room.page(&format!("/statuses/{}", status.id)),
        "created_at": status.at.to_string(),
        "updated_at": status.at.to_string(),
    })
}

fn exists(desk: &HandlerContext<'_>, sha: &str) -> Result<(), Answer> {
    match desk.room.git.kind(sha).as_deref() {
        Some("commit") => Ok(()),
        _ => Err(Answer::error(
            422,
            &format!("No commit found for SHA: {sha}"),
        )),
    }
}

pub(super) fn runs(desk: &HandlerContext<'_>, sha: &str) -> Answered {
    exists(desk, sha)?;
    let of_commit = desk.state.check_runs.iter().filter(|run| run.commit == sha);
    let all: Vec<Value> = of_commit.map(|run| run_json(desk, run)).collect();
    let count = all.len();
    page(
        desk.asked,
        &all,
        |runs| json!({"total_count": count, "check_runs": runs}),
    )
}

pub(super) fn combined(desk: &HandlerContext<'_>, sha: &str) -> Answered {
    exists(desk, sha)?;
    let of_commit: Vec<&Status> = desk
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
        .map(|status| status_json(desk, status))
        .collect();
    let count = all.len();
    page(desk.asked, &all, |statuses| {
        json!({
            "state": state,
            "sha": sha,
            "total_count": count,
            "statuses": statuses,
            "url": desk.room.api(&format!("/commits/{sha}/status")),
            "commit_url": desk.room.api(&format!("/commits/{sha}")),
        })
    })
}

pub(super) fn permission(desk: &HandlerContext<'_>, login: &str) -> Answered {
    if desk.who.level < Level::Write {
        return Err(Answer::error(
            403,
            "Must have push access to view collaborator permission.",
        ));
    }
    let level = desk.state.level_of(login).ok_or_else(not_found)?;
    Ok(Answer::json(
        200,
        &json!({"permission": level.word(), "role_name": level.word(), "user": shapes::user(login)}),
    ))
}
