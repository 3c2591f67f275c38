//! `codespar agents`.
//!
//! `list` shows what would be used here: agents of an untrusted project are missing, their mistakes
//! are not. `check` looks at all files, trusted or not.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use codespar_tasks::{AgentKind, ToolSet, builtin_kinds};
use serde_json::{Value, json};

use crate::{error::CommandError, printer, style};
use codespar_agent::AgentDefinitions;
use codespar_runtime::{
    ProjectDir, Settings, definitions, definitions_in, definitions_with_plugins, trust::TrustFilter,
};

/// List agents, or check custom ones (.codespar/agents, .claude/agents).
///
/// A definition is a markdown file in one of these directories or below it: a frontmatter with `name` and `description` (and, if wanted,
/// tools, disallowedTools, model, permissionMode, maxTurns, maxWallSeconds, skills, isolation, background, color,
/// hooks) and the agent's prompt below it.
///
/// Example: codespar agents check
#[derive(Args)]
pub(crate) struct AgentsCommand {
    #[command(subcommand)]
    verb: Verb,
}

/// The origin of agents that come with the program.
const BUILT_IN: &str = "built-in";

#[derive(Subcommand)]
enum Verb {
    /// List built-in and custom agents, and definition files that cannot be used.
    List {
        /// Print JSON: `agents` (`origin` is built-in, project, user or plugin), and `problems` and
        /// `warnings` with `path`, `line` and `message`.
        #[arg(long)]
        json: bool,
    },
    /// Report every definition that cannot be used, and what is left out of others, by file and
    /// line; exit 1 if one cannot be used.
    Check {
        /// Print JSON: `checked` (how many can be used), and `problems` and `warnings` with `path`,
        /// `line` and `message`.
        #[arg(long)]
        json: bool,
        /// Check the files of this directory, and of those below it, instead of the project's.
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

pub(crate) fn run(
    args: &AgentsCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    match &args.verb {
        Verb::List { json } => list(*json, project_dir),
        Verb::Check { json, dir } => {
            let found = match dir {
                Some(dir) => {
                    super::must_be_dir(dir)?;
                    definitions_in(dir)
                }
                None => definitions(project_dir, TrustFilter::Any),
            };
            check(*json, &found)
        }
    }
}

fn list(json: bool, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let mut settings = Settings::load(project_dir)?;
    let told = settings.warnings.len();
    let custom = definitions_with_plugins(project_dir, TrustFilter::Needed, &mut settings).agents;
    // Of the settings, what is wrong with plugins alone belongs here.
    for warning in settings.warnings.split_off(told) {
        printer::err(format_args!("{} {warning}", style::warning("warning:")));
    }
    // A file that cannot be used is worth a line before it is trusted.
    let all = definitions_with_plugins(project_dir, TrustFilter::Any, &mut settings);
    let (problems, warnings) = (all.problems, all.warnings);
    // A definition of the same name takes the place of a built-in agent.
    let builtin: Vec<AgentKind> = builtin_kinds()
        .into_iter()
        .filter(|kind| !custom.contains_key(&kind.name))
        .collect();
    if json {
        let custom = custom.values().map(|agent| json!(agent));
        let agents: Vec<Value> = builtin.iter().map(builtin_json).chain(custom).collect();
        super::print_json(
            &json!({ "agents": agents, "problems": problems, "warnings": warnings }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    for kind in &builtin {
        let tools = match &kind.tools {
            ToolSet::Only(names) => names.join(", "),
            ToolSet::All => "all tools".to_owned(),
            ToolSet::Worker => "all tools but the coordinator's".to_owned(),
        };
        let model = kind.model.as_deref();
        row(&kind.name, &kind.description, model, &tools, BUILT_IN)?;
    }
    for agent in custom.values() {
        let tools = agent.tools.as_ref();
        let tools = tools.map_or("all tools".to_owned(), |names| names.join(", "));
        let place = format!("{} ({})", project_dir.shown(&agent.path), agent.origin);
        let model = agent.model.as_deref();
        row(&agent.name, &agent.description, model, &tools, &place)?;
    }
    if custom.is_empty() {
        super::print(format_args!(
            "no custom agents; put one in .codespar/agents/NAME.md\n"
        ))?;
    }
    for warning in &warnings {
        super::print(format_args!(
            "{} {}:{}: {}\n",
            style::faint("warning:"),
            project_dir.shown(&warning.path),
            warning.line,
            warning.message
        ))?;
    }
    for problem in &problems {
        super::print(format_args!(
            "{} {}:{}: {}\n",
            style::warning("cannot be used:"),
            project_dir.shown(&problem.path),
            problem.line,
            problem.message
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Name and the first line of the description, then model, tools and place.
fn row(
    name: &str,
    description: &str,
    model: Option<&str>,
    tools: &str,
    place: &str,
) -> Result<(), CommandError> {
    let model = model.unwrap_or("inherits the model");
    super::print(format_args!(
        "{}  {}\n  {}\n",
        style::strong(name),
        description.lines().next().unwrap_or_default(),
        style::faint(format!("{model} · {tools} · {place}")),
    ))
}

/// With the fields of a custom agent.
fn builtin_json(kind: &AgentKind) -> Value {
    let tools = match &kind.tools {
        ToolSet::Only(names) => Some(names),
        ToolSet::All | ToolSet::Worker => None,
    };
    json!({
        "name": kind.name,
        "description": kind.description,
        "tools": tools,
        "disallowedTools": [],
        "model": kind.model,
        "permissionMode": null,
        "maxTurns": kind.max_turns,
        "maxWallSeconds": kind.max_wall_seconds,
        "skills": kind.skills,
        "isolation": kind.isolation,
        "background": kind.background,
        "color": null,
        "path": null,
        "origin": BUILT_IN,
    })
}

fn check(json: bool, found: &AgentDefinitions) -> Result<ExitCode, CommandError> {
    let (usable, problems, warnings) = (found.agents.len(), &found.problems, &found.warnings);
    if json {
        super::print_json(
            &json!({ "checked": usable, "problems": problems, "warnings": warnings }),
        )?;
    } else {
        for warning in warnings {
            super::print(format_args!("{} {warning}\n", style::warning("warning:")))?;
        }
        for problem in problems {
            super::print(format_args!("{} {problem}\n", style::error("error:")))?;
        }
        super::print(format_args!("{usable} usable, {} not\n", problems.len()))?;
    }
    Ok(match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
