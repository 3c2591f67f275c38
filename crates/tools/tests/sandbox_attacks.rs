//! Ways out of the sandbox that were found once, each tried with both kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::{
    ffi::OsString,
    fs,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::{PermissionsExt, chown},
            net::{SocketAddr, UnixListener},
            process::CommandExt,
        },
    },
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use codespar_tools::{
    Hidden,
    process::{self, Capture, Launch, ServerLaunch},
    sandbox::{Approval, Network, ResourceLimits, Sandbox, SandboxChoice},
};
use rstest::rstest;
use support::{Bench, directory, guard, wait_until};
use tokio_util::sync::CancellationToken;

const NAMESPACES: SandboxChoice = SandboxChoice::Namespaces;
const BUBBLEWRAP: SandboxChoice = SandboxChoice::Bubblewrap;
const LANDLOCK: SandboxChoice = SandboxChoice::Landlock;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[rstest]
#[tokio::test]
async fn the_environment_of_a_command_does_not_reach_what_confines_it(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    let outside = bench.outside();
    let sandbox = bench.context.shared_sandbox();
    let launch = Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), "echo ran".into()],
        cwd: bench.root.clone(),
        env: vec![
            ("LD_DEBUG".into(), "files".into()),
            ("LD_DEBUG_OUTPUT".into(), outside.join("trace").into()),
        ],
        policy: sandbox.policy(&bench.context).unwrap(),
        approval: Approval::Rules,
        timeout: Duration::from_secs(20),
    };
    let mut capture = Capture::new(
        &bench.outputs,
        "test",
        &std::sync::Arc::new(codespar_policy::Redactor::by_shape()),
    );
    let cancel = CancellationToken::new();
    process::run(&launch, sandbox, &mut capture, &cancel)
        .await
        .unwrap();
    assert!(capture.finish().contains("ran"));
    assert_eq!(names(&outside), Vec::<String>::new());
}

#[tokio::test]
async fn the_environment_of_a_server_does_not_reach_its_guard() {
    let dir = directory();
    let launch = ServerLaunch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), "echo $$".into()],
        cwd: dir.path().to_path_buf(),
        env: vec![
            ("LD_DEBUG".into(), "files".into()),
            ("LD_DEBUG_OUTPUT".into(), dir.path().join("trace").into()),
        ],
    };
    let mut served = process::serve(&launch, Some(&guard())).unwrap();
    let mut pid = String::new();
    let reading = tokio::io::AsyncReadExt::read_to_string(&mut served.output, &mut pid);
    tokio::time::timeout(Duration::from_secs(20), reading)
        .await
        .unwrap()
        .unwrap();
    served.hold.end().await;
    assert_eq!(names(dir.path()), [format!("trace.{}", pid.trim())]);
}

#[rstest]
#[tokio::test]
async fn the_kernels_settings_and_devices_are_closed_to_root_too(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    for attempt in [
        "v=$(cat /proc/sys/vm/swappiness) && echo $v > /proc/sys/vm/swappiness",
        "echo core > /proc/sys/kernel/core_pattern",
        "echo h > /proc/sysrq-trigger",
        "echo 1 > /sys/kernel/profiling",
        "mkdir /sys/fs/cgroup/pids/escape || mkdir /sys/fs/cgroup/escape",
        "head -c 16 /dev/vda || head -c 16 /dev/sda || head -c 16 /dev/mem",
    ] {
        bench.fails(attempt).await;
    }
}

#[rstest]
#[tokio::test]
async fn system_calls_that_lead_out_are_refused(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
    #[values(Network::Denied, Network::Allowed)] network: Network,
) {
    let bench = Bench::sandboxed_with(choice, network);
    let let_through = bench.ok(&format!("{} calls", guard().display())).await;
    assert_eq!(let_through, "(no output)");
    assert_eq!(
        bench.ok("(sleep 0 & wait) && echo threads fork").await,
        "threads fork"
    );
}

