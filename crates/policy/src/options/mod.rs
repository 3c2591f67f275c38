//! What makes a command write files or run other commands, though its name does not say so. A rule
//! such as `Bash(git log *)` does not permit it unless the rule itself spells it out.
//!
//! Hazards are found by word position. A rule permits a hazardous command only if its literal text
//! reaches at least to the end of the last such word (`command.rs`). A command without a table has
//! no hazards here; whether it is harmless is not decided in this module.
//!
//! Wrappers (`env`, `xargs`, `timeout`, …) are a hazard by themselves at the word they run, and the
//! command behind them is examined as if it stood alone.

mod scripts;
mod table;

use crate::shell::{Word, base_name};

use table::{Act, COMMANDS, COMPLETE, GIT, GIT_GLOBAL, GIT_SUBCOMMANDS, Options, WRAPPERS};

/// A word that makes a command do more than its name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// Which word; a rule that spells out the command up to here means it. Counted from the command
    /// word. The number of words means that the hazard is something not written at all; no rule
    /// reaches it.
    pub(crate) word: usize,
    pub(crate) reason: String,
}

/// Deeper wrappers within wrappers are not followed.
const DEEPEST: usize = 8;

/// Everything in the words of a simple command that a rule has to spell out. Empty for most
/// commands. Quotes make no difference, since the words are compared unquoted.
pub(crate) fn hazards(words: &[Word]) -> Vec<Hazard> {
    let mut found = Found {
        words,
        hazards: Vec::new(),
    };
    found.command(0, 0);
    found.hazards
}

/// Whether a simple command runs git, also behind wrappers. `true` as well when wrappers are nested
/// too deeply to tell.
pub(crate) fn runs_git(words: &[Word]) -> bool {
    let mut start = 0;
    for _ in 0..DEEPEST {
        let Some(word) = words.get(start) else {
            return false;
        };
        match (base_name(&word.bare), wrapped(words, start)) {
            ("git", _) => return true,
            (_, Some(inner)) => start = inner,
            (_, None) => return false,
        }
    }
    true
}

struct Found<'a> {
    words: &'a [Word],
    hazards: Vec<Hazard>,
}

