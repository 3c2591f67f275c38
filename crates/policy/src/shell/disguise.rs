//! What a simple command really runs: through quotes, paths, wrappers and `sh -c`.
//!
//! Two questions are answered here, each for one simple command. [`disguises`]: which other
//! commands could this one amount to? Used for rules that forbid. [`obstacle`]: is the command word
//! certain, and does the command leave later ones unchanged? Used before any rule may permit.

use super::{Part, Word, is_shell};

/// Commands that run the command in their arguments.
const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "su",
    "env",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "nohup",
    "time",
    "timeout",
    "stdbuf",
    "command",
    "builtin",
    "exec",
    "xargs",
    "parallel",
    "watch",
    "setsid",
    "setarch",
    "unshare",
    "nsenter",
    "chroot",
    "strace",
    "ltrace",
    "script",
    "flock",
    "busybox",
    "toybox",
    "caffeinate",
    "entr",
    "coproc",
    "unbuffer",
    "proot",
    "fakeroot",
    "firejail",
    "bwrap",
    "systemd-run",
    "runuser",
    "setpriv",
    "npx",
    "bunx",
    "uvx",
];

/// Wrappers that can run what is built into the shell. The other wrappers start a process, which
/// cannot change this shell.
const SHELL_WRAPPERS: &[&str] = &["command", "builtin", "time", "exec", "coproc"];

/// Built-ins that run text, or change what the commands after them mean. No rule permits them
/// except one for every command.
const OPAQUE: &[&str] = &[
    "eval",
    "source",
    ".",
    "exec",
    "trap",
    "alias",
    "unalias",
    "enable",
    "hash",
    "shopt",
    "bind",
    "complete",
    "compgen",
    "compopt",
    "let",
    "mapfile",
    "readarray",
    "read",
    "getopts",
    "fc",
    "history",
    "coproc",
    "declare",
    "typeset",
    "export",
    "readonly",
    "local",
    "unset",
];

/// Words with which the shell builds its grammar; as a command they mean the text was misread.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "in", "{", "}", "!", "[[", "]]",
];

/// The most commands looked for behind one wrapper. With more words behind a wrapper the command is
/// not analysed.
const MOST_STARTS: usize = 64;

/// The last component of a command's path. Both separators count, and so does the suffix `.exe`. A
/// path that ends in a separator is returned whole.
pub(crate) fn base_name(command: &str) -> &str {
    match command.rsplit(['/', '\\']).next() {
        Some("") | None => command,
        Some(name) => name.strip_suffix(".exe").unwrap_or(name),
    }
}

/// Whether the command runs another one that its arguments name.
pub(crate) fn is_wrapper(command: &str) -> bool {
    WRAPPERS.contains(&base_name(command))
}

/// What a simple command amounts to.
#[derive(Debug, Default)]
pub(crate) struct Disguises {
    /// The command as written, without quotes, without path, and what it wraps likewise.
    pub(crate) texts: Vec<String>,
    /// Texts that it hands to a shell.
    pub(crate) scripts: Vec<String>,
}

/// Everything a rule that forbids should be compared with.
///
/// The result contains the text as written, with and without assignments, then without quotes and
/// without the path of the command, and the same two forms again for each word behind a wrapper at
/// which a command could start. Options with values are not known here, so `sudo -u root rm x`
/// gives `root rm x` as well as `rm x`.
pub(crate) fn disguises(part: &Part) -> Disguises {
    let mut found = Disguises::default();
    found.texts.push(part.text());
    let written: Vec<&str> = part.words.iter().map(|word| word.source.as_str()).collect();
    found.texts.push(written.join(" "));
    let words: Vec<&str> = part.words.iter().map(|word| word.bare.as_str()).collect();
    for start in starts(&words) {
        found.command(&words[start..]);
    }
    found.texts.sort_unstable();
    found.texts.dedup();
    found
}

/// Where commands may begin: the command word, and behind a wrapper every word that could be one.
fn starts(words: &[&str]) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(behind(words).take(MOST_STARTS));
    starts
}

/// Words that are neither options nor assignments, if the first word is a wrapper.
fn behind<'a>(words: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
    let wraps = words.first().is_some_and(|word| is_wrapper(word));
    let end = if wraps { words.len() } else { 0 };
    (1..end).filter(|at| !words[*at].starts_with('-') && !is_assignment(words[*at]))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

impl Disguises {
    /// Records the command and the texts that it would pass to a shell: the operands of `sh -c`,
    /// everything after `eval`, arguments with a blank in them for commands that take a whole
    /// command line, and what `find` executes.
    fn command(&mut self, words: &[&str]) {
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        let name = base_name(first);
        self.texts.push(words.join(" "));
        if name != *first {
            self.texts.push(with_name(name, rest));
        }
        let dashed_c =
            |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
        if is_shell(name) && rest.iter().any(dashed_c) {
            let scripts = rest.iter().filter(|word| !word.starts_with('-')).take(8);
            self.scripts.extend(scripts.map(|word| (*word).to_owned()));
        }
        if name == "eval" {
            self.scripts.push(rest.join(" "));
        }
        if matches!(
            name,
            "env" | "su" | "script" | "watch" | "trap" | "flock" | "parallel"
        ) {
            // These take a whole command line as one argument.
            let lines = rest.iter().filter(|word| word.contains(' ')).take(8);
            self.scripts.extend(lines.map(|word| (*word).to_owned()));
        }
        if matches!(name, "find" | "fd" | "fdfind") {
            self.executed_by_find(rest);
        }
    }

