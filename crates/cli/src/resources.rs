//! Threads and memory: looked for before the run begins, so that a process that may have too few
//! of them ends with the reason. Later a missing thread is a panic in one part, and the others
//! wait for it without end.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use crate::error::CommandError;

/// Threads besides those of the runtime: the database, files, names of hosts, standard input.
const BESIDES: usize = 12;
/// The stack of a thread.
const STACK: usize = 2 * 1024 * 1024;
/// Memory besides stacks.
const HEAP: usize = 32 * 1024 * 1024;

/// Fails where the system would not give what every run needs.
pub(crate) fn check() -> Result<(), CommandError> {
    let threads = thread::available_parallelism().map_or(1, usize::from) + BESIDES;
    let bytes = HEAP + threads * STACK;
    // Address space alone: nothing is touched.
    if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
        return Err(CommandError::Failed(format!(
            "not enough memory: {} MB more are needed; raise the limit on address space (`ulimit \
             -v`) or free memory",
            bytes / (1024 * 1024)
        )));
    }
    start(threads).map_err(|error| CommandError::Failed(no_thread(&error)))
}

/// Starts so many threads at once, and ends them. All live at the same time: a limit counts those
/// that exist, not those that were started.
fn start(count: usize) -> std::io::Result<()> {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(parking_lot::Mutex::new(released));
    let mut threads = Vec::new();
    let mut outcome = Ok(());
    for _ in 0..count {
        let released = released.clone();
        let wait = move || {
            let _ = released.lock().recv();
        };
        match thread::Builder::new().stack_size(STACK).spawn(wait) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    // All of them go on when the sender is gone.
    drop(release);
    for thread in threads {
        let _ = thread.join();
    }
    outcome
}

fn no_thread(error: &dyn std::fmt::Display) -> String {
    format!(
        "cannot start a thread: {error}; raise the limit on processes (`ulimit -u`, `pids.max` of \
         the cgroup) or on memory (`ulimit -v`)"
    )
}

/// A thread that a library could not start ends the process: what waits for it would never end.
pub(crate) fn end_when_no_thread_starts() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or_default();
        if text.contains("spawn") && text.contains("thread") {
            CommandError::Failed(no_thread(&text)).report();
            std::process::exit(1);
        }
        usual(panic);
    }));
}
