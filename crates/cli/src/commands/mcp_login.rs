//! `codespar mcp login` and `logout`: OAuth with a server, in a browser.
//!
//! The browser comes back to a port of this machine. Where it runs on another one (ssh), the user
//! pastes the address that it was sent to. Both ways are open at the same time.

use std::{
    io::BufRead,
    process::{ExitCode, Stdio},
    sync::Arc,
};

use clap::Args;
use codespar_mcp::{Login, LoginError, McpServer, McpStatus, Redirect, server_word};
use codespar_runtime::{
    Environment, ProjectDir, Settings,
    mcp::{ServerList, ServerReach, unknown},
};
use codespar_tools::child_environment;
use tokio::{process::Command, sync::mpsc};
use url::Url;

use crate::{error::CommandError, style};

#[derive(Args)]
pub(crate) struct LoginArgs {
    /// The name of the server in the configuration.
    name: String,
    /// Do not open a browser; only print the address to open.
    #[arg(long)]
    no_browser: bool,
}

#[derive(Args)]
pub(crate) struct LogoutArgs {
    /// The name of the server in the configuration.
    name: String,
}

/// Connects first: how the server refuses says where to log in.
pub(crate) async fn login(
    args: &LoginArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let server = find(&args.name, project_dir)?;
    match server.settle().await {
        McpStatus::NeedsApproval => {
            return Err(CommandError::Usage(format!(
                "the MCP server `{}` comes with the repository and is not approved: allow it in a \
                 session first",
                args.name
            )));
        }
        McpStatus::Failed(error) if !server.wants_login() => {
            return Err(CommandError::Failed(format!(
                "the MCP server `{}` cannot be used: {error}",
                args.name
            )));
        }
        McpStatus::Connected if !server.wants_login() => {
            super::print(format_args!("{} wants no login now\n", args.name))?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let login = server.login().await.map_err(|error| failed(&error))?;
    let is_opened = !args.no_browser && open(login.page(), &project_dir.environment);
    invite(&args.name, login.page(), is_opened)?;
    let redirect = answer(&login).await?;
    login
        .finish(&redirect)
        .await
        .map_err(|error| failed(&error))?;
    conclude(&server).await
}

fn failed(error: &LoginError) -> CommandError {
    CommandError::Failed(error.to_string())
}

fn find(name: &str, project_dir: &ProjectDir) -> Result<Arc<McpServer>, CommandError> {
    let settings = Settings::load(project_dir)?;
    let list = ServerList::read(project_dir, &settings, &[], ServerReach::All)?;
    let (servers, _) = list.connectable(project_dir, &settings)?;
    let found = servers.get(name).cloned();
    found.ok_or_else(|| CommandError::Usage(unknown(&servers, name)))
}

fn invite(name: &str, page: &Url, is_opened: bool) -> Result<(), CommandError> {
    let host = page.host_str().unwrap_or_default();
    let first = match is_opened {
        true => format!("Your browser opens {host} to log in to {name}. If it does not, open:"),
        false => format!("To log in to {name}, open this address of {host} in a browser:"),
    };
    super::print(format_args!(
        "{first}\n\n{page}\n\n{}\n",
        style::faint(
            "If that browser is on another machine, paste the address that it ends at here."
        )
    ))
}

/// The browser's answer, or what the user pastes. A line that is not the answer is said so, and the
/// next one is waited for.
async fn answer(login: &Login) -> Result<Redirect, CommandError> {
    let mut lines = pasted_lines();
    let redirected = login.redirected();
    tokio::pin!(redirected);
    loop {
        tokio::select! {
            came = &mut redirected => return came.map_err(|error| failed(&error)),
            Some(line) = lines.recv() => match login.pasted(&line) {
                Ok(redirect) => return Ok(redirect),
                Err(_) if line.trim().is_empty() => {}
                Err(error) => super::print(format_args!("{}\n", style::warning(error)))?,
            },
        }
    }
}

/// On a thread of its own, which the process does not wait for at its end. No lines at the end of
/// the input: the browser may still come.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel(1);
    // Without the thread there is the browser.
    let _ = std::thread::Builder::new().spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Whether a browser was started. The address is HTTPS or on this machine, so it is never taken for
/// an option. The browser gets an environment without secrets, and outlives us.
fn open(page: &Url, environment: &Environment) -> bool {
    let is_set = |name| environment.var(name).is_some_and(|value| !value.is_empty());
    let program = match environment.var("BROWSER").filter(|value| !value.is_empty()) {
        Some(named) => named.split(':').next().unwrap_or(named),
        None if cfg!(target_os = "macos") => "open",
        None if is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") => "xdg-open",
        None => return false,
    };
    let pass = [
        "XAUTHORITY".to_owned(),
        "DBUS_SESSION_BUS_ADDRESS".to_owned(),
    ];
    Command::new(program)
        .arg(page.as_str())
        .env_clear()
        .envs(child_environment(
            environment.vars.iter().cloned(),
            [],
            &pass,
        ))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}

/// Connects with the new token: a login that the server does not accept is not one.
async fn conclude(server: &Arc<McpServer>) -> Result<ExitCode, CommandError> {
    let name = &server.config().name;
    let connected = server.reconnect().await;
    server.end().await;
    match connected {
        Ok(()) => {
            super::print(format_args!(
                "{} logged in to {name}; rules speak of its tools as mcp__{}\n",
                style::good("ok"),
                server_word(name)
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(CommandError::Failed(format!(
            "logged in, but {name} cannot be used: {error}"
        ))),
    }
}

/// Also for a server that is not approved: nothing is started.
pub(crate) fn logout(
    args: &LogoutArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let server = find(&args.name, project_dir)?;
    let text = match server.logout().map_err(|error| failed(&error))? {
        true => "logged out of",
        false => "there was no login to",
    };
    super::print(format_args!("{text} {}\n", args.name))?;
    Ok(ExitCode::SUCCESS)
}
