//! Messages as lines on the standard streams.
//!
//! One JSON message on each line, in both directions. Lines that are not JSON are ignored. Standard
//! error is left to the tools, as real servers use it for their log.

use std::{
    io::{self, BufRead, Write},
    sync::Arc,
    thread,
};

use serde_json::Value;

use super::host::Host;

pub(super) fn serve(host: &Arc<Host>) -> io::Result<()> {
    host.add_outlet(Box::new(write));
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        if message.get("id").is_none() {
            // At once: the input may end after it.
            host.answer(&message);
            continue;
        }
        // On a thread each: a slow call does not keep the others waiting.
        let host = host.clone();
        thread::spawn(move || {
            if let Some(answer) = host.answer(&message) {
                write(&answer);
            }
        });
    }
    host.note("ended");
    Ok(())
}

/// Under the lock of the stream, so that messages of several threads do not mix.
fn write(message: &Value) -> bool {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{message}")
        .and_then(|()| stdout.flush())
        .is_ok()
}
