//! A large tree of text that looks like source, the same every time.
//!
//! Made of a fixed stream of numbers, so that figures of two days are about the same bytes. Ignored
//! files, binary files and nested directories are there because a search has to deal with them.

use std::{
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

/// How much there is.
pub(super) const FILES: usize = 20_000;
/// One file in so many is binary, one in so many is named by `.gitignore`.
const BINARY: usize = 40;
const IGNORED: usize = 20;
/// One file in so many has the rare word, once.
const RARE: usize = 1_000;
/// Files of a directory, and directories of one above.
const WIDTH: usize = 25;

/// A word that is in few files.
pub(super) const RARE_WORD: &str = "needle_in_the_stack";

/// What was made.
pub(super) struct Tree {
    pub(super) bytes: u64,
}

/// Makes the tree below an empty directory.
pub(super) fn grow(root: &Path) -> io::Result<Tree> {
    grow_files(root, FILES)
}

pub(super) fn grow_files(root: &Path, files: usize) -> io::Result<Tree> {
    fs::create_dir_all(root)?;
    fs::write(root.join(".gitignore"), "*.log\n/build/\n")?;
    let mut bytes = 0;
    for number in 0..files {
        let path = root.join(path_of(number));
        if number % WIDTH == 0 || number % IGNORED == 1 {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
        }
        let text = text_of(number);
        bytes += text.len() as u64;
        fs::write(path, text)?;
    }
    Ok(Tree { bytes })
}

/// Ignored files are of two kinds: by ending, among the others, and in a directory that is ignored
/// as a whole.
fn path_of(number: usize) -> PathBuf {
    let directory = number / WIDTH;
    let (upper, lower) = (directory / WIDTH, directory % WIDTH);
    let ending = ["rs", "py", "ts", "go", "md"][number % 5];
    match number % IGNORED {
        1 if number.is_multiple_of(3) => format!("build/part_{upper}/out_{number}.{ending}").into(),
        1 => format!("part_{upper}/module_{lower}/trace_{number}.log").into(),
        _ => format!("part_{upper}/module_{lower}/file_{number}.{ending}").into(),
    }
}

fn text_of(number: usize) -> Vec<u8> {
    let mut chance = Chance(number as u64 + 1);
    // Most files are short and some are long, about 10 KB on average.
    let lines = 40 + chance.below(160) + chance.below(40) * chance.below(20);
    let mut text = String::new();
    if number % BINARY == 7 {
        text.push_str("\0binary\0");
    }
    for line in 0..lines {
        if number % RARE == 500 && line == lines / 2 {
            text.push_str(&format!("    let {RARE_WORD} = true;\n"));
        }
        push_line(&mut text, &mut chance);
    }
    text.into_bytes()
}

fn push_line(text: &mut String, chance: &mut Chance) {
    let (a, b, c) = (chance.word(), chance.word(), chance.word());
    let (d, number) = (chance.word(), chance.below(1_000));
    // Writing to a string does not fail.
    let _ = match chance.below(12) {
        0 => writeln!(text, "pub fn {a}_{b}({c}: {d}, limit: usize) -> usize {{"),
        1 => writeln!(text, "    return {a}({b}, {c}_{number});"),
        2 => writeln!(
            text,
            "    // {a} of the {b} is {c}, unless {d} says otherwise"
        ),
        3 => writeln!(text, "    if {a}.{b}() > {number} && {c} != {d} {{"),
        4 => writeln!(text, "    }}"),
        5 => writeln!(text),
        6 => writeln!(text, "    let Config {{ {a}, {b}, .. }} = {c}_config({d});"),
        7 => writeln!(text, "        self.{a}.push({b}_{number}.clone());"),
        8 => writeln!(
            text,
            "    log(\"{a} {b}: {{}} in {{}}\", {c}, {d}_{number});"
        ),
        9 => writeln!(
            text,
            "    for {a} in {b}.iter().filter(|x| x.{c} < {number}) {{"
        ),
        10 => writeln!(text, "import {a}.{b}.{c} as {d}"),
        _ => writeln!(text, "    let {a}_{b}: {c} = {d}::new({number}, \"{a}\");"),
    };
}

/// A stream of numbers that is the same on every run (xorshift). Each file has a seed of its own,
/// so its text does not depend on the others.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        // Neighbouring seeds are driven apart before use.
        let mut state = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0 = state;
        state >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 48] = [
            "account", "balance", "branch", "buffer", "builder", "cache", "channel", "client",
            "column", "context", "counter", "cursor", "delta", "document", "driver", "editor",
            "entry", "filter", "folder", "handle", "header", "index", "invoice", "journal",
            "kernel", "layout", "ledger", "listener", "matrix", "message", "mirror", "network",
            "offset", "packet", "parser", "pointer", "queue", "reader", "record", "request",
            "schema", "session", "signal", "socket", "symbol", "table", "vector", "window",
        ];
        WORDS[self.below(WORDS.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_the_same_every_time_and_has_all_kinds_of_files() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tree = grow_files(one.path(), 600).unwrap();
        assert_eq!(grow_files(two.path(), 600).unwrap().bytes, tree.bytes);
        for name in [
            "part_0/module_0/file_0.rs",
            "part_0/module_0/file_7.ts",
            "build/part_0/out_21.py",
            "part_0/module_1/trace_41.log",
        ] {
            let text = fs::read(one.path().join(name)).unwrap();
            assert_eq!(fs::read(two.path().join(name)).unwrap(), text, "{name}");
            assert_eq!(text.contains(&0), name.ends_with("file_7.ts"), "{name}");
        }
        let rare = fs::read_to_string(one.path().join(path_of(500))).unwrap();
        assert_eq!(rare.matches(RARE_WORD).count(), 1);
    }
}
