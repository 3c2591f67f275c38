//! Which blocks of an answer speak of the same file, and whether they agree.
//!
//! Blocks of one file are grouped, whichever of its names they use, and the groups stay in the
//! order of their first block. A file has one fate: deleted, or moved and written whole, or moved
//! and edited in places. Chains and exchanges of names are refused, since their result would depend
//! on the order.

use std::collections::HashMap;

use codespar_protocol::RepoPath;

use super::report::BlockReport;
use crate::answer::{Block, Op, ParsedAnswer};

/// All that an answer asks of one file.
#[derive(Debug)]
pub(super) struct FilePlan<'a> {
    /// Where it is before; where it will be, if it is new.
    pub(super) path: RepoPath,
    pub(super) target: Target<'a>,
    /// Its blocks, by their places in the reports; edits in the order of [`Target`].
    pub(super) blocks: Vec<usize>,
}

/// What is to become of a file.
#[derive(Debug)]
pub(super) enum Target<'a> {
    Delete,
    Change {
        to: Option<RepoPath>,
        content: Content<'a>,
    },
}

/// What is to be in a file.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Same,
    Whole(&'a str),
    /// Blocks and their places in the reports.
    Edited(Vec<(Block, usize)>),
}

/// One block with its path checked.
struct Step<'a> {
    report: usize,
    path: RepoPath,
    action: Action<'a>,
}

enum Action<'a> {
    Write(&'a str),
    Edit(&'a Block),
    Delete,
    Move(RepoPath),
}

/// Sorts the blocks by file. What cannot be is refused in `reports`, which gets one for each block.
/// `reports` gets its items in the order of the answer; steps and plans refer to them by index. A
/// block that is refused here may still be part of a plan; its first reason stands.
pub(super) fn plan<'a>(
    answer: &'a ParsedAnswer,
    reports: &mut Vec<BlockReport>,
) -> Vec<FilePlan<'a>> {
    let steps = steps(answer, reports);
    let moves = moves(&steps, reports);
    let mut order: Vec<RepoPath> = Vec::new();
    let mut groups: HashMap<RepoPath, Vec<&Step<'a>>> = HashMap::new();
    for step in &steps {
        // A moved file may be spoken of by either name.
        let path = match &step.action {
            Action::Move(_) => &step.path,
            _ => moves.get(&step.path).unwrap_or(&step.path),
        };
        let group = groups.entry(path.clone()).or_insert_with(|| {
            order.push(path.clone());
            Vec::new()
        });
        group.push(step);
    }
    order
        .into_iter()
        .filter_map(|path| {
            let group = groups.remove(&path)?;
            let blocks: Vec<usize> = group.iter().map(|step| step.report).collect();
            match target(&path, &group) {
                Ok(target) => Some(FilePlan {
                    path,
                    target,
                    blocks,
                }),
                Err(reason) => {
                    for block in blocks {
                        reports[block].refuse(reason);
                    }
                    None
                }
            }
        })
        .collect()
}

/// The blocks one by one, numbered by file. Bad paths are refused here.
fn steps<'a>(answer: &'a ParsedAnswer, reports: &mut Vec<BlockReport>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let mut add = |text: &str, action: Result<Action<'a>, String>| {
        let path = RepoPath::new(text);
        let shown = path.as_ref().map_or(text, RepoPath::as_str);
        let earlier = reports.iter().filter(|block| block.path == shown).count();
        let mut report = BlockReport::new(shown, earlier + 1);
        match (path, action) {
            (Ok(path), Ok(action)) => steps.push(Step {
                report: reports.len(),
                path,
                action,
            }),
            (Err(bad), _) => report.refuse(format!("the path {bad}")),
            (_, Err(reason)) => report.refuse(reason),
        }
        reports.push(report);
    };
    for op in &answer.ops {
        match op {
            Op::Write { path, content } => add(path, Ok(Action::Write(content))),
            Op::Edit { path, edits } => {
                for edit in edits {
                    add(path, Ok(Action::Edit(edit)));
                }
            }
            Op::Delete { path } => add(path, Ok(Action::Delete)),
            Op::Move { from, to } => add(
                from,
                RepoPath::new(to)
                    .map(Action::Move)
                    .map_err(|bad| format!("the new path {bad}")),
            ),
        }
    }
    steps
}

/// Where each moved file comes from, by its new name. Every move that is not in it was refused.
fn moves(steps: &[Step<'_>], reports: &mut [BlockReport]) -> HashMap<RepoPath, RepoPath> {
    let mut moves: HashMap<RepoPath, RepoPath> = HashMap::new();
    let sources: Vec<&RepoPath> = steps
        .iter()
        .filter(|step| matches!(step.action, Action::Move(_)))
        .map(|step| &step.path)
        .collect();
    for step in steps {
        let Action::Move(to) = &step.action else {
            continue;
        };
        let reason = if *to == step.path {
            "it is moved to where it is".to_owned()
        } else if sources.contains(&to) {
            format!("`{to}` is itself moved; move one file to one free name")
        } else if sources.iter().filter(|from| ***from == step.path).count() > 1 {
            "it is moved twice; name one new path".to_owned()
        } else if let Some(other) = moves.get(to) {
            format!("`{other}` is moved to `{to}` too")
        } else {
            moves.insert(to.clone(), step.path.clone());
            continue;
        };
        reports[step.report].refuse(reason);
    }
    moves
}

/// What the blocks of one file come to. One file may have several pairs, but only one whole
/// content, and not both.
fn target<'a>(path: &RepoPath, group: &[&Step<'a>]) -> Result<Target<'a>, &'static str> {
    let mut to = None;
    let mut deletions = 0;
    let mut wholes = Vec::new();
    let mut edits = Vec::new();
    for step in group {
        match &step.action {
            Action::Delete => deletions += 1,
            Action::Move(new) => to = Some(new.clone()),
            Action::Write(content) => wholes.push((*content, &step.path)),
            Action::Edit(block) => edits.push(((*block).clone(), step.report)),
        }
    }
    if deletions > 0 {
        return if group.len() == 1 {
            Ok(Target::Delete)
        } else {
            Err("it is deleted and has another block too; keep one of them")
        };
    }
    let content = match wholes.as_slice() {
        [] if edits.is_empty() => Content::Same,
        [] => Content::Edited(edits),
        _ if !edits.is_empty() => {
            return Err("it is written whole and edited in places too; do one of them");
        }
        [(_, named)] if to.is_some() && *named == path => {
            return Err(
                "it is moved away and written whole under its old name; write the moved file under \
                 its new name, or delete the old one and write a new one",
            );
        }
        [(content, _)] => Content::Whole(content),
        _ => return Err("it is written whole more than once; write it once"),
    };
    Ok(Target::Change { to, content })
}
