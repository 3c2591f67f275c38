//! `codespar mcp`. `serve` is in a file of its own.
//!
//! Unlike `doctor`, `list` starts the servers, with the same guard and environment as a session, and
//! ends them again. Servers that need approval are listed and not started.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use codespar_mcp::{McpStatus, server_word};
use serde_json::json;

use super::mcp_login::{LoginArgs, LogoutArgs};
use crate::{error::CommandError, style};
use codespar_runtime::{
    ProjectDir, Settings,
    mcp::{ServerList, ServerReach},
};

/// Show the configured MCP servers, log in to them, or be one for other agents.
///
/// Servers are configured in .mcp.json of the project and under mcpServers of your settings.
///
/// Example: codespar mcp list
#[derive(Args)]
pub(crate) struct McpCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Connect to the servers that may be started and show their status; exit 1 if one failed.
    List {
        /// Print JSON: `servers`, each with `name`, `status`, `error`, `origin`, `file`, `runs` and
        /// `tools`, and `problems`.
        #[arg(long)]
        json: bool,
    },
    /// Log in to a server that wants it (OAuth), in a browser; the token is kept for later runs.
    Login(LoginArgs),
    /// Forget the token of a server.
    Logout(LogoutArgs),
    Serve(super::mcp_serve::McpServeArgs),
}

pub(crate) async fn run(
    args: &McpCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    match &args.verb {
        Verb::List { json } => list(*json, project_dir).await,
        Verb::Login(args) => super::mcp_login::login(args, project_dir).await,
        Verb::Logout(args) => super::mcp_login::logout(args, project_dir),
        Verb::Serve(args) => super::mcp_serve::run(args, project_dir).await,
    }
}

/// A problem in a file is a failure too, even if all servers connect.
async fn list(json: bool, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let settings = Settings::load(project_dir)?;
    let list = ServerList::read(project_dir, &settings, &[], ServerReach::All)?;
    let problems: Vec<String> = list.problems.iter().map(ToString::to_string).collect();
    let (servers, _) = list.connectable(project_dir, &settings)?;
    servers.settled().await;
    let tools = servers.tools();
    let rows: Vec<serde_json::Value> = servers
        .iter()
        .map(|server| {
            let config = server.config();
            let start = format!("mcp__{}__", server_word(&config.name));
            let own: Vec<&str> = tools
                .iter()
                .map(|tool| tool.name())
                .filter(|name| name.starts_with(&start))
                .collect();
            let status = server.status();
            let error = match &status {
                McpStatus::Failed(error) => Some(error.to_string()),
                _ => None,
            };
            json!({
                "name": config.name, "status": status.as_str(), "error": error,
                "origin": config.origin.as_str(), "file": project_dir.shown(&config.path),
                "runs": config.summary(), "tools": own,
            })
        })
        .collect();
    servers.close().await;
    if json {
        super::print_json(&json!({ "servers": rows, "problems": problems }))?;
    } else {
        show(&rows, &problems)?;
    }
    let has_failed = rows.iter().any(|row| row["status"] == "failed");
    Ok(if has_failed || !problems.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The rows are those of the JSON output, so that both say the same.
///
/// The status is coloured by what the user has to do: nothing, look at an error, or approve.
fn show(rows: &[serde_json::Value], problems: &[String]) -> Result<(), CommandError> {
    if rows.is_empty() && problems.is_empty() {
        super::print(format_args!(
            "no MCP servers; put them in .mcp.json of the project or under mcpServers in your \
             settings\n"
        ))?;
    }
    for row in rows {
        let word = |key: &str| row[key].as_str().unwrap_or_default();
        let status = match word("status") {
            "connected" => style::good("connected"),
            "failed" => style::error("failed"),
            other => style::warning(other),
        };
        let count = row["tools"].as_array().map_or(0, Vec::len);
        super::print(format_args!(
            "{}  {status}\n  {}\n",
            style::strong(word("name")),
            style::faint(format!(
                "{} · {count} tools · {} ({})",
                word("runs"),
                word("file"),
                word("origin")
            ))
        ))?;
        if let Some(error) = row["error"].as_str() {
            super::print(format_args!("  {error}\n"))?;
        }
        if word("status") == "needs-approval" {
            super::print(format_args!(
                "  it comes with the project: allow it when a session asks, or add its name to \
                 enabledMcpServers in your own settings\n"
            ))?;
        }
    }
    for problem in problems {
        super::print(format_args!("{} {problem}\n", style::error("error:")))?;
    }
    Ok(())
}
