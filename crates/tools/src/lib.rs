//! The tools an agent works with: the `Tool` trait and registry, one file per tool, processes and
//! the sandbox.

mod atomic;
mod bash;
mod blocking;
mod bound;
mod context;
mod edit;
pub mod egress;
mod environment;
pub mod frontmatter;
mod glob;
mod grep;
pub mod input;
mod ledger;
mod ls;
pub mod matching;
mod network_address;
mod paths;
pub mod process;
mod read;
mod registry;
pub mod sandbox;
mod skill;
mod sniff;
mod todo_write;
mod tool;
mod walk;
mod web_fetch;
pub mod worktree;
mod write;

pub use bash::{Bash, shell_launch};
pub use bound::{RESULT_LIMIT, bound};
pub use context::{Context, ContextParts, Hidden, PageReader};
pub use environment::child_environment;
pub use ledger::{FileLedger, LedgerProblem};
pub use registry::{Registry, standard_tools};
pub use skill::{Skill, SkillDir, SkillProblem, Skills};
pub use tool::{Call, Effect, Intent, Tool, ToolError, ToolOutput};
pub use web_fetch::WebFetch;

#[cfg(test)]
mod race;
#[cfg(test)]
mod testing;
