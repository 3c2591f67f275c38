//! Obeys lines that are appended to a file: how a test reaches a server it did not start.
//!
//! The file is made if it is missing, and looked at every few milliseconds. A line counts when its
//! line break is there, so a command is never obeyed half-written. A command that is not known goes
//! into the journal.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use serde_json::json;

use super::host::{Host, RESOURCE};

const LOOK: Duration = Duration::from_millis(10);

/// Starts at the end of what is there: a server that is started again does not obey twice. The
/// thread ends with the host.
pub(super) fn follow(host: &Arc<Host>, path: PathBuf) -> io::Result<()> {
    let mut file = File::options()
        .create(true)
        .append(true)
        .read(true)
        .open(path)?;
    file.seek(SeekFrom::End(0))?;
    let host = Arc::downgrade(host);
    thread::spawn(move || {
        let mut lines = BufReader::new(file);
        let mut line = String::new();
        while let Some(host) = host.upgrade() {
            match lines.read_line(&mut line) {
                Ok(1..) if line.ends_with('\n') => {
                    obey(&host, line.trim());
                    line.clear();
                }
                _ => thread::sleep(LOOK),
            }
        }
    });
    Ok(())
}

/// Nothing is answered: what a command did shows in what the client receives, and in the journal.
fn obey(host: &Host, line: &str) {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("update", _) => host.tell_updated(RESOURCE),
        ("tools", _) => {
            host.has_more_tools.store(true, Ordering::SeqCst);
            host.tell("notifications/tools/list_changed", json!({}));
        }
        ("revoke", _) => {
            host.issued.revoke();
            host.note("revoked");
        }
        ("log", text) => host.tell(
            "notifications/message",
            json!({ "level": "warning", "logger": "testkit", "data": text }),
        ),
        ("die", _) => {
            host.note("died");
            std::process::exit(1);
        }
        _ => host.note(&format!("what is `{line}`?")),
    }
}
