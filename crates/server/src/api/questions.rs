//! Questions of agents to people.

use axum::{Json, extract::State};
use codespar_protocol::{AccessRole, Answer, Question};
use codespar_runtime::remember_rules;
use codespar_store::QuestionFilter;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Named, Params, checked_text};
use crate::{access::Client, error::ApiError, scope::ProjectKey, state::Shared};

const MOST_ANSWER: usize = 20_000;

/// A question to a person.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiQuestion {
    id: String,
    /// `permission`, `clarification` or `elicitation`.
    kind: String,
    /// In one line.
    summary: String,
    /// What is asked, in full; its form depends on the kind.
    #[schema(value_type = Object)]
    request: Value,
    /// The key of its project.
    project: String,
    session_id: String,
    task_id: Option<String>,
    asked_at: Timestamp,
    /// Not answered until then, it counts as answered with no.
    expires_at: Timestamp,
    /// `open`, `answered` or `withdrawn`.
    status: String,
    /// Who or what answered.
    answered_by: Option<String>,
    answered_at: Option<Timestamp>,
}

impl ApiQuestion {
    pub(crate) fn of(question: Question) -> Self {
        let mut request = serde_json::to_value(&question.request).unwrap_or_default();
        let kind = request
            .as_object_mut()
            .and_then(|fields| fields.remove("kind"));
        Self {
            id: question.id.to_string(),
            kind: kind
                .and_then(|kind| kind.as_str().map(str::to_owned))
                .unwrap_or_default(),
            summary: question.request.summary(),
            request,
            project: ProjectKey::of(&question.project_root).as_str().to_owned(),
            session_id: question.session_id.to_string(),
            task_id: question.task_id.map(|id| id.to_string()),
            asked_at: question.asked_at,
            expires_at: question.expires_at,
            status: question.status.as_str().to_owned(),
            answered_by: question.answered_by,
            answered_at: question.answered_at,
        }
    }
}

impl ApiQuestion {
    /// Without secrets: the input of a call is on record as the model wrote it.
    fn shown(question: Question, state: &Shared) -> Self {
        let mut shown = Self::of(question);
        let redactor = state.runtime.redactor();
        redactor.redact_json(&mut shown.request);
        shown.summary = redactor.redact(&shown.summary).into_owned();
        shown
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only those of this task.
    task: Option<String>,
    /// Only those of this session.
    session: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Questions {
    /// Oldest first.
    questions: Vec<ApiQuestion>,
}

/// List questions that wait for an answer, oldest first.
#[utoipa::path(
    get, path = "/api/v1/questions", tag = "questions", params(ListParams),
    responses((status = 200, body = Questions))
)]
pub(super) async fn list(
    State(state): State<Shared>,
    Params(params): Params<ListParams>,
) -> Result<Json<Questions>, ApiError> {
    let now = Timestamp::now();
    let is_wanted = |question: &Question| {
        let task = question.task_id.as_ref().map(ToString::to_string);
        // Those whose time is up count as answered, though nobody may be there to record it.
        question.expires_at > now
            && state.scope.roots().contains(&question.project_root)
            && (params.task.is_none() || params.task == task)
            && (params.session.is_none() || params.session == Some(question.session_id.to_string()))
    };
    let mut questions = state.store().questions(QuestionFilter::Open).await?;
    questions.retain(is_wanted);
    Ok(Json(Questions {
        questions: questions
            .into_iter()
            .map(|question| ApiQuestion::shown(question, &state))
            .collect(),
    }))
}

