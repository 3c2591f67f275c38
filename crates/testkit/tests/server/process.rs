//! Processes started, waited for, killed and looked for.

use std::{collections::BTreeMap, io, os::unix::process::ExitStatusExt, time::Duration};

use codespar_testkit::process::{
    CleanRoom, MARK, kill_9, processes_with_cmdline, processes_with_env, spawn, spawn_with_stdin,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn shell(room: &CleanRoom, script: &str) -> std::process::Command {
    let mut command = room.command("/bin/sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_command_has_a_clean_environment_and_a_home_of_its_own() {
    let room = CleanRoom::new().unwrap();
    let ended = spawn(&mut room.command("env"))
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    let variables: BTreeMap<&str, &str> = ended
        .stdout
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let names: Vec<&str> = variables.keys().copied().collect();
    let expected = [
        "CODESPAR_HOME",
        MARK,
        "HOME",
        "LANG",
        "PATH",
        "TERM",
        "TMPDIR",
    ];
    assert_eq!(names, expected);
    assert_eq!(variables["HOME"], room.home().to_str().unwrap());
    assert_eq!(
        variables["CODESPAR_HOME"],
        room.codespar_home().to_str().unwrap()
    );
    assert!(room.home().is_dir() && room.codespar_home().is_dir());
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn output_input_and_status_come_back() {
    let room = CleanRoom::new().unwrap();
    let mut command = shell(&room, "cat; echo oops >&2; exit 3");
    let ended = spawn_with_stdin(&mut command, b"in".to_vec())
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("in", "oops\n")
    );
    assert_eq!(ended.status.code(), Some(3));
}

#[test]
fn a_process_that_does_not_end_in_time_is_killed_and_reported() {
    let room = CleanRoom::new().unwrap();
    let mut running = spawn(&mut shell(&room, "echo begun; exec sleep 600")).unwrap();
    running.wait_for_output("begun\n", PATIENCE).unwrap();
    let pid = running.pid();
    let error = running.wait(Duration::from_millis(10)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(
        error.to_string(),
        format!("process {pid} did not end within 10ms\nstdout: begun\n\nstderr: ")
    );
    assert_eq!(room.alive().unwrap(), Vec::<u32>::new());
}

#[test]
fn waiting_for_output_ends_with_the_process() {
    let room = CleanRoom::new().unwrap();
    let mut running = spawn(&mut shell(&room, "echo one; echo two >&2")).unwrap();
    let error = running.wait_for_output("three", PATIENCE).unwrap_err();
    let expected = format!(
        "process {} did not write `three`\nstdout: one\n\nstderr: two\n",
        running.pid()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn output_is_not_waited_for_when_an_orphan_holds_the_pipe() {
    let room = CleanRoom::new().unwrap();
    let mut command = shell(&room, "sleep 600 & echo $!");
    let ended = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    let orphan: u32 = ended.stdout.trim().parse().unwrap();
    assert_eq!(room.alive().unwrap(), [orphan]);
    kill_9(orphan).unwrap();
}

#[test]
fn signals_reach_the_process() {
    let room = CleanRoom::new().unwrap();
    let start = || spawn(room.command("sleep").arg("600")).unwrap();
    let terminated = start();
    terminated.terminate().unwrap();
    assert_eq!(terminated.wait(PATIENCE).unwrap().status.signal(), Some(15));
    let interrupted = start();
    interrupted.interrupt().unwrap();
    assert_eq!(interrupted.wait(PATIENCE).unwrap().status.signal(), Some(2));
    assert_eq!(start().kill_9().unwrap().status.signal(), Some(9));
}

#[test]
fn orphans_are_found_by_their_mark_until_they_are_gone() {
    let room = CleanRoom::new().unwrap();
    let script = "sleep 600 >/dev/null 2>&1 & echo $!; exec sleep 600";
    let mut running = spawn(&mut shell(&room, script)).unwrap();
    running.wait_for_output("\n", PATIENCE).unwrap();
    let both = room.alive().unwrap();
    assert_eq!(both.len(), 2);
    assert!(both.contains(&running.pid()));
    let ended = running.kill_9().unwrap();
    let orphan: u32 = ended.stdout.trim().parse().unwrap();
    assert_eq!(
        room.wait_until_empty(Duration::from_millis(20)).unwrap(),
        [orphan]
    );
    assert_eq!(processes_with_env(MARK, room.mark()).unwrap(), [orphan]);
    assert_eq!(
        processes_with_env(MARK, "another mark").unwrap(),
        Vec::<u32>::new()
    );
    kill_9(orphan).unwrap();
    assert_eq!(room.wait_until_empty(PATIENCE).unwrap(), Vec::<u32>::new());
}

#[test]
fn dropping_a_running_process_kills_it() {
    let room = CleanRoom::new().unwrap();
    let running = spawn(room.command("sleep").arg("600")).unwrap();
    drop(running);
    assert_eq!(room.alive().unwrap(), Vec::<u32>::new());
}

#[test]
fn a_process_is_found_by_a_part_of_its_command_line() {
    let room = CleanRoom::new().unwrap();
    let word = room.mark().to_owned();
    let running = spawn(
        room.command("tail")
            .args(["-f", "/dev/null", "--retry"])
            .arg(&word),
    )
    .unwrap();
    let found = loop {
        let found = processes_with_cmdline(&format!("--retry {word}")).unwrap();
        if !found.is_empty() {
            break found;
        }
    };
    assert_eq!(found, [running.pid()]);
}
