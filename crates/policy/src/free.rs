//! Commands that only read. In a sandbox they are free in every mode, unless an option makes them
//! write or run something, or they read outside of the workspace.
//!
//! The lists are short on purpose. A command is on them only if it has no options that write or run
//! something, or the option tables know them; every other command needs a rule.
//!
//! [`reads`] describes what would be opened. Whether that is permitted is decided by the caller,
//! with the rules for the `Read` tool.

use crate::{
    options::hazards,
    shell::{Part, Word},
};

/// Commands that only read, but for the options in the tables.
///
/// Compared with the word as written: `/tmp/ls`, `./ls` and `'ls'` are not on the list.
const READERS: &[&str] = &[
    "ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "find", "wc", "sort", "uniq",
    "cut", "tr", "pwd",
];

/// Subcommands of git that only read.
const GIT_READERS: &[&str] = &["status", "log", "diff", "show"];

/// The free commands in a sentence, for an agent that was denied another one.
pub fn free_commands() -> String {
    format!(
        "{} and git {}, alone and in pipelines, with options that only read",
        READERS.join(", "),
        GIT_READERS.join("|")
    )
}

/// What a command that only reads would read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Words that may name files, as they are passed on.
    pub(crate) files: Vec<String>,
    /// It may read files that no word names: below a directory, or out of the history. Rules about
    /// single files cannot be applied to such a command.
    pub(crate) more: bool,
}

/// What a simple command reads, when reading is all it does.
///
/// `None` whenever this is not certain: an assignment in front, a hazardous option, an unknown
/// command, or an argument that the shell would expand to something other than names below the
/// current directory.
pub(crate) fn reads(part: &Part) -> Option<Reads> {
    let words = without_timeout(&part.words)?;
    if !part.assignments.is_empty() || !hazards(words).is_empty() {
        return None;
    }
    let (name, mut arguments) = words.split_first()?;
    // Quoted or by its path it is somebody's own program.
    let mut name = name.source.as_str();
    if name == "git" {
        if arguments
            .first()
            .is_some_and(|word| word.source == "--no-pager")
        {
            arguments = &arguments[1..];
        }
        let (subcommand, rest) = arguments.split_first()?;
        let known = GIT_READERS
            .iter()
            .find(|known| **known == subcommand.source);
        name = known?;
        arguments = rest;
    } else if !READERS.contains(&name) {
        return None;
    }
    if !arguments
        .iter()
        .all(|word| word.literal || is_plain_glob(word))
    {
        return None;
    }
    let globs = arguments.iter().any(|word| !word.literal);
    Some(Reads {
        more: globs || reads_more(name, arguments),
        files: files(name, arguments),
    })
}

/// The words behind `timeout` and its duration. `timeout` may be nested. Only its known options are
/// skipped; with any other the result is `None`, as it is without a numeric duration.
fn without_timeout(words: &[Word]) -> Option<&[Word]> {
    let mut rest = words;
    while rest.first().is_some_and(|word| word.source == "timeout") {
        let mut at = 1;
        while let Some(option) = rest.get(at).filter(|word| word.bare.starts_with('-')) {
            match option.source.as_str() {
                "-k" | "-s" => at += 2,
                "-v" | "--foreground" | "--preserve-status" | "--verbose" => at += 1,
                long if long.starts_with("--kill-after=") || long.starts_with("--signal=") => {
                    at += 1;
                }
                _ => return None,
            }
        }
        let duration = rest.get(at)?;
        let number = duration.source.trim_end_matches(['s', 'm', 'h', 'd']);
        if number.parse::<f64>().is_err() {
            return None;
        }
        rest = rest.get(at + 1..)?;
    }
    Some(rest)
}

/// A relative pattern of names that stays below its directory. Where a name that it stands for
/// could be an option that matters, the command has a table and the word is a hazard already.
fn is_plain_glob(word: &Word) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./*?-=+,:@%".contains(c);
    // `.*` stands for `..` too.
    let hidden = |name: &str| name.starts_with('.') && name.contains(['*', '?']);
    let mut names = word.source.split('/');
    word.source.chars().all(plain)
        && !word.source.starts_with('/')
        && names.all(|name| !hidden(name) && name != "..")
        && !word.source.contains("=/")
}

/// Whether it reads files that are not named.
fn reads_more(name: &str, arguments: &[Word]) -> bool {
    match name {
        "rg" | "log" | "diff" | "show" => true,
        "grep" | "egrep" | "fgrep" => arguments.iter().any(|word| {
            let bare = word.bare.as_str();
            let long = bare.starts_with("--");
            let letters = bare.strip_prefix('-').unwrap_or_default();
            (long
                && ["--r", "--de", "--di", "--fi"]
                    .iter()
                    .any(|o| bare.starts_with(o)))
                || (!long && letters.contains(['r', 'R', 'd', 'f']))
        }),
        "sort" | "wc" => arguments.iter().any(|word| word.bare.starts_with("--f")),
        _ => false,
    }
}

/// Words that may name a file: operands, and values of options. Every operand counts as a file,
/// even if it is a revision or a number: a word that is no file is merely resolved to a path inside
/// the workspace. The pattern of a search is left out, since patterns often contain slashes.
fn files(name: &str, arguments: &[Word]) -> Vec<String> {
    let searches = matches!(name, "grep" | "egrep" | "fgrep" | "rg");
    let mut pattern = searches && !names_its_pattern(arguments);
    let mut files = Vec::new();
    if name == "tr" {
        return files;
    }
    for word in arguments {
        let bare = word.bare.as_str();
        match bare.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            None if pattern => pattern = false,
            None => files.push(bare.to_owned()),
            Some(option) => files.extend(values(name, option)),
        }
    }
    files
}

/// What of an option may be the name of a file. `cut` and the separator and key options of `sort`
/// take text, not files. For other letters the value begins at the first `/` or `..`, wherever the
/// letters end: only absolute paths and paths that climb can leave the workspace.
fn values(name: &str, option: &str) -> Vec<String> {
    let mut values = Vec::new();
    if name == "cut" || (name == "sort" && option.starts_with(['t', 'k'])) {
        return values;
    }
    let from = |at: Option<usize>| at.and_then(|at| option.get(at..)).map(str::to_owned);
    if let Some(rest) = option.strip_prefix('-') {
        values.extend(rest.split_once('=').map(|(_, value)| value.to_owned()));
        return values;
    }
    // `-fFILE`: some letters, then the value.
    values.extend(from(option.find('/')));
    values.extend(from(option.find("..")));
    values
}

/// Whether a search has its pattern in an option, so that the first operand is a file.
fn names_its_pattern(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let bare = word.bare.as_str();
        match bare.strip_prefix("--") {
            Some(long) => ["r", "f"].iter().any(|begin| long.starts_with(begin)),
            None => bare
                .strip_prefix('-')
                .is_some_and(|letters| letters.contains(['e', 'f'])),
        }
    })
}
