//! The two directions: messages to the thread that has the terminal, and what the user does there.
//!
//! Messages go through an unbounded channel: whoever sends never waits for the terminal, which may
//! be slow or stopped. The thread takes all that are there before it paints, so many small messages
//! cost one frame.

use std::sync::{
    Arc,
    mpsc::{Receiver, Sender},
};

use codespar_protocol::{Answer, Event, NoticeLevel, QuestionRequest, TaskId};
use codespar_terminal::wrap::OutputLine;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    PageItem, Status, TaskRow,
    question::QuestionNumber,
    ui_thread::{LARGEST_COPY, Waker},
};

/// What the user did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAction {
    /// A line for the session: a prompt, a command, a `!command` or a `#note`.
    Submit(String),
    /// A message for the agent while it works, delivered at its next step.
    Steer(String),
    /// Stop the turn.
    Interrupt,
    /// The next permission mode.
    NextMode,
    /// Show the whole transcript.
    Transcript,
    /// Attach the picture on the clipboard.
    PastePicture,
    /// Stop a task; the user has confirmed it.
    StopTask(TaskId),
    /// For the agent of a task, delivered at its next step.
    MessageTask(TaskId, String),
    /// Show the transcript of a task.
    OpenTask(TaskId),
    /// The list of tasks needs no more updates.
    TasksClosed,
    /// Leave the session.
    Leave,
}

/// An entry of a list to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub label: String,
    /// Beside the label, less prominent.
    pub detail: String,
}

/// To the thread.
pub(crate) enum Message {
    Event(Event),
    Output(Vec<OutputLine>),
    Notice(NoticeLevel, String),
    /// A question that replaces nothing: it waits in line.
    Ask {
        number: QuestionNumber,
        request: Box<QuestionRequest>,
        /// The agent that asks, if it is not the one of the session.
        from: Option<String>,
        reply: oneshot::Sender<QuestionReply>,
    },
    /// Answered elsewhere, or not needed any more.
    Withdraw(QuestionNumber),
    Pick {
        title: String,
        choices: Vec<Choice>,
        reply: oneshot::Sender<Option<usize>>,
    },
    Page {
        title: String,
        items: Vec<PageItem>,
    },
    /// Opens the list of tasks if it is closed.
    ShowTasks(Vec<TaskRow>),
    UpdateTasks(Vec<TaskRow>),
    TurnStarted,
    TurnEnded,
    Status(Box<Status>),
    Copy(String),
    /// Something else is to use the terminal; acknowledged when it may.
    Suspend(oneshot::Sender<()>),
    Resume,
    /// The size changed, or the process was continued.
    Resized,
    Continued,
    /// Text for the composer, if that is empty.
    Suggest(String),
    /// The path of a file, for the composer.
    InsertFile(String),
    Stop(oneshot::Sender<()>),
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionReply {
    Answer(Answer),
    /// As `Always`, but only for this session.
    ForSession,
    /// The same by rules that the user wrote.
    ForSessionBy(Vec<String>),
    /// The user interrupted instead of answering.
    Interrupted,
}

/// A handle to the thread that has the terminal. Cheap to clone; messages are shown in the order in
/// which they are sent.
#[derive(Clone)]
pub struct Tui {
    inner: Arc<Inner>,
}

struct Inner {
    messages: Mutex<Sender<Message>>,
    waker: Waker,
}

impl Tui {
    pub(crate) fn new(messages: Sender<Message>, waker: Waker) -> Self {
        Self {
            inner: Arc::new(Inner {
                messages: Mutex::new(messages),
                waker,
            }),
        }
    }

    /// Does nothing once the thread is gone: there is nobody to show it to. The thread is woken
    /// after the message is in the channel.
    fn send(&self, message: Message) {
        if self.inner.messages.lock().send(message).is_ok() {
            self.inner.waker.wake();
        }
    }

    /// What an agent does. Those of subagents come by the same way.
    pub fn event(&self, event: Event) {
        self.send(Message::Event(event));
    }

