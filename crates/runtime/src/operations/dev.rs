//! Runs of the dev agent: from a request to a recorded task, and on with one that came to nothing.

use std::{path::PathBuf, sync::Arc};

use codespar_dev::{
    Consent, DevOrder, DevPurpose, Engine, Linker, OnFailure, RepositoryRef, VerifyChoice,
    keep_images,
};
use codespar_protocol::{SessionId, TaskId, TaskRecord, TaskSpec, TaskStatus, Usd};
use codespar_pulls::headline;
use codespar_store::{Notify, StoreError};
use codespar_tasks::{AuthoritySource, Caller, TaskExtra};

use super::check_simulation;
use crate::{Project, RepositoryLinker, RuntimeError, repositories::address_of_order, requester};

/// What is asked of the dev agent. What is absent is decided by the environment and the settings.
#[derive(Debug, Clone)]
pub struct DevRequest {
    pub instruction: String,
    pub repository: RepositoryRef,
    /// The branch it is for.
    pub base: Option<String>,
    /// An open pull request whose branch the change goes on.
    pub pull_request: Option<u64>,
    /// Copied, since the run may go on when the original files are gone.
    pub images: Vec<PathBuf>,
    pub verify: Option<VerifyChoice>,
    /// Installs dependencies; empty for nothing.
    pub setup: Option<String>,
    pub draft: Consent,
    /// Protected files may be changed.
    pub protected: Consent,
    /// Without a model, a simulated pull request may be opened where others see it.
    pub simulation: Consent,
    pub max_budget: Option<Usd>,
    pub model: Option<String>,
    pub engine: Option<Engine>,
    /// Who asks; the forge's name for the owner of its token otherwise.
    pub requested_by: Option<String>,
}

impl DevRequest {
    /// A request without options.
    pub fn new(instruction: impl Into<String>, repository: RepositoryRef) -> Self {
        Self {
            instruction: instruction.into(),
            repository,
            base: None,
            pull_request: None,
            images: Vec::new(),
            verify: None,
            setup: None,
            draft: Consent::Withheld,
            protected: Consent::Withheld,
            simulation: Consent::Withheld,
            max_budget: None,
            model: None,
            engine: None,
            requested_by: None,
        }
    }
}

/// How a recorded run can go on.
#[derive(Debug, Clone)]
pub enum DevResumption {
    /// It failed or was stopped: a new task with this order takes over its recorded steps.
    Again(Box<DevOrder>),
    /// It is pending or runs; this process can run it if nobody has it.
    Underway(Box<DevOrder>),
    /// It has come to its end.
    Over,
}

impl Project {
    /// The order of a run. What the request says wins over variables, variables over settings. What
    /// is wrong with the repository is said here, before there is a task.
    pub async fn dev_order(
        &self,
        request: DevRequest,
        id: &TaskId,
    ) -> Result<DevOrder, RuntimeError> {
        if request.instruction.trim().is_empty() {
            return Err(RuntimeError::Usage("the instruction is empty".to_owned()));
        }
        check_simulation(self, &request.repository, request.simulation)?;
        let forge = RepositoryLinker::of(self)
            .forge(&request.repository)
            .await
            .map_err(RuntimeError::Usage)?;
        let kept = self.dir.state().join("dev/runs").join(id.as_str());
        let images = keep_images(&request.images, &kept)
            .map_err(|error| RuntimeError::Usage(error.to_string()))?;
        let requested_by = match request.requested_by {
            Some(name) => name,
            None => requester(&self.dir, &*forge).await,
        };
        let (dev, verify) = (&self.settings.dev, &self.settings.verify);
        let by_settings = || verify.command.clone().map(VerifyChoice::Command);
        Ok(DevOrder {
            instruction: request.instruction,
            repository: request.repository,
            base: request.base,
            pull_request: request.pull_request,
            images,
            verify: request
                .verify
                .or_else(by_settings)
                .unwrap_or(VerifyChoice::Detect),
            setup: request.setup.or_else(|| verify.setup.clone()),
            on_failure: verify.on_failure.unwrap_or(OnFailure::Draft),
            draft: request.draft,
            protected: request.protected,
            simulation: request.simulation,
            protected_globs: dev.protected.clone(),
            max_budget: request.max_budget,
            requested_by,
            engine: request.engine.or(dev.engine).unwrap_or(Engine::Auto),
            task_model: self.task_model(request.model),
            picker_model: self.picker_model(),
            limits: dev.limits(verify, self.settings.max_wall_seconds),
            resumes: Vec::new(),
            purpose: DevPurpose::Change,
        })
    }

    /// The model that writes.
    fn task_model(&self, requested: Option<String>) -> String {
        let settings = &self.settings;
        requested
            .or_else(|| self.dir.var("TASK_MODEL").map(str::to_owned))
            .or_else(|| settings.dev.task_model.clone())
            .or_else(|| settings.model.clone())
            .unwrap_or_else(|| "sonnet".to_owned())
    }

    /// The model that picks files; an empty variable means none.
    fn picker_model(&self) -> String {
        if self.dir.environment.is_empty_var("PICKER_MODEL") {
            return String::new();
        }
        let by_variable = self.dir.var("PICKER_MODEL").map(str::to_owned);
        by_variable
            .or_else(|| self.settings.dev.picker_model.clone())
            .unwrap_or_else(|| "haiku".to_owned())
    }

