//! Work that goes on on another host: with its own state directory, without the files of the first,
//! and with nothing in common but the database and the remote.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use codespar_testkit::{
    Conversation, Matcher, Script, Turn,
    github::{FakeGitHub, GitHubOptions},
    process::{CleanRoom, Finished, Running, spawn},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{
    Fleet,
    common::{PATIENCE, git::git, parsed, wait_for},
};

const GREET: &str = "greeting=hello\nname=you\n";
/// Until the test opens the gate, in the directory of the agent.
const WAIT: &str = "touch waiting; until [ -e gate ]; do sleep 0.05; done; rm waiting gate";

/// Makes an agent for workers.
const CREATE: [&str; 10] = [
    "task",
    "create",
    "--type",
    "remote_agent",
    "--subject",
    "greet",
    "--prompt",
    "greet all of them",
    "--permission-mode",
    "acceptEdits",
];

/// Two hosts; what the first one has on its disk, the second does not see.
struct Hosts {
    fleet: Fleet,
    other: CleanRoom,
    remote: tempfile::TempDir,
}

impl Hosts {
    fn new(script: Script) -> Self {
        let fleet = Fleet::new(script);
        std::fs::remove_dir(fleet.bench.work().join(".git")).unwrap();
        let remote = tempfile::tempdir().unwrap();
        let seed = remote.path().join("seed");
        std::fs::create_dir(&seed).unwrap();
        std::fs::write(seed.join("greet.sh"), GREET).unwrap();
        git(&seed, &["init", "--quiet", "-b", "main"]);
        git(&seed, &["add", "."]);
        git(
            &seed,
            &["commit", "--quiet", "--no-gpg-sign", "-m", "Begin"],
        );
        git(&seed, &["clone", "--quiet", "--bare", ".", "../shop.git"]);
        Self {
            fleet,
            other: CleanRoom::new().unwrap(),
            remote,
        }
    }

    fn bare(&self) -> PathBuf {
        self.remote.path().join("shop.git")
    }

    fn first_disk(&self) -> PathBuf {
        let home = self.fleet.bench.room.home();
        home.parent().unwrap().to_owned()
    }

    /// The same command on the other host: processes and files of the first are out of sight.
    fn on_other(&self, command: &Command) -> Command {
        let mut hidden = Command::new("unshare");
        hidden.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        if !rustix::process::geteuid().is_root() {
            hidden.args(["--user", "--map-root-user"]);
        }
        hidden
            .args(["sh", "-c", "mount -t tmpfs none \"$0\" && exec \"$@\""])
            .arg(self.first_disk())
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear();
        for (name, value) in command.get_envs() {
            hidden.env(name, value.unwrap());
        }
        let own = self.other.command("true");
        for (name, value) in own.get_envs() {
            hidden.env(name, value.unwrap());
        }
        hidden.current_dir(self.other.work());
        hidden
    }

    fn worker_on_other(&self, command: &Command) -> Running {
        spawn(&mut self.on_other(command)).unwrap()
    }

    fn wait_for_workers(&self, count: usize) {
        // Makes the schema.
        self.fleet.tasks();
        let is_so = || self.value("SELECT COUNT(*)::TEXT FROM runners") == count.to_string();
        wait_for("the workers are there", is_so);
    }

    fn task_of_type(&self, task_type: &str) -> Value {
        let tasks = self.fleet.tasks();
        let found = tasks.iter().find(|task| task["task_type"] == task_type);
        found.unwrap_or_else(|| panic!("{tasks:#?}")).clone()
    }

    fn value(&self, query: &str) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.fleet.url()).await.unwrap();
            let query = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
            let value: String = query.fetch_one(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            value
        })
    }
}

fn edit(old: &str, new: &str) -> Turn {
    let input = json!({"file_path": "greet.sh", "old_string": old, "new_string": new});
    Turn::tool("Edit", &input)
}