#[rstest]
#[tokio::test]
async fn local_sockets_of_other_programs_are_out_of_reach(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
    #[values(Network::Denied, Network::Allowed)] network: Network,
) {
    let bench = Bench::sandboxed_with(choice, network.clone());
    let outside = bench.outside().join("engine.sock");
    let inside = bench.root.join("engine.sock");
    let in_tmp = tempfile::tempdir().unwrap();
    let in_tmp = in_tmp.path().join("engine.sock");
    let name = format!("codespar-test-{}", std::process::id());
    let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
    let _listening = [&outside, &inside, &in_tmp].map(|path| UnixListener::bind(path).unwrap());
    // Another case of this test may listen there.
    let _abstract = UnixListener::bind_addr(&abstract_name);
    let guard = guard();
    let guard = guard.display();
    for path in [&outside, &inside, &in_tmp] {
        bench
            .fails(&format!("{guard} connect {}", path.display()))
            .await;
    }
    bench
        .fails(&format!("{guard} connect-abstract {name}"))
        .await;
    bench.ok(&format!("{guard} socket-pair")).await;
    let own = bench.bash(&format!("{guard} local-sockets own.sock")).await;
    let may = choice != LANDLOCK && network == Network::Denied;
    assert_eq!(!own.is_error, may, "{}", own.content.text());
}

#[rstest]
#[tokio::test]
async fn the_home_directory_is_hidden_but_for_tools(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    for secret in [
        "home/.ssh/id_ed25519",
        "home/.aws/credentials",
        "home/.config/gh/hosts.yml",
        "home/.netrc",
        "home/.cargo/credentials.toml",
        "home/.npmrc",
        "home/.mozilla/profile",
        "home/diary.txt",
        "state/codespar.db",
        "state/tmp/../other-session",
    ] {
        let path = bench.home.parent().unwrap().join(secret);
        write(&path, "SECRET");
        let seen = bench.fails(&format!("cat {}", path.display())).await;
        assert!(!seen.contains("SECRET"), "{seen}");
    }
    let registry = bench.home.join(".cargo/registry/index");
    write(&registry, "crates");
    assert_eq!(
        bench.ok(&format!("cat {}", registry.display())).await,
        "crates"
    );
    write(&bench.outputs.join("Bash-1.txt"), "earlier output");
    let spilled = bench.outputs.join("Bash-1.txt");
    assert_eq!(
        bench.ok(&format!("cat {}", spilled.display())).await,
        "earlier output"
    );
    bench
        .fails(&format!("echo x > {}", registry.display()))
        .await;
}

#[rstest]
#[tokio::test]
async fn files_that_a_rule_forbids_to_read_are_hidden_from_commands(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let hidden = Hidden::by(|path| {
        path.ends_with(".env") || path.components().any(|name| name.as_os_str() == "secrets")
    });
    let bench = Bench::hiding(Sandbox::probe(choice, guard()), hidden);
    write(&bench.root.join(".env"), "SECRET");
    write(&bench.root.join("a/secrets/key"), "SECRET");
    write(&bench.root.join("a/open"), "open");
    for attempt in [
        "cat .env",
        "cat a/secrets/key",
        "cp .env copy && cat copy",
        "mv .env moved && cat moved",
        "ln .env linked && cat linked",
        "mv a b; cat b/secrets/key",
    ] {
        let output = bench.bash(attempt).await.content.text();
        assert!(!output.contains("SECRET"), "{attempt}: {output}");
    }
    let output = bench.bash("cat a/open b/open").await.content.text();
    assert!(output.contains("open"), "{output}");
    let output = bench.bash("cat */secrets/key").await.content.text();
    assert!(!output.contains("SECRET"), "{output}");
}

