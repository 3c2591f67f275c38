//! One file per command; the doc comment of its arguments is its help.
//!
//! A command gets its arguments and the project directory, and gives an exit code. Text for people
//! goes through `print`, JSON through `print_json`; an error is returned and not printed.

pub(crate) mod agents;
pub(crate) mod apply;
pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod channels;
mod channels_people;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod doctor;
mod doctor_online;
pub(crate) mod fleet;
pub(crate) mod gc;
pub(crate) mod hooks;
pub(crate) mod locate;
pub(crate) mod man;
pub(crate) mod mcp;
mod mcp_login;
mod mcp_serve;
pub(crate) mod migrate;
pub(crate) mod pr;
mod pr_checkout;
mod pull_words;
pub(crate) mod review;
pub(crate) mod serve;
pub(crate) mod session;
mod session_rewind;
pub(crate) use session_rewind::{RewindTexts, failed as rewind_failed};
pub(crate) mod skills;
pub(crate) mod task;
mod task_questions;
mod task_runner;
mod task_spec;
pub(crate) mod task_text;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod worker;

use std::path::Path;

use serde::Serialize;

use crate::{error::CommandError, printer};

/// Where nothing is, nothing can be checked.
fn must_be_dir(dir: &Path) -> Result<(), CommandError> {
    match dir.is_dir() {
        true => Ok(()),
        false => Err(CommandError::Usage(format!(
            "{} is not a directory",
            dir.display()
        ))),
    }
}

/// Prints a value as JSON, for programs.
fn print_json(value: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CommandError::Failed(error.to_string()))?;
    Ok(printer::json(&text)?)
}

/// Prints to stdout; a reader that went away is not an error worth words.
fn print(text: std::fmt::Arguments<'_>) -> Result<(), CommandError> {
    Ok(printer::out(text)?)
}
