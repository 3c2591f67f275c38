//! Slash commands: one table for help, completion and suggestions, one parser for all sessions.
//!
//! A line that begins with `/` and a word is a command if the word is one; with further words only
//! if the command takes them. A path at the beginning of a line is part of a prompt.

mod show;

pub(crate) use self::show::{
    context, diff, export, memory, memory_note, mode, permissions, run_line,
};
use codespar_runtime::ProjectCommands;

/// A command, its arguments, and what it does.
pub(crate) struct SlashCommand {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) help: &'static str,
}

const fn command(name: &'static str, arguments: &'static str, help: &'static str) -> SlashCommand {
    SlashCommand {
        name,
        arguments,
        help,
    }
}

pub(crate) const COMMANDS: &[SlashCommand] = &[
    command("help", "", "show this"),
    command("tasks", "[all]", "list the tasks of this project, or all"),
    command(
        "task-status",
        "[ID]",
        "show a task and the end of its output",
    ),
    command("stop", "[ID]", "stop a task"),
    command("agents", "", "list the agents there are"),
    command("resume", "[ID]", "resume a session, or choose one"),
    command("sessions", "", "list the sessions of this directory"),
    command("model", "[NAME]", "show or change the model"),
    command("mode", "[NAME]", "show or change the permission mode"),
    command("cost", "", "show tokens and cost of this sitting"),
    command("context", "", "show what fills the context"),
    command("permissions", "", "show the permission rules in force"),
    command("compact", "", "replace older turns by a summary now"),
    command("clear", "", "begin a new session; the old one is kept"),
    command("init", "", "write an AGENTS.md for this repository"),
    command(
        "memory",
        "",
        "show the instruction files in use; #TEXT adds a note",
    ),
    command("diff", "", "show the uncommitted changes"),
    command(
        "rewind",
        "[undo]",
        "go back to before an earlier message: files, conversation or both",
    ),
    command(
        "review",
        "[PR]",
        "review the uncommitted changes, or a pull request",
    ),
    command("copy", "[N]", "copy the last answer, or the Nth last"),
    command("mcp", "", "list MCP servers and their tools"),
    command("hooks", "", "list the hooks and where they come from"),
    command("doctor", "", "show configuration and problems"),
    command("export", "[FILE]", "write the conversation as markdown"),
    command("quit", "", "leave"),
];

/// What `/help` says: commands, then the keys.
pub(crate) fn help(keys: &str) -> String {
    let usage = |one: &SlashCommand| format!("/{} {}", one.name, one.arguments);
    let lines = COMMANDS
        .iter()
        .map(|one| format!("{:<20} {}", usage(one).trim_end(), one.help));
    let lines: Vec<String> = lines.collect();
    format!(
        "{}\n@codespar …          a command as in a chat: fix, review PR #1, merge PR #1; \
         @codespar help lists them\n{keys}",
        lines.join("\n")
    )
}

/// Which tasks a user wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those of this session and this project.
    Here,
    /// All of the state directory.
    All,
}

/// What `/rewind` is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindWish {
    /// The user chooses a message and what goes back.
    Choose,
    /// Takes the last rewind back.
    Undo,
}

/// A line, understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Nothing,
    Prompt(String),
    /// What follows `@codespar`.
    Mention(String),
    /// `!command`: run it, and let the model see what came of it.
    Shell(String),
    /// `#text`: keep it in the project's instructions.
    Note(String),
    Help,
    Tasks(Which),
    TaskStatus(String),
    Stop(String),
    Agents,
    Resume(Option<String>),
    Sessions,
    Model(Option<String>),
    Mode(Option<String>),
    Cost,
    Context,
    Permissions,
    Compact,
    Clear,
    Init,
    Memory,
    Diff,
    Rewind(RewindWish),
    Review(Option<String>),
    Copy(usize),
    Mcp,
    Hooks,
    Doctor,
    Export(Option<String>),
    Quit,
    /// A command of the project's own, by its name, with its arguments.
    Project(String, String),
    /// A prompt of an MCP server, by its name, with its arguments.
    ServerPrompt(String, String),
    /// A word with a slash that is no command. It is not sent to the model, where it would cost
    /// money; the nearest command is suggested.
    Unknown(String, Option<String>),
}