#[rstest]
#[tokio::test]
async fn a_workspace_that_is_the_home_directory_keeps_its_hidden_files(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::in_dir(directory(), "home", Sandbox::probe(choice, guard()), None);
    write(&bench.home.join(".bashrc"), "good");
    write(&bench.home.join(".ssh/id"), "SECRET");
    write(&bench.home.join("notes/a"), "mine");
    for attempt in [
        "echo evil >> .bashrc",
        "echo evil > .profile",
        "rm .bashrc",
        "mv .bashrc x",
        "mkdir .config",
        "cat .ssh/id",
        "echo evil >> .ssh/authorized_keys && exit 1",
    ] {
        let seen = bench.fails(attempt).await;
        assert!(!seen.contains("SECRET"), "{seen}");
    }
    bench.ok("cat notes/a && echo more >> notes/a").await;
    assert_eq!(names(&bench.home), [".bashrc", ".ssh", "notes"]);
    assert_eq!(names(&bench.home.join(".ssh")), ["id"]);
    assert_eq!(
        fs::read_to_string(bench.home.join(".bashrc")).unwrap(),
        "good"
    );
}

/// Repositories in the home are like those of any workspace: what git would run is not planted,
/// and commits still work.
#[rstest]
#[tokio::test]
async fn a_workspace_that_is_the_home_directory_keeps_its_repositories(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let bench = Bench::in_dir(directory(), "home", Sandbox::probe(choice, guard()), None);
    let project = bench.home.join("project");
    fs::create_dir(&project).unwrap();
    git(
        &project,
        "git init -q . && git config user.name n && git config user.email e",
    );
    let config = fs::read_to_string(project.join(".git/config")).unwrap();
    for attempt in [
        "printf '[core]\\n\\tfsmonitor = touch x\\n' >> project/.git/config",
        "git -C project config core.fsmonitor 'touch x'",
        "printf '#!/bin/sh\\n' > project/.git/hooks/pre-commit; chmod +x project/.git/hooks/pre-commit",
        "git init -q new && git -C new config core.fsmonitor 'touch x'",
    ] {
        bench.bash(attempt).await;
    }
    let after = fs::read_to_string(project.join(".git/config")).unwrap();
    assert_eq!(after, config);
    assert!(!project.join(".git/hooks/pre-commit").exists());
    let new = fs::read_to_string(bench.home.join("new/.git/config")).unwrap_or_default();
    assert!(!new.contains("fsmonitor"), "{new}");
    bench
        .ok("cd project && echo x > x && git add x && git commit -q -m x")
        .await;
}

fn git(root: &Path, script: &str) {
    let status = Command::new("sh")
        .args(["-c", script])
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{script}");
}

const REPOSITORY: &str = "git init -q . && git config user.name n && git config user.email e && \
     git config core.hooksPath tools/hooks && git config include.path ../shared.inc && \
     git config filter.x.clean cat && mkdir -p tools/hooks && printf '[x]\\n\\ty = good\\n' > shared.inc && \
     git init -q sub && git init -q --bare bare.git && git commit -q --allow-empty -m one && \
     git worktree add -q side";

