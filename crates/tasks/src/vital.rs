//! Telling that another runner on this machine is dead, so that its tasks need not wait for their
//! leases to run out.
//!
//! A runner's name carries where and when its process was born: the machine's boot, the table of
//! processes, the process and its start. Whoever shares the first two can look for the rest. What
//! cannot be read proves nothing: then the lease decides.

use codespar_store::{RunnerId, StoreError, TaskStore};

/// Between the fresh part of a name and the certificate.
const MARK: char = '~';

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

/// The runners that live; those that are certainly dead are buried on the way.
pub async fn living_runners(store: &dyn TaskStore) -> Result<Vec<RunnerId>, StoreError> {
    let announced = store.living_runners().await?;
    let dead = dead(announced.clone());
    for runner in &dead {
        store.bury_runner(runner).await?;
    }
    Ok(announced
        .into_iter()
        .filter(|runner| !dead.contains(runner))
        .collect())
}

/// Those that are certainly dead.
fn dead(runners: Vec<RunnerId>) -> Vec<RunnerId> {
    let Some(ours) = Birth::ours() else {
        return Vec::new();
    };
    let is_dead = |runner: &RunnerId| {
        let Some(birth) = Birth::read(&runner.0) else {
            return false;
        };
        let within_sight = birth.boot == ours.boot && birth.table == ours.table;
        within_sight
            && match vital_signs(birth.process) {
                Some((start, state)) => start != birth.start || matches!(&*state, "Z" | "X"),
                // It may be hidden from us; only a process that nobody can signal is gone.
                None => is_gone(birth.process),
            }
    };
    runners.into_iter().filter(is_dead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_dead_is_said_to_be_dead() {
        let own = name();
        let ours = Birth::read(&own).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (start, _) = vital_signs(child.id()).unwrap();
        let of = |boot: &str, process: u32, start: &str| {
            RunnerId(format!("x{MARK}{boot}.{}.{process}.{start}", ours.table))
        };
        let living = of(&ours.boot, child.id(), &start);
        let reused = of(&ours.boot, child.id(), "1");
        let elsewhere = of("otherboot", 4_000_000, "1");
        let unknown = RunnerId("no certificate".to_owned());
        let all = || {
            vec![
                RunnerId(own.clone()),
                living.clone(),
                reused.clone(),
                elsewhere.clone(),
                unknown.clone(),
            ]
        };
        assert_eq!(dead(all()), std::slice::from_ref(&reused));
        child.kill().unwrap();
        // Not yet waited for: a zombie runs nothing.
        while vital_signs(child.id()).is_some_and(|(_, state)| state != "Z") {
            std::thread::yield_now();
        }
        assert_eq!(dead(all()), [living.clone(), reused.clone()]);
        child.wait().unwrap();
        assert_eq!(dead(all()), [living, reused]);
    }
}
