//! Work that runs beside the conversation: durable tasks and who runs them, subagents, the
//! coordinator's tools.

mod agent_runner;
mod dream;
mod hub;
mod inbox;
mod kinds;
mod making;
mod notification;
mod order;
mod runner;
mod scheduler;
mod shell_runner;
mod tools;
mod workflow;

pub use agent_runner::{AgentMaker, AgentRunner, MadeAgent};
pub use dream::{DreamRunner, dream_kind};
pub use hub::{AgentLaunch, AgentLimits, Caller, HubError, TaskExtra, TaskHub, Waited};
pub use inbox::{AtEnd, TaskInbox};
pub use kinds::{AgentKind, ToolSet, WORKER, builtin_kinds, coordinator_prompt};
pub use notification::Notice;
pub use order::{AgentOrder, BashOrder};
pub use runner::{Control, Outcome, Runner};
pub use scheduler::{RunnerLimits, Scheduler};
pub use shell_runner::{ShellGround, ShellRunner};
pub use tools::{coordinator_tools, subagent_tools, task_tools};
pub use workflow::{
    Step, Work, Workflow, WorkflowOrder, WorkflowProblem, WorkflowRunner, find_workflow,
};
