//! Work that runs beside the conversation: durable tasks and who runs them, subagents, the
//! coordinator's tools.
//!
//! A task is a row in the store: a spec (what runs), an authority (what it may do), a status and a
//! result. It outlives the process that made it. A call walks through the crate like this:
//!
//! ```text
//! tool or command → TaskHub (making.rs)   records the task, never runs it
//! TaskEngine (engine.rs)                  brings it to a process, where it is claimed under a lease
//! Scheduler (scheduler/)                  starts an attempt, keeps the lease
//! Runner (one per task type)              does the work, returns a TaskOutcome
//! Scheduler                               records the end and the notification in one transaction
//! TaskInbox (inbox.rs)                    puts the notification into the parent's conversation
//! ```
//!
//! Nothing here reads settings or the environment. The models, rules and directories that runners
//! need are passed in by the crate that builds them (`AgentMaker`, `ShellSetup`, `ServerSource`).

mod agent_runner;
mod authority;
mod dispatcher;
mod dream;
mod engine;
mod finding;
mod hub;
mod inbox;
mod kinds;
mod ledger;
mod log;
mod making;
mod messages;
mod monitor;
mod outputs;
mod questions;
mod runner;
mod scheduler;
mod shell_runner;
mod team;
mod tools;
mod trace;
mod trees;
mod visibility;
mod vital;
mod workflow;

pub use agent_runner::{AgentMaker, AgentRunner, DENIED, MadeAgent, MakeError};
pub use authority::{narrowed_mode, narrowed_rules, rule_texts};
pub use codespar_store::{
    Afterwards, KeptTree, Notify, StoreError, TaskFilter, TaskStore, TreeStore,
};
pub use dispatcher::{Brought, Dispatcher, OfferSink, Renewed};
pub use dream::{DreamRunner, dream_kind};
pub use engine::{EngineWorker, LeaseEngine, TaskEngine};
pub use finding::{agent_sessions, find_task, find_typed_task};
pub use hub::{
    AgentLaunch, AgentLimits, AuthoritySource, Caller, HubError, ModelGate, TaskExtra, TaskHub,
    Waited,
};
pub use inbox::{AtEnd, TaskInbox};
pub use kinds::{
    AgentKind, DEV_ENGINE, ToolSet, WORKER, builtin_kinds, coordinator_prompt, dev_kind,
};
pub use ledger::{LedgerError, StepHook, StepLedger};
pub use log::TaskLog;
pub use messages::Resumption;
pub use monitor::{MonitorRunner, ServerSource, monitor_spec};
pub use outputs::{OutputPart, OutputTail, SharedOutputs, TaskOutputs};
pub use questions::{
    Attendance, QUESTION_TIME_LIMIT, QuestionSource, Questions, Respondent, ServerQuestions,
};
pub use runner::{Completeness, Control, Runner, TaskOutcome, TaskStopReason};
pub use scheduler::{
    AttemptEnd, RunnerLimits, RunnerSlot, Scheduler, SchedulerKind, SchedulerSetup, Workload,
};
pub use shell_runner::{ShellRunner, ShellSetup};
pub use team::{NewMember, TeamInbox, TeamMember, TeammateRunner};
pub use tools::{
    MakesTasks, TOOLS_FOR_MADE_TASKS, TeammateTools, coordinator_tools, shell_tool, subagent_tools,
    task_tools, team_tools, teammate_tools,
};
pub use trace::{TraceLinks, continue_trace, current_trace};
pub use trees::{OwnTree, TreeBrought, TreeKeeper};
pub use vital::available_runners;
pub use workflow::{
    MAX_WORKFLOW_BYTES, WorkflowGate, WorkflowProblem, WorkflowRunner, find_workflow,
    load_workflow, parse_workflow,
};
