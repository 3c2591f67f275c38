//! `codespar session`.
//!
//! Reads the database directly: sessions of all projects are shown, whichever directory it is. The
//! only changes are `rm` and `rewind`, which refuse a session that a process has open.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use codespar_protocol::{ContentBlock, Entry, EntryBody, Message, conversation};
use codespar_store::{SessionFilter, SessionRecord};
use serde_json::json;

use super::session_rewind::{RewindArgs, rewind};
use crate::{error::CommandError, style};
use codespar_runtime::{ProjectDir, SessionDirs, find_session};

/// List, show, export, rewind or remove sessions.
///
/// Example: codespar session show 0190a5c2
#[derive(Args)]
pub(crate) struct SessionCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List sessions, most recently used first.
    List {
        /// Only sessions of this directory.
        #[arg(long)]
        here: bool,
        /// At most this many.
        #[arg(short = 'n', long, default_value_t = 20)]
        limit: u32,
        /// Print JSON: `sessions`, each with `id`, `title`, `cwd`, `model`, `mode`, `created_at`,
        /// `updated_at`, `last_seq`, `usage` and `cost`.
        #[arg(long)]
        json: bool,
    },
    /// Show a session: usage, cost and conversation.
    Show {
        /// The id of the session, or a unique prefix of it.
        id: String,
        /// Print JSON: `session` with the fields of `session list`, and `entries`, the transcript
        /// with what a rewind took out.
        #[arg(long)]
        json: bool,
    },
    /// Print a session's transcript.
    Export {
        /// The id of the session, or a unique prefix of it.
        id: String,
        /// As JSON lines (everything, exactly, also what a rewind took out), or as markdown to read.
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
    },
    Rewind(RewindArgs),
    /// Remove sessions, their outputs and checkpoints.
    Rm {
        /// The ids of the sessions, or unique prefixes of them.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum ExportFormat {
    Jsonl,
    Markdown,
}

