//! From the blocks of an answer to the bytes of files: all blocks, or none.
//!
//! Every SEARCH text is looked for in the file as it was before. A new file ends with a newline; a
//! file that changes keeps its own line ends, byte order mark, final newline (or its absence) and
//! mode, whether it is edited or written whole. A new path that differs from another in case alone
//! is refused.
//!
//! ```text
//! plan       blocks by file; what contradicts itself is refused
//! tree       may a file stand there: links, directories, submodules, names that differ in case
//! rules      protected files
//! content    the new bytes
//! report     what became of each block
//! ```
//!
//! All blocks are tried, also after one was refused, so that the model learns of everything at
//! once. Then either all are part of the change or none is; those that fitted are reported as held
//! back. `apply` itself only reads: `write` puts a change on disk, the forge makes a commit of it.
//!
//! Paths come from a model. `RepoPath` refuses those that leave the repository or name `.git`,
//! `tree` refuses those that go through a link, and `rules` those that decide over what runs.

mod content;
mod map_source;
mod plan;
mod report;
mod restore;
mod rules;
mod source;
mod stack;
mod tree;
mod work_tree;
mod write;

use codespar_protocol::{Bytes, ChangeSet, FileChange, FileMode, RepoPath};
use codespar_tools::matching::{BlockFailure, MatchFailure};

pub use map_source::MapSource;
pub use report::{BlockOutcome, BlockReport, Refusal};
pub use restore::restored;
pub use rules::{BadPattern, ProtectedFiles, Rules};
pub use source::{Source, SourceEntry, SourceError, SourceFile};
pub use stack::stacked;
pub use work_tree::WorkTree;
pub use write::{WriteError, write};

use self::{
    plan::{Content, FilePlan, Target},
    tree::Standing,
};
use crate::answer::{Block, ParsedAnswer};

/// A change that every block is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What happens to the files.
    pub changes: ChangeSet,
    /// One for each block, in the order of the answer.
    pub blocks: Vec<BlockReport>,
}

/// Turns an answer into a change of the files of `source`. Nothing is written.
pub fn apply(
    answer: &ParsedAnswer,
    source: &dyn Source,
    rules: &Rules,
) -> Result<Applied, Refusal> {
    let mut reports = Vec::new();
    let plans = plan::plan(answer, &mut reports);
    let mut work = Work {
        source,
        rules,
        leaving: plans.iter().filter_map(leaves).collect(),
        reports,
    };
    let mut changes = Vec::new();
    for plan in &plans {
        match work.change(plan) {
            Ok(change) => changes.extend(change.map(|change| (change, plan))),
            Err(reason) => work.refuse(plan, &reason),
        }
    }
    work.refuse_clashes(&changes);
    let changes = changes.into_iter().map(|(change, _)| change).collect();
    work.finish(ChangeSet(changes))
}

fn leaves<'a>(plan: &'a FilePlan<'_>) -> Option<&'a RepoPath> {
    match &plan.target {
        Target::Delete | Target::Change { to: Some(_), .. } => Some(&plan.path),
        Target::Change { to: None, .. } => None,
    }
}

struct Work<'a> {
    source: &'a dyn Source,
    rules: &'a Rules,
    /// Files that are deleted or moved away by the same answer: their names become free.
    leaving: Vec<&'a RepoPath>,
    reports: Vec<BlockReport>,
}

