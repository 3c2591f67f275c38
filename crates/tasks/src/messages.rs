//! Messages to agents: to one that runs, or to continue one that is over.

use codespar_protocol::{AttemptOptions, TaskId, TaskRecord, ToolUseId};

use crate::{Caller, HubError, TaskHub};

/// How an agent is continued.
#[derive(Debug, Clone, Default)]
pub struct Resumption {
    /// What it is told.
    pub message: String,
    /// Its kind, if the caller named one: it must be the one that the agent has.
    pub kind: Option<String>,
    /// What the attempt uses in place of the agent's spec.
    pub options: AttemptOptions,
}

impl TaskHub {
    /// Sends a message to an agent, by id or by a name in this session. A finished one runs again.
    /// The message is in the mailbox, on disk, when this returns; a running agent reads it before
    /// its next model call.
    pub async fn send(
        &self,
        caller: &Caller,
        to: &str,
        message: &str,
        call: Option<&ToolUseId>,
    ) -> Result<TaskRecord, HubError> {
        let resumption = Resumption {
            message: message.to_owned(),
            ..Resumption::default()
        };
        self.resume(caller, to, resumption, call).await
    }

    /// A message of the user, who sees all tasks, to an agent.
    pub async fn send_by_user(&self, id: &TaskId, message: &str) -> Result<TaskRecord, HubError> {
        let record = self.store.task(id).await?;
        self.refuse_if_elsewhere(id, record).await?;
        let options = AttemptOptions::default();
        let sent = self.store.continue_with(id, "the user", message, &options);
        let record = sent.await?;
        self.scheduler.wake_for_mail(id);
        self.wake();
        Ok(record)
    }

    /// The same, with what the next attempt is to use. All is checked before anything is recorded.
    pub async fn resume(
        &self,
        caller: &Caller,
        to: &str,
        resumption: Resumption,
        call: Option<&ToolUseId>,
    ) -> Result<TaskRecord, HubError> {
        let Resumption {
            message,
            kind,
            options,
        } = resumption;
        let id = self.find(caller, to).await?;
        let record = self.store.task(&id).await?;
        let own = record.agent().map(|agent| agent.subagent_type.as_str());
        if let (Some(wanted), Some(own)) = (kind.as_deref(), own)
            && wanted != own
        {
            return Err(HubError::Refused(format!(
                "{id} is of kind `{own}`, not `{wanted}`: resume it without `subagent_type`, or \
                 start a new agent"
            )));
        }
        self.refuse_if_elsewhere(&id, record).await?;
        self.listen(&id, caller, call);
        let sent = self
            .store
            .continue_with(&id, &caller.name, &message, &options);
        let record = sent.await?;
        self.scheduler.wake_for_mail(&id);
        self.wake();
        Ok(record)
    }

    /// Nobody would run an agent of another project here.
    ///
    /// A message makes a finished agent pending again. Without this check it would stay so: this
    /// process takes only tasks of its own projects, and only a worker takes those of all.
    async fn refuse_if_elsewhere(&self, id: &TaskId, record: TaskRecord) -> Result<(), HubError> {
        if self.scheduler.may_run(&record) || self.has_worker().await {
            return Ok(());
        }
        let place = record.authority.map(|authority| authority.project_root);
        Err(HubError::Refused(format!(
            "{id} belongs to {}; continue it there, or start `codespar worker`",
            place.unwrap_or_default().display()
        )))
    }
}
