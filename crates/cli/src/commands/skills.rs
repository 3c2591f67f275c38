//! `codespar skills`.
//!
//! `check` looks at what a project and its user have, or at a collection of skills, however deep its
//! directories are. Skills need no trust.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use codespar_runtime::{ProjectDir, project_skills};
use codespar_tools::{SkillProblem, Skills};
use serde_json::{Value, json};

use crate::{error::CommandError, style};

/// Check skills (.codespar/skills, .claude/skills).
///
/// A skill is a directory with a file SKILL.md: instructions, and above them, if wanted, a
/// frontmatter with name, description, allowed-tools, model, disable-model-invocation,
/// user-invocable, context and agent. Other fields are left out.
///
/// Example: codespar skills check
#[derive(Args)]
pub(crate) struct SkillsCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Report every skill that cannot be used, by file and line; exit 1 if there is one.
    Check {
        /// Print JSON: `checked` (how many can be used), and `problems` with `path`, `line` and
        /// `message`.
        #[arg(long)]
        json: bool,
        /// Check the skills in this directory, and in those below it, instead of the project's and
        /// yours.
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

pub(crate) fn run(
    args: &SkillsCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let Verb::Check { json, dir } = &args.verb;
    let (usable, problems) = match dir {
        Some(dir) => {
            super::must_be_dir(dir)?;
            let (skills, problems) = Skills::check(dir);
            (skills.len(), problems)
        }
        None => {
            let (skills, problems) = project_skills(project_dir);
            (skills.iter().count(), problems)
        }
    };
    if *json {
        let problems: Vec<Value> = problems.iter().map(row).collect();
        super::print_json(&json!({ "checked": usable, "problems": problems }))?;
    } else {
        for problem in &problems {
            super::print(format_args!("{} {problem}\n", style::error("error:")))?;
        }
        super::print(format_args!("{usable} usable, {} not\n", problems.len()))?;
    }
    Ok(match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn row(problem: &SkillProblem) -> Value {
    json!({ "path": problem.path, "line": problem.line, "message": problem.message })
}
