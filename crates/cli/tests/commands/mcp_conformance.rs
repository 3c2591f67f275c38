//! The official conformance suite for clients, against the binary that people run.
//!
//! The suite starts a server for each scenario and a command with its address. The command here only
//! hands the address over and waits; the test does with `codespar` what a user would: it configures
//! the server, logs in with a browser, and lets the model call the tool.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use codespar_testkit::{
    Conversation, Matcher, Script, Turn,
    process::{Running, spawn},
};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, ended, parsed, question, wait_for};

/// The document that the suite expects a client to have.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// As many times as a user would log in again.
const LOGINS: usize = 3;

pub(crate) fn target() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_codespar"));
    binary.parent().and_then(Path::parent).unwrap().to_owned()
}

/// The suite wants a newer node than many machines have.
pub(crate) fn node() -> PathBuf {
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    let own = target().join(format!("node-22/node_modules/node-linux-{arch}/bin/node"));
    match own.exists() {
        true => own,
        false => "node".into(),
    }
}

pub(crate) fn suite() -> Command {
    let suite = "mcp-conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let suite = target().join(suite);
    assert!(suite.exists(), "cargo xtask test installs it, with npm");
    let mut command = Command::new(node());
    command.arg(suite);
    command
}

/// Of its group for the protocol of 2025-03-26, not one of the core, elicitation or auth groups. Its
/// server answers at the root of its host with metadata of the issuer `/oauth`, which a client that
/// compares issuers (RFC 8414) has to refuse.
const OTHER_ISSUER: &str = "auth/2025-03-26-oauth-metadata-backcompat";

