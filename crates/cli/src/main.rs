//! The `codespar` binary: reads the environment and the home directory and hands them to the
//! libraries. Of these only `git` reads variables by itself, those that the `git` command needs.
//!
//! The order at start-up matters:
//!
//! ```text
//! guard, forwarder, MCP guard   re-executed copies of this binary; nothing else is loaded
//! arguments                     help and mistakes end here
//! harden, check resources       before the environment is read
//! environment, project, trust   read once; the question about trust comes before anything is used
//! runtime, dispatch             one function per command
//! ```
//!
//! Errors come back to `main` as a `CommandError`, which knows its exit code.

mod acp;
mod args;
mod channels;
mod command_names;
mod commands;
mod dev;
mod environment;
mod error;
mod headless;
mod printer;
mod progress;
mod remote;
mod requests;
mod resources;
mod sdk;
mod session;
mod signals;
mod slash;
mod status_command;
mod stdin;
mod style;
mod telemetry;
mod trust_question;

use std::{io::IsTerminal, process::ExitCode, sync::Arc};

use clap::Parser;

use crate::{
    args::{Cli, Command},
    error::CommandError,
    telemetry::Telemetry,
};
use codespar_runtime::{ProjectDir, trust::ProjectTrust};

/// The three hidden first words are compared with the raw arguments and not declared to clap: they
/// must work with an empty environment, and cost nothing at each start of a command.
fn main() -> ExitCode {
    // The guard of sandboxed commands starts here too, before anything else is loaded.
    let mut args = std::env::args_os().skip(1);
    match args.next().and_then(|word| word.into_string().ok()) {
        Some(word) if word == codespar_tools::sandbox::GUARD_COMMAND => {
            std::process::exit(codespar_tools::sandbox::guard_main(args));
        }
        Some(word) if word == codespar_tools::egress::FORWARD_COMMAND => {
            std::process::exit(codespar_tools::egress::forward_main(args));
        }
        Some(word) if word == codespar_tools::sandbox::SERVER_COMMAND => {
            std::process::exit(codespar_tools::sandbox::server_main(args));
        }
        _ => {}
    }
    let expanded = match requests::expand_verbs(std::env::args_os()) {
        Ok(args) => args,
        Err(message) => return CommandError::Usage(message).report(),
    };
    let cli = match Cli::try_parse_from(expanded) {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error),
    };
    match run(cli) {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}

/// Help goes out as it is; a complaint quotes what was typed, perhaps the name of a file.
fn refuse_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    printer::err(format_args!("{}", error.render().to_string().trim_end()));
    ExitCode::from(error::EXIT_USAGE)
}

