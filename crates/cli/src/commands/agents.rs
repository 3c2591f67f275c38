//! `codespar agents`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::{error::CommandError, style};
use codespar_runtime::{ProjectDir, definitions, trust::TrustFilter};

/// List or check custom agents (.codespar/agents, .claude/agents).
///
/// A definition is a markdown file: a frontmatter with `name` and `description` (and, if wanted,
/// tools, disallowedTools, model, permissionMode, maxTurns, skills, isolation, background, color)
/// and the agent's prompt below it.
///
/// Example: codespar agents check
#[derive(Args)]
pub(crate) struct AgentsCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the agents there are.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Report every definition that cannot be used, by file and line; exit 1 if there is one.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Runs it.
pub(crate) fn run(
    args: &AgentsCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let trust = match args.verb {
        Verb::List { .. } => TrustFilter::Needed,
        Verb::Check { .. } => TrustFilter::Any,
    };
    let found = definitions(project_dir, trust);
    match args.verb {
        Verb::List { json: true } => super::print_json(&json!({
            "agents": found.agents.values().collect::<Vec<_>>(),
            "problems": found.problems,
        }))?,
        Verb::List { json: false } => {
            if found.agents.is_empty() {
                super::print(format_args!(
                    "no custom agents; put one in .codespar/agents/NAME.md\n"
                ))?;
            }
            for agent in found.agents.values() {
                let tools = agent
                    .tools
                    .as_ref()
                    .map_or("all tools".to_owned(), |t| t.join(", "));
                let model = agent.model.as_deref().unwrap_or("inherits the model");
                super::print(format_args!(
                    "{}  {}\n  {}\n",
                    style::strong(&agent.name),
                    agent.description.lines().next().unwrap_or_default(),
                    style::faint(format!(
                        "{model} · {tools} · {} ({})",
                        project_dir.shown(&agent.path),
                        agent.origin
                    )),
                ))?;
            }
            for problem in &found.problems {
                crate::printer::err(format_args!(
                    "{} {problem}",
                    style::warning("cannot be used:")
                ));
            }
        }
        Verb::Check { json } => {
            if json {
                super::print_json(
                    &json!({ "checked": found.agents.len(), "problems": found.problems }),
                )?;
            } else {
                for problem in &found.problems {
                    super::print(format_args!("{} {problem}\n", style::error("error:")))?;
                }
                super::print(format_args!(
                    "{} usable, {} not\n",
                    found.agents.len(),
                    found.problems.len()
                ))?;
            }
            if !found.problems.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
