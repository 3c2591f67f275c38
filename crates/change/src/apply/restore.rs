//! Answers of a model that was shown files without their secrets: marks in its blocks become what
//! they stand for, or the blocks are refused.
//!
//! A model that was shown `[redacted]` cannot repeat the secret in a SEARCH text. What it writes is
//! compared with the file through the same redactor, so that its marks can be replaced by what they
//! stand for. A mark that stands for nothing in the file would be written into it literally, as a
//! broken secret; so it is refused.

use std::collections::HashMap;

use codespar_policy::{Redactor, first_new_mark};
use codespar_protocol::RepoPath;

use super::{
    report::{BlockOutcome, BlockReport, Refusal},
    source::Source,
};
use crate::answer::{Block, Op, ParsedAnswer};

const NEW_MARK: &str = "it has `[redacted]`, which stands for a secret that was not shown and is not in this \
                        file; read it from where it is configured, or leave it out";

/// The answer as it is meant for the files of `source`, which the model saw through `redactor`. All
/// or nothing, as with `apply`. Called only if the model was shown a mark in some file.
pub fn restored(
    mut answer: ParsedAnswer,
    source: &dyn Source,
    redactor: &Redactor,
) -> Result<ParsedAnswer, Refusal> {
    let moves: HashMap<String, String> = answer
        .ops
        .iter()
        .filter_map(|op| match op {
            Op::Move { from, to } => Some((to.clone(), from.clone())),
            _ => None,
        })
        .collect();
    // What cannot be read as text is refused when it is applied.
    let text = |path: &str| {
        let path = RepoPath::new(moves.get(path).map_or(path, String::as_str)).ok()?;
        String::from_utf8(source.file(&path).ok()??.content).ok()
    };
    let mut blocks: Vec<BlockReport> = Vec::new();
    let mut report = |path: &str, outcome: Result<(), String>| {
        let earlier = blocks.iter().filter(|block| block.path == path).count();
        let mut block = BlockReport::new(path, earlier + 1);
        if let Err(reason) = outcome {
            block.refuse(reason);
        }
        blocks.push(block);
    };
    for op in &mut answer.ops {
        match op {
            Op::Write { path, content } => {
                let before = text(path).unwrap_or_default();
                let is_new = first_new_mark(&before, content).is_some();
                report(
                    path,
                    if is_new {
                        Err(NEW_MARK.to_owned())
                    } else {
                        Ok(())
                    },
                );
            }
            Op::Edit { path, edits } => {
                let before = text(path).unwrap_or_default();
                for edit in edits {
                    report(path, restore(edit, &before, redactor));
                }
            }
            Op::Delete { path } | Op::Move { from: path, .. } => report(path, Ok(())),
        }
    }
    if blocks
        .iter()
        .any(|block| block.outcome == BlockOutcome::Refused)
    {
        for block in &mut blocks {
            if block.outcome == BlockOutcome::Applied {
                block.outcome = BlockOutcome::HeldBack;
            }
        }
        return Err(Refusal { blocks });
    }
    Ok(answer)
}

/// Changes the pair in place. A mark in the replacement that the SEARCH text does not have is new.
fn restore(edit: &mut Block, before: &str, redactor: &Redactor) -> Result<(), String> {
    match redactor.restore(before, &edit.search, &edit.replace) {
        Ok(Some((search, replace))) => *edit = Block { search, replace },
        Ok(None) if first_new_mark(&edit.search, &edit.replace).is_some() => {
            return Err(NEW_MARK.to_owned());
        }
        Ok(None) => {}
        Err(error) => return Err(error.to_string()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use codespar_protocol::FileMode;

    use super::*;
    use crate::{
        answer::{AnswerContext, parse},
        apply::{MapSource, SourceFile},
    };

    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    fn source() -> MapSource {
        let mut source = MapSource::new();
        let content = format!("import os\nkey = '{TOKEN}'\nrun(key)\n");
        let file = SourceFile {
            content: content.into_bytes(),
            mode: FileMode::Regular,
            partial: true,
        };
        source.insert(RepoPath::new("a.py").unwrap(), file);
        source
    }

    fn ops(answer: &str) -> Result<Vec<Op>, String> {
        let answer = parse(answer, &AnswerContext::default()).unwrap();
        restored(answer, &source(), &Redactor::by_shape())
            .map(|answer| answer.ops)
            .map_err(|refusal| refusal.for_model())
    }

    #[test]
    fn a_block_finds_the_line_of_a_secret_by_its_mark() {
        let answer = "===MOVE: a.py -> b.py===\n===FILE: b.py===\n<<<SEARCH\nkey = '[redacted]'\nrun(key)\n>>>REPLACE\n\
                      key = os.environ['KEY']\nrun(key)\n===END===\n";
        let ops = ops(answer).unwrap();
        let Op::Edit { edits, .. } = &ops[1] else {
            panic!("{ops:?}");
        };
        assert!(edits[0].search.starts_with(&format!("key = '{TOKEN}'\n")));
        assert!(edits[0].replace.starts_with("key = os.environ['KEY']\n"));
    }

    #[test]
    fn a_mark_in_another_place_or_another_file_is_refused() {
        let cases = [
            "===FILE: a.py===\n<<<SEARCH\nrun(key)\n>>>REPLACE\nrun('[redacted]')\n===END===\n",
            "===FILE: b.py===\nkey = '[redacted]'\n===END===\n",
            "===FILE: a.py===\nimport os\nkey = '[redacted]'\n===END===\n",
        ];
        for answer in cases {
            let error = ops(answer).unwrap_err();
            assert!(
                error.contains("stands for a secret that was not shown"),
                "{error}"
            );
        }
    }
}
