//! What the sandbox keeps in, with real commands that try to get out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use codespar_policy::SandboxState;
use codespar_tools::sandbox::{Network, Sandbox, SandboxChoice, SandboxKind};
use rstest::rstest;
use support::{Bench, alive, guard, marker, wait_until};

const NAMESPACES: SandboxChoice = SandboxChoice::Namespaces;
const BUBBLEWRAP: SandboxChoice = SandboxChoice::Bubblewrap;
const LANDLOCK: SandboxChoice = SandboxChoice::Landlock;

#[rstest]
#[tokio::test]
async fn writes_stay_in_the_workspace_and_the_temporary_directory(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    let outside = bench.outside();
    fs::write(outside.join("mine"), "mine").unwrap();
    let place = outside.display();
    bench
        .ok("echo in > file && mkdir -p d/e && echo in > $TMPDIR/file && mv file d/e/")
        .await;
    assert_eq!(
        fs::read_to_string(bench.root.join("d/e/file")).unwrap(),
        "in\n"
    );
    assert_eq!(fs::read_to_string(bench.temp.join("file")).unwrap(), "in\n");
    for attempt in [
        "echo out > OUT/new",
        "echo out > OUT/mine",
        "rm OUT/mine",
        "mv OUT/mine OUT/yours",
        "truncate -s 0 OUT/mine",
        "mkdir OUT/dir",
        "ln -s OUT link; echo out > link/mine",
        "ln OUT/mine hard && echo out > hard",
        "echo out > /proc/self/cwd/../outside/mine",
    ] {
        bench
            .fails(&attempt.replace("OUT", &place.to_string()))
            .await;
    }
    let names: Vec<_> = fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, vec!["mine"]);
    assert_eq!(fs::read_to_string(outside.join("mine")).unwrap(), "mine");
    assert_eq!(bench.ok(&format!("cat {place}/mine")).await, "mine");
}

#[rstest]
#[tokio::test]
async fn the_network_is_closed_unless_it_is_allowed(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let closed = Bench::sandboxed(choice);
    let open = Bench::sandboxed_with(choice, Network::Allowed);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let connect = format!(
        "echo hi > /dev/tcp/127.0.0.1/{}",
        tcp.local_addr().unwrap().port()
    );
    let send = format!(
        "echo hi > /dev/udp/127.0.0.1/{}",
        udp.local_addr().unwrap().port()
    );
    closed.fails(&connect).await;
    let _ = closed.bash(&send).await;
    udp.recv(&mut [0; 8]).unwrap_err();
    open.ok(&connect).await;
    open.ok(&send).await;
    assert_eq!(udp.recv(&mut [0; 8]).unwrap(), 3);
}

fn repository(root: &Path) {
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::write(root.join(".git/hooks/pre-commit"), "good").unwrap();
    fs::write(root.join(".git/config"), "good").unwrap();
    fs::create_dir_all(root.join(".codespar")).unwrap();
    fs::write(root.join(".codespar/settings.json"), "good").unwrap();
}

#[rstest]
#[case("echo evil > .git/hooks/pre-commit")]
#[case("echo evil > .git/hooks/post-checkout")]
#[case("rm -rf .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/pre-commit")]
#[case("mv .git moved; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit")]
#[case("mv .git moved; ln -s moved .git; echo evil > moved/hooks/pre-commit")]
#[case("echo evil > .git/config")]
#[case("echo evil > c; mv -f c .git/config")]
#[case("echo evil > .codespar/settings.json; rm -f .codespar/settings.json")]
#[case("echo evil > .codespar/settings.local.json")]
#[case(
    "mkdir .claude; echo evil > .claude/settings.json; ln -s /etc/passwd .claude/settings.local.json"
)]
#[case("setsid sh -c 'sleep 0.05; echo evil > .git/hooks/pre-commit' & true")]
#[tokio::test]
async fn hooks_and_settings_stay_as_they_are(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
    #[case] attempt: &str,
) {
    let bench = Bench::sandboxed(choice);
    repository(&bench.root);
    bench.bash(attempt).await;
    bench.ok("echo fine > .git/index").await;
    let text = |path: &str| fs::read_to_string(bench.root.join(path)).ok();
    assert_eq!(text(".git/hooks/pre-commit").as_deref(), Some("good"));
    assert_eq!(text(".git/hooks/post-checkout"), None);
    assert_eq!(text(".git/config").as_deref(), Some("good"));
    assert_eq!(text(".codespar/settings.json").as_deref(), Some("good"));
    assert_eq!(text(".codespar/settings.local.json"), None);
    assert_eq!(text(".claude/settings.json"), None);
    assert_eq!(text(".claude/settings.local.json"), None);
}