impl Work<'_> {
    /// What happens to one file; `None` when nothing does. An error refuses all of its blocks.
    fn change(&mut self, plan: &FilePlan<'_>) -> Result<Option<FileChange>, String> {
        self.check_protection(&plan.path)?;
        let path = plan.path.clone();
        let standing = tree::standing(self.source, &path)?;
        let (to, content) = match &plan.target {
            Target::Delete if standing == Standing::File => {
                return Ok(Some(FileChange::Deleted { path }));
            }
            Target::Delete => return Err("there is no such file to delete".to_owned()),
            Target::Change { to, content } => (to, content),
        };
        if let Some(to) = to {
            self.check_move(standing, to)?;
        }
        if standing == Standing::Free {
            return self.added(path, content);
        }
        let file = self.source.file(&path).map_err(|error| error.to_string())?;
        let file = file.ok_or("it went away while it was read")?;
        let Some(new) = self.content(&file, content)? else {
            return Ok(None);
        };
        let content = Bytes(new);
        let mode = file.mode;
        Ok(match to {
            Some(to) => Some(FileChange::Moved {
                from: path,
                to: to.clone(),
                content,
                mode,
            }),
            None if content.0 == file.content => {
                for &block in &plan.blocks {
                    self.reports[block].outcome = BlockOutcome::Unchanged;
                    self.reports[block].reason = Some("the file has this text already".to_owned());
                }
                None
            }
            None => Some(FileChange::Modified {
                path,
                content,
                mode,
            }),
        })
    }

    fn check_protection(&self, path: &RepoPath) -> Result<(), String> {
        match self.rules.protects(path) {
            Some(guard) => Err(format!("`{path}` {guard}")),
            None => Ok(()),
        }
    }

    /// The new name must be free before the change: a file that is deleted in the same answer
    /// cannot be replaced by a move.
    fn check_move(&self, standing: Standing, to: &RepoPath) -> Result<(), String> {
        self.check_protection(to)?;
        if standing == Standing::Free {
            return Err("there is no such file to move".to_owned());
        }
        match tree::standing(self.source, to) {
            Ok(Standing::Free) => tree::namesake(self.source, to, &self.leaving),
            Ok(Standing::File) => Err(format!("it cannot be moved: `{to}` is there already")),
            Err(reason) => Err(format!("it cannot be moved to `{to}`: {reason}")),
        }
    }

    /// A pair with an empty SEARCH text creates a file as well as a whole content does. The mode of
    /// a new file is always regular.
    fn added(&self, path: RepoPath, content: &Content<'_>) -> Result<Option<FileChange>, String> {
        let text = match content {
            Content::Whole(text) => Some((*text).to_owned()),
            Content::Edited(edits) => content::created(&blocks(edits)),
            Content::Same => None,
        };
        let text = text.ok_or(
            "there is no such file, so there is nothing to find in it; check the path, or write the \
             new file whole",
        )?;
        tree::namesake(self.source, &path, &self.leaving)?;
        Ok(Some(FileChange::Added {
            path,
            content: Bytes(text.into_bytes()),
            mode: FileMode::Regular,
        }))
    }

    /// The new bytes of a file that is there; `None` when its blocks were refused one by one.
    fn content(
        &mut self,
        file: &SourceFile,
        content: &Content<'_>,
    ) -> Result<Option<Vec<u8>>, String> {
        match content {
            Content::Same => Ok(Some(file.content.clone())),
            Content::Whole(new) => whole(file, new).map(Some),
            Content::Edited(edits) => {
                let original = content::text(&file.content)?;
                match content::edited(original, &blocks(edits)) {
                    Ok(applied) => {
                        for ((_, report), block) in edits.iter().zip(applied.blocks) {
                            let report = &mut self.reports[*report];
                            report.rung = Some(block.rung);
                            if !block.lines.is_empty() {
                                report.lines = vec![block.lines.start, block.lines.end - 1];
                            }
                        }
                        Ok(Some(applied.text.into_bytes()))
                    }
                    Err(failures) => {
                        self.refuse_edits(edits, failures);
                        Ok(None)
                    }
                }
            }
        }
    }

    fn refuse_edits(&mut self, edits: &[(Block, usize)], failures: Vec<BlockFailure>) {
        for BlockFailure { block, reason } in failures {
            let report = edits[block].1;
            match reason {
                MatchFailure::NotFound { nearest } => {
                    self.reports[report]
                        .refuse(MatchFailure::NotFound { nearest: None }.to_string());
                    self.reports[report].nearest = nearest;
                }
                MatchFailure::Ambiguous { rung, ref lines } => {
                    self.reports[report].refuse(reason.to_string());
                    self.reports[report].rung = Some(rung);
                    self.reports[report].lines.clone_from(lines);
                }
                MatchFailure::Overlap { with } => {
                    // Numbers in the reports are those of the name the answer used.
                    let BlockReport { path, block, .. } = &self.reports[edits[with].1];
                    let other = if *path == self.reports[report].path {
                        format!("block {block}")
                    } else {
                        format!("block {block} of `{path}`")
                    };
                    self.reports[report].refuse(format!(
                        "it changes lines that {other} changes too; join them into one block"
                    ));
                }
                other => self.reports[report].refuse(other.to_string()),
            }
        }
    }

    fn is_refused(&self, block: usize) -> bool {
        self.reports[block].outcome == BlockOutcome::Refused
    }

    fn refuse(&mut self, plan: &FilePlan<'_>, reason: &str) {
        for &block in &plan.blocks {
            self.reports[block].refuse(reason);
        }
    }

    /// Two new files that one file system would take for one, or of which one is to be a directory
    /// of the other. Both are refused: which was meant is not known.
    fn refuse_clashes(&mut self, changes: &[(FileChange, &FilePlan<'_>)]) {
        let is_new = |change: &FileChange| {
            matches!(change, FileChange::Added { .. } | FileChange::Moved { .. })
        };
        let new: Vec<&RepoPath> = changes
            .iter()
            .filter(|(change, _)| is_new(change))
            .map(|(change, _)| change.path())
            .collect();
        for (path, reason) in tree::clashes(&new) {
            for (change, plan) in changes {
                if is_new(change) && change.path() == path {
                    self.refuse(plan, &reason);
                }
            }
        }
    }

    /// The only place that decides between all and nothing.
    fn finish(mut self, changes: ChangeSet) -> Result<Applied, Refusal> {
        if !(0..self.reports.len()).any(|block| self.is_refused(block)) {
            return Ok(Applied {
                changes,
                blocks: self.reports,
            });
        }
        for report in &mut self.reports {
            if report.outcome == BlockOutcome::Applied {
                report.outcome = BlockOutcome::HeldBack;
            }
        }
        Err(Refusal {
            blocks: self.reports,
        })
    }
}

fn blocks(edits: &[(Block, usize)]) -> Vec<Block> {
    edits.iter().map(|(block, _)| block.clone()).collect()
}

/// An empty block for a file that has text is refused: an answer that was cut looks like that.
fn whole(file: &SourceFile, new: &str) -> Result<Vec<u8>, String> {
    if file.partial {
        return Err(
            "only parts of this file were shown, so writing it whole would lose the rest; use \
             SEARCH/REPLACE pairs"
                .to_owned(),
        );
    }
    let original = content::text(&file.content)?;
    if new.trim().is_empty() && !original.trim().is_empty() {
        return Err(
            "the block is empty but the file is not; delete the file with `===DELETE: path===`, or \
             write its new content"
                .to_owned(),
        );
    }
    Ok(content::replaced(original, new).into_bytes())
}

#[cfg(test)]
mod tests;
