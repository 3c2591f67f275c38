//! `codespar completions`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{args::Cli, error::CommandError};

/// Print a completion script for a shell.
///
/// Example: codespar completions bash > ~/.local/share/bash-completion/completions/codespar
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that will read the script
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "codespar", &mut script);
    super::print(format_args!("{}", String::from_utf8_lossy(&script)))?;
    Ok(ExitCode::SUCCESS)
}