/// `  - auth/basic-cimd [2025-11-25]`, with those of extensions left out.
fn scenarios() -> Vec<String> {
    let output = suite().args(["list", "--client"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    let names = lines.filter(|line| !line.ends_with("[extension]"));
    let names: Vec<String> = names
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    assert!(names.len() >= 20, "{text}");
    names
        .into_iter()
        .filter(|name| name != OTHER_ISSUER)
        .collect()
}

/// One scenario, from the side of the user.
struct Played {
    bench: Bench,
    context: Value,
}

impl Played {
    fn configure(&self, url: &str) {
        let mut oauth = json!({ "clientMetadataUrl": DOCUMENT });
        if let Some(id) = self.context.get("client_id") {
            oauth["clientId"] = id.clone();
            oauth["clientSecret"] = self.context["client_secret"].clone();
        }
        let settings = json!({
            "mcpServers": { "suite": { "url": url, "oauth": oauth } },
            "permissions": { "allow": ["mcp__suite"] },
        });
        let file = self.bench.room.codespar_home().join("settings.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, settings.to_string()).unwrap();
    }

    /// With a browser that does what it is told and asks nobody.
    fn log_in(&self) -> bool {
        let browser = self.bench.room.home().join("browser");
        let script = format!(
            "#!/bin/sh\nexec {} -e 'fetch(process.argv[1])' \"$1\"\n",
            node().display()
        );
        fs::write(&browser, script).unwrap();
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = self.bench.command(&["mcp", "login", "suite"]);
        command.env("BROWSER", &browser);
        let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        finished.status.success()
    }

    /// Connects, calls the tool, and logs in as often as the server asks for it.
    fn use_it(&self) -> bool {
        for logins in 0..=LOGINS {
            let (lines, _) = self.bench.stream(&["-p", "go"]);
            let said = lines.iter().map(Value::to_string).collect::<String>();
            if !said.contains("codespar mcp login suite") {
                return said.contains("\"status\":\"connected\"");
            }
            if logins == LOGINS || !self.log_in() {
                return false;
            }
        }
        false
    }

    /// A question of the server is answered from another process, with one of its fields.
    fn answer(&self) -> bool {
        let worker = self.bench.start(&["worker"]);
        wait_for("the worker", || {
            worker.stderr_so_far().contains("taking tasks")
        });
        let create = ["task", "create", "--json", "--type", "remote_agent"];
        let create = [&create[..], &["--subject", "s", "--prompt", "go"]].concat();
        let made = parsed(&self.bench.run(&create).stdout);
        let asked = question(&self.bench);
        let id = asked["id"].as_str().unwrap();
        let answered = self.bench.run(&["task", "answer", id, "name=Jane"]);
        let record = ended(&self.bench, made["task_id"].as_str().unwrap());
        worker.terminate().unwrap();
        worker.wait(PATIENCE).unwrap();
        answered.status.success() && record["status"] == "completed"
    }
}

fn script(scenario: &str) -> Script {
    let (tool, input) = match scenario {
        "initialize" => return Script::of([Turn::text("ok")]),
        "tools_call" => ("add_numbers", json!({"a": 2, "b": 3})),
        "sse-retry" => ("test_reconnection", json!({})),
        "elicitation-sep1034-client-defaults" => ("test_client_elicitation_defaults", json!({})),
        _ => ("test-tool", json!({})),
    };
    let tool = Turn::tool(format!("mcp__suite__{tool}"), &input);
    Script::new().conversation(
        Conversation::new("go", Matcher::first_user_contains("go"))
            .turn(tool)
            .turn(Turn::text("{{last_tool_result}}")),
    )
}

/// The error is what the suite found.
fn play(scenario: &str) -> Result<(), String> {
    let mut played = Played {
        bench: Bench::new(script(scenario)),
        context: Value::Null,
    };
    let home = played.bench.room.home();
    let (address, done) = (home.join("address"), home.join("done"));
    let waiter = home.join("waiter");
    let text = format!(
        "#!/bin/sh\nprintf '%s' \"$MCP_CONFORMANCE_CONTEXT\" >{context}\nprintf '%s' \"$1\" >{new}\n\
         mv {new} {address}\nwhile [ ! -e {done} ]; do sleep 0.1; done\nexit $(cat {done})\n",
        context = home.join("context").display(),
        new = home.join("new").display(),
        address = address.display(),
        done = done.display(),
    );
    fs::write(&waiter, text).unwrap();
    fs::set_permissions(&waiter, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = suite();
    command
        .current_dir(&home)
        .args(["client", "--scenario", scenario, "--timeout", "170000"])
        .arg("--command")
        .arg(&waiter);
    let running: Running = spawn(&mut command).unwrap();
    wait_for("the server of the suite", || address.exists());
    let context = fs::read_to_string(home.join("context")).unwrap();
    played.context = serde_json::from_str(&context).unwrap_or_default();
    played.configure(&fs::read_to_string(&address).unwrap());
    let worked = match scenario.starts_with("elicitation") {
        true => played.answer(),
        false => played.use_it(),
    };
    let code = if worked { "0" } else { "1" };
    fs::write(home.join("code"), code).unwrap();
    fs::rename(home.join("code"), &done).unwrap();
    let finished = running.wait(PATIENCE).unwrap();
    match finished.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{scenario}:\n{}{}",
            finished.stdout, finished.stderr
        )),
    }
}

/// `cargo xtask test` installs the suite and runs this.
#[test]
#[ignore = "needs packages of npm; cargo xtask test installs and runs it where npm is"]
fn the_conformance_suite_for_clients_finds_no_fault() {
    let only = std::env::var("CODESPAR_SCENARIO").ok();
    let mut names = scenarios();
    names.retain(|name| {
        only.as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
    });
    let halves = [
        names.iter().step_by(2).collect::<Vec<_>>(),
        names.iter().skip(1).step_by(2).collect(),
    ];
    let failed: Vec<String> = thread::scope(|scope| {
        let running = halves.map(|names| {
            scope.spawn(move || {
                let played = names.into_iter().map(|name| play(name));
                played.filter_map(Result::err).collect::<Vec<_>>()
            })
        });
        running
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
