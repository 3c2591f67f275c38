//! What can be told of the process behind another runner.
//!
//! A runner's name carries where and when its process was born: the machine's boot, the table of
//! processes, the process and its start. Whoever shares the first two can look for the rest. What
//! cannot be read proves nothing.
//!
//! The name of a runner looks like this; a process without `/proc` has the first part alone.
//!
//! ```text
//! 0198c1f2-…-uuid~<boot id>.<pid namespace>.<pid>.<start in ticks since boot>
//! ```
//!
//! The start time makes a process id that was used again harmless: the new process has another one.

use std::time::Duration;

use codespar_store::{LeaseStore, RunnerId, RunnerSeen, StoreError};

/// Between the fresh part of a name and the certificate.
const MARK: char = '~';

/// A runner out of sight that is there shows a sign of life within this time.
const SIGN_OF_LIFE: Duration = Duration::from_millis(1_500);

/// The process of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is on this machine, and runs.
    Running,
    /// It is on this machine, and was stopped by a signal or a debugger: it may go on.
    Stopped,
    /// It is certainly gone.
    Dead,
    /// It is on another machine, in another container, or hidden from us.
    Unknown,
}

/// Where and when a process was born.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Birth {
    boot: String,
    table: String,
    process: u32,
    start: String,
}

impl Birth {
    /// Of this process.
    fn ours() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let table = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let process = std::process::id();
        let (start, _) = vital_signs(process)?;
        let digits = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect();
        Some(Self {
            boot: digits(boot.trim()),
            table: digits(&table.to_string_lossy()),
            process,
            start,
        })
    }

    /// `None` for a name without certificate or with another number of parts; its process is then
    /// unknown.
    fn read(name: &str) -> Option<Self> {
        let (_, certificate) = name.split_once(MARK)?;
        let mut parts = certificate.split('.');
        let birth = Self {
            boot: parts.next()?.to_owned(),
            table: parts.next()?.to_owned(),
            process: parts.next()?.parse().ok()?,
            start: parts.next()?.to_owned(),
        };
        parts.next().is_none().then_some(birth)
    }
}

/// When a process started, in ticks since boot, and its state; `None` when there is none.
fn vital_signs(process: u32) -> Option<(String, String)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.to_owned();
    let start = fields.nth(18)?.to_owned();
    Some((start, state))
}

/// Asks the kernel with signal 0. Only "no such process" counts: a lack of permission means that
/// there is one.
fn is_gone(process: u32) -> bool {
    let id = i32::try_from(process)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) == Err(rustix::io::Errno::SRCH))
}

/// A fresh name with the certificate of this process.
pub(crate) fn name() -> String {
    let fresh = uuid::Uuid::now_v7();
    match Birth::ours() {
        Some(birth) => format!(
            "{fresh}{MARK}{}.{}.{}.{}",
            birth.boot, birth.table, birth.process, birth.start
        ),
        None => fresh.to_string(),
    }
}

/// The process of a runner, as far as it can be seen from here.
pub(crate) fn presence(runner: &RunnerId) -> Presence {
    let (Some(ours), Some(birth)) = (Birth::ours(), Birth::read(&runner.0)) else {
        return Presence::Unknown;
    };
    if birth.boot != ours.boot || birth.table != ours.table {
        return Presence::Unknown;
    }
    match vital_signs(birth.process) {
        Some((start, _)) if start != birth.start => Presence::Dead,
        Some((_, state)) => match &*state {
            "Z" | "X" => Presence::Dead,
            "T" | "t" => Presence::Stopped,
            _ => Presence::Running,
        },
        // It may be hidden from us; only a process that nobody can signal is gone.
        None if is_gone(birth.process) => Presence::Dead,
        None => Presence::Unknown,
    }
}

/// The runners that are there and can take a task now. Those that are certainly dead are reaped on
/// the way.
///
/// Runners whose process cannot be seen are considered only if none can: then their count of
/// heartbeats is compared over one and a half seconds. Usually nothing is waited for.
pub async fn available_runners(store: &dyn LeaseStore) -> Result<Vec<RunnerId>, StoreError> {
    let (mut available, mut unknown) = (Vec::new(), Vec::new());
    for seen in store.runners().await? {
        match presence(&seen.id) {
            Presence::Running => available.push(seen.id),
            Presence::Dead => store.reap_runner(&seen).await?,
            Presence::Unknown if !seen.is_silent => unknown.push(seen),
            Presence::Stopped | Presence::Unknown => {}
        }
    }
    if available.is_empty() && !unknown.is_empty() {
        available = alive_of(store, &unknown).await?;
    }
    Ok(available)
}

/// Those that show a sign of life.
async fn alive_of(
    store: &dyn LeaseStore,
    unknown: &[RunnerSeen],
) -> Result<Vec<RunnerId>, StoreError> {
    tokio::time::sleep(SIGN_OF_LIFE).await;
    let later = store.runners().await?;
    let moved = |now: &RunnerSeen| {
        let before = unknown.iter().find(|before| before.id == now.id);
        before.is_some_and(|before| before.beats != now.beats)
    };
    Ok(later.into_iter().filter(moved).map(|now| now.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_dead_is_said_to_be_dead() {
        let ours = Birth::read(&name()).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (start, _) = vital_signs(child.id()).unwrap();
        let of = |boot: &str, process: u32, start: &str| {
            RunnerId(format!("x{MARK}{boot}.{}.{process}.{start}", ours.table))
        };
        let living = of(&ours.boot, child.id(), &start);
        assert_eq!(presence(&RunnerId(name())), Presence::Running);
        assert_eq!(presence(&living), Presence::Running);
        assert_eq!(presence(&of(&ours.boot, child.id(), "1")), Presence::Dead);
        assert_eq!(
            presence(&of("otherboot", 4_000_000, "1")),
            Presence::Unknown
        );
        let unnamed = RunnerId("no certificate".to_owned());
        assert_eq!(presence(&unnamed), Presence::Unknown);

        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        while vital_signs(child.id()).is_some_and(|(_, state)| state != "T") {
            std::thread::yield_now();
        }
        assert_eq!(presence(&living), Presence::Stopped);
        child.kill().unwrap();
        // Not yet waited for: a zombie runs nothing.
        while vital_signs(child.id()).is_some_and(|(_, state)| state != "Z") {
            std::thread::yield_now();
        }
        assert_eq!(presence(&living), Presence::Dead);
        child.wait().unwrap();
        assert_eq!(presence(&living), Presence::Dead);
    }
}
