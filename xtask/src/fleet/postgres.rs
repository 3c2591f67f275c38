//! A PostgreSQL server on a temporary directory, started, used and stopped.
//!
//! The server refuses to run as root, so it runs as the user that its package made where this is
//! root. It ends with this process, however that ends.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{steps, tools::on_path};

/// Where Debian's package puts its programs, by version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user of Debian's package.
const USER: &str = "postgres";
/// How long the server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program of PostgreSQL: the newest version of the package, or the one on the path.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let found = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        let path = version.path().join("bin").join(name);
        path.exists().then_some((number, path))
    });
    match found.max() {
        Some((_, path)) => Some(path),
        None => on_path(name).then(|| name.into()),
    }
}

/// A server of its own, stopped and removed when it is dropped.
pub(crate) struct PostgresServer {
    child: Child,
    dir: PathBuf,
    address: Ipv4Addr,
    port: u16,
    durability: Durability,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The disk, as the server does by itself: what is measured is what others will have.
    Disk,
    /// Nothing, which is faster: what a test writes need not survive the machine.
    None,
}

impl PostgresServer {
    pub(crate) fn is_installed() -> bool {
        program("initdb").is_some() && program("postgres").is_some()
    }

    /// For tests: a temporary directory, on the loopback address.
    pub(crate) fn start() -> Result<Self> {
        let (dir, address) = (std::env::temp_dir(), Ipv4Addr::LOCALHOST);
        Self::start_at(&dir, address, Durability::None)
    }

    /// Its files are in a directory of its own in `dir`. Anybody who reaches the address may use it.
    pub(crate) fn start_at(dir: &Path, address: Ipv4Addr, durability: Durability) -> Result<Self> {
        let dir = dir.join(format!("codespar-postgres-{}", std::process::id()));
        fs::create_dir(&dir)?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
        let started = make_cluster(&dir).and_then(|()| {
            let port = TcpListener::bind((address, 0))?.local_addr()?.port();
            let child = launch(&dir, address, port, durability)?;
            let server = Self {
                child,
                dir: dir.clone(),
                address,
                port,
                durability,
            };
            server.wait_until_ready()?;
            Ok(server)
        });
        if started.is_err() {
            fs::remove_dir_all(&dir).ok();
        }
        started
    }

    /// The database that every server has from the start.
    pub(crate) fn url(&self) -> String {
        let Self { address, port, .. } = self;
        format!("postgres://codespar@{address}:{port}/postgres")
    }

    /// The same with a password, which the server does not ask for.
    pub(crate) fn url_with(&self, password: &str) -> String {
        let Self { address, port, .. } = self;
        format!("postgres://codespar:{password}@{address}:{port}/postgres")
    }

    /// All connections end; what was committed is there afterwards.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.stop();
        self.child = launch(&self.dir, self.address, self.port, self.durability)?;
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> Result<()> {
        let ready = program("pg_isready").context("pg_isready is missing")?;
        let (address, port) = (self.address.to_string(), self.port.to_string());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut command = Command::new(&ready);
            command.args(["-q", "-h", &address, "-p", &port]);
            if command.status()?.success() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                bail!("PostgreSQL does not start:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// An interrupt ends all connections and stops it in good order.
    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).ok();
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
        fs::remove_dir_all(&self.dir).ok();
    }
}

fn make_cluster(dir: &Path) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        let (user, group) = ids_of(USER)?;
        chown(dir, Some(user), Some(group))?;
    }
    let data = dir.join("data");
    let initdb = program("initdb").context("initdb is missing")?;
    let mut command = as_user(&initdb);
    command.arg("-D").arg(&data);
    command.args(["-A", "trust", "-U", "codespar", "--no-sync", "-E", "UTF8"]);
    steps::run(command.stdout(Stdio::null()).current_dir("/"))?;
    let access = data.join("pg_hba.conf");
    let mut access = OpenOptions::new().append(true).open(access)?;
    writeln!(access, "host all all samenet trust")?;
    Ok(())
}

fn launch(dir: &Path, address: Ipv4Addr, port: u16, durability: Durability) -> Result<Child> {
    let postgres = program("postgres").context("postgres is missing")?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("log"))?;
    let mut command = as_user(&postgres);
    command.arg("-D").arg(dir.join("data")).arg("-k").arg(dir);
    command.args(["-h", &address.to_string(), "-p", &port.to_string()]);
    command.args(["-c", "max_connections=200"]);
    if durability == Durability::None {
        command.args(["-c", "fsync=off"]);
    }
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("postgres cannot be started")
}

/// A program under the user of the package where this is root; it gets an interrupt when this
/// process is gone.
fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
    }
    command.args(["--pdeathsig", "INT"]).arg(program);
    command
}

/// User and group from the list of the system.
fn ids_of(user: &str) -> Result<(u32, u32)> {
    let list = fs::read_to_string("/etc/passwd")?;
    let line = list
        .lines()
        .find(|line| line.split(':').next() == Some(user));
    let line = line.with_context(|| format!("there is no user `{user}`"))?;
    let mut fields = line.split(':').skip(2).map(str::parse);
    match (fields.next(), fields.next()) {
        (Some(Ok(user)), Some(Ok(group))) => Ok((user, group)),
        _ => bail!("the line of `{user}` in /etc/passwd cannot be read"),
    }
}
