//! The files of `deploy/`: what they start exists, and the programs that read them understand them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use codespar_testkit::Script;

use crate::common::Bench;

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(name)
}

/// The options of the lines in which a file starts the server.
fn options(text: &str) -> Vec<String> {
    let (_, command) = text.split_once("codespar serve").unwrap();
    // Lines of a folded text belong together; the command ends with its quotation or its line.
    let command = command.split(['"', '#']).next().unwrap();
    let command = command.split("\n# ").next().unwrap();
    let words = command.split_whitespace();
    words
        .take_while(|word| !word.contains('='))
        .filter(|word| word.starts_with("--"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn deployment_files_start_the_server_with_options_that_it_has() {
    let bench = Bench::new(Script::new());
    let help = bench.run(&["serve", "--help"]).stdout;
    for name in ["codespar.service", "compose.yaml"] {
        let text = std::fs::read_to_string(deploy(name)).unwrap();
        let options = options(&text);
        assert!(options.len() >= 2, "{name}: {options:?}");
        for option in options {
            assert!(
                help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
                "{name}: {option}"
            );
        }
    }
}

/// The unit keeps what the sandbox of commands needs.
#[test]
fn the_unit_leaves_namespaces_and_proc_to_the_sandbox() {
    let unit = std::fs::read_to_string(deploy("codespar.service")).unwrap();
    let is_set = |name: &str| {
        unit.lines()
            .any(|line| line.starts_with(&format!("{name}=")))
    };
    for breaks in [
        "RestrictNamespaces",
        "SystemCallFilter",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectProc",
        "ProcSubset",
        "PrivateUsers",
        "MemoryDenyWriteExecute",
    ] {
        assert!(!is_set(breaks), "{breaks}");
    }
    assert!(is_set("NoNewPrivileges"));
}

#[test]
#[ignore = "needs systemd-analyze"]
fn systemd_understands_the_unit() {
    let dir = tempfile::tempdir().unwrap();
    let unit = std::fs::read_to_string(deploy("codespar.service")).unwrap();
    let program = env!("CARGO_BIN_EXE_codespar");
    let unit = unit.replace("/usr/local/bin/codespar", program);
    let file = dir.path().join("codespar.service");
    std::fs::write(&file, unit).unwrap();
    let checked = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&file)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&checked.stderr);
    // It tells of every unit of the machine; only ours counts.
    let ours: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("codespar.service"))
        .collect();
    assert!(ours.is_empty(), "{told}");
}
