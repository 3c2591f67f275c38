//! Cases over strings, as calls of the Edit tool by a scripted model: one session for all.
//!
//! The scripted model reads each file and then calls Edit for each block. Permissions, dispatch and
//! the record of read files are those of a real run.

use std::{collections::HashSet, fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use codespar_testkit::{
    Script, ScriptedModel, Turn,
    process::{CleanRoom, spawn},
};
use serde_json::json;

use super::case::{Case, Outcome};

const PATIENCE: Duration = Duration::from_secs(300);

/// The results of all calls are in the last request. A call without a result is an error of the
/// evaluation. One failed block makes the case a refusal, even if others were applied: the tool
/// edits block by block.
pub(super) fn run(codespar: &Path, cases: &[&Case]) -> Result<Vec<Outcome>> {
    let room = CleanRoom::new()?;
    fs::create_dir(room.work().join(".git"))?;
    let mut turns = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        fs::write(room.work().join(name(index)), &case.original)?;
        turns.push(Turn::tool("Read", &json!({"file_path": name(index)})));
        for (block, edit) in case.edit_blocks.iter().enumerate() {
            let input = json!({
                "file_path": name(index), "old_string": edit.search, "new_string": edit.replace,
                "replace_all": case.replace_all,
            });
            turns.push(Turn::new().and_tool_with_id(id(index, block), "Edit", &input));
        }
    }
    turns.push(Turn::text("Done."));
    let server = ScriptedModel::start_blocking(Script::of(turns))?;
    let mut command = room.command(codespar);
    command
        .args(["-p", "edit", "--allowedTools", "Read,Edit"])
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("ANTHROPIC_API_KEY", "a-key-for-evaluations-0001");
    let done = spawn(&mut command)?.wait(PATIENCE)?;
    ensure!(
        done.status.success(),
        "the run ended with {}: {}",
        done.status,
        done.stderr
    );
    let requests = server.requests();
    let results = requests.last().context("no request came")?.tool_results();
    let known: HashSet<&str> = results
        .iter()
        .map(|result| result.tool_use_id.as_str())
        .collect();
    let outcome = |(index, case): (usize, &&Case)| {
        let ids: Vec<String> = (0..case.edit_blocks.len())
            .map(|block| id(index, block))
            .collect();
        ensure!(
            ids.iter().all(|id| known.contains(id.as_str())),
            "{}: an edit is missing",
            case.id
        );
        let failed = results
            .iter()
            .find(|result| result.is_error && ids.contains(&result.tool_use_id));
        Ok(match failed {
            Some(failed) => Outcome::Refused(failed.text.clone()),
            None => Outcome::Text(fs::read_to_string(room.work().join(name(index)))?),
        })
    };
    cases.iter().enumerate().map(outcome).collect()
}

/// Each case has a file of its own, so an edit cannot touch that of another case.
fn name(case: usize) -> String {
    format!("case_{case}.txt")
}

/// Chosen by us, so that a result can be assigned to its block.
fn id(case: usize, block: usize) -> String {
    format!("toolu_{case}_{block}")
}
