//! `codespar serve --demo`: one command, and everything can be tried.

use std::{fs, path::Path, process::Command};

use codespar_testkit::{Script, process::spawn};

use crate::{
    client::{Served, started},
    common::{Bench, PATIENCE, wait_for},
    pages::{BROWSER_TIME, screenshots},
};

/// A demo on a machine with a key and a chat platform, neither of which it may use.
fn demo(bench: &Bench) -> Served {
    let mut command = bench.command(&["serve", "--demo", "--listen", "127.0.0.1:0"]);
    command.env("SLACK_BOT_TOKEN", "half a setup");
    started(&mut command)
}

fn sign_in_link(served: &Served) -> String {
    wait_for("the link", || {
        served.running.stdout_so_far().contains("/login?code=")
    });
    let shown = served.running.stdout_so_far();
    let mut lines = shown.lines().map(str::trim);
    lines
        .find(|line| line.contains("/login?code="))
        .unwrap()
        .to_owned()
}

#[test]
fn a_demo_uses_nothing_of_the_user_and_leaves_nothing() {
    let bench = Bench::new(Script::new());
    let served = demo(&bench);
    assert!(sign_in_link(&served).starts_with(&served.base));
    let place = || {
        let shown = served.running.stderr_so_far();
        let rest = shown.split_once("recorded model, in ")?.1;
        Some(rest.split(';').next()?.to_owned())
    };
    wait_for("the place", || place().is_some());
    let place = place().unwrap();
    assert!(
        Path::new(&place).join("sample/stats.sh").exists(),
        "{place}"
    );
    served.running.terminate().unwrap();
    let ended = served.running.wait(PATIENCE).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(!Path::new(&place).exists(), "{place}");
    assert!(bench.server.requests().is_empty(), "no model was asked");
    let state = bench.room.codespar_home();
    assert!(!state.join("codespar.db").exists(), "{}", state.display());
}

#[test]
#[ignore = "needs node, playwright-core and Chromium"]
fn the_demo_tells_the_whole_story_in_a_browser() {
    let bench = Bench::new(Script::new());
    let served = demo(&bench);
    let (target, shots) = screenshots();
    fs::create_dir_all(&shots).unwrap();
    let node = spawn(
        Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/chat.mjs"))
            .env("BASE", &served.base)
            .env("LINK", sign_in_link(&served))
            .env("PACKAGES", &target)
            .env("SHOTS", &shots),
    );
    let done = node.unwrap().wait(BROWSER_TIME).unwrap();
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("all done"), "{}", done.stdout);
    served.running.terminate().unwrap();
    served.running.wait(PATIENCE).unwrap();
}
