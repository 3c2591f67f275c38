//! `codespar man`: manual pages, made from the help texts. Hidden: packages call it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Command, CommandFactory};

use crate::{args::Cli, error::CommandError};

/// Write the manual pages into a directory: codespar.1, codespar-dev.1 and so on.
///
/// Example: codespar man ~/.local/share/man/man1
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// The directory; it is made if it is not there
    dir: PathBuf,
}

/// Writes one page for the program and one for each command below it.
pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, CommandError> {
    let failed =
        |error: std::io::Error| CommandError::Failed(format!("{}: {error}", args.dir.display()));
    fs::create_dir_all(&args.dir).map_err(failed)?;
    let mut command = Cli::command();
    command.build();
    let pages = write(&args.dir, &command, "codespar").map_err(failed)?;
    super::print(format_args!("{pages} pages in {}\n", args.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// `help` repeats what the pages say.
fn write(dir: &Path, command: &Command, name: &str) -> std::io::Result<usize> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone().display_name(name.to_owned())).render(&mut text)?;
    fs::write(dir.join(format!("{name}.1")), text)?;
    let shown = |below: &&Command| !below.is_hide_set() && below.get_name() != "help";
    let mut pages = 1;
    for below in command.get_subcommands().filter(shown) {
        pages += write(dir, below, &format!("{name}-{}", below.get_name()))?;
    }
    Ok(pages)
}
