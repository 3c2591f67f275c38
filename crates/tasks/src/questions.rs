//! Questions of agents to people: on record first, then answered once, from wherever a person is.
//!
//! ```text
//! agent ──ask──▶ store (key, expiry, open) ──▶ the user at this process, if there is one
//!                                           └▶ any other process on the same store
//!                answered by the first of them; later answers are refused
//! ```
//!
//! The key identifies a question within its session. An agent that is resumed after a crash asks
//! again with the same key: it finds the question still open, or the answer that came while no
//! process ran. Every way out is an [`Answer`]; failures, time limits and withdrawn questions are a
//! no with a reason.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use codespar_agent::{Approver, NobodyThere};
use codespar_mcp::Elicitor;
use codespar_protocol::{
    Answer, ElicitationRequest, PermissionRequest, Question, QuestionId, QuestionRequest,
    QuestionStatus, SessionId, ToolUseId,
};
use codespar_store::{
    ChangeFeed, ChangeKind, NewQuestion, QuestionFilter, Store, StoreChange, StoreError, TaskLease,
};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

/// How long a question waits where the settings do not say.
pub const QUESTION_TIME_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Who may be there to answer the agents of a project.
#[derive(Clone)]
pub enum Attendance {
    /// Nobody: a headless run. What would be asked is answered with no at once. The reason of a
    /// denied permission names the option that would allow the call.
    Nobody,
    /// Somebody at another surface: questions wait in the store.
    Elsewhere,
    /// A person at this process. Others may answer first.
    Here(Arc<dyn Respondent>),
}

/// A surface with a person. Implemented by the interactive session and by `codespar dev` at a
/// terminal.
#[async_trait]
pub trait Respondent: Send + Sync {
    /// Puts a question to the user and waits for the answer. The wait is given up when somebody
    /// has answered elsewhere. Giving up means that the future is dropped: the surface must then
    /// remove what it shows.
    async fn answer(&self, question: Question) -> Answer;

    /// The name of the surface, for the record.
    fn name(&self) -> &'static str;
}

/// Puts questions of one project's agents on record and waits for their answers.
#[derive(Clone)]
pub struct Questions {
    store: Arc<dyn Store>,
    feed: ChangeFeed,
    time_limit: Duration,
    attendance: Attendance,
}

/// Who asks. The session scopes the keys; the project says whose users may answer.
#[derive(Debug, Clone)]
pub struct QuestionSource {
    pub session: SessionId,
    /// The attempt that asks, for the agent of a task.
    pub task: Option<TaskLease>,
    pub project_root: PathBuf,
}

impl Questions {
    pub fn new(
        store: Arc<dyn Store>,
        feed: ChangeFeed,
        time_limit: Duration,
        attendance: Attendance,
    ) -> Self {
        Self {
            store,
            feed,
            time_limit,
            attendance,
        }
    }

    /// Asks and waits. Asked a second time under the same key, as after a crash, it is the same
    /// question. An error of the store is a no that says so.
    ///
    /// If the future is dropped, the question stays open in the store and can still be answered;
    /// the answer is found when it is asked again.
    pub async fn ask(
        &self,
        source: &QuestionSource,
        key: &str,
        request: QuestionRequest,
    ) -> Answer {
        if let (Attendance::Nobody, QuestionRequest::Permission(request)) =
            (&self.attendance, &request)
        {
            return NobodyThere.ask(key, request.clone()).await;
        }
        if matches!(self.attendance, Attendance::Nobody) {
            return no("nobody is there to answer in a headless run");
        }
        let limit = SignedDuration::try_from(self.time_limit).unwrap_or(SignedDuration::MAX);
        let new = NewQuestion {
            session_id: source.session,
            task_id: source.task.as_ref().map(|lease| lease.task.clone()),
            asked_under: source.task.clone(),
            project_root: source.project_root.clone(),
            key: key.to_owned(),
            request,
            expires_at: Timestamp::now()
                .checked_add(limit)
                .unwrap_or(Timestamp::MAX),
        };
        match self.settled(new).await {
            Ok(answer) => answer,
            Err(error) => no(&format!("the question could not be put on record: {error}")),
        }
    }

