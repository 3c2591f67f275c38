//! Where the server's program is; tests of other packages are not given it by cargo.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::SystemTime,
};

const NAME: &str = "codespar-testkit-mcp";

/// The program, built first if it is not there or older than its source. `neighbour` is a program
/// of the same profile.
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
