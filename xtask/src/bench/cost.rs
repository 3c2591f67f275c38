//! `cargo xtask measure`: runs one command and writes down what it cost.
//!
//! This is a process of its own because the kernel counts the memory of the process that starts a
//! command towards the command's peak: a starter must be smaller than what it measures.

use std::{
    ffi::OsString,
    fs, io,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};

/// Run a command and write what it cost to a file.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    report: PathBuf,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What one process cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// When it was started.
    pub(super) started: SystemTime,
    /// Until it ended.
    pub(super) wall: Duration,
    /// User and system time of its own.
    pub(super) cpu: Duration,
    /// The same of its children, to a hundredth of a second.
    pub(super) children_cpu: Duration,
    /// Peak resident memory in bytes: its own, or that of its largest child if that is larger.
    pub(super) peak: u64,
    /// `None` if a signal ended it.
    pub(super) code: Option<i32>,
}

/// The child is waited for without being reaped, so that its entry in `/proc` can still be read;
/// then it is reaped with its usage.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (program, arguments) = args.command.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let started = SystemTime::now();
    let begin = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let pid = Pid::from_child(&child);
    // It stays to be looked at until it is reaped.
    waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )?;
    let wall = begin.elapsed();
    let children_cpu = children_cpu(pid);
    let reaped = reap(pid)?;
    let cost = Cost {
        started,
        wall,
        cpu: reaped.cpu.saturating_sub(children_cpu),
        children_cpu,
        peak: reaped.peak,
        code: reaped.code,
    };
    fs::write(&args.report, serde_json::to_vec(&cost)?)
        .with_context(|| format!("cannot write {}", args.report.display()))
}

/// CPU time of the children that a process has waited for, as `/proc` tells it; zero without one.
fn children_cpu(pid: Pid) -> Duration {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = fs::read_to_string(path).unwrap_or_default();
    Duration::from_millis(10 * children_ticks(&stat).unwrap_or(0))
}

/// `cutime` and `cstime`, in hundredths of a second (the kernel promises that unit to programs).
fn children_ticks(stat: &str) -> Option<u64> {
    // The second field is the name of the program and may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(13);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

struct Reaped {
    /// With that of its children.
    cpu: Duration,
    peak: u64,
    code: Option<i32>,
}

/// The standard library gives no usage of a child, so the system call is made directly.
#[allow(unsafe_code)]
fn reap(pid: Pid) -> io::Result<Reaped> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live memory of the right type for the time of the call.
    let reaped = unsafe {
        libc::wait4(
            pid.as_raw_nonzero().get(),
            &raw mut status,
            0,
            usage.as_mut_ptr(),
        )
    };
    if reaped < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros is a valid `rusage`, and the call has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Reaped {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak: peak_bytes(usage.ru_maxrss.unsigned_abs()),
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
    })
}

fn time(value: libc::timeval) -> Duration {
    let seconds = Duration::from_secs(value.tv_sec.unsigned_abs());
    // Its type differs between systems; it is never negative.
    seconds + Duration::from_micros(value.tv_usec.try_into().unwrap_or(0))
}

/// Linux counts the peak in kibibytes, macOS in bytes.
fn peak_bytes(peak: u64) -> u64 {
    if cfg!(target_os = "macos") {
        peak
    } else {
        peak * 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost_of(script: &str) -> Cost {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("cost.json");
        let command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        run(&Args {
            report: report.clone(),
            command,
        })
        .unwrap();
        serde_json::from_slice(&fs::read(report).unwrap()).unwrap()
    }

    #[test]
    fn the_way_a_command_ended_is_told() {
        assert_eq!(cost_of("exit 3").code, Some(3));
        assert_eq!(cost_of("kill -9 $$").code, None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_work_of_children_is_counted_apart() {
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let child = cost_of(&format!("/bin/sh -c '{work}'; :"));
        assert!(child.children_cpu > child.cpu, "{child:?}");
        let own = cost_of(work);
        assert!(own.cpu > own.children_cpu && own.peak > 0, "{own:?}");
    }

    #[test]
    fn the_name_of_a_program_does_not_confuse_the_count() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 1";
        assert_eq!(children_ticks(stat), Some(27));
        assert_eq!(children_ticks(""), None);
    }
}
