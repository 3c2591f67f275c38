//! Permission questions, from the person's own agent or one in the background.

use async_trait::async_trait;
use codespar_agent::Approver;
use codespar_protocol::{Answer, Question};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A question on its way to the person.
pub(super) struct Asked {
    pub(super) question: Question,
    answer: oneshot::Sender<Answer>,
}

/// The person at the terminal. Questions of several agents wait in line; none is dropped.
#[derive(Clone)]
pub(super) struct Person {
    pub(super) questions: mpsc::Sender<Asked>,
    /// The session is being ended.
    pub(super) ending: CancellationToken,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: Question) -> Answer {
        let (answer, answered) = oneshot::channel();
        let gone = || Answer::No {
            reason: Some("the terminal was closed".to_owned()),
        };
        let asked = Asked { question, answer };
        let answer = match self.questions.send(asked).await {
            Ok(()) => answered.await.unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        };
        if self.ending.is_cancelled() {
            // Whoever asked is about to be stopped. An answer would let it go on, and ask the
            // model once more.
            std::future::pending::<()>().await;
        }
        answer
    }
}

/// What a typed line says to a question.
pub(super) enum Reply {
    /// It is an answer.
    Answer(Answer),
    /// It is not; these words help.
    Unclear(&'static str),
}

impl Asked {
    /// A question of our own, whose answer we take ourselves.
    pub(super) fn by_us(question: Question) -> Self {
        let (answer, _) = oneshot::channel();
        Self { question, answer }
    }

    /// Understands a line.
    pub(super) fn reply(&self, line: &str) -> Reply {
        match line.trim() {
            "y" | "yes" => Reply::Answer(Answer::Once),
            "a" | "always" if !self.question.suggested_rules.is_empty() => {
                Reply::Answer(Answer::Always)
            }
            "n" | "no" | "" => Reply::Answer(Answer::No { reason: None }),
            other if other.starts_with("n ") || other.starts_with("no ") => {
                let words = other.split_once(' ').map_or("", |(_, words)| words);
                let reason = format!("the person says: {}", words.trim());
                Reply::Answer(Answer::No {
                    reason: Some(reason),
                })
            }
            _ => Reply::Unclear("y, a or n; `n because …` tells the model why"),
        }
    }

    /// Passes the answer on. Whoever asked may have been interrupted meanwhile.
    pub(super) fn give(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }
}
