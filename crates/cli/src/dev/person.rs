//! The user at the terminal of `codespar dev`.
//!
//! Unlike the interactive session there is no loop that reads lines: each question reads its own.

use std::io::IsTerminal;

use async_trait::async_trait;
use codespar_protocol::{Answer, Question, QuestionRequest};
use codespar_tasks::Respondent;

use crate::progress::Progress;

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
}

#[async_trait]
impl Respondent for AtTerminal {
    async fn answer(&self, question: Question) -> Answer {
        let prompt = self.show(&question);
        loop {
            let Some(line) = self.0.ask(prompt).await else {
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
