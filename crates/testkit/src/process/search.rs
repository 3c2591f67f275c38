//! Finds living processes by what `/proc` says of them.
//!
//! The state of a process at its start is what is read: a variable that a program sets later is not
//! seen. Processes whose files cannot be read, such as those of other users, are skipped.

use std::{fs, io};

/// The living processes that were started with this variable set to this value.
pub fn processes_with_env(key: &str, value: &str) -> io::Result<Vec<u32>> {
    let wanted = format!("{key}={value}");
    processes("environ", |environment| {
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    })
}

/// The living processes whose command line, its words joined by spaces, contains this. The
/// process that asks is left out.
pub fn processes_with_cmdline(text: &str) -> io::Result<Vec<u32>> {
    let own = std::process::id();
    let mut found = processes("cmdline", |line| {
        let arguments: Vec<_> = line
            .split(|byte| *byte == 0)
            .map(String::from_utf8_lossy)
            .collect();
        arguments.join(" ").contains(text)
    })?;
    found.retain(|process| *process != own);
    Ok(found)
}

/// Both files are empty for a process that has ended and waits to be reaped.
fn processes(file: &str, matches: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // A process may end while we look, and those of other users are closed to us.
        if fs::read(entry.path().join(file)).is_ok_and(|content| matches(&content)) {
            found.push(id);
        }
    }
    found.sort_unstable();
    Ok(found)
}
