//! Which tool does what.
//!
//! Tools for tasks, questions and merges are requests to our own API, made within the process:
//! roles, scope, limits and redaction are those of the API, and there is no second place where they
//! could be forgotten. Reviews and questions to a model end when the caller cancels them, which a request does not, and searches have no route: these call the operations directly and check their arguments here.

use std::sync::Arc;

use axum::http::Method;
use codespar_protocol::Usd;
use codespar_runtime::{AskOnce, Project, ReviewRequest, ask_once, is_model, locate_files};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResult, JsonObject},
    service::RequestContext,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{McpHandler, api::said_no, tools};
use crate::{
    access::Client,
    api::{ApiReviewed, reach_pulls},
    error::ApiError,
    scope::ProjectKey,
};

/// In bytes; as the API takes it.
const MOST_TEXT: usize = 100_000;
const USUAL_FILES: usize = 5;

/// A result for the model of the caller, or an error of the protocol.
pub(super) type Called = Result<CallToolResult, ErrorData>;
/// What the client is told instead of a result.
pub(super) type Refusal = Box<CallToolResult>;

/// Unknown arguments are refused in all of these forms: a misspelt `max_budget_usd` must not mean
/// no limit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Review {
    number: u64,
    model: Option<String>,
    max_budget_usd: Option<f64>,
    project: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    number: u64,
    strategy: Option<String>,
    project: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Locate {
    instruction: String,
    limit: Option<usize>,
    project: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    question: String,
    model: Option<String>,
    max_budget_usd: Option<f64>,
    project: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneTask {
    task_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    task_id: String,
    offset: Option<u64>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stop {
    task_id: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Questions {
    task_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewAnswer {
    question_id: String,
    answer: String,
}

/// Arguments of a call in their form; the error names the field.
pub(super) fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ErrorData> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

/// The text of an error as a result. Errors of the protocol are for calls that are malformed;
/// models mend what they can read.
pub(super) fn refused(error: impl std::fmt::Display) -> CallToolResult {
    said_no(&error.to_string())
}

fn api_refused(error: &ApiError) -> CallToolResult {
    said_no(error.message())
}

impl McpHandler {
    /// A tool that the role of the client does not reach is refused, also if it was not listed.
    pub(super) async fn call(
        &self,
        client: Client,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Called {
        let name = request.name.as_ref();
        let Some(offered) = tools::find(name) else {
            return Err(ErrorData::invalid_params(
                format!("there is no tool `{name}`"),
                None,
            ));
        };
        if !client.token.role.allows(offered.role) {
            return Ok(said_no(&format!(
                "`{name}` needs the role `{}`; this client has `{}`",
                offered.role, client.token.role
            )));
        }
        let given = request.arguments.unwrap_or_default();
        match name {
            "dev" => self.dev(client, read(given)?, &context).await,
            "review" => self.review(&read(given)?, &context.ct).await,
            "merge" => self.merge(client, read(given)?).await,
            "locate" => self.locate(read(given)?).await,
            "ask" => self.ask(read(given)?, &context.ct).await,
            _ => self.call_task_tool(name, client, given).await,
        }
    }

    /// Each of these is one request. The last arm is `task_answer`: names that are not offered do
    /// not get here.
    async fn call_task_tool(&self, name: &str, client: Client, given: JsonObject) -> Called {
        match name {
            "task_list" => {
                let path = format!("/api/v1/tasks{}", query(&given)?);
                self.through_api(client, Method::GET, &path, None).await
            }
            "task_show" => self.show_task(client, read(given)?).await,
            "task_output" => {
                let Output {
                    task_id,
                    offset,
                    limit,
                } = read(given)?;
                let mut path = format!("{}/output", task_path(&task_id)?);
                path.push_str(&format!("?offset={}", offset.unwrap_or(0)));
                if let Some(limit) = limit {
                    path.push_str(&format!("&limit={limit}"));
                }
                self.through_api(client, Method::GET, &path, None).await
            }
            "task_stop" => {
                let Stop { task_id, reason } = read(given)?;
                let path = format!("{}/stop", task_path(&task_id)?);
                let body = json!({ "reason": reason });
                self.through_api(client, Method::POST, &path, Some(&body))
                    .await
            }
            "task_questions" => {
                let Questions { task_id } = read(given)?;
                let path = match task_id {
                    Some(id) => format!("/api/v1/questions?task={}", word(&id)?),
                    None => "/api/v1/questions".to_owned(),
                };
                self.through_api(client, Method::GET, &path, None).await
            }
            _ => {
                let NewAnswer {
                    question_id,
                    answer,
                } = read(given)?;
                let path = format!("/api/v1/questions/{}/answer", word(&question_id)?);
                let body = json!({ "answer": answer });
                self.through_api(client, Method::POST, &path, Some(&body))
                    .await
            }
        }
    }

    /// What the API refuses is a result for the model of the caller, with the words of the API.
    async fn through_api(
        &self,
        client: Client,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Called {
        let answer = self.api.ask(client, method, path, body).await?;
        Ok(match answer {
            Ok(value) => CallToolResult::structured(value),
            Err(refused) => refused,
        })
    }

    /// The record and its steps are two resources of the API and one answer here: a model asks once
    /// for how a run goes. Without steps the record is still worth having.
    async fn show_task(&self, client: Client, OneTask { task_id }: OneTask) -> Called {
        let path = task_path(&task_id)?;
        let task = self.api.ask(client.clone(), Method::GET, &path, None);
        let mut task = match task.await? {
            Ok(task) => task,
            Err(refused) => return Ok(refused),
        };
        let steps = format!("{path}/steps");
        let steps = self.api.ask(client, Method::GET, &steps, None).await?;
        if let (Ok(steps), Some(task)) = (steps, task.as_object_mut()) {
            task.insert("steps".to_owned(), steps["steps"].clone());
        }
        Ok(CallToolResult::structured(task))
    }

    /// The project that is named, or the only one.
    pub(super) fn project(&self, key: Option<&str>) -> Result<Arc<Project>, Refusal> {
        let found = match key {
            Some(key) => self.state.scope.project(key),
            None => self.state.scope.only_project(),
        };
        found.map_err(|error| Box::new(api_refused(&error)))
    }

    /// A cancelled review asks the model no more, and posts nothing.
    async fn review(&self, wanted: &Review, cancel: &CancellationToken) -> Called {
        let project = match self.project(wanted.project.as_deref()) {
            Ok(project) => project,
            Err(refused) => return Ok(*refused),
        };
        let request = match (
            known_model(&project, wanted.model.as_deref()),
            wanted.max_budget_usd,
        ) {
            (Err(unknown), _) => return Ok(*unknown),
            (Ok(model), budget) => match budget.map(dollars).transpose() {
                Err(refused) => return Ok(*refused),
                Ok(max_budget) => ReviewRequest { model, max_budget },
            },
        };
        let key = ProjectKey::of(&project.dir.root);
        let pulls = match reach_pulls(&self.state, key.as_str()).await {
            Ok(pulls) => pulls,
            Err(error) => return Ok(api_refused(&error)),
        };
        Ok(match pulls.review(wanted.number, &request, cancel).await {
            Ok(reviewed) => structured(&ApiReviewed::from(reviewed))?,
            Err(error) => refused(error),
        })
    }

    /// A merge that has begun is made to its end.
    async fn merge(&self, client: Client, wanted: Merge) -> Called {
        let project = match self.project(wanted.project.as_deref()) {
            Ok(project) => project,
            Err(refused) => return Ok(*refused),
        };
        let key = ProjectKey::of(&project.dir.root);
        let path = format!(
            "/api/v1/projects/{}/pulls/{}/merge",
            key.as_str(),
            wanted.number
        );
        let body = json!({ "strategy": wanted.strategy });
        self.through_api(client, Method::POST, &path, Some(&body))
            .await
    }

    /// Offline, and without a model: it costs nothing, so the role to read is enough.
    async fn locate(&self, wanted: Locate) -> Called {
        let project = match self.project(wanted.project.as_deref()) {
            Ok(project) => project,
            Err(refused) => return Ok(*refused),
        };
        if let Err(refused) = text("instruction", &wanted.instruction) {
            return Ok(*refused);
        }
        let number = wanted.limit.unwrap_or(USUAL_FILES).clamp(1, 100);
        let ranked = locate_files(&project.dir, wanted.instruction, number);
        Ok(match ranked.await {
            Err(error) => refused(error),
            Ok(files) => {
                let files = files.iter().map(|file| {
                    let reasons: Vec<&str> =
                        file.reasons.iter().map(|reason| reason.as_str()).collect();
                    json!({"path": file.path, "score": file.score, "reasons": reasons})
                });
                CallToolResult::structured(json!({ "files": files.collect::<Vec<_>>() }))
            }
        })
    }

    /// The model sees the question alone. It is charged to the project, whose settings decide which
    /// models there are.
    async fn ask(&self, wanted: Ask, cancel: &CancellationToken) -> Called {
        let project = match self.project(wanted.project.as_deref()) {
            Ok(project) => project,
            Err(refused) => return Ok(*refused),
        };
        let checked = text("question", &wanted.question)
            .and_then(|()| known_model(&project, wanted.model.as_deref()))
            .and_then(|model| Ok((model, wanted.max_budget_usd.map(dollars).transpose()?)));
        let (model, max_budget) = match checked {
            Ok(checked) => checked,
            Err(refused) => return Ok(*refused),
        };
        let request = AskOnce {
            question: wanted.question,
            model,
            max_budget,
            ..AskOnce::default()
        };
        Ok(match ask_once(request, &project.dir, cancel).await {
            Ok(reply) => CallToolResult::structured(json!({
                "answer": reply.text,
                "model": reply.model,
                "cost_usd": reply.cost.known().map(|usd| usd.dollars()),
            })),
            Err(error) => refused(error),
        })
    }
}

fn structured(value: &impl serde::Serialize) -> Called {
    let value = serde_json::to_value(value);
    let value = value.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(CallToolResult::structured(value))
}

/// Checked before a model is asked: an empty question costs as much as a good one.
fn text(name: &str, value: &str) -> Result<(), Refusal> {
    match value.trim().is_empty() || value.len() > MOST_TEXT || value.contains('\0') {
        true => Err(Box::new(said_no(&format!(
            "`{name}` must have 1 to {MOST_TEXT} bytes of text"
        )))),
        false => Ok(()),
    }
}

/// A caller chooses among the models that the server knows.
fn known_model(project: &Project, model: Option<&str>) -> Result<Option<String>, Refusal> {
    match model {
        Some(model) if !is_model(&project.dir, model) => {
            let unknown = said_no("this server does not know that model");
            Err(Box::new(unknown))
        }
        model => Ok(model.map(str::to_owned)),
    }
}

/// Zero would mean nothing can be called, and is a mistake of whoever wrote it.
fn dollars(amount: f64) -> Result<Usd, Refusal> {
    Usd::from_dollars(amount)
        .filter(|usd| *usd > Usd::ZERO)
        .ok_or_else(|| Box::new(said_no("`max_budget_usd` is an amount above zero")))
}

/// An id goes into a path: nothing else may.
fn word(text: &str) -> Result<&str, ErrorData> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.len() <= 100 && text.chars().all(is_fine) {
        true => Ok(text),
        false => Err(ErrorData::invalid_params("that is not an id", None)),
    }
}

pub(super) fn task_path(id: &str) -> Result<String, ErrorData> {
    Ok(format!("/api/v1/tasks/{}", word(id)?))
}

/// Arguments as the query of a request; the API checks them.
fn query(given: &JsonObject) -> Result<String, ErrorData> {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in given {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => {
                return Err(ErrorData::invalid_params(
                    format!("`{name}` is a text or a number"),
                    None,
                ));
            }
        };
        pairs.append_pair(name, &text);
    }
    let query = pairs.finish();
    Ok(match query.is_empty() {
        true => query,
        false => format!("?{query}"),
    })
}
