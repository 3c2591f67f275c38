//! The agent: the loop, its context and compaction, the files it reads about a project, and the
//! definitions of custom agents.
//!
//! `Agent` runs the loop on one session. It is made from `AgentParts`, which the runtime puts
//! together, and a `Transcript`, which holds the session. A run goes through these modules:
//!
//! ```text
//! agent        the loop and its endings        limits, stop, hand_over   what ends a run
//! ask          the request to the model        compaction                room in the context
//! dispatch     tool calls to results           permit, approver, gate    whether a call is made
//!                                              hooks, user_answer        as others changed it
//! transcript   the record of all of it         inbox                     what comes from outside
//! rewind       back to an earlier message      work_keeper               files for other hosts
//! ```
//!
//! `Briefing` with `ContextFiles` makes the system prompt; `AgentDefinitions` reads custom agents.
//! Nothing here reads the environment, starts a task or knows what kind of surface listens: events go
//! to a `Sink`, questions to an `Approver`.
//!
//! Heavy public functions return a boxed future instead of being `async`: the body of an `async fn`
//! is compiled again in every crate that awaits it.

mod agent;
mod approver;
mod ask;
mod briefing;
mod compaction;
mod conclude;
mod context_files;
mod context_usage;
mod definition;
mod dispatch;
mod error;
mod events;
mod for_user;
mod gate;
mod hand_over;
mod hooks;
mod inbox;
mod instead;
mod limits;
mod long_answer;
mod memory;
mod nested;
mod offered_tools;
mod path_instructions;
mod permit;
mod prompt_lines;
mod rewind;
mod side_call;
mod spans;
mod steering;
mod stop;
mod tally;
mod transcript;
mod tree;
mod user_answer;
mod work_keeper;

pub use agent::{Agent, AgentParts, ModelChoice, Sink};
pub use approver::{Approver, NobodyThere};
pub use briefing::Briefing;
pub use codespar_model::{Budget, Catalogue, Model, ModelError, ModelEvent};
pub use codespar_policy::Redactor;
pub use codespar_tools::{CheckpointStore, OnConflict};
pub use context_files::{ContextFile, ContextFiles, ContextProblem, ProjectInstructions};
pub use context_usage::{ContextUsage, FilePart, ToolPart};
pub use definition::{
    AgentDefinition, AgentDefinitions, DefinitionFile, DefinitionProblem, DefinitionSource,
    MAX_DEFINITION_BYTES, field_left_out,
};
pub use error::AgentError;
pub use events::{AgentEvent, EventBus, EventListener, Subscription};
pub use for_user::{NamedBy, UserCallError};
pub use gate::WriteGate;
pub use hand_over::HandOver;
pub use hooks::{
    AgentHooks, AgentHooksParts, CompactTrigger, HookCall, HookRole, HookRunner, SessionEndReason,
    SessionSource,
};
pub use inbox::{Inbox, NoInbox};
pub use limits::RunLimits;
pub use long_answer::{AskError, Asked, Asking, Bill};
pub use prompt_lines::lines_for_tools;
pub use rewind::{
    FileEffect, FilePreview, RewindConflict, RewindError, RewindPreview, RewindReport,
    RewindRequest, RewindScope, Rewinder, TurnPoint,
};
pub use side_call::{SideCalls, SideModel};
pub use steering::{SteeredInbox, Steering};
pub use stop::Stop;
pub use transcript::{Recovered, Transcript};
pub use tree::{TreeBudget, TreeShare};
pub use work_keeper::{WorkKeeper, WorkKept};
