//! What an agent may edit without reading it again, and what it is told instead of a denied call,
//! through the real binary.

use std::fs;

use codespar_testkit::{AfterLast, Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::common::Bench;

fn edit(old: &str, new: &str) -> Turn {
    let input = json!({"file_path": "a.txt", "old_string": old, "new_string": new});
    Turn::tool("Edit", &input)
}

fn write(text: &str) -> Turn {
    Turn::tool("Write", &json!({"file_path": "a.txt", "content": text}))
}

/// The results of the calls of these turns, in order.
fn results(bench: &Bench, prompt: &str) -> Vec<String> {
    let mut requests = bench.server.requests();
    requests.retain(|request| request.messages()[0].to_string().contains(prompt));
    let results = requests.last().unwrap().tool_results();
    results.into_iter().map(|result| result.text).collect()
}

fn run(turns: Vec<Turn>, text: &str, flags: &[&str]) -> (Vec<String>, String) {
    let bench = Bench::new(Script::of([turns, vec![Turn::text("done")]].concat()));
    bench.file("a.txt", text);
    bench.run(&[&["-p", "go"], flags].concat());
    let after = fs::read_to_string(bench.work().join("a.txt")).unwrap();
    (results(&bench, "go"), after)
}

const MAY_WRITE: [&str; 2] = ["--allowedTools", "Edit,Write"];

#[test]
fn a_unique_text_is_edited_unread_and_a_whole_file_is_not_written_so() {
    let turns = vec![
        edit("two", "2"),
        edit("one", "1"),
        write("gone\n"),
        edit("three\n", "x\r\ny\r\n"),
    ];
    let (results, after) = run(turns, "one two\ntwo\nthree\n", &MAY_WRITE);
    assert!(results[0].contains("has not been read yet"), "{results:?}");
    assert!(results[1].starts_with("Edited a.txt"), "{results:?}");
    assert!(results[2].contains("read it first"), "{results:?}");
    assert_eq!(after, "1 two\ntwo\nx\ny\n");
}

#[test]
fn a_file_that_changed_after_it_was_read_is_not_edited_even_where_the_text_is_unique() {
    let turns = vec![
        Turn::tool("Read", &json!({"file_path": "a.txt"})),
        Turn::tool("Bash", &json!({"command": "echo more >> a.txt"})),
        edit("one", "1"),
    ];
    let (results, after) = run(turns, "one\n", &["--allowedTools", "Edit,Bash"]);
    assert!(
        results[2].contains("has changed since it was read"),
        "{results:?}"
    );
    assert_eq!(after, "one\nmore\n");
}

#[test]
fn lines_that_grep_showed_are_edited_like_read_ones() {
    let grep = json!({"pattern": "one", "output_mode": "content", "-C": 1});
    let text = "{\n\tone();\n\ttwo();\n}\n\tthree();\n";
    let turns = vec![
        edit("  one();\n  two();", "  1();\n  two();"),
        Turn::tool("Grep", &grep),
        edit("  one();\n  two();", "  1();\n  two();"),
        edit("  three();", "  3();"),
    ];
    let (results, after) = run(turns, text, &MAY_WRITE);
    assert!(results[0].contains("has not been read yet"), "{results:?}");
    assert!(results[2].starts_with("Edited a.txt"), "{results:?}");
    assert!(results[3].contains("has not been read yet"), "{results:?}");
    assert_eq!(after, text.replace("one", "1"));
}

#[test]
fn a_resumed_agent_knows_the_lines_that_grep_showed_as_long_as_they_are_the_same() {
    let grep = json!({"pattern": "one|five", "output_mode": "content", "-C": 1});
    let text = "{\n\tone();\n\ttwo();\n}\n\tthree();\n\tfour();\n\tfive();\n";
    let bench = Bench::new(Script::of([
        Turn::tool("Grep", &grep),
        Turn::text("found"),
        edit("  one();\n  two();", "  1();\n  two();"),
        edit("  four();\n  five();", "  4();\n  5();"),
        Turn::text("done"),
    ]));
    bench.file("a.txt", text);
    let first = bench.run(&["-p", "go", "--output-format", "json"]);
    let id = crate::common::parsed(&first.stdout)["session_id"].clone();
    let changed = text.replace("five", "5");
    bench.file("a.txt", &changed);
    let resume = ["-p", "on", "--resume", id.as_str().unwrap()];
    bench.run(&[&resume[..], &MAY_WRITE].concat());
    let results = results(&bench, "go");
    assert!(results[1].starts_with("Edited a.txt"), "{results:?}");
    assert!(!results[2].starts_with("Edited a.txt"), "{results:?}");
    let after = fs::read_to_string(bench.work().join("a.txt")).unwrap();
    assert_eq!(after, changed.replace("one", "1"));
}

#[test]
fn what_may_not_be_read_is_not_edited_either() {
    let bench = Bench::new(Script::of([edit("one", "1"), Turn::text("done")]));
    bench.file("a.txt", "one\nsecret\n");
    bench.run(&[
        "-p",
        "go",
        "--allowedTools",
        "Edit",
        "--disallowedTools",
        "Read(./a.txt)",
    ]);
    let results = results(&bench, "go");
    assert!(
        results[0].starts_with("permission denied: denied by"),
        "{results:?}"
    );
    assert!(!results[0].contains("secret"), "{results:?}");
}

/// The agent ends after it has read the file, and is continued in two ways.
#[test]
fn a_continued_agent_remembers_what_it_read() {
    let read = Turn::tool("Read", &json!({"file_path": "a.txt"}));
    let call = |name: &str, input: Value| Turn::tool(name, &input);
    let script = Script::new()
        .turn(call(
            "Task",
            json!({
                "description": "d", "prompt": "child reads", "name": "sam",
                "run_in_background": true,
            }),
        ))
        .turn(Turn::text("started"))
        .turn(call(
            "SendMessage",
            json!({"to": "sam", "message": "now write"}),
        ))
        .turn(Turn::text("asked"))
        .turn(call(
            "Task",
            json!({"description": "d", "prompt": "again", "resume": "sam"}),
        ))
        .turn(Turn::text("done"))
        .after_last(AfterLast::Repeat)
        .conversation(
            Conversation::new("child", Matcher::first_user_contains("child reads"))
                .turn(read)
                .turn(Turn::text("read"))
                .turn(write("two\n"))
                .turn(Turn::text("written"))
                .turn(write("three\n"))
                .turn(Turn::text("written again")),
        );
    let bench = Bench::new(script);
    bench.file("a.txt", "one\n");
    let finished = bench.run(&[&["-p", "go"], &MAY_WRITE[..]].concat());
    assert_eq!(finished.stdout, "done\n", "{}", finished.stderr);
    let results = results(&bench, "child reads");
    assert!(
        results[1..]
            .iter()
            .all(|text| text.starts_with("Updated a.txt")),
        "{results:?}"
    );
    let after = fs::read_to_string(bench.work().join("a.txt")).unwrap();
    assert_eq!((results.len(), after.as_str()), (3, "three\n"));
}

#[test]
fn a_denied_call_names_what_is_free() {
    let command = |command: &str| Turn::tool("Bash", &json!({"command": command}));
    let turns = vec![command("make"), write("x"), command("ls | wc -l")];
    let (results, after) = run(turns, "one\n", &[]);
    assert!(
        results[0].contains("\nFree here: ls, cat, ")
            && results[0].contains("git status|log|diff|show"),
        "{results:?}"
    );
    assert!(
        results[1].contains("\nFree here: reading and searching the workspace, and writing in "),
        "{results:?}"
    );
    assert_eq!((results[2].trim(), after.as_str()), ("1", "one\n"));

    // What a rule takes away is not named.
    let (results, _) = run(vec![command("make")], "", &["--disallowedTools", "Bash(*)"]);
    assert!(!results[0].contains("Free here"), "{results:?}");
}

/// A worktree of its own is thrown away: there the sandbox is the limit.
#[test]
fn in_a_throw_away_tree_a_denial_says_that_the_sandbox_is_the_limit() {
    let denied = Turn::tool("Bash", &json!({"command": "cat /etc/hostname"}));
    let start = json!({"description": "d", "prompt": "child works", "isolation": "worktree"});
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(Turn::text("done"))
        .conversation(
            Conversation::new("child", Matcher::first_user_contains("child works"))
                .turn(denied)
                .turn(Turn::text("seen")),
        );
    let bench = crate::common::git::repository(script, &[("a.txt", "one\n")]);
    bench.run(&["-p", "go", "--disallowedTools", "Bash(cat *)"]);
    let results = results(&bench, "child works");
    assert!(
        results[0].starts_with("permission denied: denied by `Bash(cat *)`")
            && results[0].contains("\nFree here: every command that keeps to this tree"),
        "{results:?}"
    );
}
