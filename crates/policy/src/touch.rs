//! Everything a command line reaches, for rules that forbid: commands in every disguise, and files
//! named in redirections or to commands known to read or write them.
//!
//! This is the input of deny and ask rules and the opposite of a parser: it collects every reading
//! of the text that could be true. Two readings that contradict each other are both kept. A wrong
//! entry costs an unnecessary question; a missing one would let a forbidden command through.

use crate::{
    rule_set::Verb,
    shell::{Direction, Part, Script, base_name, disguises, fragments, is_shell},
};

/// Shells within shells are followed this far.
///
/// Beyond the limit nothing more is collected.
const DEEPEST: usize = 4;

/// The most texts handed to shells that are followed. Each script may contain several others, so
/// depth alone does not bound the work.
const MOST_SCRIPTS: usize = 64;

/// Commands whose arguments are files they read. The list is longer than that of free commands: a
/// deny rule for a file must hold for every usual way to read it.
const READERS: &[&str] = &[
    "cat", "tac", "head", "tail", "less", "more", "bat", "nl", "od", "xxd", "hexdump", "strings",
    "base64", "base32", "grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "sed", "cut", "sort",
    "uniq", "wc", "diff", "cmp", "file", "jq", "yq", "cp", "mv", "scp", "rsync", "tar", "zip",
    "gzip", "openssl", "source", ".", "find", "ls", "tree", "dd", "view", "vi", "vim", "nano",
    "ln", "rev", "paste", "fold", "tee", "curl", "git", "stat", "du", "comm", "egrep", "fgrep",
];

/// Commands whose arguments are files they change.
const WRITERS: &[&str] = &[
    "rm", "rmdir", "mv", "cp", "tee", "touch", "truncate", "shred", "unlink", "ln", "install",
    "dd", "chmod", "chown", "sed", "vi", "vim", "nano", "rsync", "mkdir",
];

/// What was reached.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// Commands, in every form a rule could name them.
    pub(crate) texts: Vec<String>,
    /// Files by the words that name them.
    pub(crate) paths: Vec<(Verb, String)>,
    scripts: usize,
}

impl Reached {
    /// By running this text.
    pub(crate) fn by(text: &str, script: &Script) -> Self {
        let mut reached = Self::default();
        reached.follow(text, script, 0);
        reached
    }

    /// Collects from one script, then from the texts that it passes to shells. If a shell is among
    /// the commands, the arguments of all commands and all here-documents count as possible input
    /// for it.
    fn follow(&mut self, text: &str, script: &Script, depth: usize) {
        let mut scripts = Vec::new();
        for part in &script.parts {
            scripts.extend(self.part(part));
        }
        if script.doubtful {
            for part in fragments(text) {
                scripts.extend(self.part(&part));
            }
        }
        let fed = script
            .parts
            .iter()
            .any(|part| part.words.iter().any(|word| is_shell(&word.bare)));
        if fed {
            // A shell reads what the others write: `echo rm x | sh`.
            let said = script.parts.iter().map(Part::said);
            scripts.extend(script.inputs.iter().cloned().chain(said));
        }
        for redirect in &script.redirects {
            let verb = match redirect.direction {
                Direction::In => Verb::Read,
                Direction::Out => Verb::Write,
            };
            self.paths.push((verb, redirect.target.bare.clone()));
        }
        for inner in scripts {
            if depth < DEEPEST && self.scripts < MOST_SCRIPTS {
                self.scripts += 1;
                self.follow(&inner, &Script::read(&inner), depth + 1);
            }
        }
    }

    /// Notes a simple command; gives back what it hands to a shell.
    fn part(&mut self, part: &Part) -> Vec<String> {
        let found = disguises(part);
        for text in &found.texts {
            self.files(text, part);
        }
        self.texts.extend(found.texts);
        found.scripts
    }

    /// The words of the part are recorded once for each name the command goes by. A command in both
    /// lists records its words as read and as written.
    fn files(&mut self, text: &str, part: &Part) {
        let name = base_name(text.split(' ').next().unwrap_or(text));
        let verbs = [(READERS, Verb::Read), (WRITERS, Verb::Write)];
        for (commands, verb) in verbs {
            if !commands.contains(&name) {
                continue;
            }
            for word in part.words.iter().skip(1) {
                let bare = word.bare.as_str();
                let value = bare.split_once('=').map(|(_, value)| value);
                let named = (!bare.starts_with('-')).then_some(bare);
                // `git show main:src/a`.
                let at_commit = bare.split_once(':').map(|(_, file)| file);
                let at_commit = at_commit.filter(|_| name == "git");
                for file in [named, value, at_commit].into_iter().flatten() {
                    let file = (verb, file.trim_start_matches('@').to_owned());
                    if !file.1.is_empty() {
                        self.paths.push(file);
                    }
                }
            }
        }
    }
}