impl Found<'_> {
    fn add(&mut self, word: usize, reason: String) {
        self.hazards.push(Hazard { word, reason });
    }

    /// The command that starts at a word.
    fn command(&mut self, start: usize, depth: usize) {
        let Some(word) = self.words.get(start) else {
            return;
        };
        let name = base_name(&word.bare);
        let end = wrapped(self.words, start).unwrap_or(self.words.len());
        match name {
            "git" => self.git(start),
            "sed" | "gsed" => self.sed(start),
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(start),
            "uniq" => self.two_files(start, "fsw"),
            "xxd" => self.two_files(start, "cglos"),
            _ => {
                let tables = COMMANDS.iter().filter(|table| table.command == name);
                let tables: Vec<&Options> = tables.collect();
                if !tables.is_empty() {
                    self.scan(start, start + 1..end, &tables);
                }
                if name == "tar" {
                    self.bundled(start);
                }
            }
        }
        if let Some(inner) = wrapped(self.words, start) {
            self.wrapper(start, inner, depth);
        }
    }

    /// `xargs` and `parallel` append words that nobody has seen yet. If the command behind them has
    /// hazardous options, these words could be such options, unless the last word is `--`.
    fn wrapper(&mut self, start: usize, inner: usize, depth: usize) {
        let name = self.words[start].bare.clone();
        let Some(word) = self.words.get(inner) else {
            return;
        };
        let runs = format!("`{name}` runs `{}`", word.source);
        self.add(inner, runs);
        if depth >= DEEPEST {
            self.add(self.words.len(), format!("`{name}` is nested too deeply"));
            return;
        }
        let before = self.hazards.len();
        self.command(inner, depth + 1);
        let feeds = matches!(base_name(&name), "xargs" | "parallel");
        let takes_options = self.hazards.len() > before || has_table(base_name(&word.bare));
        if feeds && takes_options && self.words.last().is_none_or(|word| word.bare != "--") {
            // What it reads may be options of the command.
            let reason = format!("`{name}` adds words that could be options");
            self.add(self.words.len(), reason);
        }
    }

    /// Options before the subcommand have their own table, and some take the next word as a value.
    /// Those after it are compared with the options of all subcommands and with those of this one.
    fn git(&mut self, start: usize) {
        let mut at = start + 1;
        while let Some(word) = self.words.get(at) {
            if !word.bare.starts_with('-') {
                break;
            }
            let before = self.hazards.len();
            self.scan(start, at..at + 1, &[&GIT_GLOBAL]);
            let separate = matches!(word.bare.as_str(), "-c" | "-C")
                || (self.hazards.len() > before
                    && word.bare.starts_with("--")
                    && !word.bare.contains('=')
                    && !matches!(word.bare.as_str(), "--bare" | "--paginate"));
            if separate && self.hazards.len() > before && at + 1 < self.words.len() {
                let reason = self.hazards[before].reason.clone();
                self.add(at + 1, reason);
            }
            at += 1 + usize::from(separate);
        }
        let Some(subcommand) = self.words.get(at) else {
            return;
        };
        let own = GIT_SUBCOMMANDS
            .iter()
            .find(|table| table.command == subcommand.bare);
        let tables: Vec<&Options> = [Some(&GIT), own].into_iter().flatten().collect();
        if !subcommand.literal {
            let reason = format!(
                "which command of git `{}` is, is not known",
                subcommand.source
            );
            self.add(at, reason);
        }
        self.scan(start, at + 1..self.words.len(), &tables);
    }

    /// Looks at the words of a command for options in the tables. Stops at `--`, except for
    /// commands whose hazards are whole words (`find`), which do not treat `--` that way. A word
    /// that the shell could turn into an option is a hazard itself.
    fn scan(&mut self, start: usize, range: std::ops::Range<usize>, tables: &[&Options]) {
        let name = self.words[start].bare.clone();
        let whole_words = tables.iter().any(|table| !table.words.is_empty());
        let end = range.end.min(self.words.len());
        for at in range.start..end {
            let word = &self.words[at];
            if word.bare == "--" && !whole_words && ends_options(&self.words[..at]) {
                return;
            }
            if could_be_option(word) {
                let reason = format!(
                    "`{}` could be an option of `{name}`; write it after `--` or with `./`",
                    word.source
                );
                self.add(at, reason);
                continue;
            }
            let Some((option, act)) = option(base_name(&name), &word.bare, tables) else {
                continue;
            };
            let does = match act {
                Act::Writes => "writes or changes files",
                Act::Runs => "can run commands",
            };
            let reason = format!("`{option}` of `{name}` {does}");
            // What is run has to be spelled out too.
            let separate = act == Act::Runs && !word.bare.contains('=') && at + 1 < end;
            self.add(at + usize::from(separate), reason);
        }
    }

    /// `tar xIf prog`: the first word is options though it has no dash.
    fn bundled(&mut self, start: usize) {
        let Some(first) = self.words.get(start + 1) else {
            return;
        };
        if !first.bare.starts_with('-') && first.bare.contains(['I', 'F']) {
            let reason = format!("`{}` of `tar` can run commands", first.source);
            self.add(self.words.len().min(start + 3).saturating_sub(1), reason);
        }
    }

    /// `uniq in out` writes its second file. The letters take a value of their own. After `--`
    /// every word is a file, also one that looks like an option.
    fn two_files(&mut self, start: usize, valued: &str) {
        let mut files = 0;
        let mut is_value = false;
        let mut has_ended = false;
        for at in start + 1..self.words.len() {
            let word = &self.words[at];
            if !word.literal {
                self.add(at, format!("`{}` could stand for more files", word.source));
            }
            if std::mem::take(&mut is_value) {
                continue;
            }
            match word.bare.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                _ if has_ended => files += 1,
                Some("-") => has_ended = true,
                Some(letter) => is_value = letter.len() == 1 && valued.contains(letter),
                None => files += 1,
            }
            if files == 2 {
                self.add(at, format!("`{}` is a file that is written", word.source));
            }
        }
    }

    fn sed(&mut self, start: usize) {
        for (word, reason) in scripts::sed(&self.words[start + 1..]) {
            self.add(start + 1 + word, reason);
        }
    }

    fn awk(&mut self, start: usize) {
        for (word, reason) in scripts::awk(&self.words[start + 1..]) {
            self.add(start + 1 + word, reason);
        }
    }
}

