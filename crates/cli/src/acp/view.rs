//! The surface of a session in an editor.
//!
//! The editor draws; here is decided what it is told and when: text of the model in pieces as it
//! comes, a tool call when it begins and again with each change of its state.

use std::{path::PathBuf, sync::Arc};

use agent_client_protocol::{
    Client,
    v1::{
        ConnectionTo,
        schema::{
            AvailableCommandsUpdate, CurrentModeUpdate, RequestPermissionRequest, SessionId,
            SessionNotification, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
            ToolCallUpdateFields, ToolKind,
        },
    },
};
use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{
    Answer, ContentBlock, EntryId, Event, Message, NoticeLevel, PermissionRequest, QuestionRequest,
    RunResult, ToolUseId,
};
use codespar_runtime::Project;
use codespar_tui::{Choice, QuestionReply, Status};
use parking_lot::Mutex;

use super::{
    choices::{self, AnswerChoice},
    history, permission,
    tool_calls::{Workplace, fenced, text},
    updates::{Shown, line, message, update},
};
use crate::{printer, session::SessionView};

pub(super) struct AcpView {
    connection: ConnectionTo<Client>,
    session: SessionId,
    cwd: PathBuf,
    redactor: Arc<Redactor>,
    /// Whether a conversation that is resumed is shown.
    replays: Replay,
    state: Mutex<State>,
}

/// What a client that resumes a session wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replay {
    /// `session/load`: the conversation as updates.
    Whole,
    /// `session/resume`: nothing; the client has it.
    Nothing,
}

#[derive(Default)]
struct State {
    shown: Shown,
    phase: Phase,
    /// What the user should know, until there is a prompt to say it after.
    waiting: Vec<String>,
    attachments: Vec<ContentBlock>,
    /// Of the last turn.
    result: Option<RunResult>,
    mode: String,
    /// Its slash commands, until the client is told of them.
    commands: Option<AvailableCommandsUpdate>,
}

#[derive(Default, PartialEq, Eq)]
enum Phase {
    /// No prompt yet: a client shows no messages of a session that it has just asked for.
    #[default]
    Quiet,
    Talking,
    /// Nobody listens any more.
    Ended,
}

impl AcpView {
    pub(super) fn new(
        connection: ConnectionTo<Client>,
        session: SessionId,
        project: &Project,
        replays: Replay,
    ) -> Self {
        let mut waiting: Vec<String> = project.dir.trust.notice().into_iter().collect();
        waiting.extend(project.warnings.iter().cloned());
        if project.provider.is_simulated() {
            let why = &project.provider.why;
            waiting.push(format!("simulated: no model is called ({why})"));
        }
        Self {
            connection,
            session,
            cwd: project.dir.cwd.clone(),
            redactor: project.redactor.clone(),
            replays,
            state: Mutex::new(State {
                waiting,
                mode: project.mode.get().to_string(),
                ..State::default()
            }),
        }
    }

    fn workplace(&self) -> Workplace<'_> {
        Workplace {
            cwd: &self.cwd,
            redactor: &self.redactor,
        }
    }

    /// A client that is gone hears nothing; the session ends for another reason.
    pub(super) fn send(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.session.clone(), update);
        let _ = self.connection.send_notification(notification);
    }

    /// A prompt begins. What the user should know is said once, before the first answer.
    pub(super) fn begin_prompt(&self, attachments: Vec<ContentBlock>) {
        let waiting = {
            let mut state = self.state.lock();
            state.phase = Phase::Talking;
            state.attachments = attachments;
            state.result = None;
            std::mem::take(&mut state.waiting)
        };
        for text in waiting {
            self.send(message(&format!("codespar: {text}\n\n")));
        }
    }

    /// How the last turn of the prompt ended, if it had one.
    pub(super) fn take_result(&self) -> Option<RunResult> {
        self.state.lock().result.take()
    }

    pub(super) fn offer(&self, commands: AvailableCommandsUpdate) {
        self.state.lock().commands = Some(commands);
    }

    pub(super) fn tell_commands(&self) {
        let commands = self.state.lock().commands.take();
        if let Some(commands) = commands {
            self.send(SessionUpdate::AvailableCommandsUpdate(commands));
        }
    }

    pub(super) fn mode_was_set(&self, mode: &str) {
        self.state.lock().mode = mode.to_owned();
    }

    pub(super) fn end(&self) {
        self.state.lock().phase = Phase::Ended;
    }

    async fn ask_permission(&self, asked: &PermissionRequest, from: Option<&str>) -> QuestionReply {
        let (shown, mut call) = self.state.lock().shown.asked(asked, &self.workplace());
        if let Some(shown) = shown {
            self.send(shown);
        }
        if let (Some(task), Some(title)) = (from, &call.fields.title) {
            call.fields.title = Some(format!("{task}: {title}"));
        }
        let options = permission::options(asked);
        let request = RequestPermissionRequest::new(self.session.clone(), call, options);
        let reply = match self.connection.send_request(request).block_task().await {
            Ok(response) => permission::reply(asked, &response),
            Err(error) => QuestionReply::Answer(Answer::No {
                reason: Some(format!("the editor did not answer: {}", error.message)),
            }),
        };
        // No call is behind it, so nothing else would say how it ended.
        if asked.input.is_null() {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
            self.send(update(&asked.tool_use_id, fields));
        }
        reply
    }
}