    /// Waits for three things at once: the user here, a change of the question by another
    /// process, and the end of its time. The time limit is that of the record, so a question that
    /// is asked again after a crash does not begin a new one.
    async fn settled(&self, new: NewQuestion) -> Result<Answer, StoreError> {
        // Followed before it is asked: no answer is missed.
        let mut changes = self.feed.follow().await?;
        let question = self.store.ask_question(new).await?;
        if let Some(answer) = answer_of(&question) {
            return Ok(answer);
        }
        let id = question.id.clone();
        let left = SystemTime::from(question.expires_at).duration_since(SystemTime::now());
        let too_late = tokio::time::sleep(left.unwrap_or_default());
        tokio::pin!(too_late);
        let here = async {
            match &self.attendance {
                Attendance::Here(person) => (person.answer(question).await, person.name()),
                _ => std::future::pending().await,
            }
        };
        tokio::pin!(here);
        loop {
            let settled =
                |change: &StoreChange| change.kind == ChangeKind::Question { id: id.clone() };
            tokio::select! {
                (answer, by) = &mut here => return self.record(&id, answer, by).await,
                () = changes.until(settled) => {
                    if let Some(answer) = answer_of(&self.store.question(&id).await?) {
                        return Ok(answer);
                    }
                }
                () = &mut too_late => {
                    let reason = format!("nobody answered within {} s", self.time_limit.as_secs());
                    return self.record(&id, no(&reason), "time limit").await;
                }
            }
        }
    }

    /// The first answer counts, whoever gave it. If somebody was faster, their answer is returned
    /// and not this one.
    async fn record(
        &self,
        id: &QuestionId,
        answer: Answer,
        by: &str,
    ) -> Result<Answer, StoreError> {
        match self.store.answer_question(id, &answer, by).await {
            Ok(_) => Ok(answer),
            Err(StoreError::QuestionNotOpen { .. }) => {
                let question = self.store.question(id).await?;
                Ok(answer_of(&question).unwrap_or_else(|| no("the question was withdrawn")))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether anybody may answer.
    pub fn is_attended(&self) -> bool {
        !matches!(self.attendance, Attendance::Nobody)
    }

    /// What is committed to the store, by this process or another.
    pub fn changes(&self) -> &ChangeFeed {
        &self.feed
    }

    /// The approver of one agent: puts its permission requests on record under its session.
    pub fn of(&self, source: QuestionSource) -> Arc<dyn Approver> {
        Arc::new(AgentQuestions {
            questions: self.clone(),
            source,
        })
    }
}

/// Puts questions of a project's MCP servers to people. They belong to no conversation: a server is
/// shared by all agents.
pub struct ServerQuestions {
    pub questions: Questions,
    pub source: QuestionSource,
}

/// A server that gives up withdraws its question, so that nobody answers to no effect.
#[async_trait]
impl Elicitor for ServerQuestions {
    async fn elicit(&self, request: ElicitationRequest, gave_up: &CancellationToken) -> Answer {
        // Nobody asks it a second time: a server that is started again asks anew.
        let key = SessionId::new().to_string();
        let request = QuestionRequest::Elicitation(request);
        tokio::select! {
            answer = self.questions.ask(&self.source, &key, request) => answer,
            () = gave_up.cancelled() => {
                let store = &self.questions.store;
                let filter = QuestionFilter::OfSession(self.source.session);
                for question in store.questions(filter).await.unwrap_or_default() {
                    if question.key == key {
                        let _ = store.withdraw_question(&question.id).await;
                    }
                }
                no("the server gave up")
            }
        }
    }
}

/// `None` while it is open.
fn answer_of(question: &Question) -> Option<Answer> {
    match question.status {
        QuestionStatus::Open => None,
        QuestionStatus::Answered => question.answer.clone(),
        QuestionStatus::Withdrawn => Some(no("the question was withdrawn")),
    }
}

fn no(reason: &str) -> Answer {
    Answer::No {
        reason: Some(reason.to_owned()),
    }
}

/// Permission requests of one agent.
struct AgentQuestions {
    questions: Questions,
    source: QuestionSource,
}

#[async_trait]
impl Approver for AgentQuestions {
    async fn ask(&self, key: &str, request: PermissionRequest) -> Answer {
        let request = QuestionRequest::Permission(request);
        self.questions.ask(&self.source, key, request).await
    }

    async fn withdraw(&self, call: &ToolUseId) {
        let store = &self.questions.store;
        let filter = QuestionFilter::OfSession(self.source.session);
        // One that stays open is withdrawn with its task, or removed with its session.
        for question in store.questions(filter).await.unwrap_or_default() {
            let is_it = matches!(&question.request, QuestionRequest::Permission(asked)
                if asked.tool_use_id == *call);
            if is_it && question.status == QuestionStatus::Open {
                let _ = store.withdraw_question(&question.id).await;
            }
        }
    }
}