/// Understands a line.
pub(crate) fn read(text: &str, project: &ProjectCommands) -> Typed {
    let text = text.trim();
    if let Some(rest) = codespar_channels::mentioned(text) {
        return Typed::Mention(rest.to_owned());
    }
    if text.is_empty() {
        return Typed::Nothing;
    }
    if let Some(command) = text.strip_prefix('!').map(str::trim)
        && !command.is_empty()
    {
        return Typed::Shell(command.to_owned());
    }
    // A heading of a pasted document has a blank.
    if let Some(note) = text.strip_prefix('#')
        && !note.starts_with(['#', ' '])
        && !note.is_empty()
    {
        return Typed::Note(note.to_owned());
    }
    let Some(line) = text.strip_prefix('/') else {
        return Typed::Prompt(text.to_owned());
    };
    let (word, rest) = line
        .split_once(char::is_whitespace)
        .map_or((line, ""), |(word, rest)| (word, rest.trim()));
    if let Some(typed) = builtin(word, rest) {
        return typed;
    }
    if project.find(word).is_some() {
        return Typed::Project(word.to_owned(), rest.to_owned());
    }
    if word.starts_with("mcp__") {
        return Typed::ServerPrompt(word.to_owned(), rest.to_owned());
    }
    // A path, or a sentence that begins with one.
    if word.contains('/') || !rest.is_empty() && nearest(word, project).is_none() {
        return Typed::Prompt(text.to_owned());
    }
    match rest.is_empty() {
        true => Typed::Unknown(word.to_owned(), nearest(word, project)),
        false => Typed::Prompt(text.to_owned()),
    }
}

/// `None` if the word is no command, or takes no such arguments.
fn builtin(word: &str, rest: &str) -> Option<Typed> {
    let optional = || (!rest.is_empty()).then(|| rest.to_owned());
    let is_one_word = !rest.contains(char::is_whitespace);
    let typed = match (word, rest) {
        ("help" | "?", "") => Typed::Help,
        ("tasks", "") => Typed::Tasks(Which::Here),
        ("tasks", "all") => Typed::Tasks(Which::All),
        // Without an id they show the ids there are.
        ("task-status" | "stop", "") => Typed::Tasks(Which::Here),
        ("task-status", id) if is_one_word => Typed::TaskStatus(id.to_owned()),
        ("stop", id) if is_one_word => Typed::Stop(id.to_owned()),
        ("agents", "") => Typed::Agents,
        ("resume", _) if is_one_word => Typed::Resume(optional()),
        ("sessions", "") => Typed::Sessions,
        ("model", _) if is_one_word => Typed::Model(optional()),
        ("mode", _) if is_one_word => Typed::Mode(optional()),
        ("cost", "") => Typed::Cost,
        ("context", "") => Typed::Context,
        ("permissions", "") => Typed::Permissions,
        ("compact", "") => Typed::Compact,
        ("clear", "") => Typed::Clear,
        ("init", "") => Typed::Init,
        ("memory", "") => Typed::Memory,
        ("diff", "") => Typed::Diff,
        ("rewind", "") => Typed::Rewind(RewindWish::Choose),
        ("rewind", "undo") => Typed::Rewind(RewindWish::Undo),
        ("review", _) => Typed::Review(optional()),
        ("copy", "") => Typed::Copy(1),
        ("copy", number) => Typed::Copy(number.parse().ok().filter(|n| *n > 0)?),
        ("mcp", "") => Typed::Mcp,
        ("hooks", "") => Typed::Hooks,
        ("doctor", "") => Typed::Doctor,
        ("export", _) if is_one_word => Typed::Export(optional()),
        ("quit" | "exit", "") => Typed::Quit,
        _ => return None,
    };
    Some(typed)
}