/// An agent that makes half of its change, runs a command, and makes the other half.
fn in_two_halves(matcher: Matcher, between: &str) -> Conversation {
    let binary = "printf '\\000\\377' > blob.bin; chmod +x greet.sh";
    Conversation::new("agent", matcher).turns([
        Turn::tool("Read", &json!({"file_path": "greet.sh"})),
        edit("greeting=hello", "greeting=hi"),
        Turn::tool("Bash", &json!({"command": binary})),
        Turn::tool("Bash", &json!({"command": between})),
        edit("name=you", "name=all"),
        Turn::tool("Bash", &json!({"command": "git diff --numstat"})),
        Turn::text("Greet all\n\nBoth lines change."),
    ])
}

/// The directory of the agent that waits, below a directory.
fn waiting_below(dir: &Path) -> Option<PathBuf> {
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        if path.join("waiting").exists() {
            return Some(path);
        }
        if path.is_dir()
            && !path.is_symlink()
            && let Some(found) = waiting_below(&path)
        {
            return Some(found);
        }
    }
    None
}

/// A GitHub over the bare repository.
struct Hub {
    hosts: Hosts,
    github: FakeGitHub,
    _runtime: tokio::runtime::Runtime,
}

impl Hub {
    fn new(between: &str) -> Self {
        let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
            .turn(Turn::text(json!(["greet.sh"]).to_string()));
        let copy = Matcher::first_user_contains("throw-away copy at one commit");
        let script = Script::new()
            .conversation(picker)
            .conversation(in_two_halves(copy, between));
        let hosts = Hosts::new(script);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let bare = hosts.bare();
        let started = FakeGitHub::start(&bare, GitHubOptions::default());
        let github = runtime.block_on(started).unwrap();
        Self {
            hosts,
            github,
            _runtime: runtime,
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.hosts.fleet.command(args);
        command
            .env("GITHUB_TOKEN", "alice-token")
            .env("GITHUB_API_URL", &self.github.base_url)
            .env("GITHUB_SERVER_URL", &self.github.base_url);
        command
    }

    fn run(&self) -> Command {
        let run = ["dev", "greet all", "--repo", "acme/shop"];
        let how = ["--engine", "agent", "--no-verify"];
        self.command(&[&run[..], &how[..]].concat())
    }

    /// A run on the first host, whose agent has made its first half and waits; where it waits.
    fn begun(&self) -> (Running, PathBuf) {
        let running = spawn(&mut self.run()).unwrap();
        let runs = self.hosts.fleet.bench.room.codespar_home().join("dev/runs");
        wait_for("the agent waits", || waiting_below(&runs).is_some());
        let tree = waiting_below(&runs).unwrap();
        (running, tree)
    }

    fn finished_on_other(&self) -> Finished {
        let worker = self.command(&["worker", "--until-idle"]);
        let worker = self.hosts.worker_on_other(&worker);
        worker.wait(PATIENCE).unwrap()
    }

    /// The pull request of the run has both halves, and there is one.
    fn assert_whole(&self, worker: &Finished) {
        let run = self.hosts.task_of_type("local_workflow");
        let agent = self.hosts.task_of_type("local_agent");
        let output = self.command(&["task", "output", run["task_id"].as_str().unwrap()]);
        let output = spawn(&mut self.hosts.on_other(&output)).unwrap();
        let output = output.wait(PATIENCE).unwrap().stdout;
        let told = format!("{run:#}\n{agent:#}\n{output}\n{}", worker.stderr);
        assert_eq!(run["status"], "completed", "{told}");
        assert_eq!(agent["status"], "completed", "{told}");
        let bare = self.hosts.bare();
        let branches = git(&bare, &["branch", "--list", "--format=%(refname:short)"]);
        let branch = branches.lines().find(|name| *name != "main").unwrap();
        let changed = git(&bare, &["diff", "--raw", "--abbrev=4", "main", branch]);
        let show = |file: &str| git(&bare, &["show", &format!("{branch}:{file}")]);
        assert_eq!(show("greet.sh").trim(), "greeting=hi\nname=all", "{told}");
        let names: Vec<&str> = changed
            .lines()
            .map(|line| line.split('\t').nth(1).unwrap())
            .collect();
        assert_eq!(names, ["blob.bin", "greet.sh"], "{told}");
        assert!(changed.contains(":100644 100755"), "{changed}");
        let size = git(&bare, &["cat-file", "-s", &format!("{branch}:blob.bin")]);
        assert_eq!(size.trim(), "2");
        let pulls = self.command(&["pr", "list", "--repo", "acme/shop", "--json"]);
        let pulls = spawn(&mut self.hosts.on_other(&pulls)).unwrap();
        let pulls = parsed(&pulls.wait(PATIENCE).unwrap().stdout);
        let list = pulls
            .as_array()
            .or_else(|| pulls["pull_requests"].as_array());
        assert_eq!(list.unwrap().len(), 1, "{pulls}");
    }
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn a_dev_run_of_a_killed_host_is_finished_by_another_with_both_halves() {
    let hub = Hub::new(WAIT);
    let (first, _) = hub.begun();
    first.kill_9().unwrap();
    let worker = hub.finished_on_other();
    hub.assert_whole(&worker);
    // The agent was told that its files are elsewhere.
    let last = hub.hosts.fleet.bench.server.last_request().unwrap();
    let system = last.json()["system"].to_string();
    assert!(system.contains("begun on another machine"), "{system}");
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn a_dev_run_that_was_killed_between_its_steps_is_finished_by_another_host() {
    for step in ["agent_task", "made agent"] {
        let hub = Hub::new("true");
        let mut run = hub.run();
        run.env("CODESPAR_TEST_DIE_AFTER", step);
        let died = spawn(&mut run).unwrap().wait(PATIENCE).unwrap();
        assert_eq!(died.status.code(), None, "{step}: {}", died.stderr);
        let worker = hub.finished_on_other();
        hub.assert_whole(&worker);
    }
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn a_frozen_host_that_goes_on_cannot_change_what_another_finished() {
    let hub = Hub::new(WAIT);
    let (first, tree) = hub.begun();
    let process = Pid::from_raw(first.pid().try_into().unwrap()).unwrap();
    kill_process(process, Signal::STOP).unwrap();

    let worker = hub.finished_on_other();

    hub.assert_whole(&worker);
    let kept = "SELECT COALESCE(string_agg(tree, ','), '') FROM task_trees";
    let entries = "SELECT COUNT(*)::TEXT FROM entries";
    let before = (hub.hosts.value(kept), hub.hosts.value(entries));
    std::fs::write(tree.join("late"), "late").unwrap();
    std::fs::write(tree.join("gate"), "").unwrap();
    kill_process(process, Signal::CONT).unwrap();
    let first = first.wait(PATIENCE).unwrap();
    let after = (hub.hosts.value(kept), hub.hosts.value(entries));
    assert_eq!(after, before, "{} {}", first.stdout, first.stderr);
    hub.assert_whole(&worker);
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn an_agent_in_a_worktree_goes_on_in_a_clone_of_its_repository() {
    let prompt = Matcher::first_user_contains("greet all of them");
    let hosts = Hosts::new(Script::new().conversation(in_two_halves(prompt, WAIT)));
    let kind = "---\nname: greeter\ndescription: Greets\nisolation: worktree\n---\nYou greet.\n";
    for room in [&hosts.fleet.bench.room, &hosts.other] {
        let agents = room.codespar_home().join("agents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(agents.join("greeter.md"), kind).unwrap();
    }
    let work = hosts.fleet.bench.work();
    let bare = hosts.bare();
    git(&work, &["clone", "--quiet", bare.to_str().unwrap(), "."]);
    let args = [&CREATE[..], &["--metadata", "subagent_type=greeter"]].concat();
    let first = spawn(&mut hosts.fleet.command(&["worker"])).unwrap();
    hosts.wait_for_workers(1);
    let made = hosts.fleet.run(&args);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let trees = hosts.fleet.bench.room.codespar_home().join("worktrees");
    wait_for("the agent waits", || waiting_below(&trees).is_some());
    first.kill_9().unwrap();

    let worker = hosts.fleet.command(&["worker", "--until-idle"]);
    let worker = hosts.worker_on_other(&worker).wait(PATIENCE).unwrap();

    let task = hosts.task_of_type("remote_agent");
    assert_eq!(task["status"], "completed", "{task:#}\n{}", worker.stderr);
    let name = format!("file{}", bare.with_extension("").display());
    assert_eq!(task["authority"]["repository"], name, "{task:#}");
    let state = hosts.other.codespar_home();
    let tree = state
        .join("worktrees")
        .join(task["task_id"].as_str().unwrap());
    let text = std::fs::read_to_string(tree.join("greet.sh")).unwrap();
    assert_eq!(text, "greeting=hi\nname=all\n");
    assert_eq!(std::fs::read(tree.join("blob.bin")).unwrap(), [0, 0xff]);
    let clone = state.join("repositories").join(name);
    assert_eq!(
        std::fs::read_to_string(clone.join("greet.sh")).unwrap(),
        GREET
    );
    let branches = git(&clone, &["worktree", "list"]);
    assert_eq!(branches.lines().count(), 2, "{branches}");
    // Git in its commands finds the clone.
    let last = hosts.fleet.bench.server.last_request().unwrap();
    let said = last.json()["messages"].to_string();
    assert!(said.contains("2\\t2\\tgreet.sh"), "{said}");
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn an_agent_without_a_worktree_works_in_the_clone_itself() {
    let prompt = Matcher::first_user_contains("greet all of them");
    let agent = Conversation::new("agent", prompt).turns([
        Turn::tool("Read", &json!({"file_path": "greet.sh"})),
        edit("greeting=hello", "greeting=hi"),
        Turn::tool(
            "Bash",
            &json!({"command": "git diff --numstat; touch made"}),
        ),
        Turn::text("done"),
    ]);
    let hosts = Hosts::new(Script::new().conversation(agent));
    let work = hosts.fleet.bench.work();
    let bare = hosts.bare();
    git(&work, &["clone", "--quiet", bare.to_str().unwrap(), "."]);
    let worker = hosts.worker_on_other(&hosts.fleet.command(&["worker"]));
    hosts.wait_for_workers(1);
    let made = hosts
        .fleet
        .run(&[&CREATE[..], &["--allowed-tools", "Bash,Edit"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let status = || hosts.task_of_type("remote_agent")["status"].clone();
    let is_under_way = || matches!(status().as_str(), Some("pending" | "running"));
    wait_for("it is over", || !is_under_way());
    worker.kill_9().unwrap();

    let task = hosts.task_of_type("remote_agent");
    let last = hosts.fleet.bench.server.last_request().unwrap();
    let said = last.json()["messages"].to_string();
    assert_eq!(task["status"], "completed", "{task:#} {said}");
    assert!(said.contains("1\\t1\\tgreet.sh"), "{said}");
    let name = task["authority"]["repository"].as_str().unwrap();
    let clone = hosts.other.codespar_home().join("repositories").join(name);
    let text = std::fs::read_to_string(clone.join("greet.sh")).unwrap();
    assert_eq!(text, GREET.replace("hello", "hi"));
    assert!(clone.join("made").exists());
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn a_task_whose_repository_cannot_be_had_says_so_without_secrets() {
    let hosts = Hosts::new(Script::new());
    let work = hosts.fleet.bench.work();
    let bare = hosts.bare();
    git(&work, &["clone", "--quiet", bare.to_str().unwrap(), "."]);
    let gone = "http://me:hunter2-secret@127.0.0.1:1/acme/gone.git";
    git(&work, &["remote", "set-url", "origin", gone]);
    // One is told first, and the other after it.
    let workers = [(); 2].map(|()| hosts.worker_on_other(&hosts.fleet.command(&["worker"])));
    hosts.wait_for_workers(2);
    let made = hosts.fleet.run(&CREATE);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let is_over = || hosts.task_of_type("remote_agent")["status"] == "failed";
    wait_for("the task has failed", is_over);
    let said = workers.map(|worker| worker.kill_9().unwrap().stderr);

    let task = hosts.task_of_type("remote_agent");
    let error = task["error"].as_str().unwrap();
    let wanted =
        "127.0.0.1:1/acme/gone could not be cloned from http://127.0.0.1:1/acme/gone.git: ";
    assert!(error.starts_with(wanted), "{error}");
    let steps = hosts.value("SELECT COUNT(*)::TEXT FROM task_steps");
    assert_eq!(steps, "2", "each worker has tried");
    let all = format!("{task}{said:?}");
    assert!(!all.contains("hunter2"), "{all}");
}
