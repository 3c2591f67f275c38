//! Words that are no command but look like one that was meant.

use clap::CommandFactory;

use crate::{args::Cli, error::CommandError};

/// Up to this length a name may have one wrong letter, beyond it two.
const SHORT: usize = 4;

/// Refuses words at the start that look like a command: they would begin a session that costs
/// money. With `-p`, and as one argument with spaces, they are a prompt.
pub(crate) fn refuse_lookalikes(cli: &Cli) -> Result<(), CommandError> {
    let Some(word) = cli.prompt.first().filter(|_| !cli.is_headless()) else {
        return Ok(());
    };
    if Cli::command().find_subcommand(word).is_some() {
        return Err(CommandError::Usage(format!(
            "`{word}` is a command and comes first, before any option; to say it to the model, use \
             `codespar -p` or more words"
        )));
    }
    match meant(word) {
        Some(name) => Err(CommandError::Usage(format!(
            "there is no command `{word}`; did you mean `codespar {name}`? To send it to the model, \
             put the whole prompt in quotes or use `codespar -p`"
        ))),
        None => Ok(()),
    }
}

/// The command whose name is nearest to a word, if it is near enough to be a slip. Transposed
/// letters count as one mistake.
fn meant(word: &str) -> Option<String> {
    let word = word.to_lowercase();
    let mut command = Cli::command();
    // `help` is among its commands only then.
    command.build();
    let names = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .flat_map(clap::Command::get_name_and_visible_aliases);
    let nearest = names
        .map(|name| (strsim::damerau_levenshtein(&word, name), name))
        .min()?;
    let (distance, name) = nearest;
    let most = if name.len() <= SHORT { 1 } else { 2 };
    // A short name has neighbours among ordinary words, `chat` in `what`; a slip seldom changes the
    // first letter.
    let is_begun_alike = name.len() > SHORT || word.chars().next() == name.chars().next();
    // Two letters have a neighbour in every short word.
    (distance <= most && word.len() > 2 && is_begun_alike).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_beginnings_of_prompts_are_not() {
        for (word, name) in [
            ("docter", "doctor"),
            ("sessions", "session"),
            ("Session", "session"),
            ("tasks", "task"),
            ("taks", "task"),
            ("prs", "pr"),
            ("reveiw", "review"),
            ("agent", "agents"),
            ("trsut", "trust"),
            ("caht", "chat"),
            ("tokens", "token"),
            ("hlep", "help"),
            ("halp", "help"),
        ] {
            assert_eq!(meant(word).as_deref(), Some(name), "{word}");
        }
        for word in [
            "fix",
            "add",
            "why",
            "explain",
            "implement",
            "refactor",
            "what",
            "make",
            "write",
            "test",
            "hello",
            "the",
            "use",
            "show",
            "run",
            "how",
            "is",
            "a",
            "go",
            "can",
            "please",
            "change",
            "fix the doctor",
        ] {
            assert_eq!(meant(word), None, "{word}");
        }
    }
}
