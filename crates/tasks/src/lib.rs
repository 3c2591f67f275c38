//! Work that runs beside the conversation: durable tasks and who runs them, subagents, the
//! coordinator's tools.

mod agent_runner;
mod authority;
mod dream;
mod finding;
mod hub;
mod inbox;
mod kinds;
mod ledger;
mod log;
mod making;
mod monitor;
mod questions;
mod runner;
mod scheduler;
mod shell_runner;
mod team;
mod tools;
mod vital;
mod workflow;

pub use agent_runner::{AgentMaker, AgentRunner, MadeAgent, MakeError};
pub use authority::{narrowed_mode, narrowed_rules, rule_texts};
pub use dream::{DreamRunner, dream_kind};
pub use finding::find_task;
pub use hub::{
    AgentLaunch, AgentLimits, AuthoritySource, Caller, HubError, TaskExtra, TaskHub, Waited,
};
pub use inbox::{AtEnd, TaskInbox};
pub use kinds::{AgentKind, ToolSet, WORKER, builtin_kinds, coordinator_prompt};
pub use ledger::{LedgerError, StepHook, StepLedger};
pub use log::TaskLog;
pub use monitor::{MonitorRunner, ServerSource, monitor_spec};
pub use questions::{
    Attendance, QUESTION_TIME_LIMIT, QuestionSource, Questions, Respondent, ServerQuestions,
};
pub use runner::{Control, Runner, TaskOutcome, TaskStopReason};
pub use scheduler::{RunnerLimits, Scheduler};
pub use shell_runner::{ShellRunner, ShellSetup};
pub use team::{NewMember, TeamInbox, TeamMember, TeammateRunner};
pub use tools::{
    TeammateTools, coordinator_tools, subagent_tools, task_tools, team_tools, teammate_tools,
};
pub use vital::available_runners;
pub use workflow::{
    MAX_WORKFLOW_BYTES, WorkflowGate, WorkflowProblem, WorkflowRunner, find_workflow,
    load_workflow, parse_workflow,
};
