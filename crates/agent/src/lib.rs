//! The agent: the loop, its context and compaction, the files it reads about a project, and the
//! definitions of custom agents.

mod agent;
mod approver;
mod ask;
mod briefing;
mod compaction;
mod context_files;
mod definition;
mod dispatch;
mod error;
mod events;
mod gate;
mod hand_over;
mod inbox;
mod limits;
pub mod mcp;
mod memory;
mod nested;
mod permit;
mod side_call;
mod stop;
mod tally;
mod transcript;
mod tree;

pub use agent::{Agent, AgentParts, ModelChoice, Sink};
pub use approver::{Approver, NobodyThere};
pub use briefing::Briefing;
pub use context_files::{ContextFile, ContextFiles, ContextProblem};
pub use definition::{
    AgentDefinition, AgentDefinitions, DefinitionFile, DefinitionProblem, DefinitionSource,
    MAX_DEFINITION_BYTES,
};
pub use error::AgentError;
pub use events::{AgentEvent, EventBus, EventListener, Subscription};
pub use gate::WriteGate;
pub use hand_over::HandOver;
pub use inbox::{Inbox, NoInbox};
pub use limits::RunLimits;
pub use side_call::{ModelPageReader, SideCalls};
pub use stop::Stop;
pub use transcript::{Recovered, Transcript};
pub use tree::{TreeBudget, TreeShare};
