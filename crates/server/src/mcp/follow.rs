//! A run of the dev agent, followed to its end with its steps as progress.
//!
//! Steps are read from the record, so a run that another process takes over is followed as well.

use axum::http::Method;
use codespar_protocol::TaskId;
use codespar_store::{ChangeKind, StoreChange};
use codespar_tasks::Waited;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, ProgressNotificationParam},
    service::RequestContext,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Link, McpHandler,
    calls::{Called, refused, task_path},
};
use crate::access::Client;

/// A run has about so many steps.
const STEPS: f64 = 8.0;

impl McpHandler {
    /// The order goes through the API, like any other client's, so the same checks and limits hold
    /// for it. The result is the record of the task; one that did not complete is a result marked
    /// as an error, with the reason in it.
    pub(super) async fn dev(
        &self,
        client: Client,
        mut order: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Called {
        let waits = match order.remove("wait") {
            None => true,
            Some(Value::Bool(waits)) => waits,
            Some(_) => return Err(ErrorData::invalid_params("`wait` is true or false", None)),
        };
        let path = "/api/v1/tasks";
        let order = Value::Object(order);
        let started = self
            .api
            .ask(client.clone(), Method::POST, path, Some(&order));
        let started = match started.await? {
            Ok(started) => started,
            Err(refused) => return Ok(refused),
        };
        let id = started["task_id"].as_str().unwrap_or_default().to_owned();
        if !waits {
            return Ok(CallToolResult::structured(started));
        }
        if let Err(why) = self.follow(&id, &client, context).await {
            return Ok(refused(why));
        }
        let path = task_path(&id)?;
        let ended = self.api.ask(client, Method::GET, &path, None);
        Ok(match ended.await? {
            Ok(task) if task["status"] == "completed" => CallToolResult::structured(task),
            Ok(task) => CallToolResult::structured_error(task),
            Err(refused) => refused,
        })
    }

    /// Until the end of the task, or of the call. Over standard streams a cancelled call stops the
    /// task; where the client is gone the task goes on.
    async fn follow(
        &self,
        id: &str,
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), String> {
        let id: TaskId = id.parse().map_err(|_| "the task has no id".to_owned())?;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let task = self.state.scope.task(id.as_str()).await;
        let task = task.map_err(|error| error.message().to_owned())?;
        let authority = task.authority.ok_or("the task belongs to no project")?;
        let project = self.state.runtime.project_at(&authority.project_root);
        let hub = project.map_err(|error| text(&error))?.hub.clone();
        let never = CancellationToken::new();
        let waited = tokio::select! {
            waited = hub.wait(&id, &never) => waited.map_err(|error| text(&error))?,
            () = self.report(&id, context) => Waited::GaveUp,
            () = context.ct.cancelled() => Waited::GaveUp,
        };
        match (waited, &self.link) {
            (Waited::Ended(_), _) => Ok(()),
            (Waited::GaveUp, Link::Streams { gone, .. }) if !gone.is_cancelled() => {
                let reason = format!("stopped by {}: the call was cancelled", client.name());
                let stopped = hub.stop(&id, &reason).await;
                stopped.map(|_| ()).map_err(|error| text(&error))
            }
            (Waited::GaveUp, _) => Err(format!("nobody waits for {id} any more; it goes on")),
        }
    }

    /// Tells of steps for ever; where nobody wants to hear of them, it only waits.
    async fn report(&self, id: &TaskId, context: &RequestContext<RoleServer>) {
        let Some(token) = context.meta.get_progress_token() else {
            return std::future::pending().await;
        };
        let Ok(mut changes) = self.state.runtime.changes().follow().await else {
            return std::future::pending().await;
        };
        let redactor = self.state.runtime.redactor();
        let mut told = 0;
        loop {
            let steps = self.state.store().steps(id).await.unwrap_or_default();
            for (name, _) in steps.iter().skip(told) {
                told += 1;
                let done = told as f64;
                let mut progress = ProgressNotificationParam::new(token.clone(), done);
                progress.total = Some(STEPS.max(done));
                progress.message = Some(redactor.redact(name).into_owned());
                let _ = context.peer.notify_progress(progress).await;
            }
            let is_ours = |change: &StoreChange| {
                change.task_id.as_ref() == Some(id)
                    && matches!(change.kind, ChangeKind::Step { .. })
            };
            changes.until(is_ours).await;
        }
    }
}