    fn executed_by_find(&mut self, rest: &[&str]) {
        const FLAGS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"];
        let flags = (0..rest.len()).filter(|at| FLAGS.contains(&rest[*at]));
        for flag in flags.take(MOST_STARTS) {
            let words = &rest[flag + 1..];
            let end = words
                .iter()
                .position(|word| matches!(*word, ";" | "+"))
                .unwrap_or(words.len());
            self.command(&words[..end]);
        }
    }
}

fn with_name(name: &str, rest: &[&str]) -> String {
    let mut text = name.to_owned();
    for word in rest {
        text.push(' ');
        text.push_str(word);
    }
    text
}

/// Why what this command runs is not known from its text. `None` when the command word is literal
/// and the command is not one that changes how later text is run. Wrappers that run built-ins are
/// looked through; `set` with the usual flags is let through, as scripts often begin with it.
pub(crate) fn obstacle(part: &Part) -> Option<String> {
    let first = part.words.first()?;
    let last = part.words.last().map_or("", |word| word.source.as_str());
    if matches!((first.source.as_str(), last), ("[", "]") | ("[[", "]]")) {
        return evaluates(first.source.as_str(), &part.words);
    }
    let Some(name) = first.value() else {
        return Some(format!(
            "what `{}` stands for is known only when it runs",
            first.source
        ));
    };
    if name.is_empty() || name.contains(['=', '\n', ' ']) || RESERVED.contains(&name) {
        return Some(format!("`{}` is no ordinary command", first.source));
    }
    let words: Vec<&str> = part.words.iter().map(|word| word.bare.as_str()).collect();
    let candidates = match SHELL_WRAPPERS.contains(&name) {
        true => starts(&words),
        false => vec![0],
    };
    if behind(&words).nth(MOST_STARTS).is_some() {
        return Some(format!("there are too many words behind `{name}`"));
    }
    candidates.into_iter().find_map(|start| {
        let name = words[start];
        let opaque = OPAQUE.contains(&name)
            || (name == "set" && !harmless_set(&part.words[start + 1..]))
            || (name == "printf" && words.get(start + 1).is_some_and(|w| w.starts_with("-v")))
            || (name == "wait" && words.iter().any(|word| word.starts_with("-p")));
        if opaque {
            return Some(format!("`{name}` changes what the shell does next"));
        }
        match name {
            "test" | "[" => evaluates(name, &part.words[start..]),
            _ => None,
        }
    })
}

/// Why a test may run commands: the shell evaluates the subscript in `-v 'a[$(id)]'`, and in `[[`
/// also the operands of arithmetic comparisons.
fn evaluates(name: &str, words: &[Word]) -> Option<String> {
    const NAMES: &[&str] = &["-v", "-R"];
    const ARITHMETIC: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    let evaluated = words.iter().any(|word| {
        let bare = word.bare.as_str();
        NAMES.contains(&bare) || (name == "[[" && ARITHMETIC.contains(&bare))
    });
    let open = name != "[[" && !has_fixed_operator(words);
    (evaluated || open)
        .then(|| format!("`{name}` may evaluate a subscript, which can run commands"))
}

/// Whether no word that is known only when it runs can be an operator of a test. If an operand
/// could turn out to be `-v`, the operand after it would be evaluated as a variable with a
/// subscript. Quoted operands cannot split, so with two or three of them the place of the operator
/// is known.
fn has_fixed_operator(words: &[Word]) -> bool {
    if words
        .iter()
        .all(|word| word.literal || word.source == "[" || word.source == "]")
    {
        return true;
    }
    let mut operands: Vec<&Word> = words.iter().skip(1).collect();
    if operands.last().is_some_and(|word| word.source == "]") {
        operands.pop();
    }
    if operands.first().is_some_and(|word| word.source == "!") {
        operands.remove(0);
    }
    let whole = operands
        .iter()
        .all(|word| word.literal || (word.source.starts_with('"') && word.source.ends_with('"')));
    let fixed = |word: &Word| word.literal && word.source.starts_with(['-', '=', '!']);
    whole
        && match operands.as_slice() {
            [operator, _] => fixed(operator),
            [_, operator, _] => fixed(operator),
            _ => false,
        }
}

/// `set -euo pipefail` and the like.
fn harmless_set(options: &[Word]) -> bool {
    !options.is_empty()
        && options.iter().all(|option| {
            let flags = option.source.strip_prefix(['-', '+']).is_some_and(|flags| {
                !flags.is_empty() && flags.chars().all(|c| "euxo".contains(c))
            });
            flags
                || matches!(
                    option.source.as_str(),
                    "pipefail" | "errexit" | "nounset" | "xtrace"
                )
        })
}
