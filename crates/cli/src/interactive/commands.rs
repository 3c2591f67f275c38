//! Slash commands.
//!
//! A line that begins with `/` and one word is a command; with further words it is one only if the
//! command takes an argument. Everything else is a prompt, also a path at its beginning.

use super::tasks::Which;

/// What `/help` says.
pub(super) const HELP: &str = "\
/help          this
/cost          tokens and money of this sitting
/resume [ID]   the sessions there are, or go on with one
/tasks [all]   tasks beside the conversation, of this project or all
/task-status [ID]   one of them, with the end of its output
/stop [ID]     stop one
/compact       replace older turns by a summary now
/clear         begin a new session; the old one is kept
/quit          leave (also Ctrl-D, or Ctrl-C twice)
@codespar …    a command as in a chat: fix, review PR #1, merge PR #1; @codespar help lists them
A line that ends in \\ goes on on the next. Ctrl-C interrupts an answer.";

/// A line, understood. `Unknown` is a single word with a slash: it is not sent to the model, where
/// it would cost money.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Nothing,
    Prompt(String),
    /// What follows `@codespar`.
    Mention(String),
    Help,
    Cost,
    Clear,
    Compact,
    Tasks(Which),
    TaskStatus(String),
    Stop(String),
    Resume(Option<String>),
    Quit,
    Unknown(String),
}

/// Understands a line. A path such as `/etc/hosts` at the start is part of a prompt.
pub(super) fn read(text: &str) -> Typed {
    let text = text.trim();
    if let Some(rest) = codespar_channels::mentioned(text) {
        return Typed::Mention(rest.to_owned());
    }
    let mut words = text.split_whitespace();
    let Some(first) = words.next() else {
        return Typed::Nothing;
    };
    match (first, words.next()) {
        ("/help" | "/?", None) => Typed::Help,
        ("/cost", None) => Typed::Cost,
        ("/clear", None) => Typed::Clear,
        ("/compact", None) => Typed::Compact,
        ("/tasks", None) => Typed::Tasks(Which::Here),
        ("/tasks", Some("all")) => Typed::Tasks(Which::All),
        // Without an id they show the ids there are.
        ("/task-status" | "/stop", None) => Typed::Tasks(Which::Here),
        ("/task-status", Some(id)) => Typed::TaskStatus(id.to_owned()),
        ("/stop", Some(id)) => Typed::Stop(id.to_owned()),
        ("/resume", id) => Typed::Resume(id.map(str::to_owned)),
        ("/quit" | "/exit", None) => Typed::Quit,
        (word, None) if word.starts_with('/') && !word[1..].contains('/') => {
            Typed::Unknown(word.to_owned())
        }
        _ => Typed::Prompt(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(read("/nope"), Typed::Unknown("/nope".into()));
        assert_eq!(
            read("/etc/hosts has a typo"),
            Typed::Prompt("/etc/hosts has a typo".into())
        );
        assert_eq!(
            read("/cost of living"),
            Typed::Prompt("/cost of living".into())
        );
    }
}
