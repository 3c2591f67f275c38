//! Sessions across processes: crashes, resuming, commands, bad state.

use std::{collections::HashSet, time::Duration};

use codespar_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, json_lines};

/// A loop whose commands leave one line each; a command run twice shows.
fn counting_loop(turns: usize) -> Script {
    Script::tool_loop(
        turns,
        "Bash",
        |turn| json!({"command": format!("echo {turn} >> ran.txt")}),
        "all done",
    )
}

/// Runs until so many answers were seen and a little longer, then kills; or to the end if that
/// comes first. Gives the whole lines that were printed.
fn run_and_kill(bench: &Bench, args: &[&str], answers: usize, longer: Duration) -> Vec<Value> {
    let options = ["--allowedTools", "Bash", "--output-format", "stream-json"];
    let mut running = bench.start(&[args, &options].concat());
    while !running.has_ended().unwrap()
        && running
            .stdout_so_far()
            .matches("\"type\":\"assistant\"")
            .count()
            < answers
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(longer);
    let finished = if running.has_ended().unwrap() {
        running.wait(PATIENCE).unwrap()
    } else {
        running.kill_9().unwrap()
    };
    let orphans = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(orphans, Vec::<u32>::new(), "still alive after the kill");
    // A line that was being written when the process died is not a line.
    finished
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn killed_at_random_points_and_resumed_nothing_is_lost_and_nothing_runs_twice() {
    const TURNS: usize = 24;
    let bench = Bench::new(counting_loop(TURNS));
    let first = run_and_kill(&bench, &["-p", "go"], 1, Duration::from_millis(3));
    let session = first[0]["session_id"].as_str().unwrap().to_owned();
    let mut lines = first;
    for attempt in 0.. {
        if lines
            .last()
            .is_some_and(|line| line["subtype"] == "success")
        {
            break;
        }
        assert!(attempt < 2 * TURNS, "it never came to its end");
        let longer = Duration::from_millis(attempt as u64 * 7 % 19);
        lines = run_and_kill(
            &bench,
            &["-p", "--resume", &session],
            1 + attempt % 3,
            longer,
        );
    }

    let ran = std::fs::read_to_string(bench.work().join("ran.txt")).unwrap();
    let ran: Vec<&str> = ran.lines().collect();
    let distinct: HashSet<&str> = ran.iter().copied().collect();
    assert_eq!(distinct.len(), ran.len(), "a command ran twice: {ran:?}");

    let entries = json_lines(&bench.run(&["session", "export", &session]).stdout);
    let places: Vec<u64> = entries
        .iter()
        .map(|entry| entry["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(places, (1..=entries.len() as u64).collect::<Vec<_>>());
    let calls: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry["body"]["assistant"]["message"]["content"][0]["id"].as_str())
        .collect();
    let results: Vec<&Value> = entries
        .iter()
        .map(|e| &e["body"]["tool_result"]["result"])
        .filter(|r| !r.is_null())
        .collect();
    let answered: Vec<&str> = results
        .iter()
        .map(|r| r["tool_use_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (calls.len(), &answered),
        (TURNS, &calls),
        "every call once, with one result"
    );
    // What did not run was said to be interrupted; nothing is missing in silence.
    let interrupted = results
        .iter()
        .filter(|r| r["content"].to_string().contains("interrupted"))
        .count();
    assert!(
        ran.len() + interrupted >= TURNS,
        "{} ran, {interrupted} interrupted",
        ran.len()
    );
    assert!(interrupted < TURNS, "no command ever came to its end");
}

#[test]
fn a_session_in_use_is_refused_to_another_process() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool(
                "Bash",
                &json!({"command": "touch begun; sleep 300"}),
            ))
            .turn(Turn::text("x")),
    );
    let mut running = bench.start(&[
        "-p",
        "go",
        "--allowedTools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    running.wait_for_output("\"assistant\"", PATIENCE).unwrap();
    let other = bench.run(&["-p", "me too", "--continue"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(
        other.stderr.contains(&format!(
            "in use by another process (pid {})",
            running.pid()
        )),
        "{}",
        other.stderr
    );
    running.terminate().unwrap();
    running.wait(PATIENCE).unwrap();
}

#[test]
fn sessions_are_listed_shown_exported_continued_and_removed() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::text("one"))
            .turn(Turn::text("two")),
    );
    bench.run(&["-p", "first things first"]);
    let second = bench.run(&["-p", "and then", "--continue"]);
    assert_eq!(second.stdout, "two\n");
    let list: Value =
        serde_json::from_str(&bench.run(&["session", "list", "--json"]).stdout).unwrap();
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["title"], "first things first");
    let id = sessions[0]["id"].as_str().unwrap().to_owned();
    let shown = bench.run(&["session", "show", &id[..13]]);
    assert!(
        shown.stdout.contains("first things first") && shown.stdout.contains("two"),
        "{}",
        shown.stdout
    );
    let markdown = bench.run(&["session", "export", &id, "--format", "markdown"]);
    assert!(
        markdown
            .stdout
            .starts_with("## Person\n\nfirst things first\n"),
        "{}",
        markdown.stdout
    );
    assert_eq!(bench.run(&["session", "rm", &id]).status.code(), Some(0));
    let gone = bench.run(&["session", "show", &id]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(
        gone.stderr.contains("there is no session"),
        "{}",
        gone.stderr
    );
}

