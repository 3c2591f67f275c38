//! What is allowed, tried in a real bash: nothing runs that the rule does not name.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use codespar_policy::{Mode, RuleSet, SandboxState, Scope};
use common::{rules, run, run_in, word};
use proptest::prelude::*;
use tempfile::TempDir;

/// A directory whose `bin` holds stand-ins that only write down how they were called.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::create_dir(dir.path().join("cwd")).unwrap();
        for name in ["git", "rm", "ls", "cat", "log", "a", "x"] {
            // Each call ends in one control character, each of its words begins with another. It is
            // written at once: a call in the background may write at the same time.
            let script = format!(
                "#!/bin/sh\nmark=$(printf '\\037')\ncall={name}\n\
                 for word; do call=\"$call$mark$word\"; done\n\
                 printf '%s\\036' \"$call\" >> \"$LOG\"\n"
            );
            let path = bin.join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { dir }
    }

    /// Runs the line; gives back what it called, word by word, and the files it left.
    fn run(&self, line: &str) -> (Vec<Vec<String>>, usize) {
        let log = self.dir.path().join("log");
        fs::write(&log, "").unwrap();
        let unknown =
            "command_not_found_handle() { printf 'unknown\\037%s\\036' \"$1\" >> \"$LOG\"; }";
        let cwd = self.dir.path().join("cwd");
        Command::new(shell())
            .args(["--norc", "--noprofile", "-c", &format!("{unknown}\n{line}")])
            .current_dir(&cwd)
            .env_clear()
            .env("PATH", self.dir.path().join("bin"))
            .env("LOG", &log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let called = fs::read(&log).unwrap();
        let called = String::from_utf8_lossy(&called).into_owned();
        let words = |call: &str| call.split('\u{1f}').map(str::to_owned).collect();
        let called = called.split_terminator('\u{1e}').map(words).collect();
        (called, fs::read_dir(cwd).unwrap().count())
    }
}

fn shell() -> &'static str {
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or("bash")
}

fn line() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "git log",
        "git log -1",
        "git log ",
        "git",
        "log",
        "rm x",
        "rm",
        "ls",
        "cat a",
        " ",
        " ",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        "\n",
        "'",
        "\"",
        "\\",
        ")",
        "(",
        "{ ",
        "; }",
        "<<E\n",
        "\nE\n",
        "\nE",
        "<<'E' ",
        "<<'E'\n",
        "<<-E\n",
        "> /dev/null ",
        "2>/dev/null ",
        "#",
        " #",
        "$x",
        "${x}",
        "$'",
        "\\'",
        "\\\\",
        "\\\n",
        "if ",
        "; then ",
        "; fi",
        "for i in a; do ",
        "; done",
        "case a in a) ",
        ";; esac",
        "A=1 ",
        "! ",
        "[ ",
        " ]",
        "<<<",
        "2>&1",
        "*",
        "?",
        "=",
        "time ",
        "\t",
        "é",
        "f() ",
        "((",
        "))",
        "a",
        "$",
        "~",
        "{",
        "}",
        "[",
        "]",
        "a[",
        "]=",
        "+=",
        "|&",
        ";;",
        "in ",
        "do ",
        "then ",
        "else ",
        "esac ",
        "function ",
        "elif ",
        "!",
        "-",
        "2",
        "1",
        "<&",
        ">&",
        "&>",
        "$\"",
        "\"$",
        "=~",
        "<",
        "<<",
        "'\\''",
        " --output=f",
        " --outp",
        "=f",
        " '--out",
        "put",
        " -- ",
        " --ext-diff",
        " $'--output=f'",
        "cd sub; ",
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| format!("git log {}", pieces.concat()))
}

/// Whether a call is `git log` without options that write or run.
fn is_plain_log(call: &[String]) -> bool {
    let mut words = call.iter().map(String::as_str);
    let options: Vec<&str> = words.by_ref().take_while(|word| *word != "--").collect();
    let acts = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word);
        name.len() > 2
            && ["--output", "--ext-diff"]
                .iter()
                .any(|long| long.starts_with(name))
    };
    options.starts_with(&["git", "log"]) && !options.iter().any(acts)
}

/// A directory with files whose names are options, and real programs in it.
struct Yard {
    dir: TempDir,
}

