//! The surface of plain lines: what is written stays, the terminal itself edits what is typed.
//!
//! One task decides what a line is for, so that no line answers a question that was asked after it
//! was typed:
//!
//! ```text
//! at the prompt    a line → the session │ Ctrl-C twice or end of input leaves
//! during a turn    lines wait for the prompt │ Ctrl-C interrupts
//! at a question    a line → its answer │ answered elsewhere │ Ctrl-C or end of input → no answer
//! ```

mod screen;
mod waiting;

use std::{collections::VecDeque, io::BufRead, sync::Arc};

use async_trait::async_trait;
use codespar_protocol::{Event, NoticeLevel, QuestionRequest, RunResult};
use codespar_tui::{Choice, QuestionReply, UserAction};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot},
};

use self::{screen::Screen, waiting::Waiting};
use super::view::SessionView;
use crate::style;

/// What `/help` says after the commands.
const KEYS: &str =
    "A line that ends in \\ goes on on the next. Ctrl-C interrupts an answer, twice leaves.";

pub(super) struct PlainView {
    screen: Arc<Screen>,
    inputs: mpsc::UnboundedSender<Input>,
}

/// What the task that reads lines is told.
enum Input {
    Line(String),
    Closed,
    AtPrompt,
    Busy,
    Ask(Waiting),
}

impl PlainView {
    pub(super) fn start() -> std::io::Result<(Self, mpsc::UnboundedReceiver<UserAction>)> {
        let screen = Arc::new(Screen::default());
        let (send_input, inputs) = mpsc::unbounded_channel();
        let (send, actions) = mpsc::unbounded_channel();
        read_lines(send_input.clone(), screen.clone());
        let reader = Reader {
            screen: screen.clone(),
            actions: send,
            typed: VecDeque::new(),
            asked: VecDeque::new(),
            place: Place::Elsewhere,
            is_over: false,
            interrupt: signal(SignalKind::interrupt())?,
        };
        tokio::spawn(reader.run(inputs));
        Ok((
            Self {
                screen,
                inputs: send_input,
            },
            actions,
        ))
    }

    fn tell(&self, input: Input) {
        // Without a reader the session is over.
        let _ = self.inputs.send(input);
    }
}

/// The thread lives until the end of input; at the end of the process nobody waits for it.
fn read_lines(inputs: mpsc::UnboundedSender<Input>, screen: Arc<Screen>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            // The terminal has shown it, and begun a new row.
            screen.line_was_typed();
            if inputs.send(Input::Line(line)).is_err() {
                return;
            }
        }
        let _ = inputs.send(Input::Closed);
    });
}

/// What the session waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Prompt,
    /// As `Prompt`, after a Ctrl-C: the next one leaves.
    Warned,
    Elsewhere,
}

struct Reader {
    screen: Arc<Screen>,
    actions: mpsc::UnboundedSender<UserAction>,
    /// Lines that nobody has taken yet.
    typed: VecDeque<String>,
    /// The first is on the screen.
    asked: VecDeque<Waiting>,
    place: Place,
    /// Nothing more will be typed.
    is_over: bool,
    interrupt: Signal,
}

impl Reader {
    async fn run(mut self, mut inputs: mpsc::UnboundedReceiver<Input>) {
        loop {
            tokio::select! {
                input = inputs.recv() => {
                    let Some(input) = input else { return };
                    self.take(input);
                    // Lines that are pasted together arrive together.
                    while let Ok(more) = inputs.try_recv() {
                        self.take(more);
                    }
                    self.deliver();
                }
                _ = self.interrupt.recv() => self.interrupted(),
                () = settled(&mut self.asked) => {
                    self.asked.pop_front();
                    self.screen.say(&style::faint("settled without an answer here"));
                    self.show_next();
                }
            }
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Line(line) => match self.asked.pop_front() {
                Some(question) => self.answer(question, &line),
                None => self.typed.push_back(line),
            },
            Input::Closed => {
                self.is_over = true;
                self.give_up_questions();
            }
            Input::AtPrompt => self.place = Place::Prompt,
            Input::Busy => self.place = Place::Elsewhere,
            Input::Ask(question) if self.is_over => question.give_up(),
            Input::Ask(question) => {
                // An answer must follow its question.
                self.typed.clear();
                self.asked.push_back(question);
                if self.asked.len() == 1 {
                    self.show_next();
                }
            }
        }
    }

