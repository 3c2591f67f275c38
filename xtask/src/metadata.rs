//! What `cargo metadata` says, as far as the checks need it.
//!
//! The workspace and all packages it depends on, resolved. Fields that no check uses are left out;
//! serde ignores the rest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::steps::cargo;

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// Those of the workspace and all dependencies, also of other platforms.
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
    workspace_members: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression; `None` if the package names a file instead.
    pub(crate) license: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Set if the manifest uses another name for it.
    pub(crate) rename: Option<String>,
    /// `None` for a usual dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

impl Metadata {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let output = cargo(root)
            .args(["metadata", "--format-version", "1", "--all-features"])
            .output()
            .context("cannot start `cargo metadata`")?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("`cargo metadata` ended with {}\n{stderr}", output.status);
        }
        serde_json::from_slice(&output.stdout).context("cannot read what `cargo metadata` says")
    }

    /// The crates of this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        let is_member = |package: &&Package| self.workspace_members.contains(&package.id);
        self.packages.iter().filter(is_member)
    }
}

impl Dependency {
    /// The name as it stands in Rust sources.
    pub(crate) fn crate_name(&self) -> String {
        self.rename.as_ref().unwrap_or(&self.name).replace('-', "_")
    }

    /// Whether only tests, examples and benchmarks have it.
    pub(crate) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}