/// Everything up to the runtime is synchronous and single-threaded, but for the threads of the
/// resource check, which have ended. The runtime is left without waiting for its blocking threads.
fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    // Needs neither a project nor a runtime.
    if let Some(Command::Completions(args)) = &cli.command {
        return commands::completions::run(args);
    }
    if let Some(Command::Man(args)) = &cli.command {
        return commands::man::run(args);
    }
    command_names::refuse_lookalikes(&cli)?;
    cli.refuse_unheeded()?;
    // Where the system refuses it, commands are still confined; only a debugger-like read of our
    // memory by the same user stays possible.
    let _ = codespar_tools::sandbox::harden_self();
    let telemetry = Telemetry::start(&cli.session.client)?;
    resources::check()?;
    resources::end_when_no_thread_starts();
    let mut project_dir = environment::project_dir(cli.session.cwd.as_deref())?;
    printer::hide(project_dir.environment.redactor());
    project_dir.trust = Arc::new(trust_of_project(&cli, &project_dir)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::Failed(format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(dispatch(cli, project_dir));
    // A thread may still wait on standard input; the process does not wait for it.
    runtime.shutdown_background();
    telemetry.finish();
    outcome
}

/// Settles whether the files of the project count: by `--trust`, by asking at a terminal where
/// somebody is at it anyway, else by what is on record, with a line about what is ignored.
///
/// A conversation at a terminal is the only case in which somebody is asked. A script, a pipe and a
/// command without conversation get one line on standard error and go on without the files.
fn trust_of_project(cli: &Cli, project_dir: &ProjectDir) -> Result<ProjectTrust, CommandError> {
    let project = &*project_dir.trust;
    if cli.trust {
        return project.for_this_run().map_err(CommandError::Usage);
    }
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let is_conversation = match &cli.command {
        None => !cli.is_headless(),
        Some(command) => matches!(command, Command::Dev(args) if !args.is_remote()),
    };
    match &cli.command {
        // These use none of the files, or say it themselves.
        Some(
            Command::Trust(_)
            | Command::Session(_)
            | Command::Gc(_)
            | Command::Migrate(_)
            | Command::Token(_)
            | Command::Fleet(_)
            | Command::Demo(_)
            | Command::Audit(_)
            | Command::Channels(_)
            | Command::Completions(_),
        ) => {}
        Some(Command::Serve(args)) if args.is_demo() => {}
        _ if is_conversation && is_at_terminal => {
            return trust_question::ask(
                project,
                &project_dir.environment.person(),
                &project_dir.cwd,
            );
        }
        _ => {
            if let Some(notice) = project.notice() {
                printer::err(format_args!("codespar: {notice}"));
            }
        }
    }
    Ok(project.clone())
}

/// Each command opens only what it needs: most of them no runtime, some no database.
async fn dispatch(mut cli: Cli, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    if let Some(code) = requests::take_from_prompt(&mut cli, &project_dir).await? {
        return Ok(code);
    }
    match cli.command {
        Some(Command::Session(args)) => commands::session::run(args, &project_dir).await,
        Some(Command::Dev(args)) => commands::dev::run(args, project_dir).await,
        Some(Command::Locate(args)) => commands::locate::run(args, &project_dir).await,
        Some(Command::Pr(args)) => commands::pr::run(args, &project_dir).await,
        Some(Command::Review(args)) => commands::review::run(args, &project_dir).await,
        Some(Command::Merge(args)) => commands::pr::merge_one(&args, &project_dir).await,
        Some(Command::Ask(args)) => commands::ask::run(args, &project_dir).await,
        Some(Command::Chat(args)) => commands::chat::run(args, project_dir).await,
        Some(Command::Audit(args)) => commands::audit::run(&args, &project_dir).await,
        Some(Command::Channels(args)) => commands::channels::run(args, &project_dir).await,
        Some(Command::Task(args)) => commands::task::run(args, project_dir).await,
        Some(Command::Worker(args)) => {
            commands::worker::run(&args, &cli.session, project_dir).await
        }
        Some(Command::Serve(args)) => commands::serve::run(args, project_dir).await,
        Some(Command::Fleet(args)) => commands::fleet::run(args, &project_dir).await,
        Some(Command::Token(args)) => commands::token::run(args, &project_dir).await,
        Some(Command::Agents(args)) => commands::agents::run(&args, &project_dir),
        Some(Command::Skills(args)) => commands::skills::run(&args, &project_dir),
        Some(Command::Hooks(args)) => commands::hooks::run(&args, &project_dir),
        Some(Command::Apply(args)) => commands::apply::run(&args),
        Some(Command::Acp(args)) => acp::run(&args, project_dir).await,
        Some(Command::Mcp(args)) => commands::mcp::run(&args, &project_dir).await,
        Some(Command::Doctor(args)) => {
            commands::doctor::run(&args, &cli.session, &project_dir).await
        }
        Some(Command::Trust(args)) => commands::trust::run(&args, &project_dir),
        Some(Command::Auth(args)) => commands::auth::run(&args, &cli.session, &project_dir),
        Some(Command::Gc(args)) => commands::gc::run(&args, &project_dir).await,
        Some(Command::Migrate(args)) => commands::migrate::run(&args, &project_dir).await,
        Some(Command::Demo(args)) => commands::demo::run(&args, &project_dir).await,
        Some(Command::Completions(args)) => commands::completions::run(&args),
        Some(Command::Man(args)) => commands::man::run(&args),
        None if cli.has_client() => sdk::run(cli, project_dir).await,
        None if cli.is_headless() => headless::run(cli, project_dir).await,
        None => session::run(cli, project_dir).await,
    }
}