fn has_table(name: &str) -> bool {
    matches!(
        name,
        "git" | "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "uniq" | "xxd"
    ) || COMMANDS.iter().any(|table| table.command == name)
}

/// Where the command behind a wrapper starts; past the end when there is none. `None` when the
/// command is no wrapper, or for `command -v`, which only looks a name up. An attached value
/// (`-n5`) is part of its word; a separate one (`-n 5`) is skipped.
pub(crate) fn wrapped(words: &[Word], start: usize) -> Option<usize> {
    let name = base_name(&words.get(start)?.bare);
    let (_, valued, positional) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name)?;
    let looks_up = |word: &Word| matches!(word.bare.as_str(), "-v" | "-V" | "-pv" | "-pV");
    if name == "command" && words.get(start + 1).is_some_and(looks_up) {
        return None;
    }
    let mut left = *positional;
    let mut at = start + 1;
    while let Some(word) = words.get(at) {
        let bare = word.bare.as_str();
        if bare == "--" {
            at += 1 + left;
            break;
        }
        if let Some(letters) = bare.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            let takes_next = !letters.starts_with('-')
                && letters
                    .char_indices()
                    .find(|(_, c)| valued.contains(*c))
                    .is_some_and(|(index, c)| index + c.len_utf8() == letters.len());
            at += 1 + usize::from(takes_next);
        } else if name == "env" && bare.contains('=') {
            at += 1;
        } else if left > 0 {
            left -= 1;
            at += 1;
        } else {
            break;
        }
    }
    Some(at)
}

/// Whether `--` after these words ends the options: not when it is the value of one.
fn ends_options(before: &[Word]) -> bool {
    before
        .last()
        .is_none_or(|word| !word.bare.starts_with('-') || word.bare.contains('='))
}

/// The first table entry that a word matches, with the word. Long options match by any prefix, as
/// most programs accept abbreviations. Letters are read up to the first that takes a value: in
/// `-to` of `sort` the `o` is the separator.
fn option<'a>(name: &str, word: &'a str, tables: &[&Options]) -> Option<(&'a str, Act)> {
    for table in tables {
        let bare = word.split_once('=').map_or(word, |(bare, _)| bare);
        let whole = table.words.iter().find(|(option, _)| *option == bare);
        if let Some((_, act)) = whole {
            return Some((word, *act));
        }
        if let Some(long) = bare.strip_prefix("--") {
            let complete = COMPLETE.contains(&(name, long));
            let found = table
                .long
                .iter()
                .find(|(option, _)| !long.is_empty() && !complete && option.starts_with(long));
            if let Some((_, act)) = found {
                return Some((word, *act));
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            for letter in letters.chars() {
                if let Some((_, act)) = table.short.iter().find(|(short, _)| *short == letter) {
                    return Some((word, *act));
                }
                if table.valued.contains(letter) {
                    break;
                }
            }
        }
    }
    None
}

/// Whether the shell could make an option of the word, or several words with one among them.
pub(crate) fn could_be_option(word: &Word) -> bool {
    if word.literal || word.source == "{}" {
        return false;
    }
    word.bare.starts_with(['-', '$', '`', '*', '?', '[', '{']) || splits(&word.source)
}

/// Whether an expansion stands outside quotes, so that the shell splits what it gives.
fn splits(source: &str) -> bool {
    let mut quote = None;
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                chars.next();
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '$' | '`') => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