/// `rm` stops at the first id that cannot be removed; those before it are gone. Files are removed
/// after the record.
pub(crate) async fn run(
    args: SessionCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let store = project_dir.environment.open_database().await?;
    match args.verb {
        Verb::List { here, limit, json } => {
            let cwd = here.then(|| project_dir.cwd.clone());
            let filter = SessionFilter {
                cwd,
                limit: Some(limit),
            };
            list(&store.sessions(filter).await?, project_dir, json)?;
        }
        Verb::Show { id, json } => {
            let id = find_session(&*store, &id).await?;
            let session = store.session(id).await?;
            let entries = store.entries(id, 0).await?;
            if json {
                super::print_json(&json!({ "session": session, "entries": entries }))?;
            } else {
                show(&session, project_dir)?;
                super::print(format_args!("\n{}", markdown(&entries)))?;
            }
        }
        Verb::Export { id, format } => {
            let id = find_session(&*store, &id).await?;
            let entries = store.entries(id, 0).await?;
            match format {
                ExportFormat::Jsonl => {
                    for entry in &entries {
                        let line = serde_json::to_string(entry)
                            .map_err(|error| CommandError::Failed(error.to_string()))?;
                        crate::printer::json(&line)?;
                    }
                }
                ExportFormat::Markdown => super::print(format_args!("{}", markdown(&entries)))?,
            }
        }
        Verb::Rewind(args) => rewind(&args, &store, project_dir).await?,
        Verb::Rm { ids } => {
            for text in ids {
                let id = find_session(&*store, &text).await?;
                store.remove_session(id).await?;
                let dirs = SessionDirs::of(project_dir.state(), id);
                for dir in [dirs.temp, dirs.output, dirs.checkpoints] {
                    if let Err(error) = std::fs::remove_dir_all(&dir)
                        && error.kind() != std::io::ErrorKind::NotFound
                    {
                        crate::printer::err(format_args!("{}: {error}", dir.display()));
                    }
                }
                super::print(format_args!("removed {id}\n"))?;
            }
        }
    }
    store.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// Directories in the home directory are shown with `~`.
fn list(
    sessions: &[SessionRecord],
    project_dir: &ProjectDir,
    json: bool,
) -> Result<(), CommandError> {
    if json {
        return super::print_json(&json!({ "sessions": sessions }));
    }
    if sessions.is_empty() {
        return super::print(format_args!("no sessions yet\n"));
    }
    for session in sessions {
        let id = session.id.to_string();
        super::print(format_args!(
            "{}  {}  {:>9}  {}  {}\n",
            style::strong(id),
            session.updated_at.strftime("%Y-%m-%d %H:%M"),
            session.cost.to_string(),
            session.title.as_deref().unwrap_or("(empty)"),
            style::faint(
                project_dir
                    .home()
                    .and_then(|home| session.cwd.strip_prefix(home).ok())
                    .map_or_else(
                        || session.cwd.display().to_string(),
                        |rest| format!("~/{}", rest.display())
                    )
            ),
        ))?;
    }
    Ok(())
}

/// The header of a session; the transcript follows as markdown.
fn show(session: &SessionRecord, project_dir: &ProjectDir) -> Result<(), CommandError> {
    let usage = session.usage;
    super::print(format_args!(
        "{}\n  id        {}\n  directory {}\n  model     {}\n  began     {}\n  last used {}\n  entries   {}\n  tokens    {} in, {} cached, {} out\n  cost      {}\n",
        style::strong(session.title.as_deref().unwrap_or("(empty)")),
        session.id,
        if session.cwd == project_dir.cwd {
            "here".to_owned()
        } else {
            session.cwd.display().to_string()
        },
        session.model,
        session.created_at,
        session.updated_at,
        session.last_seq,
        usage.input_tokens + usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        usage.output_tokens,
        session.cost,
    ))
}

/// A transcript to read. Tool calls and results are included, thinking is not. Messages that were
/// not typed are quoted. Read by people; what a tool wrote is in fences.
pub(crate) async fn as_markdown(
    store: &dyn codespar_store::Store,
    id: codespar_protocol::SessionId,
) -> Result<String, CommandError> {
    let entries = store.entries(id, 0).await?;
    Ok(markdown(&entries))
}

fn markdown(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in conversation(entries) {
        match &entry.body {
            EntryBody::User {
                synthetic: true,
                message,
            } => {
                text.push_str(&format!("> {}\n\n", message.text()));
            }
            EntryBody::User { message, .. } => {
                text.push_str(&format!("## Person\n\n{}\n\n", message.text()));
            }
            EntryBody::Assistant { message, model, .. } => {
                text.push_str(&format!("## {model}\n\n"));
                blocks(message, &mut text);
            }
            EntryBody::ToolResult {
                result: ContentBlock::ToolResult(result),
                ..
            } => {
                let word = if result.is_error { "failed" } else { "result" };
                text.push_str(&format!(
                    "{word} of `{}`:\n\n{}\n\n",
                    result.tool_use_id,
                    fenced(&result.content.text())
                ));
            }
            EntryBody::Compaction { summary, .. } => {
                text.push_str(&format!("## Summary of older turns\n\n{summary}\n\n"));
            }
            EntryBody::SideCall { purpose, model, .. } => {
                text.push_str(&format!("> {model} was asked to {purpose}\n\n"));
            }
            EntryBody::ToolResult { .. }
            | EntryBody::ToolStarted { .. }
            | EntryBody::Rewound { .. } => {}
        }
    }
    text
}

/// Images and blocks that we do not know are left out; the JSON export has them.
fn blocks(message: &Message, text: &mut String) {
    for block in &message.content {
        match block {
            ContentBlock::Text(block) => text.push_str(&format!("{}\n\n", block.text)),
            ContentBlock::ToolUse(call) => {
                text.push_str(&format!(
                    "{} `{}`:\n\n{}\n\n",
                    call.name,
                    call.id,
                    fenced(call.input.get())
                ));
            }
            _ => {}
        }
    }
}

/// A fence longer than any run of backticks inside. Text of a tool cannot end the block that it is
/// shown in.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}