#[rstest]
#[case("echo evil > tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit")]
#[case("rm -rf tools; mkdir -p tools/hooks; echo evil > tools/hooks/pre-commit")]
#[case("printf '[core]\\nfsmonitor = evil\\n' > shared.inc")]
#[case("git -C sub config core.fsmonitor evil")]
#[case("mv sub sub2; git init -q sub; git -C sub config core.fsmonitor evil")]
#[case("git --git-dir bare.git config core.fsmonitor evil")]
#[case("echo evil > bare.git/hooks/post-receive; chmod +x bare.git/hooks/post-receive")]
#[case("cp -r bare.git evil.git; git --git-dir evil.git config core.fsmonitor evil")]
#[case("cp -r .git evil; echo ../../../evil > .git/worktrees/side/commondir")]
#[case("cp -r .git evil; echo ../evil > .git/commondir")]
#[case("echo 'gitdir: ../bare.git' > side/.git")]
#[case("git init -q new; git -C new config core.fsmonitor evil")]
#[case(
    "git init -q new; echo evil > new/.git/hooks/pre-commit; chmod +x new/.git/hooks/pre-commit"
)]
#[case("mkdir -p .git/modules/x; echo evil > .git/modules/x/config")]
#[case("echo '* filter=x' > .git/info/attributes")]
#[case("mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml")]
#[case("echo evil > .gitlab-ci.yml; echo evil > Jenkinsfile")]
#[case("mkdir .vscode; echo evil > .vscode/tasks.json")]
#[case("echo evil > .envrc; echo evil > .mcp.json")]
#[case("mkdir -p .claude/agents; echo evil > .claude/agents/a.md")]
#[case("mkdir .devcontainer; echo evil > .devcontainer/devcontainer.json; chmod 000 .devcontainer")]
#[case("mkdir .idea; echo evil > .idea/workspace.xml; chmod 555 .idea")]
#[case("mkdir .husky; head -c 70000000 /dev/zero > .husky/pre-commit")]
#[tokio::test]
async fn nothing_is_left_that_another_program_would_run(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
    #[case] attempt: &str,
) {
    let bench = Bench::sandboxed(choice);
    git(&bench.root, REPOSITORY);
    let before = executable_state(&bench.root);
    bench.bash(attempt).await;
    assert_eq!(executable_state(&bench.root), before, "{attempt}");
    // And git still works in a command.
    bench
        .ok(
            "echo x > file && git -c core.hooksPath=/dev/null add file && \
             git -c core.hooksPath=/dev/null commit -q -m two && git log --format=%s -1",
        )
        .await;
}

/// Every file in the tree that mentions what the attacks plant, and the paths git is led by.
fn executable_state(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let shown = path.strip_prefix(root).unwrap().display().to_string();
            if kind.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap_or_default();
            let leads = ["commondir", "gitdir", ".git", "attributes"].contains(&name.as_str());
            let is_live = path.components().any(|name| {
                [
                    ".vscode",
                    ".envrc",
                    ".mcp.json",
                    ".husky",
                    ".idea",
                    ".devcontainer",
                ]
                .iter()
                .any(|live| name.as_os_str() == *live)
            });
            // A copy that git is not led to is a plain file.
            let is_copy = shown.starts_with("evil/");
            // What names its own directory leads nowhere.
            let is_neutral = name == "commondir" && text == ".\n";
            if (text.contains("evil") || leads || is_live) && !is_copy && !is_neutral {
                found.push(format!("{shown}: {text}"));
            }
        }
    }
    found.sort();
    found
}

#[rstest]
#[tokio::test]
async fn while_a_command_runs_nothing_can_be_planted_and_later_no_trace_is_left(
    #[values(NAMESPACES, BUBBLEWRAP)] choice: SandboxChoice,
) {
    let bench = Bench::sandboxed(choice);
    git(
        &bench.root,
        "git init -q . && mkdir .claude && git commit -q --allow-empty -m one || true",
    );
    let root = bench.root.clone();
    let look = async {
        while !root.join("done").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for planted in [
            ".vscode/tasks.json",
            ".claude/settings.json",
            ".codespar/settings.json",
        ] {
            assert!(!root.join(planted).exists(), "{planted}");
        }
        for blocked in [".envrc", ".mcp.json"] {
            fs::read(root.join(blocked)).unwrap_err();
        }
        let common = fs::read_to_string(root.join(".git/commondir")).unwrap();
        assert_eq!(common, ".\n");
        // Git outside sees nothing of it.
        let output = Command::new("git")
            .args(["status", "--porcelain"])
            .current_dir(&root)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "?? done\n");
        fs::write(root.join("go"), "").unwrap();
    };
    let command = bench.bash(
        "for path in .vscode/tasks.json .claude/settings.json .codespar/settings.json .envrc \
         .mcp.json .git/commondir .git/hooks/x .git/config; do \
         mkdir -p $(dirname $path); echo evil > $path; rm -rf $path; mv $path x; ln -sf /x $path; \
         rm -rf x; done 2>/dev/null; git status --porcelain > $TMPDIR/status; touch done; \
         until [ -e go ]; do sleep 0.01; done; rm done go; cat $TMPDIR/status",
    );
    let (output, ()) = tokio::join!(command, look);
    assert_eq!(output.content.text(), "(no output)");
    assert_eq!(names(&bench.root), [".claude", ".git"]);
    assert!(!bench.root.join(".git/commondir").exists());
    assert_eq!(names(&bench.root.join(".claude")), Vec::<String>::new());
}

