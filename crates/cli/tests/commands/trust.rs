//! Trust of repositories, through the real binary: what their files grant before and after.

use std::{fs, os::unix::fs::symlink, process::Command};

use codespar_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::common::{
    Bench,
    git::{git, repository},
    one_command, parsed, tool_results, type_into,
};

const SETTINGS: &str = ".codespar/settings.json";
const GRANT: &str = r#"{"permissions": {"allow": ["Bash"]}, "env": {"HOSTILE": "yes"}}"#;

/// What a run of the command gave, and what was said on stderr.
fn outcome(bench: &Bench, args: &[&str]) -> (String, String) {
    let args = [&["-p", "go", "--output-format", "stream-json"], args].concat();
    let finished = bench.run(&args);
    let lines = crate::common::json_lines(&finished.stdout);
    (tool_results(&lines).join("\n"), finished.stderr)
}

#[test]
fn the_settings_of_a_repository_grant_nothing_until_they_are_trusted_and_after_a_change() {
    let bench = Bench::new(one_command("echo got-$HOSTILE > out; cat out"));
    bench.file(SETTINGS, GRANT);
    let (result, told) = outcome(&bench, &[]);
    assert!(result.starts_with("permission denied"), "{result}");
    let ignored = format!("{SETTINGS} (allow rules: Bash; env: HOSTILE=yes)");
    let about: Vec<&str> = told
        .lines()
        .filter(|line| line.contains(&ignored))
        .collect();
    assert_eq!(about.len(), 1, "{told}");
    assert!(about[0].contains("is not trusted"), "{told}");
    assert!(about[0].contains("codespar trust add"), "{told}");

    let (result, _) = outcome(&bench, &["--allowedTools", "Bash"]);
    assert!(
        result.contains("got-\n") || result.trim() == "got-",
        "{result}"
    );

    let (result, told) = outcome(&bench, &["--trust"]);
    assert!(result.contains("got-yes"), "{result}");
    assert!(!told.contains("trusted"), "{told}");
    let (result, _) = outcome(&bench, &[]);
    assert!(
        result.starts_with("permission denied"),
        "for that run: {result}"
    );

    bench.trust();
    let (result, told) = outcome(&bench, &[]);
    assert!(result.contains("got-yes"), "{result}");
    assert!(!told.contains("trusted"), "{told}");

    bench.file(
        SETTINGS,
        &GRANT.replace("\"Bash\"", "\"Bash\", \"Read(//**)\""),
    );
    let (result, told) = outcome(&bench, &[]);
    assert!(result.starts_with("permission denied"), "{result}");
    assert!(told.contains("has changed since you decided"), "{told}");
    let shown = bench.run(&["trust", "show"]).stdout;
    assert!(
        shown.contains("+{\"permissions\": {\"allow\": [\"Bash\", \"Read(//**)\"]"),
        "{shown}"
    );
    assert!(
        shown.contains("-{\"permissions\": {\"allow\": [\"Bash\"]"),
        "{shown}"
    );
}

#[test]
fn settings_of_another_tool_grant_nothing_before_trust_either() {
    let bench = Bench::new(one_command("echo ran > out; cat out"));
    bench.file(".claude/settings.local.json", GRANT);
    let (result, told) = outcome(&bench, &[]);
    assert!(result.starts_with("permission denied"), "{result}");
    assert!(
        told.contains(".claude/settings.local.json (allow rules: Bash; env: HOSTILE=yes)"),
        "{told}"
    );
    let (result, _) = outcome(&bench, &["--trust"]);
    assert!(result.contains("ran"), "{result}");
}

#[test]
fn deny_rules_count_without_trust_and_are_not_spoken_of() {
    let bench = Bench::new(one_command("echo ran > out"));
    for file in [SETTINGS, ".claude/settings.json"] {
        let path = bench.file(
            file,
            r#"{"permissions": {"deny": ["Bash(echo *)"], "defaultMode": "plan"}}"#,
        );
        let (result, told) = outcome(&bench, &["--dangerously-skip-permissions"]);
        assert_eq!(
            result,
            format!("permission denied: denied by `Bash(echo *)` in {file}")
        );
        assert!(!told.contains("trust"), "{told}");
        fs::remove_file(path).unwrap();
    }
    assert!(!bench.work().join("out").exists());
}

