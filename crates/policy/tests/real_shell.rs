//! What is allowed, tried in a real bash: nothing runs that the rule does not name.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod ground;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use codespar_policy::Mode;
use ground::{rules, run, word};
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
            let script = format!("#!/bin/sh\necho \"{name} $1\" >> \"$LOG\"\n");
            let path = bin.join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { dir }
    }

    /// Runs the line; gives back what it called and the files it left.
    fn run(&self, line: &str) -> (Vec<String>, usize) {
        let log = self.dir.path().join("log");
        fs::write(&log, "").unwrap();
        let unknown = "command_not_found_handle() { echo \"unknown $1\" >> \"$LOG\"; }";
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
        let called = fs::read_to_string(&log).unwrap();
        let called = called.lines().map(str::to_owned).collect();
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
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| format!("git log {}", pieces.concat()))
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
            let strange: Vec<&String> =
                called.iter().filter(|call| *call != "git log").collect();
            prop_assert!(strange.is_empty(), "{line:?} called {strange:?}");
            prop_assert_eq!(files, 0, "{:?} left files", line);
        }
    }
}

#[test]
fn the_stage_shows_what_a_line_calls() {
    let stage = Stage::new();
    let (called, files) = stage.run("git log; rm x; nothing such > left");
    assert_eq!(called, ["git log", "rm x", "unknown nothing"]);
    assert_eq!(files, 1);
}
