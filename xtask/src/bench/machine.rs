//! What the figures were measured on, without names.

use std::{fs, thread};

use serde::Serialize;

/// The machine, as far as it matters. No host name, no model of the processor: the figures are
/// published.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Machine {
    cores: usize,
    memory_gb: Option<u64>,
    system: String,
    /// Processes that wanted to run in the last minute, before the measurements.
    load: Option<f64>,
}

impl Machine {
    pub(super) fn look() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_gb: memory_gb(&text("/proc/meminfo")),
            system: system(&text("/proc/sys/kernel/osrelease")),
            load: text("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok()),
        }
    }

    pub(super) fn describe(&self) -> String {
        let mut text = format!("{} cores, ", self.cores);
        if let Some(memory) = self.memory_gb {
            text.push_str(&format!("{memory} GB of memory, "));
        }
        text.push_str(&self.system);
        if let Some(load) = self.load {
            text.push_str(&format!("; load before: {load:.1}"));
        }
        text
    }

    /// Whether others were at work, so that times are too long.
    pub(super) fn is_busy(&self) -> bool {
        self.load.is_some_and(|load| load > self.cores as f64 / 2.0)
    }
}

/// Decimal gigabytes, rounded. `None` where there is no `/proc/meminfo`.
fn memory_gb(meminfo: &str) -> Option<u64> {
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.split_whitespace().next()?.parse().ok()?;
    Some((kibibytes as f64 * 1024.0 / 1e9).round() as u64)
}

/// `Linux 6.18 on x86_64`: the part of the release after the second number names a build.
fn system(release: &str) -> String {
    let numbers: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    if release.is_empty() {
        return format!("{os} on {arch}");
    }
    format!("Linux {} on {arch}", numbers.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_named_without_its_build() {
        let arch = std::env::consts::ARCH;
        assert_eq!(
            system("6.18.44-private-name\n"),
            format!("Linux 6.18 on {arch}")
        );
    }

    #[test]
    fn memory_is_told_in_whole_gigabytes() {
        assert_eq!(
            memory_gb("MemTotal:       24000000 kB\nMemFree: 1 kB\n"),
            Some(25)
        );
        assert_eq!(memory_gb(""), None);
    }

    #[test]
    fn a_machine_with_more_work_than_half_its_cores_is_busy() {
        let machine = |load| Machine {
            cores: 2,
            memory_gb: Some(8),
            system: "Linux 6.18 on x86_64".to_owned(),
            load: Some(load),
        };
        assert!(machine(1.1).is_busy());
        assert!(!machine(0.9).is_busy());
        assert_eq!(
            machine(0.25).describe(),
            "2 cores, 8 GB of memory, Linux 6.18 on x86_64; load before: 0.2"
        );
    }
}
