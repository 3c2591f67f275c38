//! A build of the binary from nothing, as somebody who installs from source has it.
//!
//! With a target directory of its own that is removed afterwards. Sources must be downloaded
//! already; the network is not what is measured.

use std::path::Path;

use anyhow::Result;

use super::{
    Bench,
    report::{Row, Section},
    samples::Samples,
};
use crate::{metadata::Metadata, steps::cargo};

/// Built once, whatever the number of runs: it takes minutes, and its CPU time varies little.
pub(super) fn measure(bench: &Bench, root: &Path) -> Result<Section> {
    let target = tempfile::Builder::new()
        .prefix("cold-build-")
        .tempdir_in(Metadata::read(root)?.target_directory)?;
    let mut build = cargo(root);
    build
        .args(["build", "--release", "--locked", "--bin", "codespar"])
        .env("CARGO_TARGET_DIR", target.path());
    let mut measured = bench.meter.wrap(&build);
    let cost = bench.meter.run(&mut measured)?.cost;
    let size = std::fs::metadata(target.path().join("release/codespar"))?.len();
    Ok(Section {
        title: "Cold build",
        reading: "`cargo build --release --bin codespar` into an empty directory, with the \
                  sources of all dependencies downloaded before. CPU is that of all compilers."
            .to_owned(),
        columns: vec!["wall", "CPU", "size of the binary"],
        bars: Vec::new(),
        rows: vec![Row::new(
            "release profile",
            [
                Some(Samples::seconds([cost.wall])),
                Some(Samples::seconds([cost.cpu + cost.children_cpu])),
                Some(Samples::megabytes([size])),
            ],
        )],
    })
}
