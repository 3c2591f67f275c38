//! `codespar trust`.
//!
//! `add` records the texts that were read at the start of the command, the same that `show` prints.
//! Nothing of the project is loaded by any of these commands.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::{error::CommandError, printer::plain, style};
use codespar_runtime::{
    ProjectDir, trust, trust::ProjectFile, trust::Standing, trust::TrustRecord,
};

/// Decide which repositories are trusted.
///
/// Settings (.codespar, .claude), MCP servers (.mcp.json), agents and workflows of a repository
/// count only after you have trusted them, at this path and with this content. Deny and ask rules
/// always count.
///
/// Example: codespar trust show; codespar trust add
#[derive(Args)]
pub(crate) struct TrustCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Trust the files of a project as they are now, and print what they grant.
    Add {
        /// The project; the one around this directory by default.
        dir: Option<PathBuf>,
    },
    /// Remove the stored trust decision of a project.
    Remove {
        /// The project; the one around this directory by default.
        dir: Option<PathBuf>,
    },
    /// List projects with a stored trust decision.
    List {
        /// Print JSON: `projects`, each with `path`, `decided_at` and `files` (`name`, `sha256`,
        /// `trusted`).
        #[arg(long)]
        json: bool,
    },
    /// Show what the files of a project grant, whether they are trusted, and what has changed.
    Show {
        /// The project; the one around this directory by default.
        dir: Option<PathBuf>,
        /// Print JSON: `path`, and `files`, each with `name`, `grants`, `standing` (needs-none, trusted,
        /// declined, changed or new) and `difference`.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &TrustCommand, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    match &args.verb {
        Verb::Add { dir } => add(&at(dir.as_deref(), project_dir)?),
        Verb::Remove { dir } => remove(dir.as_deref(), project_dir),
        Verb::List { json } => list(*json, project_dir),
        Verb::Show { dir, json } => show(*json, &at(dir.as_deref(), project_dir)?),
    }
}

/// Without a directory the project is the one around the current one, as for every command.
fn at(dir: Option<&Path>, project_dir: &ProjectDir) -> Result<ProjectDir, CommandError> {
    match dir {
        Some(dir) => Ok(ProjectDir::find(project_dir.environment.clone(), dir)?),
        None => Ok(project_dir.clone()),
    }
}

/// A file that cannot be read stops it: nobody could have looked at it.
fn add(project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let project = &project_dir.trust;
    if let Some((file, error)) = unreadable(project.files()) {
        let path = file.path.display();
        return Err(CommandError::Failed(format!(
            "{path}: {error}; remove it first"
        )));
    }
    project
        .decide(project_dir.state(), true)
        .map_err(|error| CommandError::Failed(format!("cannot keep the decision: {error}")))?;
    let root = project_dir.root.display().to_string();
    // As they are now on record.
    let trusted = ProjectDir::find(project_dir.environment.clone(), &project_dir.cwd)?;
    let details = trusted.trust.details();
    if details.is_empty() {
        super::print(format_args!(
            "trusted {}: no file here grants anything\n",
            plain(&root)
        ))?;
    } else {
        super::print(format_args!("trusted {}\n{details}", plain(&root)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn unreadable(files: &[ProjectFile]) -> Option<(&ProjectFile, &String)> {
    files
        .iter()
        .find_map(|file| Some((file, file.text.as_ref().err()?)))
}

/// A project that is gone is found by its path as it was recorded.
fn remove(dir: Option<&Path>, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    // A project that is gone can be forgotten too.
    let root = match dir {
        Some(dir) if dir.exists() => ProjectDir::find(project_dir.environment.clone(), dir)?.root,
        Some(dir) => std::path::absolute(dir)?,
        None => project_dir.root.clone(),
    };
    let shown = root.display();
    let was_known = trust::forget(project_dir.state(), &root)
        .map_err(|error| CommandError::Failed(format!("cannot forget {shown}: {error}")))?;
    if !was_known {
        return Err(CommandError::Usage(format!(
            "there is no decision about {shown}; `codespar trust list` shows those there are"
        )));
    }
    super::print(format_args!("{shown} is not trusted any more\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let records = trust::all(project_dir.state());
    if json {
        let rows: Vec<_> = records.iter().map(row).collect();
        super::print_json(&json!({ "projects": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if records.is_empty() {
        super::print(format_args!("no project is trusted\n"))?;
    }
    for record in &records {
        let files = record.files.iter().map(|(name, decided)| {
            let mark = if decided.trusted { "" } else { " (declined)" };
            format!("{name}{mark}")
        });
        let files = files.collect::<Vec<_>>().join(", ");
        super::print(format_args!(
            "{}\n  {}\n",
            style::strong(plain(&record.path)),
            style::faint(plain(&files))
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The texts themselves are left out.
fn row(record: &TrustRecord) -> serde_json::Value {
    let files = record.files.iter();
    let files = files.map(|(name, decided)| {
        json!({"name": name, "sha256": decided.sha256, "trusted": decided.trusted})
    });
    json!({
        "path": record.path,
        "decided_at": record.decided_at,
        "files": files.collect::<Vec<_>>(),
    })
}

fn show(json: bool, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let project = &project_dir.trust;
    let granting = || {
        project
            .files()
            .iter()
            .filter(|file| !file.grants.is_empty())
    };
    if json {
        let files = granting().map(|file| {
            json!({
                "name": file.name, "grants": file.grants, "standing": word(&file.standing),
                "difference": file.difference(),
            })
        });
        let files: Vec<_> = files.collect();
        super::print_json(&json!({ "path": project_dir.root, "files": files }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let root = project_dir.root.display().to_string();
    if granting().next().is_none() {
        super::print(format_args!(
            "{}: no file here grants anything\n",
            plain(&root)
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    super::print(format_args!("{}\n{}", plain(&root), project.details()))?;
    Ok(ExitCode::SUCCESS)
}

/// Part of the JSON output; never renamed.
fn word(standing: &Standing) -> &'static str {
    match standing {
        Standing::NeedsNone => "needs-none",
        Standing::Trusted => "trusted",
        Standing::Declined => "declined",
        Standing::Changed(_) => "changed",
        Standing::New => "new",
    }
}
