//! The one parser of commands.
//!
//! ```text
//! @codespar fix the auth timeout in acme/api with opus
//! └─mention └─verb └─free text     └─options
//! ```
//!
//! A verb decides how the rest is read: as free text, as a pull request, as the id of a task. Text
//! that begins with no verb, or with a verb that does not fit what follows ("status of the build"),
//! is not a command: it is for the agent. Text that is a command with something missing or wrong is
//! an error with the usage of its verb, since guessing could merge or stop the wrong thing.

mod command;
mod options;
mod pull_ref;
mod verb;

pub use self::{
    command::{ChatCommand, ChatRequest, StateFilter},
    options::{Names, RequestOptions},
    pull_ref::PullRef,
    verb::Verb,
};
use self::{options::Allowed, verb::Rest};

/// How the text addresses us.
const MENTION: &str = "@codespar";

/// Why a text is not a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotACommand {
    /// It begins like one, but something is missing or wrong. The message names the usage.
    #[error("{0}")]
    Malformed(String),
    /// It is for the agent. Without a model the nearest command can be suggested.
    #[error("this is not a command")]
    Prose { nearest: Option<Verb> },
}

/// The text after a mention at the beginning, or `None` if the text is not addressed to us.
///
/// Only a whole word counts: `@codespar-bot` and `@codesparrow` are other names.
pub fn mentioned(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let (name, rest) = text.split_at_checked(MENTION.len())?;
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | '@');
    if !name.eq_ignore_ascii_case(MENTION) || rest.starts_with(continues) {
        return None;
    }
    Some(rest.trim_start_matches([',', ':']).trim())
}

/// Reads a text without its mention. `names` decides whether a word after `on` or `with` is an
/// option or a part of the sentence.
pub fn parse(text: &str, names: &dyn Names) -> Result<ChatRequest, NotACommand> {
    read(text.trim(), names, MayRepeat::Yes)
}

/// Whether `schedule` may occur: a scheduled command may not schedule others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayRepeat {
    Yes,
    No,
}

fn read(text: &str, names: &dyn Names, repeat: MayRepeat) -> Result<ChatRequest, NotACommand> {
    let (text, mut options) = options::leading(text, names);
    let (word, rest) = split_word(text);
    let Some(verb) = Verb::find(word) else {
        return Err(NotACommand::Prose {
            nearest: Verb::nearest(word),
        });
    };
    let rest = rest.trim();
    let command = match verb.rest() {
        Rest::FreeText => {
            let rest = options.strip(rest, names);
            free_text(verb, word, rest)?
        }
        Rest::Pull => pull(verb, rest, &mut options)?,
        Rest::Task => task(verb, rest)?,
        Rest::Schedule if repeat == MayRepeat::No => {
            return Err(malformed(verb, "a schedule cannot contain another"));
        }
        Rest::Schedule => schedule(rest, names)?,
        Rest::Words => few_words(verb, &options.take_from(rest.split_whitespace().collect()))?,
    };
    options.check(verb, Allowed::of(verb))?;
    Ok(ChatRequest { command, options })
}

/// The first word and what follows it.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.find(char::is_whitespace) {
        Some(at) => (&text[..at], &text[at..]),
        None => (text, ""),
    }
}

fn malformed(verb: Verb, what: impl std::fmt::Display) -> NotACommand {
    NotACommand::Malformed(format!("{what}; usage: {}", verb.usage()))
}

/// Verbs that are a part of the instruction stay in it: "fix the timeout".
fn free_text(verb: Verb, word: &str, rest: &str) -> Result<ChatCommand, NotACommand> {
    if rest.is_empty() {
        return Err(malformed(
            verb,
            format_args!("the text after `{verb}` is missing"),
        ));
    }
    let text = rest.to_owned();
    Ok(match verb {
        Verb::Ask => ChatCommand::Ask { question: text },
        Verb::Plan => ChatCommand::Plan { feature: text },
        Verb::Instruct => ChatCommand::Dev { instruction: text },
        _ => ChatCommand::Dev {
            instruction: format!("{} {text}", word.trim_end_matches(':')),
        },
    })
}

