//! Tests of what is shared by several machines: the store on a database server, and workers on hosts
//! of their own.

mod postgres;
mod trial;

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::{
    steps::{self, SHIPPED},
    tools::on_path,
};
use postgres::PostgresServer;

pub(crate) use postgres::program;
pub(crate) use trial::{TrialArgs, run as run_trial};

/// The test programs that have tests of a database server.
const PROGRAMS: &[&str] = &[
    "admission",
    "admission_at_once",
    "changes",
    "channels",
    "contract",
    "dispatch",
    "fencing",
    "fleet",
    "outputs",
    "postgres",
    "pulls",
    "tasks",
    "tokens",
    "transfer",
    "trees",
];

/// Runs them; returns what was skipped, and why.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    if !PostgresServer::is_installed() {
        let why = "needs PostgreSQL: apt-get install postgresql";
        return Ok(vec![format!("tests of the store on PostgreSQL ({why})")]);
    }
    let server = PostgresServer::start()?;
    for mut command in commands(root) {
        steps::run(command.env("CODESPAR_TEST_POSTGRES", server.url()))?;
    }
    drop(server);
    trial::run_short(root)
}

/// Those of their tests that are called after the database: by their module, or by their program.
fn commands(root: &Path) -> Vec<Command> {
    let programs: Vec<&str> = PROGRAMS.iter().flat_map(|name| ["--test", name]).collect();
    let command = |args: &[&[&str]]| {
        let mut command = steps::cargo(root);
        command.args(args.concat());
        command
    };
    if on_path("cargo-nextest") {
        let run = [
            "nextest",
            "run",
            "--workspace",
            "--no-fail-fast",
            SHIPPED[0],
            SHIPPED[1],
        ];
        let which = [
            "--run-ignored",
            "only",
            "-E",
            "test(/^postgres::/) + binary(postgres)",
        ];
        return vec![command(&[&run, &programs, &which])];
    }
    let run = [
        "test",
        "--workspace",
        "--no-fail-fast",
        SHIPPED[0],
        SHIPPED[1],
    ];
    vec![
        command(&[&run, &programs, &["--", "--ignored", "postgres::"]]),
        command(&[&run, &["--test", "postgres", "--", "--ignored"]]),
    ]
}
