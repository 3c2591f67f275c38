//! `cargo xtask dependencies`: licences, unwanted crates, unused ones, and which crate uses which.
//!
//! Licences and unwanted crates are checked for everything in the lock file, layers and unused
//! dependencies for the crates of the workspace. The checks read `cargo metadata` and sources;
//! nothing is compiled.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{layers, licences, metadata::Metadata, unused};

/// Check the dependencies: licences, unwanted and unused crates, order of the layers.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// TLS is rustls with ring everywhere; these would bring a second one, and a C build with it.
const UNWANTED: &[&str] = &[
    "openssl",
    "openssl-sys",
    "native-tls",
    "aws-lc-sys",
    "aws-lc-rs",
];

pub(crate) fn run(_args: &Args, root: &Path) -> Result<()> {
    check(root)
}

/// Finds everything that is wrong before it fails.
pub(crate) fn check(root: &Path) -> Result<()> {
    let metadata = Metadata::read(root)?;
    let mut problems = licences::problems(&metadata.packages);
    problems.extend(unwanted(&metadata));
    for package in metadata.members() {
        problems.extend(layers::problems(package));
        problems.extend(unused::problems(package)?);
    }
    if problems.is_empty() {
        println!("{} crates, nothing to object to", metadata.packages.len());
        return Ok(());
    }
    for problem in &problems {
        println!("{problem}");
    }
    bail!("{} problems with dependencies", problems.len())
}

/// Looked for by name in the whole graph, whatever brings them in.
fn unwanted(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.packages.iter();
    packages
        .filter(|package| UNWANTED.contains(&package.name.as_str()))
        .map(|package| {
            format!(
                "{} {} is not wanted here; `cargo tree -i {}` shows what brings it",
                package.name, package.version, package.name
            )
        })
        .collect()
}
