//! Hosts: each has a network, a table of processes and a name of its own, and a link to one bridge.
//!
//! A process on one host cannot see those of another, as on other machines: that is what decides
//! how a worker judges others. Hosts share the files of the trial, but each has its project
//! directory mounted at the path that it has everywhere.
//!
//! ```text
//! 10.77.0.1    the bridge: PostgreSQL, the scripted model, Temporal
//! 10.77.0.10   the host of people: `codespar task stop`, `task answer`, `-p --resume`
//! 10.77.0.11…  one worker each
//! ```

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::workload::MARKS;
use crate::steps;

/// Where the database, the model and the engine are.
pub(super) const CENTRE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const BRIDGE: &str = "fleet0";
const PROJECT: &str = "project";
const PATIENCE: Duration = Duration::from_secs(20);
/// The first process of a host: it does nothing but wait, and reaps what is left to it. The host has
/// a copy of the project of its own, at the path that it has everywhere.
const FIRST_PROCESS: &str = r#"hostname "$0" && ip link set lo up && mount --bind "$1" "$2" || exit 1
while :; do sleep 3600 & wait; done"#;

/// Makes the bridge. Once, in the network of the trial.
pub(super) fn make_bridge() -> Result<()> {
    let address = format!("{CENTRE}/24");
    ip(&["link", "set", "lo", "up"])?;
    ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    ip(&["address", "add", &address, "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])
}

/// A host, its directories and its copy of the project. It ends when it is dropped, with all its processes.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: Ipv4Addr,
    /// Its home, its state, its temporary files and its project are below.
    pub(super) dir: PathBuf,
    first: Child,
    /// Its first process, by the number that it has here.
    inside: u32,
}

impl Host {
    /// `number` is the last part of its address.
    pub(super) fn start(name: &str, number: u8, trial: &Path) -> Result<Self> {
        let dir = trial.join(name);
        for part in ["home", "state", "tmp"] {
            fs::create_dir_all(dir.join(part))?;
        }
        let project = dir.join(PROJECT);
        fill_project(&project)?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "unshare", "--fork", "--kill-child"])
            .args([
                "--mount",
                "--mount-proc",
                "--pid",
                "--net",
                "--uts",
                "--ipc",
            ])
            .args(["sh", "-c", FIRST_PROCESS, name])
            .arg(&project)
            .arg(trial.join(PROJECT))
            .stdin(Stdio::null());
        let first = command.spawn().context("cannot start `unshare`")?;
        let inside = child_of(first.id())?;
        let host = Self {
            name: name.to_owned(),
            address: Ipv4Addr::new(10, 77, 0, number),
            dir,
            first,
            inside,
        };
        host.connect()?;
        Ok(host)
    }

    fn connect(&self) -> Result<()> {
        let (link, inside) = (self.link(), self.inside.to_string());
        let peer = ["type", "veth", "peer", "name", "eth0", "netns", &inside];
        ip(&[&["link", "add", &link], &peer[..]].concat())?;
        ip(&["link", "set", &link, "master", BRIDGE, "up"])?;
        let address = format!("{}/24", self.address);
        for args in [
            &["address", "add", &address, "dev", "eth0"][..],
            &["link", "set", "eth0", "up"],
        ] {
            steps::run_quietly(self.enter().arg("ip").args(args))?;
        }
        Ok(())
    }

    fn link(&self) -> String {
        format!("to-{}", self.name)
    }

    /// Nothing reaches it, and it reaches nothing.
    pub(super) fn cut_off(&self) -> Result<()> {
        ip(&["link", "set", &self.link(), "down"])
    }

    /// The link is up again; connections that were open go on if nobody has given them up.
    pub(super) fn join_again(&self) -> Result<()> {
        ip(&["link", "set", &self.link(), "up"])
    }

    /// A program on this host, in a directory, with the environment of this host and no other.
    pub(super) fn command(&self, program: &Path, cwd: &Path) -> Command {
        let mut command = self.enter();
        command
            .arg("env")
            .arg("--chdir")
            .arg(cwd)
            .arg(program)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.join("home"))
            .env("CODESPAR_HOME", self.dir.join("state"))
            .env("TMPDIR", self.dir.join("tmp"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .stdin(Stdio::null());
        command
    }

    /// Its copy of the project, seen from here.
    pub(super) fn project(&self) -> PathBuf {
        self.dir.join(PROJECT)
    }

    /// What follows runs in all namespaces of the host, as a child of `nsenter`.
    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.inside.to_string(), "--all"]);
        command
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.first.kill().ok();
        self.first.wait().ok();
    }
}

/// Makes the directory that every host has its project at; where it is.
pub(super) fn make_project(trial: &Path) -> Result<PathBuf> {
    let project = trial.join(PROJECT);
    fs::create_dir_all(&project)?;
    Ok(project)
}

/// A repository with a file to read and a place for marks.
fn fill_project(project: &Path) -> Result<()> {
    fs::create_dir_all(project.join(".git"))?;
    fs::create_dir_all(project.join(MARKS))?;
    fs::write(project.join("README.md"), "A project to work on.\n")?;
    Ok(())
}

/// The process that another one has started, which is waited for.
pub(super) fn child_of(parent: u32) -> Result<u32> {
    let deadline = Instant::now() + PATIENCE;
    let list = format!("/proc/{parent}/task/{parent}/children");
    while Instant::now() < deadline {
        let children =
            fs::read_to_string(&list).with_context(|| format!("process {parent} is gone"))?;
        if let Some(child) = children.split_whitespace().next() {
            return Ok(child.parse()?);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    bail!("process {parent} has not started another one")
}

fn ip(args: &[&str]) -> Result<()> {
    steps::run_quietly(Command::new("ip").args(args))
}