/// The command that was probably meant.
pub(crate) fn nearest(word: &str, project: &ProjectCommands) -> Option<String> {
    let names = COMMANDS.iter().map(|one| one.name.to_owned());
    let names = names.chain(project.names().map(str::to_owned));
    // Letters in another order are more likely than a missing one.
    let scored = names.map(|name| {
        let distance = strsim::damerau_levenshtein(word, &name);
        (distance, name.len().abs_diff(word.len()), name)
    });
    let (distance, _, name) = scored.min()?;
    let is_near = distance <= (1 + word.chars().count() / 5).min(word.chars().count() / 2);
    let is_prefix = word.len() >= 2 && name.starts_with(word);
    (is_near || is_prefix).then_some(name)
}

/// What is said to a command that does not exist.
pub(crate) fn unknown(word: &str, nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("there is no /{word}; did you mean /{nearest}?"),
        None => format!("there is no /{word}; /help shows what there is"),
    }
}

/// The prompt behind `/init`.
pub(crate) const INIT_PROMPT: &str = "\
Write an AGENTS.md at the root of this repository: what a coding agent must know to work here well. \
Look at the layout, the build files, the tests, the CI configuration, the existing documentation and \
the recent history first. Say in at most 80 lines: what the project is, the layout that matters, the \
exact commands to build, test (all, and a single test), lint and format, the conventions that the \
code really follows, and traps. Leave out what anybody can see at a glance and everything you are not \
sure of. If there is an AGENTS.md already, improve it instead of replacing it; take over what still \
holds from CLAUDE.md, .cursorrules or similar files.";

/// The prompt behind `/review` without a pull request.
pub(crate) const REVIEW_PROMPT: &str = "\
Review the uncommitted changes of this repository (git status, git diff, git diff --staged). Look for \
errors first: wrong logic, missed cases, broken callers, security, data loss, tests that cannot fail. \
Read the surrounding code before you judge. Report findings by importance, each with file and line \
and what to do; say so if there are none. Change nothing.";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Typed {
        super::read(text, &ProjectCommands::default())
    }

    #[test]
    fn commands_prompts_and_paths_are_told_apart() {
        assert_eq!(read("  "), Typed::Nothing);
        assert_eq!(read("/help"), Typed::Help);
        assert_eq!(read("/tasks"), Typed::Tasks(Which::Here));
        assert_eq!(read("/tasks all"), Typed::Tasks(Which::All));
        assert_eq!(read("/stop"), Typed::Tasks(Which::Here));
        assert_eq!(read("/task-status"), Typed::Tasks(Which::Here));
        assert_eq!(read("/stop a-12"), Typed::Stop("a-12".into()));
        assert_eq!(
            read("@codespar merge PR #1 squash"),
            Typed::Mention("merge PR #1 squash".into())
        );
        assert_eq!(
            read("ask @codespar to merge"),
            Typed::Prompt("ask @codespar to merge".into())
        );
        assert_eq!(read("/resume 0190"), Typed::Resume(Some("0190".into())));
        assert_eq!(read("/nope"), Typed::Unknown("nope".into(), None));
        assert_eq!(
            read("/modle"),
            Typed::Unknown("modle".into(), Some("model".into()))
        );
        assert_eq!(
            read("/mcp__kit__greet Ann in Bonn"),
            Typed::ServerPrompt("mcp__kit__greet".into(), "Ann in Bonn".into())
        );
        assert_eq!(
            read("/etc/hosts has a typo"),
            Typed::Prompt("/etc/hosts has a typo".into())
        );
        assert_eq!(
            read("/cost of living"),
            Typed::Prompt("/cost of living".into())
        );
    }

    #[test]
    fn shell_commands_and_notes_have_their_marks() {
        assert_eq!(read("!git status"), Typed::Shell("git status".into()));
        assert_eq!(read("!"), Typed::Prompt("!".into()));
        assert_eq!(
            read("#tests need a database"),
            Typed::Note("tests need a database".into())
        );
        assert_eq!(
            read("# A heading\ntext"),
            Typed::Prompt("# A heading\ntext".into())
        );
    }

    #[test]
    fn every_command_of_the_table_is_understood() {
        for one in COMMANDS {
            let typed = read(&format!("/{}", one.name));
            assert!(
                !matches!(typed, Typed::Unknown(..) | Typed::Prompt(_)),
                "{}",
                one.name
            );
        }
    }
}
