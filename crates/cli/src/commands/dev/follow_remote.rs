//! Follows a run on a server: its steps as they come, its questions, its end.
//!
//! What is on record is told again after a connection was lost, so no step is missed, and open
//! questions are asked for anew. The end of the run is read from the record of the server and never
//! concluded from silence.

use std::io::IsTerminal;

use codespar_dev::{base_in, report_in};
use codespar_protocol::{TaskId, TaskStatus, retry_text};
use serde_json::{Value, json};

use crate::{
    dev::{Conclusion, EndedRun},
    error::CommandError,
    progress::Progress,
    remote::{RemoteError, RemoteEvent, RemoteEvents, RemoteServer, RemoteTask},
};

pub(super) struct Follower<'a> {
    server: &'a RemoteServer,
    progress: &'a Progress,
    events: RemoteEvents,
    id: TaskId,
    /// Questions that were put here.
    asked: Vec<String>,
    /// The report was among the steps that were shown.
    has_shown_report: bool,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        server: &'a RemoteServer,
        progress: &'a Progress,
        mut events: RemoteEvents,
        id: &TaskId,
    ) -> Self {
        events.narrow_to(id);
        Self {
            server,
            progress,
            events,
            id: id.clone(),
            asked: Vec::new(),
            has_shown_report: false,
        }
    }

    /// Stays with the task until it is over; connections may come and go.
    pub(super) async fn until_it_is_over(
        &mut self,
        task: RemoteTask,
    ) -> Result<RemoteTask, CommandError> {
        let mut task = task;
        if !task.status.is_final() {
            self.put_open_questions().await?;
        }
        while !task.status.is_final() {
            match self.events.next().await? {
                RemoteEvent::Lost { reason } => {
                    let text = format!(
                        "The connection to {} was lost: {reason}",
                        self.server.address
                    );
                    self.progress.line(&text);
                    self.progress.doing("Connecting again");
                }
                RemoteEvent::Open { after_loss: false } => {}
                RemoteEvent::Open { after_loss: true } => {
                    self.progress.line("Connected again");
                    task = self.task_now(task).await?;
                    self.put_open_questions().await?;
                }
                RemoteEvent::Told { name, data } => task = self.hear(&name, &data, task).await?,
            }
        }
        Ok(task)
    }

    /// A server that is about to restart may not answer: its stream tells when it is back.
    async fn task_now(&self, known: RemoteTask) -> Result<RemoteTask, RemoteError> {
        match self.server.task(&self.id).await {
            Err(RemoteError::Unreachable { .. }) => Ok(known),
            other => other,
        }
    }

    async fn hear(
        &mut self,
        name: &str,
        data: &Value,
        task: RemoteTask,
    ) -> Result<RemoteTask, CommandError> {
        let id = self.id.as_str();
        match name {
            "agent" if data["task_id"] == id => {
                if let Some(text) = said(&data["event"]) {
                    self.has_shown_report |= data["event"]["step"] == "report";
                    self.progress.line(&text);
                }
            }
            "task" if data["task"]["task_id"] == id || data["task_id"] == id => {
                return Ok(self.task_now(task).await?);
            }
            // What was missed is not told again.
            "resync" => return Ok(self.task_now(task).await?),
            "question" if data["question"]["task_id"] == id => self.put(&data["question"]).await?,
            _ => {}
        }
        Ok(task)
    }

    /// Asked for at the beginning and after each loss of the connection. A question that was put
    /// here already is not put again.
    async fn put_open_questions(&mut self) -> Result<(), CommandError> {
        let path = format!("/api/v1/questions?task={}", self.id);
        let open: Value = match self.server.get(&path).await {
            Err(RemoteError::Unreachable { .. }) => return Ok(()),
            other => other?,
        };
        for question in open["questions"].as_array().into_iter().flatten() {
            self.put(question).await?;
        }
        Ok(())
    }

    /// Puts a question: to the user at this terminal, else as a line that says where it can be
    /// answered.
    async fn put(&mut self, question: &Value) -> Result<(), CommandError> {
        let id = question["id"].as_str().unwrap_or_default().to_owned();
        if question["status"] != "open" || self.asked.contains(&id) {
            return Ok(());
        }
        self.asked.push(id.clone());
        let summary = question["summary"].as_str().unwrap_or_default();
        let full = question["request"]["text"].as_str().unwrap_or(summary);
        self.progress.line(&format!("❓ {full}"));
        let is_here = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if !is_here {
            let place = format!("{}/tasks/{}", self.server.address, self.id);
            self.progress.line(&format!("   answer it at {place}"));
            return Ok(());
        }
        let prompt = match question["kind"].as_str() {
            Some("permission") => "yes once, no",
            Some("clarification") => "your answer",
            _ => "name=value …, or no",
        };
        while let Some(line) = self.progress.ask(prompt).await {
            let path = format!("/api/v1/questions/{id}/answer");
            let answer = json!({"answer": line.trim()});
            match self.server.post::<Value>(&path, &answer).await {
                Err(RemoteError::Refused {
                    message,
                    status: 422,
                    ..
                }) => {
                    self.progress.line(&message);
                }
                // Somebody else was faster, or may do what this token may not.
                Err(RemoteError::Refused { message, .. }) => {
                    self.progress.line(&message);
                    return Ok(());
                }
                other => return other.map(|_| ()).map_err(Into::into),
            }
        }
        Ok(())
    }

    /// What the run came to, from the server's record.
    pub(super) async fn conclusion(
        &self,
        task: &RemoteTask,
        resume: String,
    ) -> Result<Conclusion, CommandError> {
        let steps = self.server.steps(&self.id).await?;
        let steps: Vec<(String, Value)> = steps
            .into_iter()
            .map(|step| (step.name, step.result))
            .collect();
        let is_complete = task.status == TaskStatus::Completed;
        let report = is_complete.then(|| report_in(&steps)).flatten();
        if let (Some(report), false) = (&report, self.has_shown_report) {
            self.progress.line(&report.text());
            self.progress.rest();
        }
        Ok(Conclusion {
            run: EndedRun {
                id: self.id.clone(),
                status: task.status,
                error: task.error.clone(),
                cost_usd: json!(task.cost_usd),
                resume,
            },
            base: base_in(&steps),
            report,
            working_tree: None,
        })
    }
}

/// The line of an event, as a run of this process would show it.
fn said(event: &Value) -> Option<String> {
    let text = |name: &str| event[name].as_str().map(str::to_owned);
    match event["type"].as_str()? {
        "step" | "notice" => text("text"),
        "tool_started" => Some(format!("   {} {}", text("tool")?, text("summary")?)),
        "retrying" => {
            let attempt = u32::try_from(event["attempt"].as_u64()?).ok()?;
            let delay = event["delay_ms"].as_u64()?;
            Some(format!(
                "   {}",
                retry_text(attempt, delay, &text("reason")?)
            ))
        }
        _ => None,
    }
}
