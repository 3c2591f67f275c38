//! Installing dependencies in the sandbox, through the proxy, from a registry on this machine.

use codespar_testkit::{Script, ScriptedModel, Turn};
use serde_json::json;

use crate::{
    common::{Bench, PATIENCE, ended, parsed, tool_results},
    registry::Registry,
};

/// `npm ci`, with its cache where the sandbox lets it write.
const INSTALL: &str = "npm ci --no-audit --no-fund --fetch-retries=0 --cache $TMPDIR/npm 2>&1";

/// A project whose packages come from `from`, and a person who allows the registry.
fn project(registry: &Registry, from: &str, command: &str) -> Bench {
    project_in("auto", registry, from, command)
}

/// The same, with the sandbox chosen.
fn project_in(mode: &str, registry: &Registry, from: &str, command: &str) -> Bench {
    let bench = Bench::new(Script::new());
    for (name, text) in crate::registry::project(from) {
        bench.file(name, &text);
    }
    let settings = json!({"sandbox": {"mode": mode, "allowedDomains": [registry.name()]}});
    std::fs::create_dir_all(bench.room.codespar_home()).unwrap();
    std::fs::write(
        bench.room.codespar_home().join("settings.json"),
        settings.to_string(),
    )
    .unwrap();
    let script = Script::new()
        .turn(Turn::tool("Bash", &json!({"command": command})))
        .turn(Turn::text("done"));
    Bench {
        server: ScriptedModel::start_blocking(script).unwrap(),
        ..bench
    }
}

fn result(bench: &Bench) -> String {
    let (lines, code) = bench.stream(&["-p", "install", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0), "{lines:?}");
    tool_results(&lines).remove(0)
}

#[test]
fn npm_ci_works_through_the_proxy_in_either_sandbox() {
    for mode in ["bubblewrap", "landlock"] {
        let registry = Registry::start();
        let command = format!("{INSTALL} && node -e 'console.log(\"is\", require(\"tiny\"))'");
        let bench = project_in(mode, &registry, &registry.url(), &command);
        let said = result(&bench);
        assert!(
            said.contains("added 1 package") && said.contains("is 42"),
            "{mode}: {said}"
        );
        assert!(!said.contains("blocked"), "{mode}: {said}");
        assert_eq!(registry.requests(), ["GET /tiny/-/tiny-1.0.0.tgz"]);
        let left = std::fs::read_dir(bench.room.codespar_home().join("egress")).unwrap();
        assert_eq!(left.count(), 0, "{mode}");
    }
}

#[test]
fn a_package_from_another_host_is_refused_and_the_host_is_named() {
    let registry = Registry::start();
    let bench = project(&registry, "http://evil.example", INSTALL);
    let said = result(&bench);
    assert!(said.contains("blocked: evil.example"), "{said}");
    assert!(!said.contains("added 1 package"), "{said}");
    assert_eq!(registry.requests(), Vec::<String>::new());
}

#[test]
fn a_shell_task_has_the_refused_hosts_in_its_output() {
    let registry = Registry::start();
    let bench = project(&registry, "http://evil.example", "true");
    let args = [
        "task",
        "create",
        "--json",
        "--type",
        "local_bash",
        "--subject",
        "install",
    ];
    let created = bench.run(&[&args[..], &["--command", INSTALL]].concat());
    assert_eq!(created.status.code(), Some(0), "{}", created.stderr);
    let id = parsed(&created.stdout)["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let record = ended(&bench, &id);
    assert_eq!(record["status"], "failed", "{record}");
    let output = bench.run(&["task", "output", &id]).stdout;
    assert!(output.ends_with("blocked: evil.example\n"), "{output}");
}

#[test]
fn a_killed_run_leaves_no_socket_and_no_process() {
    let registry = Registry::start();
    let bench = project(&registry, "http://evil.example", "touch begun; sleep 600");
    let running = bench.start(&["-p", "wait", "--allowedTools", "Bash"]);
    let began = std::time::Instant::now();
    while !bench.work().join("begun").exists() {
        assert!(began.elapsed() < PATIENCE, "the command never began");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.kill_9().unwrap();
    let left = std::fs::read_dir(bench.room.codespar_home().join("egress")).unwrap();
    assert_eq!(left.count(), 0);
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
}

#[test]
fn a_project_cannot_open_hosts() {
    for settings in [
        r#"{"sandbox": {"allowedDomains": ["evil.example"]}}"#,
        r#"{"sandbox": {"allowPackageHosts": true}}"#,
    ] {
        let script = Script::new()
            .turn(Turn::tool(
                "Bash",
                &json!({"command": "echo proxy=$HTTPS_PROXY"}),
            ))
            .turn(Turn::text("done"));
        let bench = Bench::new(script);
        bench.file(".codespar/settings.json", settings);
        let finished = bench.run(&["-p", "go", "--allowedTools", "Bash"]);
        assert!(
            !finished.stdout.contains("proxy=http"),
            "{}",
            finished.stdout
        );
        assert!(
            finished.stderr.contains("sandbox.allow"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn an_entry_that_is_no_domain_is_an_error_that_names_the_place() {
    let bench = Bench::new(Script::new());
    std::fs::create_dir_all(bench.room.codespar_home()).unwrap();
    std::fs::write(
        bench.room.codespar_home().join("settings.json"),
        "{\"sandbox\": {\n\"allowedDomains\": [\"https://a.example/x\"]}}",
    )
    .unwrap();
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.status.code(), Some(2));
    for expected in ["settings.json:2:", "`https://a.example/x` is not a domain"] {
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

#[test]
fn doctor_lists_the_hosts_and_the_package_managers_that_do_not_tell_theirs() {
    let registry = Registry::start();
    let bench = project(&registry, "http://evil.example", "true");
    std::fs::write(
        bench.room.codespar_home().join("settings.json"),
        json!({"sandbox": {"allowedDomains": ["*.corp.example"], "allowPackageHosts": true}})
            .to_string(),
    )
    .unwrap();
    std::fs::write(
        bench.room.home().join(".npmrc"),
        "registry=https://npm.corp.test/\n",
    )
    .unwrap();
    let shown = bench.run(&["doctor"]).stdout;
    assert!(
        shown.contains("commands reach *.corp.example, npm.corp.test"),
        "{shown}"
    );
}
