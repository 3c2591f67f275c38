//! A question on the screen, and what a typed line means for it.

use codespar_protocol::QuestionRequest;
use codespar_tui::{Choice, QuestionReply};
use tokio::sync::oneshot;

use super::Screen;
use crate::{printer::plain, style};

/// Somebody waits for an answer.
pub(super) enum Waiting {
    Question {
        request: Box<QuestionRequest>,
        /// The agent that asks, if it is not the one of the session.
        from: Option<String>,
        reply: oneshot::Sender<QuestionReply>,
    },
    Choice {
        title: String,
        choices: Vec<Choice>,
        reply: oneshot::Sender<Option<usize>>,
    },
}

impl Waiting {
    pub(super) fn show(&self, screen: &Screen) {
        match self {
            Self::Question { request, from, .. } => {
                if let Some(from) = from {
                    screen.say(&style::faint(format!("{from} asks:")));
                }
                screen.question(request);
            }
            Self::Choice { title, choices, .. } => {
                screen.say(&style::strong(title));
                for (number, choice) in (1..).zip(choices) {
                    let (label, detail) = (plain(&choice.label), plain(&choice.detail));
                    screen.say(&format!("{number:>3}  {label}  {}", style::faint(detail)));
                }
                screen.ask("  a number, or nothing for none › ");
            }
        }
    }

    /// Gives the question back, with what it takes, if the line does not answer it. A line that is
    /// no answer is never taken for a prompt, nor for "no".
    pub(super) fn answer(self, line: &str) -> Result<(), (Self, String)> {
        match self {
            Self::Question {
                request,
                from,
                reply,
            } => match request.parse_answer(line) {
                Ok(answer) => {
                    // Whoever asked may have been interrupted meanwhile.
                    let _ = reply.send(QuestionReply::Answer(answer));
                    Ok(())
                }
                Err(hint) => Err((
                    Self::Question {
                        request,
                        from,
                        reply,
                    },
                    hint,
                )),
            },
            Self::Choice {
                title,
                choices,
                reply,
            } => {
                let line = line.trim();
                let number = line.parse::<usize>().ok();
                let chosen = number.filter(|number| (1..=choices.len()).contains(number));
                if chosen.is_some() || line.is_empty() {
                    let _ = reply.send(chosen.map(|number| number - 1));
                    return Ok(());
                }
                let hint = format!("a number from 1 to {}, or nothing", choices.len());
                Err((
                    Self::Choice {
                        title,
                        choices,
                        reply,
                    },
                    hint,
                ))
            }
        }
    }

    /// The user interrupted instead of answering.
    pub(super) fn give_up(self) {
        match self {
            Self::Question { reply, .. } => drop(reply.send(QuestionReply::Interrupted)),
            Self::Choice { reply, .. } => drop(reply.send(None)),
        }
    }

    /// Answered elsewhere, or not needed any more.
    pub(super) async fn is_settled(&mut self) {
        match self {
            Self::Question { reply, .. } => reply.closed().await,
            Self::Choice { reply, .. } => reply.closed().await,
        }
    }
}
