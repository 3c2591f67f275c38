//! `codespar channels`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use codespar_channels::{ChannelFinding, ConfiguredChannel, FindingKind};
use codespar_runtime::ProjectDir;
use serde_json::json;

use super::channels_people;
use crate::{channels, error::CommandError, printer::plain, style};

/// Show and check the chat channels that are set up.
///
/// A channel is set up by its secrets in the environment; `codespar serve` serves those there are.
///
/// Example: codespar channels check
#[derive(Args)]
pub(crate) struct ChannelsCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Ask each platform whether the setup is complete: tokens, scopes, what to click.
    ///
    /// The exit code is 1 if there is a problem.
    Check {
        /// Print JSON: `channels`, each with `name` and `findings`, which have `kind` (fine, warning
        /// or problem) and `text`.
        #[arg(long)]
        json: bool,
    },
    /// List the channels that are set up, and how their messages come in.
    List {
        /// Print JSON: `channels`, each with `name`, `webhook` (its path, or null) and `connects`.
        #[arg(long)]
        json: bool,
    },
    People(channels_people::PeopleCommand),
}

pub(crate) async fn run(
    command: ChannelsCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    match command.verb {
        Verb::Check { json } => check(&channels::find(project_dir)?, json).await,
        Verb::List { json } => list(&channels::find(project_dir)?, json),
        Verb::People(command) => channels_people::run(command, project_dir).await,
    }
}

const NONE: &str = "no channel is set up; docs/channels.md says how\n";

async fn check(found: &[ConfiguredChannel], json: bool) -> Result<ExitCode, CommandError> {
    let mut checked = Vec::new();
    for channel in found {
        checked.push((channel.adapter.name(), channel.adapter.check().await));
    }
    if json {
        let channels = checked.iter().map(|(name, findings)| {
            let findings = findings.iter().map(described).collect::<Vec<_>>();
            json!({"name": name, "findings": findings})
        });
        super::print_json(&json!({"channels": channels.collect::<Vec<_>>()}))?;
    } else {
        if checked.is_empty() {
            super::print(format_args!("{NONE}"))?;
        }
        for (name, findings) in &checked {
            super::print(format_args!("{name}\n"))?;
            for finding in findings {
                super::print(format_args!("  {}\n", line(finding)))?;
            }
        }
    }
    let mut findings = checked.iter().flat_map(|(_, findings)| findings);
    let is_problem = findings.any(|finding| finding.kind == FindingKind::Problem);
    Ok(match is_problem {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn described(finding: &ChannelFinding) -> serde_json::Value {
    let kind = match finding.kind {
        FindingKind::Fine => "fine",
        FindingKind::Warning => "warning",
        FindingKind::Problem => "problem",
    };
    json!({"kind": kind, "text": finding.text})
}

/// Texts of platforms are in it.
fn line(finding: &ChannelFinding) -> String {
    let text = plain(&finding.text);
    match finding.kind {
        FindingKind::Fine => format!("ok       {text}"),
        FindingKind::Warning => format!("{} {text}", style::warning("warning:")),
        FindingKind::Problem => format!("{} {text}", style::error("problem:")),
    }
}

fn list(found: &[ConfiguredChannel], json: bool) -> Result<ExitCode, CommandError> {
    let hook = |channel: &ConfiguredChannel| {
        let path = format!("/hooks/{}", channel.adapter.name());
        channel.webhook.as_ref().map(|_| path)
    };
    if json {
        let channels = found.iter().map(|channel| {
            json!({
                "name": channel.adapter.name(),
                "webhook": hook(channel),
                "connects": channel.source.is_some(),
            })
        });
        super::print_json(&json!({"channels": channels.collect::<Vec<_>>()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        super::print(format_args!("{NONE}"))?;
    }
    for channel in found {
        let connects = channel
            .source
            .as_ref()
            .map(|_| "its own connection".to_owned());
        let ways: Vec<String> = connects.into_iter().chain(hook(channel)).collect();
        super::print(format_args!(
            "{}  {}\n",
            channel.adapter.name(),
            style::faint(ways.join(", "))
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