    /// Lines that are final: they go into the scrollback in the order in which they are sent.
    pub fn output(&self, lines: Vec<OutputLine>) {
        self.send(Message::Output(lines));
    }

    pub fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        self.send(Message::Notice(level, text.into()));
    }

    pub fn turn_started(&self) {
        self.send(Message::TurnStarted);
    }

    pub fn turn_ended(&self) {
        self.send(Message::TurnEnded);
    }

    /// Takes the place of the status line as a whole.
    pub fn status(&self, status: Status) {
        self.send(Message::Status(Box::new(status)));
    }

    /// Opens the list of tasks, or updates it. It has the keys until the user closes it, which is
    /// told by [`UserAction::TasksClosed`].
    pub fn tasks(&self, rows: Vec<TaskRow>) {
        self.send(Message::ShowTasks(rows));
    }

    /// Updates the list of tasks if it is open. For everything after [`Tui::tasks`]: rows that are
    /// on their way when the user closes the list must not open it again.
    pub fn update_tasks(&self, rows: Vec<TaskRow>) {
        self.send(Message::UpdateTasks(rows));
    }

    pub fn resized(&self) {
        self.send(Message::Resized);
    }

    /// The process was stopped and goes on: the shell may have changed the terminal.
    pub fn continued(&self) {
        self.send(Message::Continued);
    }

    /// Puts a text into the composer, for the user to change and send.
    pub fn suggest(&self, text: impl Into<String>) {
        self.send(Message::Suggest(text.into()));
    }

    /// Puts the path of a file into the composer, as one unit.
    pub fn insert_file(&self, path: impl Into<String>) {
        self.send(Message::InsertFile(path.into()));
    }

    /// Asks, and waits for the answer. When the future is dropped the question disappears.
    /// `Interrupted` also when the thread ends.
    pub async fn ask(&self, request: QuestionRequest, from: Option<String>) -> QuestionReply {
        let number = QuestionNumber::next();
        let (reply, answered) = oneshot::channel();
        let withdraw = Withdraw { tui: self, number };
        self.send(Message::Ask {
            number,
            request: Box::new(request),
            from,
            reply,
        });
        let answer = answered.await.unwrap_or(QuestionReply::Interrupted);
        std::mem::forget(withdraw);
        answer
    }

    /// `None` if the user chose nothing.
    pub async fn pick(&self, title: impl Into<String>, choices: Vec<Choice>) -> Option<usize> {
        let (reply, chosen) = oneshot::channel();
        self.send(Message::Pick {
            title: title.into(),
            choices,
            reply,
        });
        chosen.await.ok().flatten()
    }

    /// Shows a long text on a screen of its own.
    pub fn page(&self, title: impl Into<String>, items: Vec<PageItem>) {
        self.send(Message::Page {
            title: title.into(),
            items,
        });
    }

    /// Puts a text on the clipboard of the terminal. An error says why it cannot be copied.
    pub fn copy(&self, text: String) -> Result<(), String> {
        if text.len() > LARGEST_COPY {
            return Err(format!(
                "{} bytes are too many for the clipboard of a terminal; /export writes a file",
                text.len()
            ));
        }
        self.send(Message::Copy(text));
        Ok(())
    }

    /// Gives the terminal away, as it was before the session: what is printed then stands where
    /// output stands. Until [`Tui::resume`], messages wait. Returns when the terminal is free, or
    /// when the thread is gone.
    pub async fn suspend(&self) {
        let (done, gone) = oneshot::channel();
        self.send(Message::Suspend(done));
        let _ = gone.await;
    }

    pub fn resume(&self) {
        self.send(Message::Resume);
    }

    /// Ends the thread and leaves the terminal as it was.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        self.send(Message::Stop(done));
        let _ = stopped.await;
    }
}

/// Takes a question back when nobody waits for it any more.
struct Withdraw<'a> {
    tui: &'a Tui,
    number: QuestionNumber,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.tui.send(Message::Withdraw(self.number));
    }
}

/// Messages as the thread takes them.
pub(crate) type Messages = Receiver<Message>;
