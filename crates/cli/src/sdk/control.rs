//! Requests of the client: each gets one answer, also one that is not known here.
//!
//! The names and answers are those of the Agent SDK's protocol, which existing programs are written
//! for; what they mean is decided here.

use codespar_agent::{OnConflict, RewindRequest, RewindScope};
use codespar_model::ThinkingChoice;
use codespar_protocol::{Entry, EntryBody, conversation};
use serde_json::{Map, Value, json};

use super::{context, driver::Driver, questions::wanted_mode};
use crate::{commands::task, headless::lines};

/// An answer without content.
///
/// Clients wait for an answer to each request, also where there is nothing to tell.
fn done() -> Value {
    Value::Object(Map::new())
}

impl Driver {
    /// One that is not known is answered with an error that names it: a client of a later version
    /// then goes on without it instead of waiting.
    pub(super) async fn control(&mut self, id: &str, request: &Value) {
        let subtype = request["subtype"].as_str().unwrap_or_default().to_owned();
        let answer = match subtype.as_str() {
            "interrupt" => Ok(self.interrupt(request)),
            "cancel_async_message" => Ok(self.withdraw(&request["message_uuid"])),
            "set_model" => self.set_model(&request["model"]),
            "set_permission_mode" => self.set_mode(request["mode"].as_str().unwrap_or_default()),
            "set_max_thinking_tokens" => self.set_thinking(&request["max_thinking_tokens"]),
            "get_context_usage" => self.context_usage().await,
            "stop_task" => {
                self.stop_task(request["task_id"].as_str().unwrap_or_default())
                    .await
            }
            "rewind_files" => self.rewind_files(request).await,
            "generate_session_title" => title(&request["description"]),
            "mcp_status" => Ok(self.server_status()),
            "mcp_reconnect" => {
                let name = request["serverName"].as_str().unwrap_or_default();
                return self.reconnect_server(id, name);
            }
            "mcp_toggle" => self.toggle_server(request).await,
            "mcp_set_servers" => self.set_servers(&request["servers"]).await,
            "initialize" => Err("the session is open: initialize comes first, and once".to_owned()),
            other => Err(format!("the request `{other}` is not known here")),
        };
        self.parts.client.reply(id, answer);
    }

    /// Messages that wait stay, unless the client wants them gone.
    fn interrupt(&mut self, request: &Value) -> Value {
        self.parts.turn.stop();
        let uuids = |driver: &Self| {
            let uuids = driver.queue.iter().map(|prompt| json!(prompt.uuid));
            uuids.collect::<Vec<Value>>()
        };
        if request["cancel_queued"] == true {
            let cancelled = uuids(self);
            self.queue.clear();
            return json!({ "still_queued": [], "cancelled": cancelled });
        }
        json!({ "still_queued": uuids(self) })
    }

    /// Takes a message back that waits for its turn; one whose turn has begun stays.
    fn withdraw(&mut self, uuid: &Value) -> Value {
        let before = self.queue.len();
        self.queue
            .retain(|prompt| prompt.uuid.as_deref() != uuid.as_str() || uuid.is_null());
        json!({ "cancelled": self.queue.len() < before })
    }

    /// From the next turn on. Without a name it is the one that the session began with.
    fn set_model(&mut self, name: &Value) -> Result<Value, String> {
        let name = match name {
            Value::Null => None,
            Value::String(name) => Some(name.as_str()),
            _ => return Err("`model` has to be the name of a model".to_owned()),
        };
        let project = &self.parts.project;
        if let Some(name) = name {
            (project.provider.model_gate())(name)?;
        }
        let mut choice = project.provider.choice_for(name, &project.settings);
        if let Some(before) = &self.choice {
            choice.thinking = before.thinking;
        }
        self.choice = Some(choice);
        Ok(done())
    }

    /// Switching permissions off is refused unless the session was started with the option for it:
    /// what a program may do is the decision of whoever started it.
    fn set_mode(&mut self, name: &str) -> Result<Value, String> {
        let mode = wanted_mode(name, self.parts.bypass)?;
        self.parts.project.mode.set(mode);
        if let Some(session) = self.session {
            let fields = json!({ "status": null, "permissionMode": mode.name() });
            let line = lines::system(session, "status", fields);
            if let Ok(line) = serde_json::from_str(&line) {
                self.parts.client.line(&line);
            }
        }
        Ok(json!({ "mode": mode.name() }))
    }