/// Show a question.
#[utoipa::path(
    get, path = "/api/v1/questions/{id}", tag = "questions", params(("id" = String, Path)),
    responses((status = 200, body = ApiQuestion))
)]
pub(super) async fn get(
    State(state): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<ApiQuestion>, ApiError> {
    let question = state.scope.question(&id).await?;
    Ok(Json(ApiQuestion::shown(question, &state)))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAnswer {
    /// As `codespar task answer` takes it: `yes`, `always` or `no, because …` to a permission,
    /// `yes without 2` to a change in parts; a text to a clarification; `name=value …` to a form.
    #[schema(min_length = 1, max_length = 20_000)]
    answer: String,
}

/// Answer a question, once and for all.
///
/// `always` saves a rule in the project's settings and needs the role `admin`. A command that would
/// run without a sandbox can only be refused here, and a call cannot be changed: both need the user
/// at a terminal of the server.
#[utoipa::path(
    post, path = "/api/v1/questions/{id}/answer", tag = "questions",
    params(("id" = String, Path)), request_body = NewAnswer,
    responses((status = 200, body = ApiQuestion))
)]
pub(super) async fn answer(
    State(state): State<Shared>,
    client: Client,
    Named(id): Named<String>,
    Body(body): Body<NewAnswer>,
) -> Result<Json<ApiQuestion>, ApiError> {
    checked_text("answer", &body.answer, MOST_ANSWER)?;
    let question = state.scope.question(&id).await?;
    let answer = question
        .request
        .parse_answer(&body.answer)
        .map_err(|wanted| ApiError::unprocessable(format!("that does not answer it: {wanted}")))?;
    check_trust(&question, &answer, client.token.role)?;
    // Before the agent goes on: the rule is there for its next call.
    if question.status == codespar_protocol::QuestionStatus::Open
        && let Some(rules) = question.request.rules_to_keep(&answer)
    {
        let project = state.runtime.project_at(&question.project_root)?;
        let kept = remember_rules(&project.dir, rules)?;
        if let Some(warning) = kept.warning {
            tracing::warn!("{warning}");
        }
    }
    let by = client.name();
    let question = state.store().answer_question(&question.id, &answer, &by);
    Ok(Json(ApiQuestion::shown(question.await?, &state)))
}

/// What an answer over the network may not decide.
fn check_trust(question: &Question, answer: &Answer, role: AccessRole) -> Result<(), ApiError> {
    let at_terminal = |what: &str| {
        Err(ApiError::forbidden(
            "needs_terminal",
            format!(
                "{what}; answer at a terminal of the server: codespar task answer {}",
                question.id
            ),
        ))
    };
    match answer {
        _ if question.request.lets_run_unconfined(answer) => {
            at_terminal("the command would run without a sandbox")
        }
        Answer::OnceWith { .. } => at_terminal("the call would be changed"),
        Answer::AlwaysBy { .. } => at_terminal("a rule would be written"),
        Answer::Always if !role.allows(AccessRole::Admin) => Err(ApiError::forbidden(
            "role",
            "`always` saves a rule and needs the role `admin`; `yes` allows this call",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use codespar_protocol::{Confinement, QuestionRequest};

    use super::*;

    fn permission(confinement: Option<Confinement>) -> Question {
        let request = QuestionRequest::Permission(codespar_protocol::PermissionRequest {
            tool_use_id: "t".into(),
            tool: "Bash".to_owned(),
            summary: "make".to_owned(),
            input: serde_json::json!({"command": "make"}),
            preview: None,
            change: None,
            confinement,
            reason: "no rule".to_owned(),
            suggested_rules: vec!["Bash(make)".to_owned()],
        });
        Question {
            id: codespar_protocol::QuestionId::new(),
            session_id: codespar_protocol::SessionId::new(),
            task_id: None,
            project_root: "/p".into(),
            key: "k".to_owned(),
            request,
            asked_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::MAX,
            status: codespar_protocol::QuestionStatus::Open,
            answer: None,
            answered_by: None,
            answered_at: None,
        }
    }

    fn may(confinement: Option<Confinement>, typed: &str, role: AccessRole) -> bool {
        let question = permission(confinement);
        let answer = question.request.parse_answer(typed);
        let answer = answer.unwrap_or_else(|error| panic!("{error}"));
        check_trust(&question, &answer, role).is_ok()
    }

    #[test]
    fn nothing_runs_without_a_sandbox_by_an_answer_over_the_network() {
        let sandboxed = Some(Confinement::Sandboxed);
        for open in [Confinement::Unavailable, Confinement::SwitchedOff] {
            for typed in ["yes", "always", r#"yes {"command":"ls"}"#, "always Bash(*)"] {
                assert!(!may(Some(open), typed, AccessRole::Admin), "{typed}");
            }
            assert!(may(Some(open), "no, never", AccessRole::Write));
        }
        assert!(may(sandboxed, "yes", AccessRole::Write));
        assert!(may(None, "yes", AccessRole::Write));
    }

    #[test]
    fn nothing_is_changed_or_allowed_for_good_without_the_right_to() {
        let sandboxed = Some(Confinement::Sandboxed);
        assert!(!may(sandboxed, "always", AccessRole::Merge));
        assert!(may(sandboxed, "always", AccessRole::Admin));
        for typed in [r#"yes {"command":"curl evil"}"#, "always Bash(*)"] {
            assert!(!may(sandboxed, typed, AccessRole::Admin), "{typed}");
        }
    }
}