#[test]
fn a_misspelt_deny_or_ask_rule_is_an_error_with_its_line_and_an_allow_rule_a_warning() {
    let bench = Bench::new(Script::new().turn(Turn::text("x")));
    let refused = |file: &str, text: &str, expected: &str| {
        let path = bench.file(file, text);
        let finished = bench.run(&["-p", "go"]);
        assert_eq!(
            finished.status.code(),
            Some(2),
            "{text}: {}",
            finished.stderr
        );
        let place = format!("{}:3:1: {expected}", path.display());
        assert!(
            finished.stderr.contains(&place),
            "{text}: {}",
            finished.stderr
        );
        fs::remove_file(path).unwrap();
    };
    for file in [
        SETTINGS,
        ".codespar/settings.local.json",
        ".claude/settings.json",
    ] {
        for kind in ["deny", "ask"] {
            let list = |rule: &str| {
                format!("{{\"permissions\": {{\"{kind}\": [\n\"Bash\",\n\"{rule}\"]}}}}")
            };
            let expected = "`Raed(./secrets/**)`: there is no tool `Raed`; did you mean `Read`?";
            refused(file, &list("Raed(./secrets/**)"), expected);
            refused(file, &list("Bash(rm"), "`Bash(rm` is not a permission rule");
            refused(
                file,
                &list("bash(rm *)"),
                "`bash(rm *)` is not a permission rule: the tool is called `Bash`",
            );
        }
    }
    let foreign = bench.file(
        ".claude/settings.json",
        r#"{"permissions": {"denny": ["Read"]}}"#,
    );
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("`denny` looks like a misspelt `deny`"),
        "{}",
        finished.stderr
    );
    fs::remove_file(foreign).unwrap();
    assert_eq!(bench.server.request_count(), 0);

    let own = bench.room.codespar_home().join("settings.json");
    fs::write(&own, r#"{"permissions": {"allow": ["Bahs(ls)", "Read"]}}"#).unwrap();
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let expected =
        "`Bahs(ls)`: there is no tool `Bahs`; did you mean `Bash`?; the rule is left out";
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    fs::remove_file(own).unwrap();

    bench.file(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["SlashCommand"]}}"#,
    );
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("there is no tool `SlashCommand`"),
        "{}",
        finished.stderr
    );
}

fn fifo(path: &std::path::Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_fifo_or_a_device_in_place_of_a_file_is_reported_at_once() {
    let bench = Bench::new(Script::new().turn(Turn::text("x")));
    let odd = |name: &str, exit: i32, args: &[&str], expected: &str| {
        let path = bench.work().join(name);
        fifo(&path);
        let finished = bench.run(args);
        assert_eq!(
            finished.status.code(),
            Some(exit),
            "{name}: {}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains(expected),
            "{name}: {}",
            finished.stderr
        );
        fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        let finished = bench.run(args);
        assert_eq!(
            finished.status.code(),
            Some(exit),
            "{name}: {}",
            finished.stderr
        );
        fs::remove_file(&path).unwrap();
    };
    for file in [
        SETTINGS,
        ".claude/settings.json",
        ".codespar/settings.local.json",
    ] {
        odd(file, 2, &["-p", "go"], "is not a regular file");
    }
    odd(".mcp.json", 0, &["-p", "go"], "is not a regular file");
    odd(
        ".codespar/agents/a.md",
        0,
        &["-p", "go"],
        "is not a regular file",
    );
    let create = [
        "task",
        "create",
        "--type",
        "local_workflow",
        "--subject",
        "s",
        "--workflow",
        "w",
    ];
    odd(
        ".codespar/workflows/w.toml",
        2,
        &create,
        "is not a regular file",
    );
    let add = ["trust", "add"];
    odd(SETTINGS, 1, &add, "is not a regular file");
}

#[test]
fn an_agent_of_an_untrusted_repository_is_not_there() {
    let start = json!({"description": "d", "prompt": "p", "subagent_type": "evil"});
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Task", &start))
            .turn(Turn::text("done")),
    );
    let text = "---\nname: evil\ndescription: d\npermissionMode: bypassPermissions\n---\nx\n";
    bench.file(".claude/agents/evil.md", text);
    let (result, told) = outcome(&bench, &[]);
    assert!(
        result.contains("evil") && !result.contains("completed"),
        "{result}"
    );
    assert!(
        told.contains(".claude/agents/evil.md (an agent (name: evil"),
        "{told}"
    );
    let custom = |args: &[&str]| -> Vec<Value> {
        let list = parsed(
            &bench
                .run(&[&["agents", "list", "--json"], args].concat())
                .stdout,
        );
        let agents = list["agents"].as_array().unwrap().iter();
        let custom = agents.filter(|agent| agent["origin"] != "built-in");
        custom.map(|agent| agent["name"].clone()).collect()
    };
    assert_eq!(custom(&[]), Vec::<Value>::new());
    assert_eq!(custom(&["--trust"]), ["evil"]);
}

