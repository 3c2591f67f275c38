//! The Bash tool with commands in the background: each of them is a `local_bash` task.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_protocol::ShellSpec;
use codespar_tools::{
    BackgroundCommand, BackgroundCommands, Bash, StartedCommand, Tool, ToolError,
};

use super::TaskToolContext;
use crate::{Caller, TaskExtra, TaskHub};

/// Characters of a command that stand for it in lists.
const SUBJECT: usize = 60;

/// Whether an agent may make tasks, which background commands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MakesTasks {
    Yes,
    No,
}

/// Bash for an agent. Where it cannot run commands in the background, a call that asks for it is
/// refused with the reason, and the field is not offered.
pub fn shell_tool(hub: &Arc<TaskHub>, caller: &Caller, makes_tasks: MakesTasks) -> Arc<dyn Tool> {
    let bash = match (&hub.disabled, makes_tasks) {
        (Some(reason), _) => Bash::foreground(reason.clone()),
        (None, MakesTasks::No) => Bash::foreground("this agent cannot make tasks"),
        (None, MakesTasks::Yes) => Bash::with_background(Arc::new(ShellTasks(TaskToolContext {
            hub: hub.clone(),
            caller: caller.clone(),
            member: None,
        }))),
    };
    Arc::new(bash)
}

struct ShellTasks(TaskToolContext);

#[async_trait]
impl BackgroundCommands for ShellTasks {
    async fn start(&self, command: BackgroundCommand) -> Result<StartedCommand, ToolError> {
        let TaskToolContext { hub, caller, .. } = &self.0;
        let line = command.command.lines().next().unwrap_or_default();
        let subject = command.description.unwrap_or_else(|| line.to_owned());
        let subject: String = subject.chars().take(SUBJECT).collect();
        let shell = ShellSpec {
            command: command.command,
            root: caller.root.clone(),
            cwd: command.cwd,
            timeout_ms: command
                .timeout
                .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        };
        let record = hub
            .create_bash(caller, &subject, shell, TaskExtra::default())
            .await
            .map_err(|error| ToolError(error.to_string()))?;
        Ok(StartedCommand {
            id: record.task_id.to_string(),
            output: record.output_file.map(Into::into),
        })
    }
}
