//! A Temporal server for development, on a file.

use std::{
    fs::OpenOptions,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{pypi, tools::on_path};

/// Names the program where it is neither on the path nor installed from its package.
const VARIABLE: &str = "CODESPAR_TEMPORAL";
const PROGRAM: &str = "temporal";
const PORT: u16 = 7233;
const RECORDS: &str = "temporal.db";
const PATIENCE: Duration = Duration::from_secs(60);

/// Stopped when it is dropped.
pub(super) struct TemporalServer {
    program: PathBuf,
    dir: PathBuf,
    ip: Ipv4Addr,
    child: Option<Child>,
}

impl TemporalServer {
    pub(super) fn start(root: &Path, dir: &Path, ip: Ipv4Addr) -> Result<Self> {
        let program = find(root).with_context(|| {
            format!("needs `{PROGRAM}` on the path, in {VARIABLE}, or the package of PyPI")
        })?;
        let mut server = Self {
            program,
            dir: dir.to_owned(),
            ip,
            child: None,
        };
        server.start_again()?;
        Ok(server)
    }

    /// As `TEMPORAL_ADDRESS` has it.
    pub(super) fn address(&self) -> String {
        format!("{}:{PORT}", self.ip)
    }

    /// What it had on record is there again.
    pub(super) fn start_again(&mut self) -> Result<()> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join("temporal.log"))?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(&self.program)
            .args(["server", "start-dev", "--headless", "--log-level", "error"])
            // Its parts talk to each other on the loopback address.
            .args(["--ip", "0.0.0.0", "--port", &PORT.to_string()])
            .arg("--db-filename")
            .arg(self.dir.join(RECORDS))
            .env("HOME", &self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.child = Some(command.spawn().context("temporal cannot be started")?);
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect((self.ip, PORT)).is_err() {
            if Instant::now() > deadline {
                let log = std::fs::read_to_string(self.dir.join("temporal.log"));
                bail!("Temporal does not start:\n{}", log.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// All that it has on record, as it is in its files.
    pub(super) fn records(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for file in self.dir.read_dir()?.flatten() {
            // Beside the database there is what was not moved into it yet.
            if file
                .file_name()
                .as_encoded_bytes()
                .starts_with(RECORDS.as_bytes())
            {
                bytes.extend(std::fs::read(file.path())?);
            }
        }
        Ok(bytes)
    }

    pub(super) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl Drop for TemporalServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Installs the package where the program is not there. Within a trial no network can be reached.
pub(super) fn ensure(root: &Path) -> Result<()> {
    match find(root) {
        Some(_) => Ok(()),
        None => pypi::install_temporal(root),
    }
}

fn find(root: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    named
        .or_else(|| on_path(PROGRAM).then(|| PathBuf::from(PROGRAM)))
        .or_else(|| pypi::temporal(root))
}
