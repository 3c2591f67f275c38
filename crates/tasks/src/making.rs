//! Making tasks of every type, within the limits.
//!
//! Every function here ends in `TaskHub::create`, which writes one row with the spec and the
//! authority of the caller. Nothing has run when it returns, with one exception: a task made by an
//! agent (depth 1 or more) that waits for nothing is recorded as running and started here at once.
//! Its parent occupies one of the places for agents and may wait for it, so it must not queue for a
//! place itself.
//!
//! The listener for events of a task is registered before the task is recorded, because another
//! thread may claim and start it at any moment after. If recording fails the listener is removed
//! again.

use codespar_protocol::{
    AgentSpec, Authority, Event, Labels, MonitorSpec, SessionId, SessionMode, ShellSpec, TaskId,
    TaskRecord, TaskSpec, TaskType, ToolUseId, WorkflowSpec,
};
use codespar_store::{Claimed, NewSession, NewTask, Notify, TaskFilter};

use crate::{
    AgentKind, AgentLaunch, Caller, HubError, TaskExtra, TaskHub, dream::dream_kind,
    kinds::dev_kind, trace::current_trace,
};

impl TaskHub {
    /// Makes a shell task. Permission is the caller's matter: the runner confines the command and
    /// asks nobody.
    pub async fn create_bash(
        &self,
        caller: &Caller,
        subject: &str,
        shell: ShellSpec,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        let id = TaskId::new(TaskType::LocalBash);
        let spec = TaskSpec::Shell(shell);
        self.create(caller, id, subject, spec, extra, Notify::Session)
            .await
    }

    /// Makes an agent and starts it as soon as there is room.
    ///
    /// Its conversation is a session of its own, created before the task. If recording the task
    /// fails, the empty session stays in the store.
    pub async fn launch(
        &self,
        caller: &Caller,
        launch: AgentLaunch,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        let kind = self.kind(&launch.kind)?;
        self.launch_as(TaskSpec::Agent, kind, caller, launch, extra)
            .await
    }

    /// Makes an agent of any type of task. `spec` is the variant of [`TaskSpec`] to wrap the agent
    /// in, which also decides the type of the task.
    async fn launch_as(
        &self,
        spec: fn(AgentSpec) -> TaskSpec,
        kind: &AgentKind,
        caller: &Caller,
        launch: AgentLaunch,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        self.check_limits(caller).await?;
        let agent_session = SessionId::new();
        let spec = spec(AgentSpec {
            prompt: launch.prompt,
            subagent_type: kind.name.clone(),
            model: launch.model.clone(),
            max_budget_usd: launch.max_budget,
            max_turns: launch.max_turns,
            max_wall_seconds: launch.max_wall_seconds,
            name: launch.name,
            isolation: launch.isolation.or(kind.isolation),
            root: caller.root.clone(),
            cwd: launch.cwd.clone(),
            agent_session,
            depth: caller.depth + 1,
            tool_use_id: launch.tool_use_id.clone(),
        });
        let task_type = spec.task_type();
        let id = TaskId::new(task_type);
        self.sessions
            .create_session(NewSession {
                id: agent_session,
                cwd: launch.cwd,
                model: launch
                    .model
                    .clone()
                    .or_else(|| kind.model.clone())
                    .unwrap_or_default(),
                mode: SessionMode::Normal,
            })
            .await?;
        let shown = match launch.model.as_ref().or(kind.model.as_ref()) {
            Some(model) => format!("{} · {model}", kind.name),
            None => kind.name.clone(),
        };
        self.listen(&id, caller, launch.tool_use_id.as_ref());
        let record = self
            .create(
                caller,
                id.clone(),
                &launch.description,
                spec,
                extra,
                launch.notify,
            )
            .await
            .inspect_err(|_| {
                self.forget_listener(&id);
            })?;
        (caller.sink)(Event::TaskStarted {
            task_id: id,
            task_type,
            subject: launch.description,
            tool_use_id: launch.tool_use_id,
            kind: Some(shown),
        });
        Ok(record)
    }

    /// Makes an agent that a `codespar worker` takes. It is not reserved for this process and is
    /// never started here directly.
    pub async fn launch_remote(
        &self,
        caller: &Caller,
        launch: AgentLaunch,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        let kind = self.kind(&launch.kind)?;
        self.launch_as(TaskSpec::RemoteAgent, kind, caller, launch, extra)
            .await
    }

    /// Makes the agent that writes a change for the dev agent; the kind of the launch is set aside.
    pub async fn launch_dev(
        &self,
        caller: &Caller,
        launch: AgentLaunch,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        self.launch_as(TaskSpec::Agent, &dev_kind(), caller, launch, extra)
            .await
    }

    /// Makes a dream; the kind of the launch is set aside. What the launch says of the kind cannot
    /// give a dream more than its read-only tools.
    pub async fn launch_dream(
        &self,
        caller: &Caller,
        launch: AgentLaunch,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        self.launch_as(TaskSpec::Dream, &dream_kind(), caller, launch, extra)
            .await
    }

