//! Questions of the user's own agent or one in the background, on their way to the terminal.

use async_trait::async_trait;
use codespar_protocol::{Answer, Question, QuestionRequest, TaskId};
use codespar_tasks::Respondent;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A question on its way to the user.
pub(super) struct PendingQuestion {
    pub(super) request: QuestionRequest,
    /// The task whose agent asks; none for the agent of the session.
    pub(super) from: Option<TaskId>,
    answer: oneshot::Sender<Answer>,
}

/// The user at the terminal or an editor. Questions of several agents wait in line; none is dropped.
#[derive(Clone)]
pub(super) struct Person {
    pub(super) questions: mpsc::Sender<PendingQuestion>,
    /// The session is being ended.
    pub(super) ending: CancellationToken,
    /// The surface, for the record of answers.
    pub(super) surface: &'static str,
}

/// Waits for its turn if 64 questions are in the queue already.
#[async_trait]
impl Respondent for Person {
    async fn answer(&self, question: Question) -> Answer {
        let (answer, answered) = oneshot::channel();
        let pending = PendingQuestion {
            request: question.request,
            from: question.task_id,
            answer,
        };
        let answer = match self.questions.send(pending).await {
            Ok(()) => answered.await.ok(),
            Err(_) => None,
        };
        match answer {
            Some(answer) if !self.ending.is_cancelled() => answer,
            // Whoever asked is about to be stopped. An answer would let it go on, and ask the
            // model once more; the question stays on record for those who go on with the session.
            _ => std::future::pending().await,
        }
    }

    fn name(&self) -> &'static str {
        self.surface
    }
}

impl PendingQuestion {
    /// Nobody waits for the answer any more: it was given elsewhere, or the agent was stopped.
    pub(super) async fn is_settled(&mut self) {
        self.answer.closed().await;
    }

    /// Passes the answer on. Whoever asked may have been interrupted meanwhile.
    pub(super) fn give(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }
}