    /// Records the task; from here on it outlives the process.
    ///
    /// The task belongs to a tree of its own, for which the session id stands: nobody is told of
    /// its end, so there need not be a conversation.
    pub async fn record_dev(
        self: &Arc<Self>,
        id: &TaskId,
        session: SessionId,
        order: &DevOrder,
    ) -> Result<TaskRecord, RuntimeError> {
        self.record_dev_after(id, session, order, Vec::new()).await
    }

    /// The same for a run that waits for other tasks, and fails if one of them does.
    async fn record_dev_after(
        self: &Arc<Self>,
        id: &TaskId,
        session: SessionId,
        order: &DevOrder,
        blocked_by: Vec<TaskId>,
    ) -> Result<TaskRecord, RuntimeError> {
        let caller = Caller {
            session,
            name: "the user".to_owned(),
            task: None,
            depth: 0,
            sink: Arc::new(|_| {}),
            root: self.dir.root.clone(),
            authority: self.authority_for(session, order),
        };
        let subject = format!("dev: {}", headline(order));
        self.hub
            .create_builtin(
                &caller,
                id.clone(),
                &subject,
                TaskSpec::Dev(Box::new(order.clone())),
                TaskExtra {
                    blocked_by,
                    ..TaskExtra::default()
                },
                Notify::Nobody,
            )
            .await
            .map_err(|error| RuntimeError::Failed(error.to_string()))
    }

    /// A run names its repository, of which the project need not be a clone, and who asked for it,
    /// who need not be the user of this process.
    fn authority_for(self: &Arc<Self>, session: SessionId, order: &DevOrder) -> AuthoritySource {
        let usual = self.authority(session);
        let address = address_of_order(&self.dir, &order.repository);
        let user = order.requested_by.clone();
        Arc::new(move || {
            let mut authority = usual();
            if let Some(address) = &address {
                authority.repository = Some(address.name().to_owned());
                authority.remote = Some(address.url().to_owned());
            }
            authority.user = Some(user.clone());
            authority
        })
    }

    /// Starts a run under an id that the caller has on record: called again with it, as after a
    /// crash, it gives the task that was made the first time.
    pub async fn start_dev(
        self: &Arc<Self>,
        id: &TaskId,
        request: DevRequest,
    ) -> Result<TaskRecord, RuntimeError> {
        self.start_dev_after(id, request, Vec::new()).await
    }

    /// The same for a run that begins when other tasks have completed. One that fails or is stopped
    /// fails this one.
    pub async fn start_dev_after(
        self: &Arc<Self>,
        id: &TaskId,
        request: DevRequest,
        after: Vec<TaskId>,
    ) -> Result<TaskRecord, RuntimeError> {
        if let Some(known) = self.known_task(id).await? {
            return Ok(known);
        }
        let order = self.dev_order(request, id).await?;
        let session = SessionId::new();
        self.record_dev_after(id, session, &order, after).await
    }

    /// Starts a run that merges the base of a pull request into its branch. Where both changed the
    /// same places the model is asked, and nothing is published unless the tests pass.
    pub async fn start_resolve(
        self: &Arc<Self>,
        id: &TaskId,
        request: DevRequest,
    ) -> Result<TaskRecord, RuntimeError> {
        if let Some(known) = self.known_task(id).await? {
            return Ok(known);
        }
        let order = DevOrder {
            purpose: DevPurpose::Resolve,
            on_failure: OnFailure::Nothing,
            engine: Engine::Generate,
            ..self.dev_order(request, id).await?
        };
        self.record_dev(id, SessionId::new(), &order).await
    }

    /// Starts a run that failed or was stopped again, as the task `id`, which takes over its
    /// recorded steps. The same id gives the same task.
    pub async fn retry_dev(
        self: &Arc<Self>,
        earlier: &TaskId,
        id: &TaskId,
    ) -> Result<TaskRecord, RuntimeError> {
        if let Some(known) = self.known_task(id).await? {
            return Ok(known);
        }
        let record = self.store.task(earlier).await?;
        match self.dev_resumption(&record, None)? {
            DevResumption::Again(order) => self.record_dev(id, SessionId::new(), &order).await,
            DevResumption::Underway(_) | DevResumption::Over => Err(RuntimeError::Usage(format!(
                "{earlier} is {}; only a run that failed or was stopped can be run again",
                record.status
            ))),
        }
    }

    async fn known_task(&self, id: &TaskId) -> Result<Option<TaskRecord>, RuntimeError> {
        match self.store.task(id).await {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::NoSuchTask(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How a run can go on. `max_budget` replaces the one that may have ended it.
    pub fn dev_resumption(
        &self,
        record: &TaskRecord,
        max_budget: Option<Usd>,
    ) -> Result<DevResumption, RuntimeError> {
        let id = &record.task_id;
        let Some(TaskSpec::Dev(order)) = record.spec.clone() else {
            return Err(RuntimeError::Usage(format!(
                "{id} is not a run of the dev agent"
            )));
        };
        if matches!(record.status, TaskStatus::Failed | TaskStatus::Killed) {
            let mut order = order.again(id.clone());
            order.max_budget = max_budget.or(order.max_budget);
            // It may be what ended the earlier run: what the settings say now counts.
            order.limits.max_wall_seconds = self.settings.max_wall_seconds;
            return Ok(DevResumption::Again(Box::new(order)));
        }
        if record.status.is_final() {
            return Ok(DevResumption::Over);
        }
        let may_run = self.hub.scheduler().may_run(record);
        if let (false, Some(authority)) = (may_run, &record.authority) {
            return Err(RuntimeError::Usage(format!(
                "{id} was started in {}; resume it there",
                authority.project_root.display()
            )));
        }
        Ok(DevResumption::Underway(order))
    }
}