    fn set_thinking(&mut self, tokens: &Value) -> Result<Value, String> {
        let thinking = match tokens {
            Value::Null => None,
            tokens => {
                let number = tokens.as_u64().and_then(|it| u32::try_from(it).ok());
                let number = number.ok_or("`max_thinking_tokens` has to be a number of tokens")?;
                Some(ThinkingChoice::of_tokens(number))
            }
        };
        let usual = || self.parts.project.provider.choice.clone();
        let mut choice = self.choice.clone().unwrap_or_else(usual);
        choice.thinking = thinking;
        self.choice = Some(choice);
        Ok(done())
    }

    /// As of now between turns, of the end of the last turn during one.
    async fn context_usage(&mut self) -> Result<Value, String> {
        if self.usage.is_none() {
            self.open().await.map_err(|error| error.to_string())?;
        }
        let usage = self.usage.as_ref();
        let usage = usage.ok_or("nothing is known of the context yet")?;
        let project = &self.parts.project;
        let model = match &self.choice {
            Some(choice) => choice.id.clone(),
            None => project.provider.choice.id.clone(),
        };
        Ok(context::usage(usage, &model, project))
    }

    /// Only a task of this project: a client knows the ids of no others, and has no business with
    /// them.
    async fn stop_task(&mut self, id: &str) -> Result<Value, String> {
        let project = &self.parts.project;
        let id = task::find(&*project.store, id).await;
        let id = id.map_err(|error| error.to_string())?;
        let record = project
            .store
            .task(&id)
            .await
            .map_err(|error| error.to_string())?;
        let root = record
            .authority
            .as_ref()
            .map(|authority| &authority.project_root);
        if root != Some(&project.dir.root) {
            return Err(format!("{id} is not a task of this project"));
        }
        let stopped = project.hub.stop(&id, "stopped by the client").await;
        stopped.map_err(|error| error.to_string())?;
        Ok(done())
    }

    /// Files go back to what they were before the message; the conversation stays.
    async fn rewind_files(&mut self, request: &Value) -> Result<Value, String> {
        let uuid = request["user_message_id"].as_str().unwrap_or_default();
        let is_trial = request["dry_run"] == true;
        let Some(agent) = &mut self.agent else {
            return Err(
                "files cannot be rewound while a turn runs, or before the first".to_owned(),
            );
        };
        let unknown = || format!("there is no message {uuid} in this session");
        let entries = self.parts.project.store.entries(agent.session(), 0).await;
        let entries = entries.map_err(|error| error.to_string())?;
        let turn = match self.places.get(uuid) {
            Some(place) => turn_after(&entries, *place),
            None => turn_of(&entries, uuid),
        };
        let request = RewindRequest::Before {
            turn: turn.ok_or_else(unknown)?,
            scope: RewindScope::Code,
        };
        if is_trial {
            let preview = agent.preview_rewind(request, OnConflict::LeaveAlone).await;
            let preview = preview.map_err(|error| error.to_string())?;
            let files: Vec<_> = preview.files.iter().map(|file| file.path.clone()).collect();
            return Ok(json!({ "canRewind": true, "filesChanged": files }));
        }
        let report = agent.rewind(request, OnConflict::LeaveAlone).await;
        let report = report.map_err(|error| error.to_string())?;
        self.usage = Some(agent.context_usage());
        if !report.conflicts.is_empty() {
            let names: Vec<String> = report
                .conflicts
                .iter()
                .map(|it| it.path.display().to_string())
                .collect();
            let text = format!("changed by others since, left alone: {}", names.join(", "));
            self.parts.client.warn(&text);
        }
        Ok(json!({ "canRewind": true, "filesChanged": report.restored }))
    }
}

/// A title of a session is the beginning of what it is about; no model is asked for one.
fn title(description: &Value) -> Result<Value, String> {
    const LONGEST: usize = 60;
    let text = description.as_str().unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.ok_or("`description` has to be a text")?;
    let mut title: String = line.chars().take(LONGEST).collect();
    if line.chars().nth(LONGEST).is_some() {
        title.push('…');
    }
    Ok(json!({ "title": title }))
}

/// What the user said, in order. Turns are counted by these.
fn prompts(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    let is_prompt =
        |entry: &&Entry| matches!(&entry.body, EntryBody::User { synthetic, .. } if !synthetic);
    conversation(entries).into_iter().filter(is_prompt)
}

/// The number of the turn whose prompt is the first after this place.
fn turn_after(entries: &[Entry], place: u64) -> Option<usize> {
    prompts(entries)
        .position(|entry| entry.seq > place)
        .map(|at| at + 1)
}

/// The number of the turn whose prompt has this id.
fn turn_of(entries: &[Entry], id: &str) -> Option<usize> {
    let id = id.parse().ok()?;
    prompts(entries)
        .position(|entry| entry.id == id)
        .map(|at| at + 1)
}