#[rstest]
#[tokio::test]
async fn resources_are_limited(#[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice) {
    let sandbox = Sandbox::probe(choice, guard()).with_limits(ResourceLimits {
        processes: Some(60),
        memory: None,
        file_size: Some(1 << 20),
        open_files: Some(64),
        scratch: Some(4 << 20),
    });
    let bench = Bench::with(sandbox);
    bench.fails("head -c 2000000 /dev/zero > large").await;
    assert!(fs::metadata(bench.root.join("large")).unwrap().len() <= 1 << 20);
    assert_eq!(bench.ok("ulimit -Hn; ulimit -c").await, "64\n0");
    let bomb =
        "for i in $(seq 300); do sleep 5 & done 2>/dev/null; jobs -p | wc -l; kill $(jobs -p)";
    let output = bench.bash(bomb).await.content.text();
    let started: usize = output
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .next()
        .unwrap_or(0);
    assert!(started < 60, "{output}");
    if choice != LANDLOCK {
        bench
            .fails("for i in 1 2 3 4 5 6; do head -c 1000000 /dev/zero > /tmp/$i || exit 1; done")
            .await;
    }
}

#[rstest]
#[tokio::test]
async fn the_directory_for_temporary_files_has_a_quota(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let sandbox = Sandbox::probe(choice, guard()).with_limits(ResourceLimits {
        scratch: Some(4 << 20),
        ..ResourceLimits::default()
    });
    let bench = Bench::with(sandbox);
    let filling = "for i in $(seq 9); do head -c 1000000 /dev/zero > $TMPDIR/$i; done";
    let output = bench.bash(&format!("{filling}; sleep 60")).await;
    let text = output.content.text();
    let stopped = "[stopped: the directory for temporary files has more than the 4 MB";
    assert!(text.contains(stopped), "{text}");
    // Full as it is, it does not grow by many short commands.
    bench.bash("head -c 1000000 /dev/zero > $TMPDIR/more").await;
    let more = fs::metadata(bench.temp.join("more")).unwrap().len();
    assert!(more <= 64 << 10, "{more}");
    bench.ok("rm -rf $TMPDIR/*; echo gone").await;
    bench
        .ok("head -c 1000000 /dev/zero > $TMPDIR/again; sleep 1; echo kept")
        .await;
}

#[rstest]
#[tokio::test]
async fn memory_is_limited_and_programs_that_reserve_much_run(
    #[values(NAMESPACES, BUBBLEWRAP, LANDLOCK)] choice: SandboxChoice,
) {
    let usual = ResourceLimits::default();
    assert!(usual.memory.is_some());
    let bench = Bench::with(Sandbox::probe(choice, guard()));
    let node = "node -e 'new WebAssembly.Memory({initial: 1, maximum: 65536}); console.log(2 + 2)'";
    assert_eq!(bench.ok(node).await, "4");
    assert_eq!(bench.ok("git --version | wc -l").await, "1");
    let sandbox = Sandbox::probe(choice, guard()).with_limits(ResourceLimits {
        memory: Some(256 << 20),
        ..usual
    });
    let bench = Bench::with(sandbox);
    // A line of 600 MB, which tail keeps in memory.
    bench
        .fails("set -o pipefail; head -c 600000000 /dev/zero | tail -n 1 | wc -c")
        .await;
    bench.ok("echo well").await;
}

