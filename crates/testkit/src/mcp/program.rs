//! Where the server's program is; tests of other packages are not given it by cargo.
//!
//! Cargo tells a test only of the binaries of its own package. They lie in one directory for each
//! profile, so the program is looked for beside one that the test knows.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::SystemTime,
};

const NAME: &str = "codespar-testkit-mcp";

/// The program, built first if it is not there or older than its source. `neighbour` is a program
/// of the same profile.
///
/// Building goes through cargo and waits for its lock. Fails with advice if the binary does not
/// appear there, as with another target directory.
pub fn program(neighbour: &Path) -> io::Result<PathBuf> {
    let path = neighbour.with_file_name(NAME);
    let built = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
    if built.is_some_and(|built| newest_source().is_none_or(|source| source <= built)) {
        return Ok(path);
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", "codespar-testkit"])
        .args(["--bin", NAME])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .status()?;
    if status.success() && path.exists() {
        return Ok(path);
    }
    Err(io::Error::other(format!(
        "{NAME} is not beside {}; build it with `cargo build -p codespar-testkit`",
        neighbour.display()
    )))
}

/// Only the files of the server itself: the rest of the crate does not change what it does.
fn newest_source() -> Option<SystemTime> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = [source.join("mcp"), source.join("bin")];
    let files = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    files
        .flatten()
        .filter_map(|file| file.ok()?.metadata().ok()?.modified().ok())
        .max()
}
