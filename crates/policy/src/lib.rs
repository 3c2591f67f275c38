//! What an agent may do: permission rules and modes, shell splitting, protected paths, secrets.
//! Pure: no file, process, clock or environment is touched here.
//!
//! The entry point is [`decide()`]. A tool reports what one call would touch ([`AccessRequest`]),
//! and the answer is a [`Decision`] with a reason that names the rule or the mode. It depends on
//! nothing but its arguments: the same request, rules, mode and scope always give the same answer.
//!
//! - rules: [`Rule`] is one line of a settings file, [`RuleSet`] all of them with their sources
//! - modes: [`Mode`] decides what no rule mentions
//! - commands: the text is split into simple commands and redirections; what cannot be split with
//!   certainty is asked about
//! - paths: [`protected()`] recognises files that decide what runs or is permitted later
//! - secrets: [`Redactor`] takes them out of text, [`Leak`] is a place that must not be published
//! - hooks: [`hooks`] says which of them an event concerns, and what their answers come to
//! - terminals: [`printable()`] escapes what a terminal would obey
//!
//! The sandbox is separate: unless the user has switched it off, a command that is allowed here is
//! still confined.

mod access;
mod command;
mod decide;
mod free;
pub mod hooks;
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
mod slip;
mod suggest;
mod text_pattern;
mod touch;

pub use access::{Access, AccessRequest, Lifetime, RepositoryScope, SandboxState, Scope};
pub use decide::{Decision, decide};
pub use free::free_commands;
pub use leak::Leak;
pub use mode::{Mode, ModeError, SharedMode};
pub use paths::{is_inside, normalise};
pub use printable::{is_noncharacter, is_unprintable, printable};
pub use protected::{PROTECTED, Protection, is_home_dot_file, protected};
pub use redact::{RedactedStream, Redactor, RestoreError, first_new_mark};
pub use rule::{Rule, RuleError};
pub use rule_set::{RuleKind, RuleSet, RuleSource};
pub use secrets::{is_secret_name, looks_secret};
pub use slip::slips;