#[rstest]
#[tokio::test]
async fn putting_back_does_not_follow_a_symlink_out_of_the_workspace(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    let outside = bench.outside();
    fs::write(outside.join("settings.json"), "theirs").unwrap();
    bench
        .fails(&format!("ln -s {} .claude", outside.display()))
        .await;
    assert_eq!(
        fs::read_to_string(outside.join("settings.json")).unwrap(),
        "theirs"
    );
    assert!(fs::symlink_metadata(bench.root.join(".claude")).is_err());
}

#[tokio::test]
async fn a_protected_file_that_was_put_back_is_told_and_quarantined() {
    let bench = Bench::sandboxed(LANDLOCK);
    fs::create_dir(bench.root.join(".claude")).unwrap();
    let settings = bench.root.join(".claude/settings.json");
    let text = bench.fails("echo evil > .claude/settings.json").await;
    let mut aside: Vec<_> = fs::read_dir(&bench.temp).unwrap().flatten().collect();
    aside.retain(|entry| !entry.file_name().to_string_lossy().starts_with(".cwd-"));
    assert_eq!(aside.len(), 1);
    assert_eq!(
        text,
        format!(
            "(no output)\n{} is protected: the change was undone, what was found there is now {}",
            settings.display(),
            aside[0].path().display()
        )
    );
    assert_eq!(fs::read_to_string(aside[0].path()).unwrap(), "evil\n");
    assert!(!settings.exists());
}

#[rstest]
#[tokio::test]
async fn settings_that_we_write_while_a_command_runs_stay(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    fs::create_dir(bench.root.join(".codespar")).unwrap();
    let settings = bench.root.join(".codespar/settings.local.json");
    let write = async {
        while !bench.root.join("started").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bench
            .context
            .sandbox()
            .vouch_for(settings.clone(), b"ours".to_vec());
        fs::write(&settings, "ours").unwrap();
        fs::write(bench.root.join("go"), "").unwrap();
    };
    let command = bench.ok("touch started; until [ -e go ]; do sleep 0.01; done");
    let (output, ()) = tokio::join!(command, write);
    assert_eq!(output, "(no output)");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "ours");
}

#[rstest]
#[tokio::test]
async fn git_can_commit_in_a_linked_worktree(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let dir = support::directory();
    let script = "git init -q main && cd main && git config user.name n && git config user.email e \
                  && git commit -q --allow-empty -m one && git worktree add -q ../side";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(dir.path())
        .status();
    assert!(made.unwrap().success());
    let hook = dir.path().join("main/.git/hooks/post-commit");
    let bench = Bench::in_dir(dir, "side", Sandbox::probe(choice, guard()), None);
    bench
        .ok("echo x > file && git add file && git commit -q -m two")
        .await;
    assert_eq!(bench.ok("git log --format=%s").await, "two\none");
    bench
        .bash("echo evil > ../main/.git/hooks/post-commit")
        .await;
    assert!(!hook.exists());
    bench.fails("echo out > ../main/file").await;
}

#[rstest]
#[tokio::test]
async fn our_own_process_is_out_of_reach(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    let pid = std::process::id();
    let ours = fs::read("/proc/self/environ").unwrap();
    let seen = bench
        .bash(&format!("cat /proc/{pid}/environ"))
        .await
        .content
        .text();
    let name = ours.split(|byte| *byte == b'=').next().unwrap();
    assert!(
        !seen.contains(&*String::from_utf8_lossy(name)),
        "our environment can be read"
    );
    // Landlock scopes signals from Linux 6.12 on.
    if choice != LANDLOCK || kernel() >= (6, 12) {
        bench.fails(&format!("kill -0 {pid}")).await;
        let output = bench.ok("kill -9 $PPID 2>/dev/null; echo still here").await;
        assert_eq!(output, "still here");
    }
}

fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-', '\n'])
        .map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[rstest]
#[tokio::test]
async fn no_device_can_be_made(#[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice) {
    let bench = Bench::sandboxed(choice);
    bench.fails("mknod disk b 8 0").await;
    bench.fails("mknod memory c 1 1").await;
    assert_eq!(bench.ok("mkfifo pipe && ls").await, "pipe");
}

