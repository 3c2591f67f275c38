//! What an agent may do: permission rules and modes, shell splitting, protected paths, secrets.
//! Pure: no file, process, clock or environment is touched here.

mod access;
mod command;
mod decide;
mod free;
mod leak;
mod mode;
mod options;
mod path_pattern;
mod paths;
mod printable;
mod protected;
mod redact;
mod rule;
mod rule_set;
mod secrets;
mod shell;
mod suggest;
mod text_pattern;
mod touch;

pub use access::{Access, AccessRequest, Lifetime, RepositoryScope, SandboxState, Scope};
pub use decide::{Decision, decide};
pub use leak::Leak;
pub use mode::{Mode, ModeError};
pub use paths::{is_inside, normalise};
pub use printable::{is_noncharacter, is_unprintable, printable};
pub use protected::{PROTECTED, Protection, is_home_dot_file, protected};
pub use redact::{RedactedStream, Redactor, RestoreError, first_new_mark};
pub use rule::{Rule, RuleError};
pub use rule_set::{RuleKind, RuleSet, RuleSource};
pub use secrets::{is_secret_name, looks_secret};
