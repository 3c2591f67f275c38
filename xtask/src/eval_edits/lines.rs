//! Cases over whole lines, as answers to `codespar apply`.
//!
//! Each case is a run of the binary in a directory of its own, with the answer on standard input.
//! Exit code 2 is a refusal; anything but 0 and 2 ends the evaluation, since the program and not
//! the edit has failed.

use std::{fs, path::Path, time::Duration};

use anyhow::{Result, bail};
use codespar_testkit::process::{CleanRoom, spawn_with_stdin};
use serde_json::Value;

use super::case::{Case, Outcome};

/// A run takes some milliseconds; longer means that it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const NAME: &str = "case.txt";
const MARKERS: &[&str] = &["===", "<<<", ">>>"];

pub(super) fn run(codespar: &Path, case: &Case) -> Result<Outcome> {
    let room = CleanRoom::new()?;
    let file = room.work().join(NAME);
    fs::write(&file, &case.original)?;
    let mut command = room.command(codespar);
    command.args(["apply", "--json"]);
    let done = spawn_with_stdin(&mut command, answer(case).into_bytes())?.wait(PATIENCE)?;
    match done.status.code() {
        Some(0) => Ok(Outcome::Text(fs::read_to_string(&file)?)),
        Some(2) => {
            let report: Value = serde_json::from_str(&done.stdout)?;
            Ok(Outcome::Refused(report["blocks"].to_string()))
        }
        _ => bail!(
            "{}: `codespar apply` ended with {}: {}",
            case.id,
            done.status,
            done.stderr
        ),
    }
}

/// All blocks of the case in one `===FILE===` section.
fn answer(case: &Case) -> String {
    let mut text = format!("===FILE: {NAME}===\n");
    for block in &case.edit_blocks {
        text.push_str("<<<SEARCH\n");
        push_lines(&mut text, &block.search);
        text.push_str(">>>REPLACE\n");
        push_lines(&mut text, &block.replace);
    }
    text.push_str("===END===\n");
    text
}

/// No text is no line; lines that might be markers get a backslash. Backslashes that are there
/// already are kept, and one is added.
fn push_lines(text: &mut String, lines: &str) {
    if lines.is_empty() {
        return;
    }
    for line in lines.split('\n') {
        if is_marker(line.trim_start_matches('\\')) {
            text.push('\\');
        }
        text.push_str(line);
        text.push('\n');
    }
}

fn is_marker(line: &str) -> bool {
    let line = line.trim_end();
    let named = |word: &str| line.starts_with(word) && line.ends_with("===");
    MARKERS.iter().any(|start| line.starts_with(start))
        && (["===FILE:", "===DELETE:", "===MOVE:", "===END"]
            .iter()
            .any(|word| named(word))
            || line.ends_with("SEARCH")
            || line.ends_with("REPLACE"))
}