impl AcpView {
    /// The client shows options for a call, so the question is one that never runs.
    async fn ask_choice(
        &self,
        request: &QuestionRequest,
        choices: Vec<AnswerChoice>,
        from: Option<&str>,
    ) -> QuestionReply {
        let id = ToolUseId(format!("question-{}", EntryId::new()));
        let summary = printer::plain(&request.summary()).into_owned();
        let title = match from {
            Some(task) => format!("{task}: {summary}"),
            None => summary,
        };
        let whole = match request {
            QuestionRequest::Clarification(asked) => printer::visible(&asked.text),
            _ => title.clone(),
        };
        let call = ToolCall::new(id.0.clone(), title)
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Pending)
            .content(vec![text(whole)]);
        let fields = ToolCallUpdateFields::new()
            .title(call.title.clone())
            .kind(call.kind)
            .status(call.status)
            .content(call.content.clone());
        self.send(SessionUpdate::ToolCall(call));
        let call = ToolCallUpdate::new(id.0.clone(), fields);
        let options = choices::options(&choices);
        let asked = RequestPermissionRequest::new(self.session.clone(), call, options);
        let reply = match self.connection.send_request(asked).block_task().await {
            Ok(response) => choices::reply(choices, &response),
            Err(error) => QuestionReply::Answer(Answer::No {
                reason: Some(format!("the editor did not answer: {}", error.message)),
            }),
        };
        let status = match &reply {
            QuestionReply::Answer(Answer::No { .. }) | QuestionReply::Interrupted => {
                ToolCallStatus::Failed
            }
            _ => ToolCallStatus::Completed,
        };
        self.send(update(&id, ToolCallUpdateFields::new().status(status)));
        reply
    }
}

#[async_trait]
impl SessionView for AcpView {
    fn event(&self, event: Event) {
        let updates = self.state.lock().shown.event(&event, &self.workplace());
        for update in updates {
            self.send(update);
        }
    }

    fn shows_command_output(&self) -> bool {
        true
    }

    /// Lines keep their form in a client that renders markdown.
    fn say(&self, text: &str) {
        if self.state.lock().phase == Phase::Ended {
            return;
        }
        let text = printer::visible(text);
        let text = match text.trim_end().contains('\n') {
            true => fenced(text.trim_end()),
            false => text,
        };
        self.send(message(&format!("{text}\n")));
    }

    fn notice(&self, level: NoticeLevel, text: String) {
        let mut state = self.state.lock();
        match (&state.phase, level) {
            (Phase::Quiet, _) => state.waiting.push(text),
            (Phase::Talking, NoticeLevel::Warning) => {
                drop(state);
                self.send(message(&format!("codespar: {text}\n\n")));
            }
            (Phase::Talking, NoticeLevel::Info) => {
                drop(state);
                self.send(line(&text));
            }
            (Phase::Ended, _) => {}
        }
    }

    fn markdown(&self, text: &str) {
        self.send(message(text));
    }

    fn diff(&self, text: &str) {
        self.send(message(&format!("{}\n", fenced(text.trim_end()))));
    }

    fn turn_started(&self) {}

    fn turn_ended(&self, result: Option<&RunResult>) {
        self.state.lock().result = result.cloned();
    }

    fn status(&self, status: Status) {
        let mut state = self.state.lock();
        if state.mode != status.mode {
            state.mode.clone_from(&status.mode);
            drop(state);
            let changed = CurrentModeUpdate::new(status.mode);
            self.send(SessionUpdate::CurrentModeUpdate(changed));
        }
    }

    fn resumed(&self, messages: &[Arc<Message>]) -> bool {
        if self.replays == Replay::Whole {
            for update in history::replay(messages, &self.workplace()) {
                self.send(update);
            }
        }
        true
    }

    fn take_attachments(&self) -> Vec<ContentBlock> {
        std::mem::take(&mut self.state.lock().attachments)
    }

    fn copy(&self, _text: String) -> Result<(), String> {
        Err("there is no clipboard here".to_owned())
    }

    async fn ask(&self, request: QuestionRequest, from: Option<String>) -> QuestionReply {
        match &request {
            QuestionRequest::Permission(asked) => self.ask_permission(asked, from.as_deref()).await,
            QuestionRequest::Clarification(_) | QuestionRequest::Elicitation(_) => {
                let choices = choices::choices(&request);
                if !choices.is_empty() {
                    return self.ask_choice(&request, choices, from.as_deref()).await;
                }
                let text = printer::plain(&request.summary()).into_owned();
                let notice = format!("a question that an editor cannot show was declined: {text}");
                self.notice(NoticeLevel::Warning, notice);
                QuestionReply::Answer(Answer::No {
                    reason: Some("the editor cannot show this question".to_owned()),
                })
            }
        }
    }

    async fn pick(&self, _title: String, _choices: Vec<Choice>) -> Option<usize> {
        None
    }

    fn keys(&self) -> &'static str {
        "Your editor has the keys."
    }
}