#[test]
fn a_state_directory_that_cannot_be_used_is_named() {
    let bench = Bench::new(Script::new().turn(Turn::text("x")));
    let file = bench.room.home().join("a-file");
    std::fs::write(&file, "").unwrap();
    for dir in [file.as_path(), std::path::Path::new("/proc/codespar")] {
        let mut command = bench.command(&["-p", "go"]);
        command.env("CODESPAR_HOME", dir);
        let finished = codespar_testkit::process::spawn(&mut command)
            .unwrap()
            .wait(PATIENCE)
            .unwrap();
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        assert!(
            finished.stderr.contains(&dir.display().to_string()),
            "{}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains("CODESPAR_HOME"),
            "{}",
            finished.stderr
        );
    }
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn a_bad_settings_file_is_named_with_its_line() {
    let bench = Bench::new(Script::new().turn(Turn::text("x")));
    for (text, place, expected) in [
        ("{\n  \"model\": \"opus\",\n}", ":3:", "trailing comma"),
        ("{\n  \"modle\": \"opus\"\n}", ":2:", "modle"),
        (
            "{\"permissions\": {\n\"deny\": [\n\"Bash(git log\"]}}",
            ":3:",
            "Bash(git log",
        ),
        ("{\"model\": 7}", ":1:", "string"),
    ] {
        let path = bench.file(".codespar/settings.json", text);
        let finished = bench.run(&["-p", "go"]);
        assert_eq!(
            finished.status.code(),
            Some(2),
            "{text}: {}",
            finished.stderr
        );
        assert!(
            finished
                .stderr
                .contains(&format!("{}{place}", path.display())),
            "{text}: {}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains(expected),
            "{text}: {}",
            finished.stderr
        );
    }
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn clean_up_removes_what_is_past_its_time_and_what_a_kill_left() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool(
                "Bash",
                &json!({"command": "touch begun; sleep 300"}),
            ))
            .turn(Turn::text("x")),
    );
    let mut running = bench.start(&[
        "-p",
        "go",
        "--allowedTools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    running.wait_for_output("\"assistant\"", PATIENCE).unwrap();
    running.kill_9().unwrap();
    let temps =
        || std::fs::read_dir(bench.room.codespar_home().join("tmp")).map_or(0, Iterator::count);
    assert_eq!(temps(), 1);
    let kept = bench.run(&["gc", "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&kept.stdout).unwrap()["sessions"],
        json!([])
    );
    assert_eq!(temps(), 0);
    let dry = bench.run(&["gc", "--days", "0", "--dry-run"]);
    assert!(
        dry.stdout.starts_with("would remove 1 sessions"),
        "{}",
        dry.stdout
    );
    let gone = bench.run(&["gc", "--days", "0", "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&gone.stdout).unwrap()["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let list: Value =
        serde_json::from_str(&bench.run(&["session", "list", "--json"]).stdout).unwrap();
    assert_eq!(list["sessions"], json!([]));
}

#[test]
fn a_recording_answers_again_without_the_server() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("LS", &json!({"path": "."})))
            .turn(Turn::text("seen")),
    );
    let tape = bench.room.home().join("tape.jsonl");
    let run = |how: &str| {
        let mut command = bench.command(&["-p", "look"]);
        command.env("CODESPAR_CASSETTE", format!("{how}:{}", tape.display()));
        codespar_testkit::process::spawn(&mut command)
            .unwrap()
            .wait(PATIENCE)
            .unwrap()
    };
    assert_eq!(run("record").stdout, "seen\n");
    let before = bench.server.request_count();
    let replayed = run("replay");
    assert_eq!(replayed.stdout, "seen\n", "{}", replayed.stderr);
    assert_eq!(bench.server.request_count(), before);
    assert!(
        !std::fs::read_to_string(&tape)
            .unwrap()
            .contains("sk-test-key")
    );
}

