//! Machines that lack what sandboxes are made of.

use std::process::Command;

use codespar_testkit::process::{Finished, spawn};

use super::{Bench, PATIENCE};

/// Runs the command where bubblewrap is not installed and the kernel has neither Landlock nor the
/// calls that mount a file system. The settings are the usual ones.
pub(crate) fn without_a_sandbox(bench: &Bench, args: &[&str]) -> Finished {
    let filter = bench.room.home().join("old-kernel.bpf");
    std::fs::write(&filter, old_kernel()).unwrap();
    let places = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
    let masks = places
        .into_iter()
        .filter(|place| std::fs::symlink_metadata(place).is_ok_and(|kind| kind.is_file()))
        .flat_map(|place| ["--ro-bind", "/dev/null", place]);
    let mut command = bench.room.command("sh");
    command
        .args(["-c", "exec bwrap --seccomp 9 \"$@\" 9<\"$0\""])
        .arg(&filter)
        .args(["--dev-bind", "/", "/"])
        .args(masks);
    run_in(command, bench, args)
}

/// Runs the command where no control group can be made.
pub(crate) fn without_control_groups(bench: &Bench, args: &[&str]) -> Finished {
    let mut command = bench.room.command("bwrap");
    command.args(["--dev-bind", "/", "/", "--ro-bind", "/sys", "/sys"]);
    run_in(command, bench, args)
}

/// Completes a line that ends with options of bubblewrap.
fn run_in(mut command: Command, bench: &Bench, args: &[&str]) -> Finished {
    let inner = bench.command(args);
    command.arg("--").arg(inner.get_program());
    command.args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(inner.get_current_dir().unwrap());
    spawn(&mut command).unwrap().wait(PATIENCE).unwrap()
}

/// A seccomp program under which `landlock_create_ruleset` and `fsopen` (444 and 430 everywhere) are
/// not there.
fn old_kernel() -> Vec<u8> {
    const NOT_THERE: u32 = 0x0005_0000 | 38;
    const ALLOWED: u32 = 0x7fff_0000;
    let program: [(u16, u8, u8, u32); 5] = [
        (0x20, 0, 0, 0),
        (0x15, 1, 0, 444),
        (0x15, 0, 1, 430),
        (0x06, 0, 0, NOT_THERE),
        (0x06, 0, 0, ALLOWED),
    ];
    let bytes = |(code, yes, no, value): (u16, u8, u8, u32)| {
        [&code.to_ne_bytes()[..], &[yes, no], &value.to_ne_bytes()].concat()
    };
    program.into_iter().flat_map(bytes).collect()
}
