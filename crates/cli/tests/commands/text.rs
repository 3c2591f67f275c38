//! Text that goes out, through the real binary: no control sequences to a terminal, no secrets to
//! files.

use codespar_testkit::{
    AfterLast, Script, Turn,
    process::{Finished, spawn},
};
use serde_json::json;

use crate::common::{Bench, PATIENCE, ended, parsed};

/// A title, a cleared screen, the clipboard, a C1 sequence, a return, an override of the order.
const HOSTILE: &str =
    "hello \u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}]52;c;cHduZWQ=\u{7}\u{9b}31m\r\u{202e}world\u{7f}";

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}')
}

/// Nothing that a terminal obeys comes out, whether or not styles do.
fn harmless(bench: &Bench, args: &[&str]) -> Finished {
    let mut styled = bench.command(args);
    styled.env("CLICOLOR_FORCE", "1");
    let styled = spawn(&mut styled).unwrap().wait(PATIENCE).unwrap();
    let mut own = format!("{}{}", styled.stdout, styled.stderr);
    for code in ["0", "1", "2", "31", "32", "33"] {
        own = own.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert!(!own.contains(is_harmful), "{args:?}: {own:?}");
    let finished = bench.run(args);
    for text in [&finished.stdout, &finished.stderr] {
        assert!(!text.contains(is_harmful), "{args:?}: {text:?}");
    }
    finished
}

fn hostile_model() -> Script {
    Script::new()
        .turn(Turn::text(HOSTILE))
        .after_last(AfterLast::Repeat)
}

#[test]
fn an_answer_of_the_model_is_shown_and_not_obeyed() {
    let bench = Bench::new(hostile_model());
    let shown = harmless(&bench, &["-p", HOSTILE]);
    assert!(shown.stdout.contains("hello \\u{1b}]0;PWNED"), "{shown:?}");
    harmless(&bench, &["-p", "go", "--output-format", "json"]);
    let streamed = harmless(&bench, &["-p", "go", "--output-format", "stream-json"]);
    let last = parsed(streamed.stdout.lines().last().unwrap());
    assert_eq!(last["result"], HOSTILE, "JSON has the text as it is");
    harmless(&bench, &["session", "list"]);
    let list = parsed(&harmless(&bench, &["session", "list", "--json"]).stdout);
    let id = list["sessions"][0]["id"].as_str().unwrap();
    for args in [
        &["session", "show", id][..],
        &["session", "export", id],
        &["session", "export", id, "--format", "markdown"],
    ] {
        harmless(&bench, args);
    }
    harmless(&bench, &["ask", "what is this"]);
}

#[test]
fn the_output_and_the_name_of_a_task_are_shown_and_not_obeyed() {
    let bench = Bench::new(Script::new());
    let created = bench.run(&[
        "task",
        "create",
        "--json",
        "--type",
        "local_bash",
        "--subject",
        HOSTILE,
        "--command",
        "printf '\\033]0;PWNED\\007\\033[2J\\302\\233x\\177\\n'",
    ]);
    let record = parsed(&created.stdout);
    let id = record["task_id"].as_str().unwrap();
    ended(&bench, id);
    for args in [
        &["task", "list"][..],
        &["task", "list", "--json"],
        &["task", "get", id],
        &["task", "output", id],
        &["task", "watch", id],
    ] {
        harmless(&bench, args);
    }
}

#[test]
fn names_and_settings_of_a_repository_are_shown_and_not_obeyed() {
    let bench = Bench::new(hostile_model());
    bench.file(
        &format!("{}evil.py", &HOSTILE[..20]),
        "def evil():\n    pass\n",
    );
    bench.file(
        ".codespar/agents/helper.md",
        &format!("---\nname: helper\ndescription: {HOSTILE:?}\n---\nDo.\n"),
    );
    bench.file(".codespar/agents/broken.md", HOSTILE);
    let servers = json!({"mcpServers": {HOSTILE: {"command": HOSTILE}}});
    bench.file(".mcp.json", &servers.to_string());
    let rules = json!({"permissions": {"deny": [format!("B{HOSTILE}(")]}});
    for args in [
        &["locate", "evil file name"][..],
        &["agents", "list"],
        &["agents", "check"],
        &["mcp", "list"],
        &["doctor"],
        &["-p", "go"],
        &["apply", HOSTILE],
        &["dev", "--repo", HOSTILE, "x"],
        &[&format!("--{HOSTILE}")],
    ] {
        harmless(&bench, args);
    }
    bench.file(".codespar/settings.json", &rules.to_string());
    harmless(&bench, &["doctor"]);
    harmless(&bench, &["-p", "go"]);
}

#[test]
fn todos_and_tool_calls_in_the_terminal_are_shown_and_not_obeyed() {
    let todos = json!({"todos": [
        {"content": HOSTILE, "status": "in_progress", "activeForm": HOSTILE},
        {"content": HOSTILE, "status": "pending", "activeForm": "x"}
    ]});
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("TodoWrite", &todos).and_tool("Read", &json!({"file_path": HOSTILE})))
            .turn(Turn::text(HOSTILE)),
    );
    let program = format!(
        "stty -echo; ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=sk-test-key-of-the-bench-0001 \
         {} --cwd {}",
        bench.server.url(),
        env!("CARGO_BIN_EXE_codespar"),
        bench.work().display()
    );
    let mut terminal = bench.room.command("script");
    terminal.args(["-qec", &program, "/dev/null"]);
    let cues = [("›", "go"), ("2 turns", "/exit")];
    let shown = crate::common::type_into(&mut terminal, &cues);
    for sequence in [
        "\u{1b}]",
        "\u{7}",
        "\u{9b}",
        "\u{1b}[2J",
        "\u{202e}",
        "\u{7f}",
    ] {
        assert!(!shown.contains(sequence), "{sequence:?} in {shown:?}");
    }
    assert!(shown.contains("▸ hello \\u{1b}]0;PWNED"), "{shown:?}");
}

#[test]
fn a_secret_is_neither_in_the_output_of_a_task_nor_in_a_spilled_one() {
    let webhook = "https://hooks.example.com/a-private-place";
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool(
                "Bash",
                &json!({"command": "seq 1 20000; cat key.txt; seq 1 20000"}),
            ))
            .turn(Turn::text("done")),
    );
    bench.file("key.txt", &format!("token {TOKEN} and {webhook} end\n"));
    let with_secret = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("SLACK_WEBHOOK_URL", webhook);
        let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        finished
    };
    let task = with_secret(&[
        "task",
        "create",
        "--json",
        "--type",
        "local_bash",
        "--subject",
        "x",
        "--command",
        "head -c 12 key.txt; sleep 0.2; tail -c +13 key.txt",
    ]);
    let record = parsed(&task.stdout);
    let record = ended(&bench, record["task_id"].as_str().unwrap());
    let kept = std::fs::read_to_string(record["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(
        kept,
        "token [redacted] and [redacted:SLACK_WEBHOOK_URL] end\n"
    );
    with_secret(&["-p", "go", "--allowedTools", "Bash"]);
    let found = std::process::Command::new("grep")
        .args(["-rlF", "-e", TOKEN, "-e", webhook])
        .arg(bench.room.home())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}
