//! The help of every command and the main outputs, word for word. A change shows up here and in the
//! review: `INSTA_UPDATE=always cargo nextest run --workspace -E 'binary(snapshots)'` accepts it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use codespar_testkit::{Script, Turn};
use common::Bench;

/// What a command prints, with what differs from run to run replaced.
fn output(bench: &Bench, args: &[&str]) -> String {
    let finished = bench.run(args);
    let base = bench.room.work();
    let base = base.parent().unwrap().to_str().unwrap();
    let text = format!(
        "$ codespar {}\n{}{}[exit code {}]\n",
        args.join(" "),
        finished.stdout,
        finished.stderr,
        finished.status.code().unwrap()
    );
    let address = bench.server.url();
    text.replace(base, "[dir]")
        .replace(&address, "[model]")
        .replace(env!("CARGO_PKG_VERSION"), "[version]")
}

/// The names under `Commands:` in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let section = help.split("Commands:\n").nth(1).unwrap_or_default();
    section
        .lines()
        .take_while(|line| !line.is_empty())
        // A line that goes on with a description is indented further.
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn help_of(bench: &Bench, path: &[String], all: &mut Vec<String>) {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let text = output(bench, &args);
    let below = subcommands(&text);
    all.push(text);
    for name in below.into_iter().filter(|name| name != "help") {
        let path = [path, &[name]].concat();
        help_of(bench, &path, all);
    }
}

#[test]
fn the_help_of_every_command_stays_as_it_was_read() {
    let bench = Bench::new(Script::new());
    let mut all = Vec::new();
    help_of(&bench, &[], &mut all);
    assert!(all.len() > 30, "only {} commands were found", all.len());
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_lists_of_a_new_user_stay_as_they_were_read() {
    let bench = Bench::new(Script::new());
    bench.file(
        ".codespar/settings.json",
        r#"{"permissions": {"allow": ["Bash(make *)"], "deny": ["Read(.env)"]}}"#,
    );
    bench.file(
        ".codespar/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reads changes\ntools: Read, Grep\n---\nRead.\n",
    );
    bench.file(".codespar/agents/broken.md", "---\nname: [\n---\nx\n");
    let commands: [&[&str]; 6] = [
        &["session", "list"],
        &["task", "list"],
        &["agents", "list"],
        &["mcp", "list"],
        &["trust", "show"],
        &["pr", "list"],
    ];
    let all = commands.map(|args| output(&bench, args));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn mistakes_of_the_first_hour_are_answered_in_the_same_words() {
    let bench = Bench::new(Script::of([Turn::text("Never asked.")]));
    let commands: [&[&str]; 8] = [
        &["docter"],
        &["sessions"],
        &["hlep"],
        &["-p"],
        &["--resume", "nothing", "-p", "hi"],
        &["task", "get", "nothing"],
        &["-p", "hi", "--allowedTools", "Bash(git"],
        &["-p", "hi", "--cwd", "missing"],
    ];
    let all = commands.map(|args| output(&bench, args));
    insta::assert_snapshot!(all.join("\n"));
    assert_eq!(bench.server.request_count(), 0);
}