    /// Makes a monitor; its events reach the caller as they come.
    pub async fn create_monitor(
        &self,
        caller: &Caller,
        subject: &str,
        monitor: MonitorSpec,
        call: Option<&ToolUseId>,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        let id = TaskId::new(TaskType::MonitorMcp);
        self.listen(&id, caller, call);
        let spec = TaskSpec::Monitor(monitor);
        self.create(caller, id.clone(), subject, spec, extra, Notify::Session)
            .await
            .inspect_err(|_| {
                self.forget_listener(&id);
            })
    }

    /// Makes a workflow. Its agents count as the caller's children. The workflow itself counts once
    /// against the limit of agents per session, its steps do not.
    pub async fn create_workflow(
        &self,
        caller: &Caller,
        subject: &str,
        workflow: WorkflowSpec,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        self.check_limits(caller).await?;
        let id = TaskId::new(TaskType::LocalWorkflow);
        let spec = TaskSpec::Workflow(workflow);
        self.create(caller, id, subject, spec, extra, Notify::Session)
            .await
    }

    /// Makes a workflow that is part of the program. Only the program's own commands call this: no
    /// tool of an agent makes one from what the model wrote. The caller chooses the id, so that it
    /// can listen to the task before it exists.
    pub async fn create_builtin(
        &self,
        caller: &Caller,
        id: TaskId,
        subject: &str,
        spec: TaskSpec,
        extra: TaskExtra,
        notify: Notify,
    ) -> Result<TaskRecord, HubError> {
        self.check_limits(caller).await?;
        self.create(caller, id, subject, spec, extra, notify).await
    }

    /// The agent is counted before it is made, so one that then cannot be made counts as well; the
    /// next process counts what is in the store.
    pub(crate) async fn check_limits(&self, caller: &Caller) -> Result<(), HubError> {
        if caller.depth >= self.limits.max_depth {
            return Err(HubError::Refused(format!(
                "agents may start agents {} deep; this one is at the limit. Do the work yourself.",
                self.limits.max_depth
            )));
        }
        let made = self.count_agent(caller.session).await?;
        if made > self.limits.per_session {
            return Err(HubError::Refused(format!(
                "this session has started {} agents, the most it may",
                self.limits.per_session
            )));
        }
        Ok(())
    }

    /// Counts one more agent of a session; what earlier processes made is read once. The lock is
    /// not held while the store is read. Two calls that read at the same time agree: the first to
    /// lock again inserts the count, the other adds to it.
    async fn count_agent(&self, session: SessionId) -> Result<u32, HubError> {
        let known = self.agents_made.lock().get(&session).copied();
        let before = match known {
            Some(count) => count,
            None => {
                let filter = TaskFilter {
                    session_id: Some(session),
                    ..TaskFilter::default()
                };
                let tasks = self.store.tasks(filter).await?;
                let counts = |task: &&TaskRecord| {
                    task.runs_agent() || task.task_type == TaskType::LocalWorkflow
                };
                u32::try_from(tasks.iter().filter(counts).count()).unwrap_or(u32::MAX)
            }
        };
        let mut counts = self.agents_made.lock();
        let count = counts.entry(session).or_insert(before);
        *count = count.saturating_add(1);
        Ok(*count)
    }

    /// The last step of all functions above. A hub without background tasks refuses those that
    /// nobody waits for: who waits needs no notification. The scheduler is started if this is the first task of the
    /// process.
    async fn create(
        &self,
        caller: &Caller,
        id: TaskId,
        subject: &str,
        spec: TaskSpec,
        extra: TaskExtra,
        notify: Notify,
    ) -> Result<TaskRecord, HubError> {
        if let Some(reason) = &self.disabled
            && notify != Notify::Nobody
        {
            return Err(HubError::Refused(reason.clone()));
        }
        // Whoever waits for it or is told of it is in this process; others take it only when this
        // process is gone. Remote agents are for workers.
        let is_ours = !matches!(spec, TaskSpec::RemoteAgent(_));
        // An agent that another agent waits for must not wait for room that its parent takes up.
        let start_here = (is_ours && caller.depth > 0 && extra.blocked_by.is_empty())
            .then(|| self.scheduler.id().clone());
        let starts_at_once = start_here.is_some();
        let authority = Authority {
            trace: current_trace(),
            ..(caller.authority)()
        };
        self.scheduler.ensure_running();
        let new = NewTask {
            output_file: Some(self.scheduler.output_file(authority.tree, &id)),
            id,
            spec,
            authority,
            reserved_for: is_ours.then(|| self.scheduler.id().clone()),
            labels: Labels::default(),
            on_dependency_failure: extra.on_dependency_failure,
            subject: subject.to_owned(),
            description: extra.description,
            active_form: extra.active_form,
            metadata: extra.metadata,
            blocked_by: extra.blocked_by,
            session_id: Some(caller.session),
            parent_task_id: caller.task_id(),
            made_under: caller.task.clone(),
            notify,
            start_here,
        };
        let record = self
            .store
            .create_tasks(vec![new])
            .await?
            .pop()
            .ok_or_else(|| HubError::Refused("the store gave no record back".to_owned()))?;
        if starts_at_once {
            self.scheduler.start(Claimed {
                record: record.clone(),
                epoch: 1,
                taken_from: None,
            });
        } else {
            self.scheduler.made(record.task_type);
        }
        Ok(record)
    }
}
