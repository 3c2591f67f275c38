//! What an agent must not be able to do.

use codespar_testkit::{Script, Turn};
use serde_json::json;

use crate::common::{
    Bench, one_command,
    sandbox::{without_a_sandbox, without_control_groups},
    tool_results,
};

/// Runs one command with `Bash` allowed and gives what the model saw.
fn outcome(bench: &Bench) -> String {
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0), "{lines:?}");
    tool_results(&lines).remove(0)
}

#[test]
fn env_shows_no_key_or_token() {
    let bench = Bench::new(one_command(
        "env; cat /proc/$PPID/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n'",
    ));
    let mut command = bench.command(&[
        "-p",
        "go",
        "--allowedTools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    let secrets = [
        ("GITHUB_TOKEN", "ghp_0123456789abcdefghijklmnopqrstuvwxyz"),
        (
            "AWS_SECRET_ACCESS_KEY",
            "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
        ),
        ("MY_DATABASE", "postgres://me:hunter2hunter2@db.internal/x"),
    ];
    for (name, value) in secrets {
        command.env(name, value);
    }
    command.env("HARMLESS", "visible");
    let finished = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(crate::common::PATIENCE)
        .unwrap();
    let seen = tool_results(&crate::common::json_lines(&finished.stdout)).remove(0);
    assert!(seen.contains("HARMLESS=visible"), "{seen}");
    // Where the key comes from is told at the start, by the name of the variable.
    let source = "\"apiKeySource\":\"ANTHROPIC_API_KEY\"";
    let printed = finished.stdout.replacen(source, "", 1);
    for word in [
        "sk-test-key",
        "ghp_0123",
        "wJalrX",
        "hunter2",
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
    ] {
        assert!(
            !printed.contains(word),
            "{word} leaked: {}",
            finished.stdout
        );
    }
}

#[test]
fn a_command_cannot_write_outside_the_workspace() {
    let bench = Bench::new(Script::new());
    let outside = bench.room.home().join("outside.txt");
    let script = format!(
        "echo x | tee {}; echo y | tee inside.txt; echo z | tee $TMPDIR/t",
        outside.display()
    );
    let bench = Bench {
        server: codespar_testkit::ScriptedModel::start_blocking(one_command(&script)).unwrap(),
        ..bench
    };
    let seen = outcome(&bench);
    assert!(!outside.exists(), "{seen}");
    assert!(bench.work().join("inside.txt").exists(), "{seen}");
    assert!(seen.contains('z'), "{seen}");
}

#[test]
fn a_command_has_no_network_and_cannot_touch_hooks_or_settings() {
    let bench = Bench::new(Script::new());
    let address = bench.server.address();
    bench.file(".git/hooks/pre-commit", "original");
    bench.file(".codespar/settings.json", "{}");
    let script = format!(
        "(exec 3<>/dev/tcp/{}/{}) 2>/dev/null && echo CONNECTED; \
         echo evil | tee .git/hooks/pre-commit .codespar/settings.json; echo end",
        address.ip(),
        address.port()
    );
    let bench = Bench {
        server: codespar_testkit::ScriptedModel::start_blocking(one_command(&script)).unwrap(),
        ..bench
    };
    let seen = outcome(&bench);
    assert!(
        seen.contains("end") && !seen.contains("CONNECTED"),
        "{seen}"
    );
    let kept = |name: &str| std::fs::read_to_string(bench.work().join(name)).unwrap();
    assert_eq!(
        (
            kept(".git/hooks/pre-commit").as_str(),
            kept(".codespar/settings.json").as_str()
        ),
        ("original", "{}")
    );
}

#[test]
fn doctor_says_which_sandbox_is_active() {
    let bench = Bench::new(Script::new());
    let finished = bench.run(&["doctor", "--json"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stdout);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    let sandbox = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["name"] == "sandbox")
        .unwrap();
    let says = sandbox["says"].as_str().unwrap().to_lowercase();
    assert!(
        ["namespaces", "bubblewrap", "landlock"]
            .iter()
            .any(|kind| says.contains(kind)),
        "{says}"
    );
}

#[test]
fn a_rule_for_one_command_does_not_carry_another() {
    for (command, allowed) in [
        ("git log | sh", "Bash(git log *)"),
        ("git log; rm -rf x", "Bash(git log *)"),
        ("git log $(rm -rf x)", "Bash(git log *)"),
        ("git logx", "Bash(git log *)"),
        ("git log --output=x/new", "Bash(git log *)"),
        ("git log --outp=x/new", "Bash(git log *)"),
        ("git grep -Otouch x", "Bash(git grep *)"),
        ("git -c core.pager='touch x/new' log", "Bash(git *)"),
        ("find . -fprintf x/new y", "Bash(find *)"),
        ("find x -delete", "Bash(find *)"),
        ("sort -o x/new x/keep", "Bash(sort *)"),
        ("sort -uox/new x/keep", "Bash(sort *)"),
        ("sed -n 'w x/new' x/keep", "Bash(sed *)"),
        ("rg --pre touch y", "Bash(rg *)"),
        ("cd x && git status", "Bash(git status *)"),
        ("test -v 'a[$(touch x/new)]'", "Bash(test *)"),
        ("xargs rm", "Bash(xargs *)"),
    ] {
        let bench = Bench::new(one_command(command));
        bench.file("x/keep", "");
        let (lines, _) = bench.stream(&["-p", "go", "--allowedTools", allowed]);
        let denials = lines.last().unwrap()["permission_denials"]
            .as_array()
            .unwrap()
            .clone();
        assert_eq!(denials.len(), 1, "{command}");
        assert!(bench.work().join("x/keep").exists(), "{command}");
        assert!(!bench.work().join("x/new").exists(), "{command}");
        assert!(
            tool_results(&lines)[0].starts_with("permission denied"),
            "{command}"
        );
    }
    let bench = Bench::new(one_command("git log 2>&1 | head"));
    let (lines, _) = bench.stream(&["-p", "go", "--allowedTools", "Bash(git log *),Bash(head)"]);
    assert_eq!(lines.last().unwrap()["permission_denials"], json!([]));
}

#[test]
fn commands_that_only_read_are_free_headless_and_in_plan_mode() {
    for mode in ["default", "plan", "dontAsk"] {
        let bench = Bench::new(one_command(
            "cat a.txt | head -1 && ls && grep -rn one . | wc -l && timeout 5 find . -name a.txt",
        ));
        bench.file("a.txt", "one\ntwo\n");
        let (lines, _) = bench.stream(&["-p", "go", "--permission-mode", mode]);
        assert_eq!(
            lines.last().unwrap()["permission_denials"],
            json!([]),
            "{mode}"
        );
        assert!(tool_results(&lines)[0].starts_with("one\n"), "{lines:?}");
    }
    let bench = Bench::new(one_command("cat a.txt > b.txt"));
    bench.file("a.txt", "one\n");
    bench.stream(&["-p", "go", "--permission-mode", "plan"]);
    assert!(!bench.work().join("b.txt").exists());
}

#[test]
fn what_runs_or_permits_later_is_not_written_by_an_agent_that_may_edit() {
    let paths = [
        ".git/hooks/pre-commit",
        ".codespar/settings.json",
        ".codespar/agents/x.md",
        ".Claude/Settings.json",
        ".claude/commands/x.md",
        ".vscode/tasks.json",
        "web/.idea/workspace.xml",
        ".husky/pre-commit",
        ".devcontainer/devcontainer.json",
        ".envrc",
        ".mcp.json",
        ".github/workflows/ci.yml",
        ".bashrc",
    ];
    let mut turn = Turn::new();
    for path in paths {
        turn = turn.and_tool("Write", &json!({"file_path": path, "content": "x"}));
    }
    let bench = Bench::new(Script::new().turn(turn).turn(Turn::text("done")));
    let args = [
        "-p",
        "go",
        "--permission-mode",
        "acceptEdits",
        "--allowedTools",
        "Edit",
    ];
    let (lines, _) = bench.stream(&args);
    let results = tool_results(&lines);
    assert_eq!(results.len(), paths.len());
    for (path, result) in paths.iter().zip(&results) {
        assert!(result.starts_with("permission denied"), "{path}: {result}");
        assert!(!bench.work().join(path).exists(), "{path}");
    }
}

#[test]
fn hidden_files_of_the_home_are_not_written_when_it_is_the_workspace() {
    let turn = Turn::new()
        .and_tool("Write", &json!({"file_path": ".npmrc", "content": "x"}))
        .and_tool("Write", &json!({"file_path": ".bashrc", "content": "x"}))
        .and_tool("Write", &json!({"file_path": "notes.txt", "content": "x"}));
    let bench = Bench::new(Script::new().turn(turn).turn(Turn::text("done")));
    let home = bench.room.home();
    let mut command = bench.command(&["-p", "go", "--permission-mode", "acceptEdits"]);
    command.current_dir(&home);
    let finished = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(crate::common::PATIENCE)
        .unwrap();
    assert!(home.join("notes.txt").exists(), "{}", finished.stderr);
    for name in [".npmrc", ".bashrc"] {
        assert!(!home.join(name).exists(), "{name}");
    }
}

#[test]
fn a_denied_file_is_neither_read_nor_found() {
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Read", &json!({"file_path": "secrets/key.txt"}))
                .and_tool(
                    "Grep",
                    &json!({"pattern": "TOPSECRET", "output_mode": "content"}),
                )
                .and_tool("Glob", &json!({"pattern": "**/*.txt"})),
        )
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    bench.file("secrets/key.txt", "TOPSECRET\n");
    bench.file("open.txt", "nothing\n");
    bench.file(
        ".codespar/settings.json",
        r#"{"permissions": {"deny": ["Read(./secrets/**)"]}}"#,
    );
    let (lines, _) = bench.stream(&["-p", "go"]);
    let results = tool_results(&lines);
    assert_eq!(
        results[0],
        "permission denied: denied by `Read(./secrets/**)` in .codespar/settings.json"
    );
    assert!(!results[1].contains("TOPSECRET"), "{results:?}");
    assert!(
        results[2].contains("open.txt") && !results[2].contains("key.txt"),
        "{results:?}"
    );
}

