//! The tools an agent works with: the `Tool` trait and registry, one file per tool, processes and
//! the sandbox.
//!
//! A call goes through a tool in two steps. `inspect` reads the input, resolves paths and reports
//! every access, and changes nothing. The caller decides on that report and, if the call is
//! allowed, passes it back to `run` as part of the call. `run` works on the reported paths and not
//! on what the input leads to by then; the files are opened without following links, so a path that
//! was exchanged in between is an error.
//!
//! Everything that tools have in common during one agent's run (working directory, files seen,
//! sandbox, secrets) is in the [`Context`]. Errors of tools are text for the model, so they say
//! what to do instead.

mod atomic;
mod background;
mod bash;
mod blocking;
mod bound;
mod checkpoints;
mod context;
mod edit;
pub mod egress;
mod environment;
pub mod frontmatter;
mod glob;
mod grep;
mod hooks;
pub mod input;
mod ledger;
mod line_diff;
mod live_output;
mod ls;
pub mod matching;
pub mod network_address;
mod path_globs;
mod paths;
pub mod process;
mod proposal;
mod read;
mod registry;
pub mod sandbox;
mod skill;
mod sniff;
mod todo_write;
mod tool;
mod walk;
mod web_fetch;
mod web_search;
pub mod worktree;
mod write;

/// For crates that read files as tools do; a dependency of their own for one function is too much.
pub use codespar_files as files;

pub use background::{BackgroundCommand, BackgroundCommands, StartedCommand};
pub use bash::{Bash, shell_launch};
pub use bound::{RESULT_LIMIT, bound};
pub use checkpoints::{
    ChangeAuthor, ChangeCause, ChangeRecord, CheckpointError, CheckpointStore, Checkpoints,
    FileConflict, FileState, OnConflict, PlannedRestore, Restore, RestoreOutcome, RestoreStep,
    RestoreVerdict,
};
pub use context::{Context, ContextParts, Hidden, PageReader};
pub use environment::child_environment;
pub use hooks::{HookCommand, HookPost, HookReach, post_hook, run_hook_confined, run_hook_outside};
pub use ledger::{FileLedger, LedgerProblem};
pub use line_diff::{changed_lines, unified_diff};
pub use live_output::OutputWatch;
pub use path_globs::PathGlobs;
pub use proposal::{ApprovedText, Proposal, ProposalHunk};
pub use read::MAX_IMAGE_BYTES;
pub use registry::{Registry, standard_tools};
pub use skill::{Skill, SkillAudience, SkillDir, SkillProblem, Skills};
pub use sniff::picture_type;
pub use tool::{Call, Effect, Intent, Tool, ToolError, ToolOutput};
pub use web_fetch::WebFetch;
pub use web_search::WebSearch;

#[cfg(test)]
mod race;
#[cfg(test)]
mod testing;
