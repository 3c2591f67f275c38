//! Runs edit cases through the matching core: a file of cases (JSON lines) in, results out.
//!
//! `cargo run -p codespar-tools --example eval_edits -- CASES.jsonl > RESULTS.jsonl`

use std::{error::Error, fs};

use codespar_tools::matching::{Block, Occurrence, apply_blocks, replace_string};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Case {
    id: String,
    unit: String,
    original: String,
    edit_blocks: Vec<CaseBlock>,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Deserialize)]
struct CaseBlock {
    search: String,
    replace: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        for line in fs::read_to_string(path)?.lines() {
            let case: Case = serde_json::from_str(line)?;
            let result = match run(&case) {
                Ok(text) => json!({"id": case.id, "text": text}),
                Err(reason) => json!({"id": case.id, "refused": reason}),
            };
            println!("{result}");
        }
    }
    Ok(())
}

fn run(case: &Case) -> Result<String, String> {
    if case.unit == "lines" {
        return lines(case);
    }
    let occurrence = if case.replace_all {
        Occurrence::All
    } else {
        Occurrence::One
    };
    let mut text = case.original.clone();
    for block in &case.edit_blocks {
        text = replace_string(&text, &block.search, &block.replace, occurrence)
            .map_err(|failure| failure.to_string())?
            .text;
    }
    Ok(text)
}

fn lines(case: &Case) -> Result<String, String> {
    let blocks: Vec<Block> = case
        .edit_blocks
        .iter()
        .map(|block| Block {
            search: block.search.clone(),
            replace: block.replace.clone(),
        })
        .collect();
    apply_blocks(&case.original, &blocks)
        .map(|applied| applied.text)
        .map_err(|failures| {
            let words: Vec<String> = failures.iter().map(ToString::to_string).collect();
            words.join("\n")
        })
}
