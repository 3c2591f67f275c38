//! What a session needs of the surface that it is shown on.
//!
//! Three surfaces have it: the one that draws at a terminal ([`super::terminal`]), the one of plain
//! lines ([`super::plain`]), and editors (`crate::acp`). The driver knows no other difference between them. What the user does
//! comes back as `UserAction`s.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{ContentBlock, Event, Message, NoticeLevel, QuestionRequest, RunResult};
use codespar_tui::{Choice, QuestionReply, Status, TaskRow};

#[async_trait]
pub(crate) trait SessionView: Send + Sync {
    /// Of the agent of the session, and of those it started. Called from their threads.
    fn event(&self, event: Event);

    /// Whether lines of a running command are shown as they come.
    fn shows_command_output(&self) -> bool {
        false
    }

    /// Whole lines, with styles as marks.
    fn say(&self, text: &str);

    /// A remark about the session, which is no part of the conversation.
    fn notice(&self, level: NoticeLevel, text: String);

    /// A text that was written as markdown, drawn as the surface can.
    fn markdown(&self, text: &str);

    /// A change as git shows it.
    fn diff(&self, text: &str);

    /// Nothing is under way: the next line is for the session.
    fn at_prompt(&self) {}

    /// Nobody waits for a line any more: the session ends.
    fn leave_prompt(&self) {}

    fn turn_started(&self);

    /// Without a result where the turn was not one of the agent.
    fn turn_ended(&self, result: Option<&RunResult>);

    /// Whether [`SessionView::status`] does something.
    fn has_status_line(&self) -> bool {
        false
    }

    fn status(&self, _status: Status) {}

    /// Puts a text before the user, to change and send.
    fn suggest(&self, _text: &str) {}

    /// Puts the path of a file that goes with the message where the user types.
    fn insert_file(&self, _path: &str) {}

    /// Shows a conversation that is resumed, all of it; false where its end is to be shown as text.
    fn resumed(&self, _messages: &[Arc<Message>]) -> bool {
        false
    }

    /// What goes with the next prompt besides its text; given once.
    fn take_attachments(&self) -> Vec<ContentBlock> {
        Vec::new()
    }

    /// The whole conversation, to look around in.
    fn transcript(&self, _messages: &[Arc<Message>], _redactor: &Redactor) {}

    /// Whether [`SessionView::show_tasks`] does something.
    fn has_task_list(&self) -> bool {
        false
    }

    /// Opens the list of tasks.
    fn show_tasks(&self, _rows: Vec<TaskRow>) {}

    /// Updates it if it is open.
    fn update_tasks(&self, _rows: Vec<TaskRow>) {}

    /// Puts a text on the clipboard. An error says why it cannot be.
    fn copy(&self, text: String) -> Result<(), String>;

    /// Shows a question and waits for its answer. It disappears when the future is dropped.
    async fn ask(&self, request: QuestionRequest, from: Option<String>) -> QuestionReply;

    /// A list to choose from; `None` if the user chose nothing.
    async fn pick(&self, title: String, choices: Vec<Choice>) -> Option<usize>;

    /// What `/help` says of keys.
    fn keys(&self) -> &'static str;

    /// Gives the terminal back.
    async fn stop(&self) {}
}
