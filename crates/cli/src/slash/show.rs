//! What some commands show, as text.
//!
//! Each function gives text for a person, without printing it: the same text goes to a terminal, to
//! plain lines and to an editor.

use std::{fs, io::Write, path::Path};

use clap::Parser;
use codespar_agent::{ContextFiles, ContextUsage};
use codespar_git::Repository;
use codespar_policy::{Mode, RuleKind};
use codespar_protocol::SessionId;
use codespar_runtime::Project;

use crate::{
    args::{Cli, Command},
    commands,
    error::CommandError,
    style,
};

/// What fills the context.
pub(crate) fn context(usage: &ContextUsage) -> String {
    let percent = |tokens: u64| tokens * 100 / usage.window.max(1);
    let row = |name: &str, tokens: u64| format!("  {name:<22}{tokens:>9}  {:>3}%", percent(tokens));
    [
        format!(
            "{} of {} tokens ({}%); older turns are summarised from {} on",
            usage.total,
            usage.window,
            percent(usage.total),
            usage.compact_at
        ),
        row("system prompt", usage.system),
        row("tools", usage.tools),
        row(
            &format!("{} messages", usage.messages),
            usage.conversation(),
        ),
    ]
    .join("\n")
}

/// The rules in force, strictest kind first, with where each comes from.
pub(crate) fn permissions(project: &Project) -> String {
    let mut lines = vec![format!("mode {}", style::strong(project.mode.get()))];
    let rules = project.rules();
    let rules = rules.read();
    for (name, wanted) in [
        ("deny", RuleKind::Deny),
        ("ask", RuleKind::Ask),
        ("allow", RuleKind::Allow),
    ] {
        lines.extend(
            rules
                .list(wanted)
                .map(|(rule, source)| format!("  {name:<6} {rule}  {}", style::faint(source))),
        );
    }
    if lines.len() == 1 {
        lines.push("  no rules: the mode alone decides".to_owned());
    }
    lines.join("\n")
}

/// Adds a note to the instructions of the project, and says where. `AGENTS.md`, unless only a
/// `CLAUDE.md` is there.
pub(crate) fn memory_note(root: &Path, note: &str) -> Result<String, CommandError> {
    let agents = root.join("AGENTS.md");
    let claude = root.join("CLAUDE.md");
    let path = match !agents.exists() && claude.is_file() {
        true => claude,
        false => agents,
    };
    let failed = |error: std::io::Error| {
        CommandError::Failed(format!("cannot write {}: {error}", path.display()))
    };
    if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(CommandError::Failed(format!(
            "{} is not a regular file",
            path.display()
        )));
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    let gap = if before.is_empty() || before.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(failed)?;
    let line = note.lines().collect::<Vec<_>>().join(" ");
    file.write_all(format!("{gap}- {}\n", line.trim()).as_bytes())
        .map_err(failed)?;
    Ok(format!("noted in {}", path.display()))
}

/// Changes the mode, or shows it.
pub(crate) fn mode(project: &Project, name: Option<&str>) -> Result<String, CommandError> {
    let Some(name) = name else {
        let hint = "/mode NAME changes it: default, acceptEdits, plan, dontAsk";
        return Ok(format!("{}\n{}", project.mode.get(), style::faint(hint)));
    };
    let mode: Mode = name
        .parse()
        .map_err(|error| CommandError::Usage(format!("{error}")))?;
    // Everything would be free: that is for a command line, where it is written down.
    if mode == Mode::BypassPermissions {
        return Err(CommandError::Usage(
            "start with --permission-mode bypassPermissions to allow everything".to_owned(),
        ));
    }
    project.mode.set(mode);
    Ok(format!("mode {mode}"))
}

/// The instruction files that the agent is given.
pub(crate) fn memory(project: &Project) -> String {
    let dir = &project.dir;
    let user_dirs = project.options.instruction_dirs(dir);
    let wanted = project.options.project_instructions();
    let hidden = codespar_tools::Hidden::default();
    let found = ContextFiles::gather(&dir.root, &dir.cwd, &user_dirs, wanted, &hidden);
    let mut lines: Vec<String> = found
        .files
        .iter()
        .chain(&found.memory)
        .map(|file| format!("{}  {} bytes", file.path.display(), file.text.len()))
        .collect();
    if lines.is_empty() {
        lines.push("no instruction files; /init writes an AGENTS.md".to_owned());
    }
    lines.push(style::faint("#TEXT adds a note"));
    lines.join("\n")
}

/// The uncommitted changes, staged or not, as git shows them.
pub(crate) async fn diff(project: &Project) -> Result<String, CommandError> {
    let root = project.dir.root.clone();
    let trust = project.dir.trust_of(&root).git();
    let look = move || {
        let git = Repository::find(&root, trust)?.git_with_files()?;
        let out = git.run(["diff", "--no-color", "--no-ext-diff", "HEAD", "--"])?;
        Ok::<_, codespar_git::GitError>(String::from_utf8_lossy(&out.out).into_owned())
    };
    let failed = |error: String| CommandError::Failed(error);
    tokio::task::spawn_blocking(look)
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(|error| failed(error.to_string()))
}

/// Writes the conversation to a new file, and says where.
pub(crate) async fn export(
    project: &Project,
    session: SessionId,
    file: Option<&str>,
) -> Result<String, CommandError> {
    let text = commands::session::as_markdown(&*project.store, session).await?;
    let usual = format!("codespar-{session}.md");
    let path = project.dir.cwd.join(file.unwrap_or(&usual));
    let failed = |error: std::io::Error| {
        CommandError::Failed(format!("cannot write {}: {error}", path.display()))
    };
    let mut options = fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).open(&path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(failed)?;
    Ok(format!("written to {}", path.display()))
}

/// A command as on the command line; it prints through the printer.
pub(crate) async fn run_line(project: &Project, line: &[&str]) -> Result<(), CommandError> {
    let words = std::iter::once("codespar").chain(line.iter().copied());
    let cli = Cli::try_parse_from(words).map_err(|error| CommandError::Usage(error.to_string()))?;
    let dir = &project.dir;
    match cli.command {
        Some(Command::Agents(args)) => commands::agents::run(&args, dir)?,
        Some(Command::Session(args)) => commands::session::run(args, dir).await?,
        Some(Command::Hooks(args)) => commands::hooks::run(&args, dir)?,
        Some(Command::Mcp(args)) => commands::mcp::run(&args, dir).await?,
        Some(Command::Doctor(args)) => commands::doctor::run(&args, &cli.session, dir).await?,
        _ => return Ok(()),
    };
    Ok(())
}
