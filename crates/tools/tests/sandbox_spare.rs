//! Watchers and namespaces that are made before their command is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::{fs, path::Path, time::Duration};

use codespar_tools::{
    process::{self, Capture, Launch},
    sandbox::{Approval, GUARD_COMMAND, Network, SandboxChoice},
};
use rstest::rstest;
use support::{Bench, wait_until};
use tokio_util::sync::CancellationToken;

/// Guards and watchers of one state directory: process and parent.
fn guards(state: &Path) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let cmdline = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let cmdline = String::from_utf8_lossy(&cmdline);
        let is_ours = cmdline.contains(GUARD_COMMAND) && cmdline.contains(state.to_str().unwrap());
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        if let (true, Some(parent)) = (is_ours, parent) {
            found.push((pid, parent.trim().parse().unwrap()));
        }
    }
    found
}

/// Those that wait for a command or watch one.
fn watchers(state: &Path) -> Vec<u32> {
    let all = guards(state);
    let is_child = |parent: u32| all.iter().any(|(pid, _)| *pid == parent);
    let children = all.iter().filter(|(_, parent)| is_child(*parent));
    children.map(|(pid, _)| *pid).collect()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[rstest]
#[tokio::test]
async fn commands_run_on_when_what_waits_for_them_is_killed(
    #[values(SandboxChoice::Namespaces, SandboxChoice::Landlock, SandboxChoice::Off)]
    choice: SandboxChoice,
) {
    let bench = Bench::new(choice);
    for round in 0..5 {
        assert_eq!(bench.ok(&format!("echo {round}")).await, round.to_string());
        wait_until("a watcher waits", || !watchers(&bench.state).is_empty());
        for watcher in watchers(&bench.state) {
            kill(watcher);
        }
    }
    assert_eq!(bench.ok("echo at last").await, "at last");
    let state = bench.state.clone();
    drop(bench);
    wait_until("the guard ends", || guards(&state).is_empty());
}

#[tokio::test]
async fn what_was_made_for_another_network_is_not_used() {
    let bench = Bench::new(SandboxChoice::Namespaces);
    let sandbox = bench.context.shared_sandbox();
    let outside = fs::read_to_string("/proc/net/dev").unwrap();
    let outside = outside.lines().count();
    for network in [
        Network::Denied,
        Network::Allowed,
        Network::Allowed,
        Network::Denied,
        Network::Denied,
    ] {
        let mut policy = sandbox.policy(&bench.context).unwrap();
        policy.network = network.clone();
        let launch = Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), "cat /proc/net/dev".into()],
            cwd: bench.root.clone(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            policy,
            approval: Approval::Rules,
            timeout: Duration::from_secs(20),
        };
        let redactor = std::sync::Arc::new(codespar_policy::Redactor::by_shape());
        let mut capture = Capture::new(&bench.outputs, "test", &redactor);
        process::run(&launch, sandbox, &mut capture, &CancellationToken::new())
            .await
            .unwrap();
        // Two lines of heading, and the loopback device.
        let expected = match network {
            Network::Allowed => outside,
            _ => 3,
        };
        assert_eq!(capture.finish().lines().count(), expected, "{network:?}");
    }
}