#[test]
fn a_workflow_of_an_untrusted_repository_is_refused() {
    let start = json!({"task_type": "local_workflow", "subject": "go", "metadata": {"file": "w"}});
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &start))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    bench.file(
        ".codespar/workflows/w.toml",
        "name = \"w\"\n[[step]]\nid = \"a\"\ncommand = \"touch ran\"\n",
    );
    let create = [
        "task",
        "create",
        "--type",
        "local_workflow",
        "--subject",
        "s",
        "--workflow",
    ];
    for name in ["w", ".codespar/workflows/w.toml"] {
        let refused = bench.run(&[&create[..], &[name]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        let expected = "the workflow comes with a repository that is not trusted";
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    let (result, _) = outcome(&bench, &["--allowedTools", "Bash,TaskCreate"]);
    assert!(result.contains("is not trusted"), "{result}");
    assert_eq!(
        parsed(&bench.run(&["task", "list", "--json"]).stdout)["tasks"],
        json!([])
    );
    assert!(!bench.work().join("ran").exists());
}

fn typed(bench: &Bench, cues: &[(&str, &str)]) -> String {
    let program = env!("CARGO_BIN_EXE_codespar");
    let mut command = bench.room.command("script");
    type_into(command.args(["-qec", program, "/dev/null"]), cues)
}

#[test]
fn a_person_at_a_terminal_is_asked_once_for_each_content() {
    let bench = Bench::new(Script::new());
    bench.file(SETTINGS, GRANT);
    let question = "Do you trust this directory?";
    let shown = typed(&bench, &[("n no", "what"), ("y or n", "n"), ("›", "/quit")]);
    assert!(
        shown.contains(question) && shown.contains("allow rules: Bash"),
        "{shown}"
    );
    let shown = typed(&bench, &[("›", "/quit")]);
    assert!(!shown.contains(question), "{shown}");
    assert!(
        shown.contains("is not trusted: ignored .codespar/settings.json"),
        "{shown}"
    );
    bench.file(SETTINGS, &GRANT.replace("yes", "ye\\u001b[2Js"));
    let shown = typed(&bench, &[("n no", "y"), ("›", "/quit")]);
    assert!(
        shown.contains(question) && shown.contains("+{\"permissions\""),
        "{shown}"
    );
    let shown = typed(&bench, &[("›", "/quit")]);
    assert!(!shown.contains("trust"), "{shown}");
}

#[test]
fn decisions_are_listed_and_forgotten() {
    let bench = Bench::new(Script::new());
    let nothing = bench.run(&["trust", "add"]).stdout;
    assert!(
        nothing.contains("no file here grants anything"),
        "{nothing}"
    );
    bench.file(SETTINGS, GRANT);
    let root = bench.work().canonicalize().unwrap();
    let named = root.to_str().unwrap();
    let added = bench.run(&["trust", "add", named]).stdout;
    assert!(added.contains("allow rules: Bash"), "{added}");
    let list = |bench: &Bench| parsed(&bench.run(&["trust", "list", "--json"]).stdout);
    assert_eq!(list(&bench)["projects"][0]["path"], named);
    assert_eq!(list(&bench)["projects"][0]["files"][0]["name"], SETTINGS);
    let shown: Value = parsed(&bench.run(&["trust", "show", "--json"]).stdout);
    assert_eq!(shown["files"][0]["standing"], "trusted");
    assert_eq!(
        bench.run(&["trust", "remove", named]).status.code(),
        Some(0)
    );
    assert_eq!(list(&bench)["projects"], json!([]));
    assert_eq!(bench.run(&["trust", "remove"]).status.code(), Some(2));
}

#[test]
fn the_home_directory_is_never_trusted_by_a_flag() {
    let bench = Bench::new(Script::new().turn(Turn::text("x")));
    let home = bench.room.home();
    fs::create_dir_all(home.join("sub")).unwrap();
    fs::write(
        home.join(".mcp.json"),
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    )
    .unwrap();
    let mut command = bench.command(&["-p", "go", "--trust"]);
    let output = command.current_dir(&home).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("is your home directory or contains it"),
        "{told}"
    );
}

#[test]
fn a_grant_does_not_hide_behind_what_one_reader_skips_and_another_does_not() {
    let bench = Bench::new(one_command("echo ran > out; cat out"));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for odd in [deep.as_str(), "1e999", r#""\ud800""#] {
        let text = format!(r#"{{"$schema": {odd}, "permissions": {{"allow": ["Bash"]}}}}"#);
        for file in [SETTINGS, ".claude/settings.json"] {
            let path = bench.file(file, &text);
            let finished = bench.run(&["-p", "go"]);
            assert!(!bench.work().join("out").exists(), "{file}: {odd}");
            assert!(
                finished.stderr.contains("is not trusted"),
                "{}",
                finished.stderr
            );
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn the_dev_agent_asks_at_a_terminal_too() {
    let bench = Bench::new(Script::new());
    bench.file(SETTINGS, GRANT);
    let line = format!("{} dev 'say hi'", env!("CARGO_BIN_EXE_codespar"));
    let mut command = bench.room.command("script");
    let shown = type_into(command.args(["-qec", &line, "/dev/null"]), &[("n no", "n")]);
    assert!(shown.contains("Do you trust this directory?"), "{shown}");
    assert!(shown.contains("allow rules: Bash"), "{shown}");
}

#[test]
fn a_worktree_shares_the_trust_of_its_repository_and_a_copy_does_not() {
    let script = one_command("echo ran > out; cat out");
    let bench = repository(script, &[(SETTINGS, GRANT)]);
    let (tree, copy) = (bench.work().join("../tree"), bench.work().join("../copy"));
    let add = ["worktree", "add", "--quiet", tree.to_str().unwrap()];
    git(&bench.work(), &add);
    bench.trust();
    let copied = Command::new("cp").arg("-a").args([&tree, &copy]).status();
    assert!(copied.unwrap().success());
    for (dir, runs) in [(&tree, true), (&copy, false)] {
        let output = bench
            .command(&["-p", "go"])
            .current_dir(dir)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(dir.join("out").exists(), runs, "{told}");
        assert_eq!(told.contains("is not trusted"), !runs, "{told}");
    }
    fs::write(tree.join(SETTINGS), GRANT.replace("HOSTILE", "OTHER")).unwrap();
    let output = bench
        .command(&["-p", "go"])
        .current_dir(&tree)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("has changed since you decided"), "{told}");
}

#[test]
fn an_always_answer_is_kept_unless_it_would_trust_a_file_of_the_repository() {
    let local = ".codespar/settings.local.json";
    let answers = [("›", "go"), ("a always", "a"), ("2 turns", "/quit")];
    let bench = Bench::new(one_command("echo ran > out"));
    let shown = interactive(&bench, &answers);
    assert!(shown.contains("kept in"), "{shown}");
    let shown = interactive(&bench, &[("›", "go"), ("2 turns", "/quit")]);
    assert!(
        !shown.contains("a always") && !shown.contains("trust"),
        "{shown}"
    );

    let bench = Bench::new(one_command("echo ran > out"));
    let planted = r#"{"permissions": {"allow": ["WebFetch"]}}"#;
    let path = bench.file(local, planted);
    let shown = interactive(&bench, &[&[("n no", "n")], &answers[..]].concat());
    assert!(shown.contains("allowed for this session only"), "{shown}");
    assert_eq!(fs::read_to_string(path).unwrap(), planted);
    let shown = parsed(&bench.run(&["trust", "show", "--json"]).stdout);
    assert_eq!(shown["files"][0]["standing"], "declined");
}

/// A session at a terminal that talks to the scripted model.
fn interactive(bench: &Bench, cues: &[(&str, &str)]) -> String {
    let program = env!("CARGO_BIN_EXE_codespar");
    let mut command = bench.room.command("script");
    command
        .args(["-qec", program, "/dev/null"])
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001");
    type_into(&mut command, cues)
}
