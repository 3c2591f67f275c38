//! Ends the process at a named point, as a kill from outside would. For tests of durability; only
//! development builds do it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use codespar_tasks::StepHook;

use crate::ProjectDir;

/// Called with the name of each point. The variable holds the name of the point to die at, or
/// `name:3` for the third time that it is reached.
pub fn crash_point(project_dir: &ProjectDir, variable: &str) -> Option<StepHook> {
    if !cfg!(debug_assertions) {
        return None;
    }
    let wanted = project_dir.var(variable)?;
    let (name, times) = match wanted.rsplit_once(':') {
        Some((name, times)) => (name, times.parse().ok()?),
        None => (wanted, 1_u64),
    };
    let (name, reached) = (name.to_owned(), AtomicU64::new(0));
    Some(Arc::new(move |point: &str| {
        if point == name && reached.fetch_add(1, Ordering::Relaxed) + 1 == times {
            let own = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        }
    }))
}