    fn answer(&mut self, question: Waiting, line: &str) {
        match question.answer(line) {
            Ok(()) => self.show_next(),
            Err((question, hint)) => {
                self.screen.say(&hint);
                self.asked.push_front(question);
            }
        }
    }

    /// The next question, or the prompt that was there before.
    fn show_next(&mut self) {
        match self.asked.front() {
            Some(question) => question.show(&self.screen),
            None if self.place != Place::Elsewhere => self.screen.prompt(),
            None => {}
        }
    }

    /// Gives the session what was typed, once it waits for it. A line that ends in a backslash
    /// waits for the next.
    fn deliver(&mut self) {
        if self.place == Place::Elsewhere || !self.asked.is_empty() {
            return;
        }
        let is_open = self.typed.back().is_some_and(|line| line.ends_with('\\'));
        let action = match self.typed.is_empty() {
            false if is_open && !self.is_over => return,
            false => {
                let lines = self
                    .typed
                    .drain(..)
                    .map(|line| match line.strip_suffix('\\') {
                        Some(open) => open.to_owned(),
                        None => line,
                    });
                UserAction::Submit(lines.collect::<Vec<_>>().join("\n"))
            }
            true if self.is_over => UserAction::Leave,
            true => return,
        };
        self.place = Place::Elsewhere;
        let _ = self.actions.send(action);
    }

    /// Ctrl-C counts as a request to leave only the second time in a row.
    fn interrupted(&mut self) {
        if !self.asked.is_empty() {
            self.give_up_questions();
            return self.show_next();
        }
        match self.place {
            Place::Elsewhere => drop(self.actions.send(UserAction::Interrupt)),
            Place::Prompt => {
                self.place = Place::Warned;
                self.typed.clear();
                self.screen.say("(Ctrl-C again, Ctrl-D or /quit leaves)");
            }
            Place::Warned => drop(self.actions.send(UserAction::Leave)),
        }
    }

    fn give_up_questions(&mut self) {
        self.asked.drain(..).for_each(Waiting::give_up);
    }
}

/// Returns when nobody waits for the answer of the first question any more.
async fn settled(asked: &mut VecDeque<Waiting>) {
    match asked.front_mut() {
        Some(question) => question.is_settled().await,
        None => std::future::pending().await,
    }
}

#[async_trait]
impl SessionView for PlainView {
    fn event(&self, event: Event) {
        self.screen.event(&event);
    }

    fn say(&self, text: &str) {
        self.screen.say(text);
    }

    fn notice(&self, level: NoticeLevel, text: String) {
        self.screen.say(&match level {
            NoticeLevel::Warning => style::warning(text),
            NoticeLevel::Info => text,
        });
    }

    fn markdown(&self, text: &str) {
        self.screen.say(text);
    }

    fn diff(&self, text: &str) {
        self.screen.say(text.trim_end());
    }

    fn at_prompt(&self) {
        self.screen.prompt();
        self.tell(Input::AtPrompt);
    }

    fn leave_prompt(&self) {
        self.screen.leave_prompt();
    }

    fn turn_started(&self) {
        self.tell(Input::Busy);
        self.screen.leave_prompt();
    }

    fn turn_ended(&self, result: Option<&RunResult>) {
        if let Some(result) = result {
            self.screen.end_of_turn(result);
        }
    }

    fn copy(&self, _text: String) -> Result<(), String> {
        Err("/copy needs the session without --plain; /export writes a file".to_owned())
    }

    async fn ask(&self, request: QuestionRequest, from: Option<String>) -> QuestionReply {
        let (reply, answered) = oneshot::channel();
        self.tell(Input::Ask(Waiting::Question {
            request: Box::new(request),
            from,
            reply,
        }));
        answered.await.unwrap_or(QuestionReply::Interrupted)
    }

    async fn pick(&self, title: String, choices: Vec<Choice>) -> Option<usize> {
        let (reply, chosen) = oneshot::channel();
        self.tell(Input::Ask(Waiting::Choice {
            title,
            choices,
            reply,
        }));
        chosen.await.ok().flatten()
    }

    fn keys(&self) -> &'static str {
        KEYS
    }
}