#[test]
fn agent_definitions_are_listed_and_checked() {
    let bench = Bench::new(Script::new());
    bench.file(
        ".codespar/agents/good.md",
        "---\nname: good\ndescription: does good\n---\nBe good.\n",
    );
    let fine = bench.run(&["agents", "check"]);
    assert_eq!(
        (fine.status.code(), fine.stdout.as_str()),
        (Some(0), "1 usable, 0 not\n")
    );
    let bad = bench.file(
        ".claude/agents/bad.md",
        "---\nname: bad\ndescription: d\ndisalowedTools: Bash\n---\nx\n",
    );
    let found = bench.run(&["agents", "check"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(
        found.stdout.contains(&format!(
            "{}:4: there is no `disalowedTools`",
            bad.display()
        )),
        "{}",
        found.stdout
    );
    let list: Value =
        serde_json::from_str(&bench.run(&["agents", "list", "--json", "--trust"]).stdout).unwrap();
    let agents = list["agents"].as_array().unwrap();
    let custom = agents.iter().filter(|agent| agent["origin"] != "built-in");
    let names: Vec<&Value> = custom.map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["good"]);
    assert_eq!(list["problems"].as_array().unwrap().len(), 1);
}

#[test]
fn completions_and_version_touch_nothing() {
    let bench = Bench::new(Script::new());
    assert!(
        bench
            .run(&["completions", "bash"])
            .stdout
            .contains("_codespar")
    );
    assert!(bench.run(&["--version"]).stdout.starts_with("codespar "));
    assert!(!bench.room.codespar_home().join("codespar.db").exists());
}

/// A run that reads a file and then hangs in its next call, killed there; the id of its session.
fn killed_after_reading(bench: &Bench) -> String {
    let args = ["-p", "go", "--output-format", "stream-json"];
    let mut running = bench.start(&args);
    running
        .wait_for_output("\"tool_result\"", PATIENCE)
        .unwrap();
    let began = std::time::Instant::now();
    while bench.server.request_count() < 2 {
        assert!(began.elapsed() < PATIENCE, "the second call never came");
        std::thread::sleep(Duration::from_millis(5));
    }
    let finished = running.kill_9().unwrap();
    let first: Value = serde_json::from_str(finished.stdout.lines().next().unwrap()).unwrap();
    first["session_id"].as_str().unwrap().to_owned()
}

/// Reads `a.txt`, and writes it after a call that hangs.
fn read_hang_write() -> Script {
    let write = json!({"file_path": "a.txt", "content": "two\n"});
    Script::of([
        Turn::tool("Read", &json!({"file_path": "a.txt"})),
        Turn::tool("Write", &write).fault(codespar_testkit::Fault::HangBeforeHeaders),
        Turn::text("done"),
    ])
}

fn resumed(bench: &Bench, session: &str) -> String {
    let options = ["--permission-mode", "acceptEdits"];
    let (lines, code) = bench.stream(&[&["-p", "--resume", session], &options[..]].concat());
    assert_eq!(code, Some(0), "{lines:?}");
    let results = crate::common::tool_results(&lines);
    results.last().unwrap().clone()
}

#[test]
fn a_resumed_agent_writes_what_it_had_read_before_it_was_killed() {
    let bench = Bench::new(read_hang_write());
    let file = bench.file("a.txt", "one\n");
    let session = killed_after_reading(&bench);
    let result = resumed(&bench, &session);
    assert!(result.starts_with("Updated a.txt"), "{result}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "two\n");
}

#[test]
fn a_resumed_agent_does_not_write_what_was_changed_since_it_had_read_it() {
    let bench = Bench::new(read_hang_write());
    let file = bench.file("a.txt", "one\n");
    let session = killed_after_reading(&bench);
    std::fs::write(&file, "one, but not the same\n").unwrap();
    let result = resumed(&bench, &session);
    assert!(result.contains("has changed since it was read"), "{result}");
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        "one, but not the same\n"
    );
}

/// Two turns with an edit each; the second also runs a command.
fn two_edits() -> Script {
    let edit =
        |old: &str, new: &str| json!({"file_path": "a.txt", "old_string": old, "new_string": new});
    Script::of([
        Turn::tool("Edit", &edit("one", "two")),
        Turn::text("First."),
        Turn::new()
            .and_tool("Edit", &edit("two", "three"))
            .and_tool("Bash", &json!({"command": "touch made"})),
        Turn::text("Second."),
        Turn::text("Third."),
    ])
}

#[test]
fn a_session_goes_back_in_one_process_and_on_in_another() {
    let bench = Bench::new(two_edits());
    let file = bench.file("a.txt", "one\n");
    let text = || std::fs::read_to_string(&file).unwrap();
    let allowed = ["--allowedTools", "Edit,Bash"];
    let (lines, code) = bench.stream(&[&["-p", "first"], &allowed[..]].concat());
    assert_eq!(code, Some(0), "{lines:?}");
    let id = lines[0]["session_id"].as_str().unwrap().to_owned();
    let checkpoints = bench.room.codespar_home().join("checkpoints").join(&id);
    assert!(checkpoints.is_dir());
    bench.run(&[&["-p", "second", "--resume", &id], &allowed[..]].concat());
    assert_eq!(text(), "three\n");
    let rewind = |args: &[&str]| {
        let finished = bench.run(&[&["session", "rewind", &id], args].concat());
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        finished.stdout
    };

    let turns: Value = serde_json::from_str(&rewind(&["--json"])).unwrap();
    assert_eq!(turns["turns"][1]["prompt"], "second");
    assert_eq!(turns["turns"][1]["files"], json!([file]));
    assert!(rewind(&[]).contains("second  a.txt"));
    let preview = rewind(&["--to", "2", "--dry-run"]);
    for line in [
        "would change a.txt (+1 -1)\n",
        "-three\n+two\n",
        "not covered: touch made\n",
        "3 messages would be no longer part of the conversation\n",
    ] {
        assert!(preview.contains(line), "{preview}");
    }
    assert_eq!(text(), "three\n");

    let done = rewind(&["--to", "2"]);
    assert_eq!(
        done,
        "restored a.txt\n3 messages are no longer part of the conversation\n"
    );
    assert_eq!(text(), "two\n");
    let shown = bench.run(&["session", "show", &id]).stdout;
    assert!(
        shown.contains("First.") && !shown.contains("Second."),
        "{shown}"
    );
    rewind(&["--undo"]);
    assert_eq!(text(), "three\n");
    rewind(&["--to", "2", "--conversation"]);
    assert_eq!(text(), "three\n");
    let finished = bench.run(&["-p", "again", "--resume", &id]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let request = bench.server.last_request().unwrap();
    let asked: Vec<String> = request.messages().iter().map(Value::to_string).collect();
    assert!(asked.iter().any(|message| message.contains("again")));
    assert!(
        !asked.iter().any(|message| message.contains("second")),
        "{asked:?}"
    );

    let refused = bench.run(&["session", "rewind", &id, "--to", "9"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refused.stderr.contains("there is no turn 9"),
        "{}",
        refused.stderr
    );
    bench.run(&["session", "rm", &id]);
    assert!(!checkpoints.exists());
}