/// Root is not the only one who works: the same for an ordinary user.
#[rstest]
fn an_ordinary_user_is_confined_too(#[values("bubblewrap", "landlock")] kind: &str) {
    let dir = directory();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("program");
    fs::copy(guard(), &program).unwrap();
    let [root, temp, outside] = ["root", "temp", "outside"].map(|name| dir.path().join(name));
    for path in [&root, &temp, &outside] {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let script = format!(
        "id -u; echo in > file && cat file; echo out > {0}/x; echo out > /proc/self/oom_adj; \
         {1} calls; mkdir .claude && echo evil > .claude/settings.json; echo end",
        outside.display(),
        program.display()
    );
    let mut command = Command::new(&program);
    command.arg(kind).args([&root, &temp]).arg(script);
    command.env("RUST_BACKTRACE", "0").current_dir("/");
    if rustix::process::geteuid().is_root() {
        for path in [&root, &temp] {
            chown(path, Some(65534), Some(65534)).unwrap();
        }
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text
        .trim()
        .lines()
        .filter(|line| !line.contains("bash:"))
        .collect();
    assert!(lines.ends_with(&["in", "end"]), "{text}");
    assert_eq!(names(&outside), Vec::<String>::new());
    assert!(!root.join(".claude/settings.json").exists(), "{text}");
}

#[test]
fn a_killed_parent_leaves_no_placeholders() {
    let dir = directory();
    let [root, temp, state] = ["root", "temp", "state"].map(|name| dir.path().join(name));
    for path in [&root, &temp, &state] {
        fs::create_dir(path).unwrap();
    }
    let mut parent = Command::new(guard())
        .arg("bubblewrap")
        .args([&root, &temp])
        .arg("touch started; sleep 600")
        .arg(&state)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command runs", || root.join("started").exists());
    assert!(root.join(".vscode").exists());
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("no placeholder is left", || names(&root) == ["started"]);
}

#[test]
fn a_killed_guard_leaves_nothing_running_and_its_placeholders_are_swept() {
    let dir = directory();
    let [root, temp, state] = ["root", "temp", "state"].map(|name| dir.path().join(name));
    for path in [&root, &temp, &state] {
        fs::create_dir(path).unwrap();
    }
    let marker = support::marker();
    let run = |command: &str| {
        let mut parent = Command::new(guard());
        parent
            .arg("bubblewrap")
            .args([&root, &temp])
            .arg(OsString::from(command))
            .arg(&state)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        parent.spawn().unwrap()
    };
    let mut parent = run(&format!("touch started; sleep {marker}"));
    wait_until("the command runs", || support::alive(&marker) > 0);
    let watcher = watcher_of(&marker);
    rustix::process::kill_process(watcher, rustix::process::Signal::KILL).unwrap();
    wait_until("nothing is left running", || support::alive(&marker) == 0);
    parent.wait().unwrap();
    assert!(root.join(".vscode").exists());
    run("true").wait().unwrap();
    wait_until("no placeholder is left", || names(&root) == ["started"]);
}

/// The guard process right above the bubblewrap that runs a command with `marker` in it.
fn watcher_of(marker: &str) -> rustix::process::Pid {
    let stat = |pid: i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let rest = text.rsplit(')').next()?.to_owned();
        rest.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    let mut newest = None;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if line.contains(marker) && line.contains("bwrap") {
            let above = stat(pid).unwrap_or_default();
            let line = fs::read_to_string(format!("/proc/{above}/cmdline")).unwrap_or_default();
            if line.contains("__sandbox-guard") {
                newest = Some(above);
            }
        }
    }
    rustix::process::Pid::from_raw(newest.unwrap()).unwrap()
}

#[rstest]
#[case("namespaces")]
#[case("bubblewrap")]
#[case("landlock")]
#[case("off")]
fn what_our_own_starter_has_left_open_does_not_reach_a_command(#[case] kind: &str) {
    let (root, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outside = tempfile::tempdir().unwrap();
    write(&outside.path().join("secret"), "SECRET");
    let script = "exec 9<\"$1\"; exec \"$0\" \"$2\" \"$3\" \"$4\" \
                  'ls /proc/self/fd; cat /proc/self/fd/9/secret'";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(guard())
        .arg(outside.path())
        .arg(kind)
        .args([root.path(), temp.path()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("0\n1\n2\n"), "{text} {output:?}");
    assert!(!text.contains("SECRET"), "{text}");
}
