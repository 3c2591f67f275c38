//! Tests that need a database server: PostgreSQL is started on a temporary directory, used, stopped.
//!
//! The server refuses to run as root, so it runs as the user that its package made where this is
//! root. It ends with this process, however that ends.

use std::{
    fs,
    net::TcpListener,
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
/// The test programs that have tests of a database server.
const PROGRAMS: &[&str] = &[
    "changes", "channels", "contract", "postgres", "pulls", "tasks", "tokens", "transfer",
];
/// How long the server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs them; returns what was skipped, and why.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let (Some(initdb), Some(postgres)) = (program("initdb"), program("postgres")) else {
        let why = "needs PostgreSQL: apt-get install postgresql";
        return Ok(vec![format!("tests of the store on PostgreSQL ({why})")]);
    };
    let server = Server::start(&initdb, &postgres)?;
    for mut command in commands(root) {
        steps::run(command.env("CODESPAR_TEST_POSTGRES", server.url()))?;
    }
    Ok(Vec::new())
}

/// Those of their tests that are called after the database: by their module, or by their program.
fn commands(root: &Path) -> Vec<Command> {
    let programs: Vec<&str> = PROGRAMS.iter().flat_map(|name| ["--test", name]).collect();
    let command = |args: &[&[&str]]| {
        let mut command = steps::cargo(root);
        command.args(args.concat());
        command
    };
    if on_path("cargo-nextest") {
        let run = ["nextest", "run", "--workspace", "--no-fail-fast"];
        let which = [
            "--run-ignored",
            "only",
            "-E",
            "test(/^postgres::/) + binary(postgres)",
        ];
        return vec![command(&[&run, &programs, &which])];
    }
    let run = ["test", "--workspace", "--no-fail-fast"];
    vec![
        command(&[&run, &programs, &["--", "--ignored", "postgres::"]]),
        command(&[&run, &["--test", "postgres", "--", "--ignored"]]),
    ]
}

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
struct Server {
    child: Child,
    dir: PathBuf,
    port: u16,
}

impl Server {
    fn start(initdb: &Path, postgres: &Path) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("codespar-postgres-{}", std::process::id()));
        fs::create_dir(&dir)?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
        let started = Self::start_in(&dir, initdb, postgres);
        if started.is_err() {
            fs::remove_dir_all(&dir).ok();
        }
        started
    }

    fn start_in(dir: &Path, initdb: &Path, postgres: &Path) -> Result<Self> {
        if rustix::process::geteuid().is_root() {
            let (user, group) = ids_of(USER)?;
            chown(dir, Some(user), Some(group))?;
        }
        let data = dir.join("data");
        let mut command = as_user(initdb);
        command.arg("-D").arg(&data);
        command.args(["-A", "trust", "-U", "codespar", "--no-sync", "-E", "UTF8"]);
        steps::run(command.stdout(Stdio::null()).current_dir("/"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = fs::File::create(dir.join("log"))?;
        let mut command = as_user(postgres);
        command.arg("-D").arg(&data).arg("-k").arg(dir);
        command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        // What a test writes need not survive the machine.
        command.args(["-c", "fsync=off", "-c", "max_connections=200"]);
        let child = command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("postgres cannot be started")?;
        let server = Self {
            child,
            dir: dir.to_owned(),
            port,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// The database that every server has from the start.
    fn url(&self) -> String {
        format!("postgres://codespar@127.0.0.1:{}/postgres", self.port)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let ready = program("pg_isready").context("pg_isready is missing")?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut command = Command::new(&ready);
            command.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
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
}

impl Drop for Server {
    /// An interrupt ends all connections and stops it in good order.
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).ok();
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.child.kill().ok();
        self.child.wait().ok();
        fs::remove_dir_all(&self.dir).ok();
    }
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