#[test]
fn a_symlink_does_not_lead_out_of_the_workspace() {
    let bench = Bench::new(Script::new());
    let target = bench.room.home().join("target.txt");
    std::fs::write(&target, "mine\n").unwrap();
    std::os::unix::fs::symlink(&target, bench.work().join("link.txt")).unwrap();
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Read", &json!({"file_path": "link.txt"}))
                .and_tool(
                    "Write",
                    &json!({"file_path": "link.txt", "content": "theirs"}),
                ),
        )
        .turn(Turn::text("done"));
    let bench = Bench {
        server: codespar_testkit::ScriptedModel::start_blocking(script).unwrap(),
        ..bench
    };
    let (lines, _) = bench.stream(&["-p", "go", "--permission-mode", "acceptEdits"]);
    let results = tool_results(&lines);
    assert!(
        results
            .iter()
            .all(|text| text.starts_with("permission denied")),
        "{results:?}"
    );
    assert_eq!(std::fs::read_to_string(target).unwrap(), "mine\n");
}

#[test]
fn a_project_cannot_take_the_walls_down() {
    let bench = Bench::new(Script::new().turn(Turn::text("x")));
    for settings in [
        r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
        r#"{"sandbox": {"mode": "off"}}"#,
        r#"{"sandbox": {"network": true}}"#,
        r#"{"sandbox": {"allowWrite": ["/"]}}"#,
        r#"{"sandbox": {"passEnv": ["ANTHROPIC_API_KEY"]}}"#,
        r#"{"sandbox": {"mode": "bubblewrap"}}"#,
        r#"{"sandbox": {"mode": "auto"}}"#,
        r#"{"env": {"LD_LIBRARY_PATH": "/w"}}"#,
        r#"{"env": {"LD_DEBUG_OUTPUT": "/w"}}"#,
        r#"{"env": {"BASH_ENV": "/w"}}"#,
    ] {
        bench.file(".codespar/settings.json", settings);
        let finished = bench.run(&["-p", "go", "--trust"]);
        assert_eq!(finished.status.code(), Some(2), "{settings}");
        assert!(
            finished.stderr.contains("cannot be set by a project"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn a_command_cannot_plant_configuration_that_git_would_run_later() {
    let plant = "cp -r .git evil; printf '[core]\\n\\tfsmonitor = touch pwned\\n' >> evil/config; \
                 printf ../evil | tee .git/commondir; echo end";
    let bench = Bench::new(one_command(plant));
    std::fs::remove_dir(bench.work().join(".git")).unwrap();
    let git = |args: &[&str]| {
        let mut command = bench.room.command("git");
        command
            .current_dir(bench.work())
            .args(args)
            .output()
            .unwrap()
    };
    git(&["init", "--quiet"]);
    let seen = outcome(&bench);
    assert!(seen.contains("end"), "{seen}");
    git(&["status"]);
    assert!(!bench.work().join("pwned").exists(), "{seen}");

    let plant = "git init --quiet; git config core.fsmonitor 'touch pwned'; echo end";
    let bench = Bench::new(one_command(plant));
    std::fs::remove_dir(bench.work().join(".git")).unwrap();
    let seen = outcome(&bench);
    assert!(seen.contains("end"), "{seen}");
    let mut command = bench.room.command("git");
    command
        .current_dir(bench.work())
        .arg("status")
        .output()
        .unwrap();
    assert!(!bench.work().join("pwned").exists(), "{seen}");
}

#[test]
fn without_a_sandbox_a_headless_run_runs_no_command_in_any_mode() {
    for mode in ["default", "bypassPermissions"] {
        let bench = Bench::new(one_command("touch proof"));
        let args = ["-p", "go", "--allowedTools", "Bash", "--permission-mode"];
        let args = [&args[..], &[mode, "--output-format", "stream-json"]].concat();
        let finished = without_a_sandbox(&bench, &args);
        let seen = tool_results(&crate::common::json_lines(&finished.stdout)).remove(0);
        assert!(seen.contains("no sandbox works here"), "{mode}: {seen}");
        assert!(!bench.work().join("proof").exists(), "{mode}: {seen}");
    }
}

#[test]
fn processes_are_counted_where_no_control_group_can_be_made() {
    let bomb = "for i in $(seq 500); do sleep 20 & done; wait; touch survived";
    let bench = Bench::new(one_command(bomb));
    let home = bench.room.codespar_home();
    std::fs::create_dir_all(&home).unwrap();
    let settings = r#"{"sandbox": {"mode": "landlock", "limits": {"processes": 60}}}"#;
    std::fs::write(home.join("settings.json"), settings).unwrap();
    let args = ["-p", "go", "--allowedTools", "Bash", "--output-format"];
    let finished = without_control_groups(&bench, &[&args[..], &["stream-json"]].concat());
    let seen = tool_results(&crate::common::json_lines(&finished.stdout)).remove(0);
    // The kernel counts the processes of everybody but root.
    let by_guard = seen.contains("it started more than the 60 processes");
    let by_kernel = seen.contains("Resource temporarily unavailable");
    assert!(by_guard || by_kernel, "{seen}");
    assert!(!bench.work().join("survived").exists(), "{seen}");
}

#[test]
fn without_a_sandbox_doctor_names_the_package() {
    let bench = Bench::new(Script::new());
    let finished = without_a_sandbox(&bench, &["doctor"]);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
    let wanted = "install the package `bubblewrap`";
    assert!(finished.stdout.contains(wanted), "{}", finished.stdout);
}
