//! The user at the terminal of `codespar dev`.
//!
//! Unlike the interactive session there is no loop that reads lines: each question reads its own.

use std::io::{BufRead, IsTerminal};

use async_trait::async_trait;
use codespar_protocol::{Answer, Question, QuestionRequest};
use codespar_tasks::Respondent;

use crate::{printer, progress::Progress, style};

/// Whoever sits at this terminal.
pub(crate) struct AtTerminal(Progress);

impl AtTerminal {
    /// `None` where nobody can answer: in a pipe, or in a script.
    pub(crate) fn find(progress: &Progress) -> Option<Self> {
        let both = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        both.then(|| Self(progress.clone()))
    }

    /// Gives the choices, for the line on which the answer is typed.
    fn show(&self, question: &Question) -> &'static str {
        match &question.request {
            QuestionRequest::Permission(asked) => {
                let text = format!("❓ {} wants: {}", asked.tool, asked.summary);
                self.0.line(&text);
                self.0.line(&format!("   {}", asked.reason));
                "y once, a always, n no"
            }
            QuestionRequest::Clarification(asked) => {
                self.0.line(&format!("❓ {}", asked.text));
                "your answer, or nothing to stop"
            }
            QuestionRequest::Elicitation(asked) => {
                self.0
                    .line(&format!("❓ {} asks: {}", asked.server, asked.message));
                "name=value …, or n"
            }
        }
    }

    /// `None` when nobody reads or writes here any more. If the question is settled elsewhere the
    /// read stays behind on its thread; the next line is lost to it.
    async fn line(&self, prompt: &str) -> Option<String> {
        self.0.rest();
        printer::out(format_args!("{} › ", style::faint(prompt))).ok()?;
        let read = || {
            let mut line = String::new();
            let length = std::io::stdin().lock().read_line(&mut line).ok()?;
            (length > 0).then_some(line)
        };
        tokio::task::spawn_blocking(read).await.ok()?
    }
}

#[async_trait]
impl Respondent for AtTerminal {
    async fn answer(&self, question: Question) -> Answer {
        let prompt = self.show(&question);
        loop {
            let Some(line) = self.line(prompt).await else {
                return Answer::No { reason: None };
            };
            match question.request.parse_answer(&line) {
                Ok(answer) => return answer,
                Err(wanted) => self.0.line(&wanted),
            }
        }
    }

    fn name(&self) -> &'static str {
        "terminal"
    }
}