impl Yard {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let yard = Self { dir };
        for (name, text) in [
            ("a", "one\ntwo\n"),
            ("b", "two\n"),
            ("-o", "x\n"),
            ("-delete", "x\n"),
            ("--output=a", "x\n"),
            ("sub/c", "three\n"),
        ] {
            let path = yard.dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        yard.run("git init -q && git add a b && git -c user.name=a -c user.email=a@b commit -qm x");
        yard
    }

    fn run(&self, line: &str) {
        Command::new("/usr/bin/timeout")
            .args(["20", shell(), "--norc", "--noprofile", "-c", line])
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", "/nonexistent")
            .env("x", "a -o b --output=c")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }

    /// Every file but git's own, with its text.
    fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut open = vec![self.dir.path().to_owned()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                match path {
                    path if path.ends_with(".git") => {}
                    path if path.is_dir() => open.push(path),
                    path => {
                        let text = fs::read_to_string(&path).unwrap();
                        files.push((path.display().to_string(), text));
                    }
                }
            }
        }
        files.sort();
        files
    }
}

/// Lines of reading commands with everything that could make them write.
fn reading_line() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "cat a",
        "head -1 a",
        "tail -1 a",
        "grep -r o",
        "grep",
        "find .",
        "find",
        "wc",
        "sort",
        "uniq",
        "cut -c1",
        "tr a b",
        "git log",
        "git diff",
        "git show",
        "git status",
        "git",
        "timeout 5",
        "timeout",
        " ",
        " ",
        " ",
        " | ",
        " && ",
        "; ",
        " a",
        " b",
        " *",
        " -o",
        " -ob",
        "o",
        " -u",
        " --output=z",
        " --outp z",
        " --",
        " -- ",
        " -delete",
        " -fprint z",
        " -fprintf z x",
        " -fls z",
        " -exec rm {} +",
        " -exec",
        " rm",
        " {} ",
        " ';'",
        " -k",
        " -t",
        " > z",
        " 2>/dev/null",
        " >> a",
        " < a",
        " $x",
        " \"$x\"",
        "'",
        "\"",
        "\\",
        " {a,b}",
        " -f",
        " -f1",
        " z",
        " -c core.pager=touch\\ z",
        " -p",
        " --ext-diff",
        " -O",
        " --compress-program=touch",
        " ?o",
        " [a-]*",
        " ./*",
        " sub/*",
        "cd sub",
        "cd sub; ",
        " ..",
        "$(touch z)",
        "`touch z`",
        " tee z",
        " -n",
        "$'-o'",
    ]);
    prop::collection::vec(piece, 1..9).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_line_that_is_free_changes_no_file(line in reading_line()) {
        thread_local! {
            static YARD: Yard = Yard::new();
        }
        let found = YARD.with(|yard| {
            let root = yard.dir.path().to_owned();
            let scope = Scope {
                cwd: root.clone(),
                workspace: vec![root.clone()],
                root,
                sandbox_state: SandboxState::Sandboxed,
                ..common::scope()
            };
            let decision = run_in(&line, &RuleSet::default(), Mode::Plan, &scope);
            (word(&decision) == "allow").then(|| {
                let before = yard.files();
                yard.run(&line);
                (before, yard.files())
            })
        });
        if let Some((before, after)) = found {
            prop_assert_eq!(before, after, "{:?} changed files", line);
        }
    }
}

#[test]
fn the_yard_shows_what_a_line_changes() {
    let yard = Yard::new();
    let before = yard.files();
    yard.run("sort *; git log --output=z");
    assert_ne!(before, yard.files());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_allowed_line_runs_only_what_the_rule_names(line in line()) {
        thread_local! {
            static STAGE: Stage = Stage::new();
        }
        let decision = run(&line, &rules(&["allow Bash(git log *)"]), Mode::Default);
        if word(&decision) == "allow" {
            let (called, files) = STAGE.with(|stage| stage.run(&line));
            let strange: Vec<&Vec<String>> =
                called.iter().filter(|call| !is_plain_log(call)).collect();
            prop_assert!(strange.is_empty(), "{line:?} called {strange:?}");
            prop_assert_eq!(files, 0, "{:?} left files", line);
        }
    }
}

#[test]
fn the_stage_shows_what_a_line_calls() {
    let stage = Stage::new();
    let (called, files) = stage.run("git log; rm x; nothing such > left");
    assert_eq!(
        called,
        [["git", "log"], ["rm", "x"], ["unknown", "nothing"]]
    );
    assert_eq!(files, 1);
}
