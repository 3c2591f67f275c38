//! `codespar hooks`.
//!
//! Shows what would run here. Hooks of a project that is not trusted are missing, as they do not
//! run; the notice about untrusted files names them.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use codespar_policy::hooks::{Hook, HookOrigin};
use codespar_runtime::{ProjectDir, ProjectHookPlace, ProjectOptions, Settings, plugins};
use serde_json::{Value, json};

use crate::{error::CommandError, style};

/// Show the hooks in force: commands, addresses and prompts that run at events of an agent.
///
/// They are set under `hooks` in settings files (yours, and those of a project that you trust).
///
/// Example: codespar hooks list
#[derive(Args)]
pub(crate) struct HooksCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the hooks with their events, matchers and files; exit 1 if one cannot be run.
    List {
        /// Print JSON: `hooks`, each with `event`, `matcher`, `type`, `runs`, `timeout` (seconds or
        /// null), `file`, `origin` (user or project), `place` and `is_active`, and `warnings`.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &HooksCommand, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let Verb::List { json } = args.verb;
    let mut settings = Settings::load(project_dir)?;
    plugins(project_dir, &ProjectOptions::default(), &mut settings)?;
    let rows: Vec<Value> = settings
        .hooks
        .written()
        .iter()
        .map(|hook| {
            let mut row = row(hook, settings.hooks.place());
            row["is_active"] = json!(settings.hooks.runs(hook.source.origin));
            row
        })
        .collect();
    let about_hooks = |text: &&String| text.contains("hook") || text.contains("plugin");
    let warnings: Vec<&String> = settings.warnings.iter().filter(about_hooks).collect();
    if json {
        super::print_json(&json!({ "hooks": rows, "warnings": warnings }))?;
    } else {
        show(&rows, &warnings)?;
    }
    let is_broken = rows.iter().any(|row| row["type"] == "broken");
    Ok(match is_broken {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn row(hook: &Hook, place: ProjectHookPlace) -> Value {
    let place = match (hook.source.origin, place) {
        (HookOrigin::User, _) | (_, ProjectHookPlace::Outside) => "outside",
        (_, ProjectHookPlace::Sandbox) => "sandbox",
        (_, ProjectHookPlace::Off) => "off",
    };
    json!({
        "event": hook.event.as_str(),
        "matcher": hook.matcher.as_str(),
        "type": hook.kind(),
        "runs": hook.summary(),
        "timeout": hook.timeout.map(|timeout| timeout.as_secs_f64()),
        "file": hook.source.file,
        "origin": hook.source.origin.as_str(),
        "place": place,
    })
}

/// The rows are those of the JSON output, so that both say the same.
fn show(rows: &[Value], warnings: &[&String]) -> Result<(), CommandError> {
    if rows.is_empty() {
        super::print(format_args!(
            "no hooks; docs/hooks.md says how to set them\n"
        ))?;
    }
    for row in rows {
        let word = |key: &str| row[key].as_str().unwrap_or_default();
        let kind = match word("type") {
            "broken" => style::error("cannot be run"),
            kind => style::faint(kind),
        };
        let mut about = vec![format!("{} ({})", word("file"), word("origin"))];
        if word("type") == "command" {
            about.push(match word("place") {
                "outside" => "outside the sandbox".to_owned(),
                "sandbox" => "in the sandbox".to_owned(),
                _ => "switched off".to_owned(),
            });
        }
        if row["is_active"] == false {
            about.push("not active".to_owned());
        }
        super::print(format_args!(
            "{} {}  {}  {kind}\n  {}\n",
            style::strong(word("event")),
            match word("matcher") {
                "" => "*",
                matcher => matcher,
            },
            word("runs"),
            style::faint(about.join(" · ")),
        ))?;
    }
    for warning in warnings {
        super::print(format_args!("{} {warning}\n", style::warning("warning:")))?;
    }
    Ok(())
}
