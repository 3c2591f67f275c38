//! Programs that the tests need on the machine.
//!
//! Kept in one list, so that a new need is installed on every machine that runs the tests. A
//! missing program is not worked around: the test that needs it fails.

use std::{env, path::Path, process::Command};

use anyhow::Result;

use crate::{fleet, pypi, steps};

/// A program, a library or a module of Python, and the Debian package that has it.
struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
    is_there: fn(&str) -> bool,
}

/// With the reason that is shown when one is missing.
const TOOLS: &[Tool] = &[
    Tool {
        program: "bwrap",
        package: "bubblewrap",
        purpose: "the sandbox",
        is_there: on_path,
    },
    Tool {
        program: "rg",
        package: "ripgrep",
        purpose: "comparison with the Grep tool",
        is_there: on_path,
    },
    Tool {
        program: "setpriv",
        package: "util-linux",
        purpose: "attacks as an ordinary user",
        is_there: on_path,
    },
    Tool {
        program: "initdb",
        package: "postgresql",
        purpose: "the store on a database server",
        is_there: is_of_postgres,
    },
    Tool {
        program: "ip",
        package: "iproute2",
        purpose: "workers on several hosts",
        is_there: on_path,
    },
    Tool {
        program: "ensurepip",
        package: "python3-venv",
        purpose: "packages of PyPI, among them the Temporal server",
        is_there: is_in_python,
    },
    Tool {
        program: "git",
        package: "git",
        purpose: "repositories",
        is_there: on_path,
    },
    Tool {
        program: "git-lfs",
        package: "git-lfs",
        purpose: "large files of a trusted repository",
        is_there: on_path,
    },
    Tool {
        program: "npm",
        package: "npm",
        purpose: "installing dependencies through the proxy",
        is_there: on_path,
    },
    Tool {
        program: "tmux",
        package: "tmux",
        purpose: "the session at a terminal inside it",
        is_there: on_path,
    },
    Tool {
        program: "curl",
        package: "curl",
        purpose: "the installer and the action",
        is_there: on_path,
    },
    Tool {
        program: "jq",
        package: "jq",
        purpose: "the action",
        is_there: on_path,
    },
    Tool {
        program: "shellcheck",
        package: "shellcheck",
        purpose: "the scripts of the installer and the action",
        is_there: on_path,
    },
    Tool {
        program: "openssl",
        package: "openssl",
        purpose: "a certificate for the server",
        is_there: on_path,
    },
    Tool {
        program: "chromium",
        package: "chromium",
        purpose: "the web page in a browser",
        is_there: on_path,
    },
    Tool {
        program: "libfaketimeMT.so.1",
        package: "libfaketime",
        purpose: "a clock that is set",
        is_there: is_library,
    },
];

/// Installs what is missing where that can be done without asking, else says what to do. Tests that
/// need a missing program fail on their own, so this is no failure. It installs only as root on a
/// system with `apt-get`, as in a container of CI.
pub(crate) fn ensure() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        println!("all present: {}", names(TOOLS.iter()));
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    let root_on_debian = rustix::process::geteuid().is_root() && on_path("apt-get");
    if !root_on_debian {
        for tool in &missing {
            println!("missing: {} ({})", tool.program, tool.purpose);
        }
        println!(
            "install with: sudo apt-get install -y {}",
            packages.join(" ")
        );
        return Ok(());
    }
    if install(&packages).is_err() {
        // The lists of a fresh machine are empty or old.
        steps::run(apt().args(["update", "-qq"]))?;
        install(&packages)?;
    }
    Ok(())
}

fn install(packages: &[&str]) -> Result<()> {
    let options = ["install", "-y", "-qq", "--no-install-recommends"];
    steps::run(apt().args(options).args(packages))
}

/// Without questions and without its progress output.
fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::process::Stdio::null());
    command
}

/// Debian keeps those of a version of PostgreSQL apart from the path.
fn is_of_postgres(program: &str) -> bool {
    fleet::program(program).is_some()
}

/// Debian leaves it out of Python itself; the package brings Python, too.
fn is_in_python(_module: &str) -> bool {
    pypi::has_pip()
}

/// Whether it is among the libraries of `faketime`, which are loaded by their path.
fn is_library(name: &str) -> bool {
    let Ok(dirs) = std::fs::read_dir("/usr/lib") else {
        return false;
    };
    dirs.flatten()
        .any(|dir| dir.path().join("faketime").join(name).exists())
}

/// In the order of the list.
fn missing() -> Vec<&'static Tool> {
    let is_missing = |tool: &&Tool| !(tool.is_there)(tool.program);
    TOOLS.iter().filter(is_missing).collect()
}

fn names(tools: impl Iterator<Item = &'static Tool>) -> String {
    let names: Vec<&str> = tools.map(|tool| tool.program).collect();
    names.join(", ")
}

/// Whether a program can be found.
pub(crate) fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| is_program(&folder.join(program)))
}

/// A regular file that somebody may execute.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::on_path;

    #[test]
    fn a_program_is_found_on_the_path() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-command"));
    }
}
