//! Merging the base of a pull request into its branch, with the model's help where both changed the
//! same places.
//!
//! Asked for in chat channels, with the generate engine and `OnFailure::Nothing`: what does not
//! pass its tests is not published. The merge is computed without a work tree, in which git writes
//! its marks into files that conflict. The model replaces those files, and the tests run as for any
//! other change. The commit has two parents, so the conflict is gone for good. What both sides did
//! to different places is git's merge, untouched by the model.

use codespar_change::verify::{JoinedCommits, has_marks, join, text_of};
use codespar_pulls::shorten;

use super::{Base, Located, Proven, Reading, Shown, Written, blocking, locate::LocatedFile};
use crate::{
    Failure,
    run::{Conversation, Run},
};

const REQUEST: &str = include_str!("../prompts/resolve.md");
/// Files whose conflicts one answer can resolve.
const MOST_CONFLICTS: usize = 20;

impl Run {
    /// Joins the two branches. On record, so that a later attempt resolves the same conflicts.
    pub(crate) async fn join(&self, base: &Base) -> Result<JoinedCommits, Failure> {
        self.check_stop()?;
        let (Some(clone), Some(ours)) = (self.link.clone.clone(), base.merged_into.clone()) else {
            return Err(Failure::Refused(
                "the repository could not be cloned, so nothing can be merged".to_owned(),
            ));
        };
        let theirs = base.commit.clone();
        self.ledger
            .once("join", || {
                blocking(move || Ok(join(&clone, &ours, &theirs)?))
            })
            .await
    }

    /// The files with conflicts, as the model sees them: with both sides. A file that one side
    /// removed, or that is no text, cannot be shown with both sides, and no answer of a model could
    /// be checked. Such a merge is refused as a whole.
    pub(crate) async fn conflicts(
        &self,
        joined: &JoinedCommits,
    ) -> Result<(Located, Reading), Failure> {
        if joined.conflicts.len() > MOST_CONFLICTS {
            return Err(Failure::Refused(format!(
                "{} files have conflicts; at most {MOST_CONFLICTS} are resolved at once",
                joined.conflicts.len()
            )));
        }
        let mut reading = Reading::default();
        for path in &joined.conflicts {
            let Some(text) = joined.marked(path) else {
                return Err(Failure::Refused(format!(
                    "`{path}` was removed or replaced on one side, or is no text; that is for a \
                     person to decide"
                )));
            };
            let clean = self.redacted(text);
            reading.files.push(Shown {
                path: path.clone(),
                is_redacted: clean != text,
                text: clean,
                is_partial: false,
                shown_as: Default::default(),
            });
        }
        let files = joined.conflicts.iter().map(|path| LocatedFile {
            path: path.clone(),
            by: "named".to_owned(),
        });
        let located = Located {
            files: files.collect(),
            unreadable: Vec::new(),
            tests: Vec::new(),
        };
        let located = self
            .ledger
            .once("locate", || async { Ok::<_, Failure>(located) })
            .await?;
        Ok((located, reading))
    }

    /// The merge as a change. One without conflicts needs no model, and no proof: the checks of the
    /// pull request look at it. A file that still has marks at the end is refused, also if the
    /// tests pass: a file that no test reads would be published broken.
    pub(crate) async fn resolve(
        &self,
        base: &Base,
        joined: &JoinedCommits,
        reading: &Reading,
    ) -> Result<(Written, Proven), Failure> {
        let merged = self.merged(base, joined);
        if joined.conflicts.is_empty() {
            let reason = "a merge without conflicts".to_owned();
            return Ok((merged, Proven::Not(reason)));
        }
        if self.is_simulated() {
            return Err(Failure::Refused(format!(
                "conflicts in {}; no model can be asked to resolve them",
                joined.conflicts.join(", ")
            )));
        }
        let files = joined.conflicts.len();
        self.say(
            "generate",
            &format!("🤖 Resolving conflicts in {files} files…"),
        );
        let text = format!(
            "<repository>{}</repository>\n{}",
            self.place(base),
            reading.prompt(REQUEST.trim())
        );
        let mut conversation = Conversation::new(text, Vec::new());
        let corrected = self
            .correct(base, reading, &merged, &mut conversation)
            .await?;
        let Some(resolved) = corrected else {
            return Err(Failure::NoChanges(
                "the conflicts are as they were".to_owned(),
            ));
        };
        let (written, proven) = self
            .prove(base, reading, resolved, Some(conversation))
            .await?;
        let is_marked = |path: &&String| {
            let text = text_of(&written.changes, path);
            text.is_some_and(has_marks)
        };
        match joined.conflicts.iter().find(is_marked) {
            Some(path) => Err(Failure::NotApplied(format!(
                "`{path}` still has marks of a conflict"
            ))),
            None => Ok((written, proven)),
        }
    }

    fn merged(&self, base: &Base, joined: &JoinedCommits) -> Written {
        let title = shorten(&format!("Merge {} into {}", base.base, base.branch));
        let summary = match joined.conflicts.is_empty() {
            true => "The two do not conflict.".to_owned(),
            false => format!("Conflicts in {}.", joined.conflicts.join(", ")),
        };
        Written {
            changes: joined.changes.clone(),
            summary: format!("{title}\n\n{summary}"),
            title,
            model: "none".to_owned(),
            answer: String::new(),
            is_simulated: false,
            why_simulated: None,
        }
    }
}