/// `merge the two functions` is a sentence; `merge PR #x` is a mistake.
fn pull(verb: Verb, rest: &str, options: &mut RequestOptions) -> Result<ChatCommand, NotACommand> {
    if rest.is_empty() {
        return Err(malformed(verb, "the pull request is missing"));
    }
    if !pull_ref::looks_like_one(rest) {
        return Err(NotACommand::Prose {
            nearest: Some(verb),
        });
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let words = options.take_from(words);
    let (pull, words) = PullRef::take(&words).map_err(|error| malformed(verb, error))?;
    let (first, more) = match words {
        [] => (None, false),
        [first] => (Some(first.to_lowercase()), false),
        [first, ..] => (Some(first.to_lowercase()), true),
    };
    let unexpected = |word: &str| malformed(verb, format_args!("`{word}` is not expected here"));
    if more {
        return Err(unexpected(words[1]));
    }
    match (verb, first.as_deref()) {
        (Verb::Merge, None) => Ok(ChatCommand::Merge {
            pull,
            strategy: None,
        }),
        (Verb::Merge, Some(word)) => match word.parse() {
            Ok(strategy) => Ok(ChatCommand::Merge {
                pull,
                strategy: Some(strategy),
            }),
            Err(error) => Err(malformed(verb, error)),
        },
        (Verb::Watch, None | Some("on")) => Ok(ChatCommand::Watch { pull }),
        (Verb::Watch, Some("off")) => Ok(ChatCommand::Unwatch { pull }),
        (Verb::Resolve, None) => Ok(ChatCommand::Resolve { pull }),
        (Verb::Review, None) => Ok(ChatCommand::Review { pull }),
        (_, Some(word)) => Err(unexpected(word)),
        (_, None) => Err(malformed(verb, "this does not take a pull request")),
    }
}

/// One word is an id; several are a sentence, such as `stop using tabs`.
fn task(verb: Verb, rest: &str) -> Result<ChatCommand, NotACommand> {
    let mut words = rest.split_whitespace();
    let id = words.next().map(str::to_owned);
    if words.next().is_some() {
        return Err(NotACommand::Prose {
            nearest: Some(verb),
        });
    }
    let needed = |id: Option<String>| id.ok_or_else(|| malformed(verb, "the id is missing"));
    Ok(match verb {
        Verb::Status => ChatCommand::Status { id },
        Verb::Cost => ChatCommand::Cost { id },
        Verb::Logs => ChatCommand::Logs { id: needed(id)? },
        Verb::Retry => ChatCommand::Retry { id: needed(id)? },
        Verb::Unschedule => ChatCommand::Unschedule { id: needed(id)? },
        _ => ChatCommand::Stop { id },
    })
}

/// The time ends where the command begins, at the first word that is a verb.
fn schedule(rest: &str, names: &dyn Names) -> Result<ChatCommand, NotACommand> {
    let missing = || malformed(Verb::Schedule, "a time and a command are needed");
    let mut at = 0;
    for word in rest.split_inclusive(char::is_whitespace) {
        let is_verb = Verb::find(word.trim()).is_some();
        if is_verb && at > 0 {
            let command = read(&rest[at..], names, MayRepeat::No).map_err(|error| match error {
                NotACommand::Prose { .. } => missing(),
                malformed => malformed,
            })?;
            return Ok(ChatCommand::Schedule {
                when: rest[..at].trim().to_owned(),
                request: Box::new(command),
                line: rest[at..].trim().to_owned(),
            });
        }
        at += word.len();
    }
    Err(missing())
}

fn few_words(verb: Verb, words: &[&str]) -> Result<ChatCommand, NotACommand> {
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let prose = || NotACommand::Prose {
        nearest: Some(verb),
    };
    Ok(match (verb, lower.as_slice()) {
        (Verb::Prs, []) => ChatCommand::PullRequests { state: None },
        (Verb::Prs, [state]) => ChatCommand::PullRequests {
            state: Some(
                StateFilter::find(state)
                    .ok_or_else(|| malformed(verb, format_args!("`{state}` is no state")))?,
            ),
        },
        (Verb::Approve, steps) => ChatCommand::Approve {
            steps: steps_of(steps).ok_or_else(prose)?,
        },
        (Verb::Schedules, []) => ChatCommand::Schedules,
        (Verb::Unlink, []) => ChatCommand::Unlink,
        (Verb::Whoami, []) => ChatCommand::Whoami,
        (Verb::Help, []) => ChatCommand::Help { about: None },
        (Verb::Help, [word]) => ChatCommand::Help {
            about: Some(Verb::find(word).ok_or_else(prose)?),
        },
        (Verb::Link, []) => return Err(malformed(verb, "the repository is missing")),
        (Verb::Link, [_]) if options::is_repository(words[0]) => ChatCommand::Link {
            repository: words[0].to_owned(),
        },
        (Verb::Link, [word]) => {
            return Err(malformed(verb, format_args!("`{word}` is not owner/repo")));
        }
        _ => return Err(prose()),
    })
}

/// `1 3`, `1, 3`, `1-3`; an empty list means all.
fn steps_of(words: &[&str]) -> Option<Vec<u32>> {
    /// More steps than any plan has; a range must not take all memory.
    const MOST: u32 = 1_000;
    let mut steps = Vec::new();
    let parts = words.iter().flat_map(|word| word.split(','));
    for part in parts.filter(|part| !part.is_empty() && *part != "and") {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first == 0 || last < first || last > MOST {
            return None;
        }
        steps.extend(first..=last);
    }
    steps.sort_unstable();
    steps.dedup();
    Some(steps)
}
