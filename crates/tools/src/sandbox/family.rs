//! The processes below this one.
//!
//! They are found by their parents in `/proc`. A process cannot leave the family, as watchers are
//! subreapers: one whose parent ends becomes a child of the watcher. It can however fork between
//! the listing and a signal, so whoever wants all of them gone repeats it
//! (`watch::Family::kill_all`).

use std::{collections::HashMap, fs};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// What `/proc/<pid>/stat` tells of a process.
struct Process {
    parent: i32,
    name: String,
    state: char,
}

/// Sends a signal to every process below this one, except to those in `spared` and below them.
/// Those that have ended meanwhile, or belong to somebody else, are passed over.
pub(super) fn signal_all(signal: Signal, spared: &[Pid]) {
    for (pid, _) in below(spared) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Sends a signal to every process below another one, but not to that one: the sandbox's own
/// process stays to tell how the command ended.
pub(super) fn signal_below(top: Pid, signal: Signal) {
    for (pid, _) in descendants(top, &[]) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// How many processes are below this one.
pub(super) fn count() -> usize {
    below(&[]).len()
}

/// Names of the living processes below this one, at most `limit`; without `own`, the name of the
/// sandbox's own process. Each name is listed once, in order. Processes that have ended but are not
/// collected yet do not count.
pub(super) fn names(limit: usize, own: Option<&str>) -> Vec<String> {
    let mut names: Vec<String> = below(&[])
        .into_iter()
        .filter(|(_, process)| process.state != 'Z')
        .map(|(_, process)| process.name)
        .filter(|name| Some(name.as_str()) != own)
        .collect();
    names.sort();
    names.dedup();
    names.truncate(limit);
    names
}

fn below(spared: &[Pid]) -> Vec<(i32, Process)> {
    descendants(getpid(), spared)
}

/// Without a spared process its children are not reached either. Zombies are included.
fn descendants(top: Pid, spared: &[Pid]) -> Vec<(i32, Process)> {
    let mut all = every_process();
    all.retain(|pid, _| spared.iter().all(|spared| spared.as_raw_pid() != *pid));
    let mut found = Vec::new();
    let mut parents = vec![top.as_raw_pid()];
    while let Some(parent) = parents.pop() {
        let children: Vec<i32> = all
            .iter()
            .filter(|(_, process)| process.parent == parent)
            .map(|(pid, _)| *pid)
            .collect();
        for child in children {
            parents.push(child);
            found.extend(all.remove_entry(&child));
        }
    }
    found
}

/// Every process that can be seen; one that ends while `/proc` is read is left out.
fn every_process() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parse(&String::from_utf8_lossy(&stat))?))
        })
        .collect()
}

/// `pid (name) state parent …`; the name may contain anything, parentheses too.
fn parse(stat: &str) -> Option<Process> {
    let (start, end) = (stat.find('(')?, stat.rfind(')')?);
    let mut rest = stat.get(end + 1..)?.split_whitespace();
    Some(Process {
        name: stat.get(start + 1..end)?.to_owned(),
        state: rest.next()?.chars().next()?,
        parent: rest.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_parent() {
        let process = parse("42 (a) R 1 (b) S 7 42 0").unwrap();
        assert_eq!(
            (process.name.as_str(), process.state, process.parent),
            ("a) R 1 (b", 'S', 7)
        );
    }
}
