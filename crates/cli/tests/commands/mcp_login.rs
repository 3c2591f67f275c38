//! Logging in to MCP servers: through the real binary, a browser that follows redirects, and an
//! authorization server that checks what it is asked.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use codespar_testkit::{Script, process::Running};
use serde_json::json;

use crate::{
    common::{Bench, PATIENCE, parsed, tool_results},
    mcp::{ALLOWED, calls, http_server, read, servers, stream, tell},
};

/// A server that wants a login, known to the user as `kit`.
struct Guarded {
    bench: Bench,
    _server: Running,
    url: String,
    journal: PathBuf,
    control: PathBuf,
}

fn guarded(script: Script, flavour: &str) -> Guarded {
    let bench = Bench::new(script);
    let journal = bench.room.home().join("journal");
    let control = bench.room.home().join("control");
    let args = [
        "--oauth",
        flavour,
        "--journal",
        journal.to_str().unwrap(),
        "--control",
        control.to_str().unwrap(),
    ];
    let (server, url) = http_server(&bench, &args);
    let text = servers(&[("kit", json!({"type": "http", "url": url}))]);
    fs::write(bench.room.codespar_home().join("settings.json"), text).unwrap();
    Guarded {
        bench,
        _server: server,
        url,
        journal,
        control,
    }
}

/// What a browser does with the page, up to the redirect; the place it is sent to.
fn opened(page: &str) -> String {
    let (host, target) = page
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let location = answer
        .lines()
        .find_map(|line| line.strip_prefix("Location: "));
    location.unwrap().trim().to_owned()
}

fn page(running: &mut Running) -> String {
    running
        .wait_for_output("paste the address", PATIENCE)
        .unwrap();
    let shown = running.stdout_so_far();
    let line = shown.lines().find(|line| line.starts_with("http://"));
    line.unwrap().to_owned()
}

/// Logs in with a browser on this machine.
fn log_in(bench: &Bench) {
    let mut running = bench.start(&["mcp", "login", "kit", "--no-browser"]);
    let back = opened(&page(&mut running));
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    let (host, target) = back
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let finished = running.wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(
        finished.stdout.contains("logged in to kit"),
        "{}",
        finished.stdout
    );
}

fn token_file(bench: &Bench) -> PathBuf {
    let tokens = bench.room.codespar_home().join("mcp-tokens");
    let mut files = fs::read_dir(tokens)
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .find(|file| file.extension().is_some_and(|end| end == "json"))
        .unwrap()
}

fn status(bench: &Bench) -> String {
    let told = parsed(&bench.run(&["mcp", "list", "--json"]).stdout);
    told["servers"][0]["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_login_is_kept_refreshed_and_forgotten_and_no_model_sees_it() {
    let kit = guarded(calls(&[("echo", json!({"text": "in"}))]), "right");
    let lines = stream(&kit.bench, &ALLOWED);
    assert_eq!(lines[0]["mcp_servers"][0]["status"], "needs-auth");
    let error = lines[0]["mcp_servers"][0]["error"].as_str().unwrap();
    assert_eq!(error, "it wants you to log in: codespar mcp login kit");
    log_in(&kit.bench);
    let file = token_file(&kit.bench);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let lines = stream(&kit.bench, &ALLOWED);
    assert_eq!(tool_results(&lines), ["in"]);
    tell(&kit.control, "revoke");
    crate::common::wait_for("the revocation", || read(&kit.journal).contains("revoked"));
    let lines = stream(&kit.bench, &ALLOWED);
    assert_eq!(tool_results(&lines), ["in"], "it was refreshed");
    let journal = read(&kit.journal);
    let happened: Vec<&str> = journal
        .lines()
        .filter(|line| line.starts_with("issued") || line.starts_with("denied"))
        .collect();
    assert_eq!(happened, ["issued code", "issued refresh"], "{journal}");
    assert!(journal.contains("opened use"), "{journal}");
    for request in kit.bench.server.requests() {
        let body = String::from_utf8_lossy(request.body());
        assert!(
            !body.contains("kit-access") && !body.contains("kit-refresh"),
            "{body}"
        );
    }
    assert_eq!(
        kit.bench.run(&["mcp", "logout", "kit"]).stdout,
        "logged out of kit\n"
    );
    assert_eq!(status(&kit.bench), "needs-auth");
    assert!(!file.exists());
}

#[test]
fn the_address_of_a_browser_elsewhere_can_be_pasted_and_another_login_cannot() {
    let kit = guarded(Script::new(), "right");
    let mut command = kit.bench.command(&["mcp", "login", "kit", "--no-browser"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = String::new();
    let mut until = |cue: &str| {
        while !shown.contains(cue) {
            let mut buffer = [0; 4096];
            let count = output.read(&mut buffer).unwrap();
            assert!(count > 0, "no `{cue}` in {shown}");
            shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        shown.clone()
    };
    let shown = until("paste the address");
    let page = shown
        .lines()
        .find(|line| line.starts_with("http://"))
        .unwrap()
        .to_owned();
    writeln!(input, "http://127.0.0.1:1/callback?code=evil&state=guessed").unwrap();
    until("is not the address that this login ends at");
    writeln!(input, "{}", opened(&page)).unwrap();
    until("logged in to kit");
    assert!(child.wait().unwrap().success());
    assert_eq!(status(&kit.bench), "connected");
}

#[test]
fn an_authorization_server_that_is_not_what_it_says_gets_nobody() {
    for (flavour, why) in [
        ("wrong-issuer", "issuer mismatch"),
        ("wrong-resource", "resource mismatch"),
        ("wrong-endpoint", "which is not HTTPS"),
    ] {
        let kit = guarded(Script::new(), flavour);
        let finished = kit.bench.run(&["mcp", "login", "kit", "--no-browser"]);
        assert_eq!(finished.status.code(), Some(1), "{flavour}");
        assert!(
            finished.stderr.contains(why),
            "{flavour}: {}",
            finished.stderr
        );
        let journal = read(&kit.journal);
        assert!(
            !journal.contains("registered") && !journal.contains("opened"),
            "{journal}"
        );
    }
}

#[test]
fn a_token_is_not_sent_to_another_address_of_the_same_name() {
    let kit = guarded(Script::new(), "right");
    log_in(&kit.bench);
    let journal = kit.bench.room.home().join("other");
    let args = ["--oauth", "right", "--journal", journal.to_str().unwrap()];
    let (_other, url) = http_server(&kit.bench, &args);
    assert_ne!(url, kit.url);
    let text = servers(&[("kit", json!({"type": "http", "url": url}))]);
    fs::write(kit.bench.room.codespar_home().join("settings.json"), text).unwrap();
    assert_eq!(status(&kit.bench), "needs-auth");
    let finished = kit.bench.run(&["mcp", "logout", "kit"]);
    assert_eq!(finished.stdout, "there was no login to kit\n");
    let finished = kit.bench.run(&["mcp", "login", "nobody"]);
    assert_eq!(finished.status.code(), Some(2));
    assert!(
        finished.stderr.contains("there are: kit"),
        "{}",
        finished.stderr
    );
}