#[rstest]
#[tokio::test]
async fn servers_inside_can_be_reached_from_inside(
    #[values(NAMESPACES, BUBBLEWRAP)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    let script = "import socket\ns = socket.create_server(('127.0.0.1', 0))\n\
                  c = socket.create_connection(s.getsockname())\nprint('reached')";
    fs::write(bench.root.join("server.py"), script).unwrap();
    let output = bench.bash("/usr/bin/python3 server.py").await;
    assert_eq!(output.content.text(), "reached");
}

#[rstest]
#[tokio::test]
async fn mounts_cannot_be_undone(#[values(NAMESPACES, BUBBLEWRAP)] choice: SandboxChoice) {
    let bench = Bench::sandboxed(choice);
    let outside = bench.outside();
    let place = outside.display();
    bench.fails("mount -o remount,rw,bind /").await;
    bench
        .fails(&format!(
            "unshare -Urm sh -c 'mount -o remount,rw,bind /; echo out > {place}/x'"
        ))
        .await;
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[rstest]
#[case("namespaces")]
#[case("bubblewrap")]
#[case("landlock")]
#[case("off")]
fn nothing_outlives_a_parent_that_is_killed(#[case] kind: &str) {
    let (root, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let marker = marker();
    let command = format!(
        "sleep {marker} & setsid sleep {marker} & (trap '' TERM; sleep {marker}; sleep 1) & \
         sleep {marker}"
    );
    let mut parent = Command::new(guard())
        .arg(kind)
        .args([root.path(), temp.path()])
        .arg(command)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("four sleepers", || alive(&marker) == 4);
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("nothing is left", || alive(&marker) == 0);
    // The guards too: they have the workspace among their arguments.
    let place = root.path().display().to_string();
    wait_until("no guard is left", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        !processes
            .filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok())
            .any(|line| line.contains(&place))
    });
}

#[rstest]
fn a_parent_killed_at_any_moment_leaves_nothing(
    #[values("bubblewrap", "landlock", "off")] kind: &str,
    #[values(1, 3, 6, 10, 15, 25)] delay: u64,
) {
    let (root, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let marker = marker();
    let mut parent = Command::new(guard())
        .arg(kind)
        .args([root.path(), temp.path()])
        .arg(format!("sleep {marker}"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(delay));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let place = root.path().display().to_string();
    wait_until("nothing is left", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        !processes
            .filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok())
            .any(|line| line.contains(&place) || line.contains(&marker))
    });
}

#[test]
fn a_hardened_process_hides_its_environment_from_its_children() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("program");
    fs::copy(guard(), &program).unwrap();
    let run = |mode: &str| {
        let mut command = Command::new(&program);
        command
            .arg(mode)
            .env("HIDDEN", "in plain sight")
            .current_dir("/");
        // Root may read everything; somebody else must be asked.
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text.contains("in plain sight"))
    };
    assert_eq!(run("show-environment"), (true, true));
    assert_eq!(run("hide-environment"), (false, false));
}

#[test]
fn a_switched_off_sandbox_is_not_an_unavailable_one() {
    let off = Sandbox::probe(SandboxChoice::Off, guard());
    assert_eq!(
        (off.kind(), off.sandbox_state()),
        (SandboxKind::None, SandboxState::SwitchedOff)
    );
    assert_eq!(off.describe(), "none: switched off in the settings");
    let broken = Sandbox::probe(SandboxChoice::Auto, "/nonexistent/guard".into());
    assert_eq!(
        (broken.kind(), broken.sandbox_state()),
        (SandboxKind::None, SandboxState::Unavailable)
    );
    assert_eq!(
        broken.describe(),
        "none works here: unattended commands are refused"
    );
    let kinds: Vec<_> = broken
        .report()
        .into_iter()
        .map(|(kind, found)| (kind, found.is_ok()))
        .collect();
    assert_eq!(
        kinds,
        vec![
            (SandboxKind::Namespaces, false),
            (SandboxKind::Bubblewrap, false),
            (SandboxKind::Landlock, false)
        ]
    );
}

#[test]
fn the_best_kind_that_works_is_chosen() {
    let sandbox = Sandbox::probe(SandboxChoice::Auto, guard());
    let best = sandbox
        .report()
        .into_iter()
        .find(|(_, found)| found.is_ok());
    assert_eq!(
        sandbox.kind(),
        best.map_or(SandboxKind::None, |(kind, _)| kind)
    );
    for (kind, found) in sandbox.report() {
        if let Err(reason) = found {
            assert!(!reason.is_empty(), "{kind:?} fails for no reason");
        }
    }
}
