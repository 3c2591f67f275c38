//! One commit on a branch of its own, and one pull request; found again after a crash.
//!
//! ```text
//! examine       every text and file, before anything is outside
//! commit        on our branch; found by its key if it is there already
//! check         recorded for the commit, where the forge keeps such
//! pull request  opened, found by its branch, or extended by a section
//! ```
//!
//! An attempt that ends between two of these repeats the one that is not recorded; each looks for
//! its own effect first. What is published is computed from recorded values, so a repetition is the
//! same.

use codespar_protocol::{Check, CheckState, CommitId, FileChange, PullRequest, RepoPath};
use codespar_pulls::{
    self as pulls, CommitText, Draft, Forge, NewCommit, NewPullRequest, Proof, PullRequestChange,
    PullText, Risk, RiskLevel, Touched, Verified, risk, shorten, touched, without_mentions,
};

use super::{Base, Located, Proven, Written};
use crate::{
    Consent, DevOrder, Failure, RepositoryRef,
    run::{Run, dollars},
};

/// What the check of our own verification is called.
const CHECK: &str = "codespar/verify";

/// What was made outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Published {
    pub(crate) commit: CommitId,
    pub(crate) pull: PullRequest,
    pub(crate) risk: Risk,
    /// How many lines of each file change.
    pub(crate) touched: Vec<Touched>,
    /// Why the commit lacks the signature that it should have.
    pub(crate) not_signed: Option<String>,
}

/// What is computed from a change and published with it. Not recorded: it is a function of the
/// recorded change, its proof and the base commit.
struct Measured {
    touched: Vec<Touched>,
    risk: Risk,
}

impl Run {
    pub(crate) async fn publish(
        &self,
        base: &Base,
        written: &Written,
        proven: &Proven,
    ) -> Result<Published, Failure> {
        self.check_stop()?;
        let measured = self.measure(base, written, proven).await?;
        let commit: CommitId = self
            .ledger
            .once("commit", || async {
                self.examine(base, written, proven, &measured).await?;
                Ok::<_, Failure>(
                    self.link
                        .forge
                        .commit(&self.new_commit(base, written))
                        .await?,
                )
            })
            .await?;
        let pull: PullRequest = self
            .ledger
            .once("pull_request", || async {
                self.tell_check(&commit, proven).await?;
                match base.pull_request {
                    Some(number) => self.extend(number, base, written, proven, &measured).await,
                    None => {
                        let new = self.new_pull(base, written, proven, &measured);
                        Ok(self.link.forge.open_pull_request(&new).await?)
                    }
                }
            })
            .await?;
        let Measured { touched, risk } = measured;
        let not_signed = pulls::not_signed(&*self.link.forge, &commit).await?;
        Ok(Published {
            not_signed: not_signed.map(|reason| self.redacted(&reason)),
            commit,
            pull,
            risk,
            touched,
        })
    }

    /// A secret in any of it stops the run before the first of it is outside.
    async fn examine(
        &self,
        base: &Base,
        written: &Written,
        proven: &Proven,
        measured: &Measured,
    ) -> Result<(), Failure> {
        let pull = self.new_pull(base, written, proven, measured);
        let check = check_of(proven).and_then(|check| check.summary);
        let texts = [
            (pulls::TITLE, pull.title.as_str()),
            (pulls::BODY, &pull.body),
            (pulls::CHECK, check.as_deref().unwrap_or_default()),
        ];
        let commit = self.new_commit(base, written);
        Ok(self.link.forge.examine(&commit, &texts).await?)
    }

    /// The key is the id of the first run of a chain, and `resumes` begins with it. A merge has the
    /// branch as first parent and the base as second.
    fn new_commit(&self, base: &Base, written: &Written) -> NewCommit {
        // The first run of several may have made it.
        let first = self.order.resumes.first();
        let key = first.unwrap_or(&self.control.record.task_id).to_string();
        let text = CommitText {
            title: &written.title,
            summary: &written.summary,
        };
        let message = text.message(&self.clean_order(), &self.control.record.task_id, &key);
        NewCommit {
            branch: base.branch.clone(),
            parent: base.merged_into.as_ref().unwrap_or(&base.commit).clone(),
            merged: base.merged_into.as_ref().map(|_| base.commit.clone()),
            changes: written.changes.clone(),
            message: self.setup.redactor.redact(&message).into_owned(),
            author: None,
            key,
        }
    }

    /// The order as others may read it.
    fn clean_order(&self) -> DevOrder {
        DevOrder {
            instruction: self.redacted(&self.order.instruction),
            ..self.order.clone()
        }
    }

    /// Reads the old files at the base commit, one request each without a clone.
    async fn measure(
        &self,
        base: &Base,
        written: &Written,
        proven: &Proven,
    ) -> Result<Measured, Failure> {
        let mut before = std::collections::HashMap::new();
        for change in &written.changes.0 {
            let old: Option<&RepoPath> = match change {
                FileChange::Added { .. } => None,
                FileChange::Modified { path, .. } | FileChange::Deleted { path } => Some(path),
                FileChange::Moved { from, .. } => Some(from),
            };
            if let Some(path) = old
                && let Some(file) = self.link.forge.file(&base.commit, path).await?
            {
                before.insert(path.to_string(), file.content);
            }
        }
        let touched = touched(&written.changes, |path| before.get(path).cloned());
        let proof = match proven {
            Proven::Not(_) => Proof::None,
            Proven::By(evidence) if evidence.is_proof() => Proof::Proved,
            Proven::By(evidence) if evidence.adds_tests() => Proof::Tested,
            Proven::By(evidence) if evidence.after.passed() => Proof::Passed,
            Proven::By(_) => Proof::Failed,
        };
        let risk = match touched.as_slice() {
            [] => Risk {
                level: RiskLevel::Low,
                reasons: vec!["no file is changed".to_owned()],
            },
            touched => risk(touched, proof),
        };
        Ok(Measured { touched, risk })
    }

    /// A forge without checks of its own keeps the result of ours.
    async fn tell_check(&self, commit: &CommitId, proven: &Proven) -> Result<(), Failure> {
        match check_of(proven) {
            Some(check) => Ok(self.link.forge.record_check(commit, &check).await?),
            None => Ok(()),
        }
    }

    /// Cut to the forge's limit after redaction, since a body that is too long is refused as a
    /// whole.
    fn body(&self, written: &Written, proven: &Proven, measured: &Measured) -> String {
        // On record by now.
        let located: Vec<String> = self
            .ledger
            .known::<Located>("locate")
            .ok()
            .flatten()
            .map(|located| located.paths().map(str::to_owned).collect())
            .unwrap_or_default();
        let order = self.clean_order();
        let text = PullText {
            order: &order,
            task: &self.control.record.task_id,
            summary: &written.summary,
            changes: &written.changes,
            touched: &measured.touched,
            verified: match proven {
                Proven::By(evidence) => Verified::By(evidence),
                Proven::Not(reason) => Verified::Not(reason),
            },
            risk: &measured.risk,
            model: &written.model,
            cost: self.spent().1,
            simulated: written.is_simulated.then(|| {
                let why = written.why_simulated.as_deref();
                why.unwrap_or("no model is configured")
            }),
            located: &located,
        };
        let most = self.link.forge.max_body_chars();
        let body = text.body(most);
        // A placeholder may be longer than the secret it stands for.
        let body = self.setup.redactor.redact(&body).into_owned();
        body.chars().take(most).collect()
    }

    fn new_pull(
        &self,
        base: &Base,
        written: &Written,
        proven: &Proven,
        measured: &Measured,
    ) -> NewPullRequest {
        let title = shorten(&written.title);
        NewPullRequest {
            head: base.branch.clone(),
            base: base.base.clone(),
            title: without_mentions(&self.setup.redactor.redact(&title)),
            body: self.body(written, proven, measured),
            draft: if self.is_draft(written, proven) {
                Draft::Draft
            } else {
                Draft::Ready
            },
        }
    }

    /// What others are asked to look at must not look done when nothing was: a simulated one on
    /// GitHub is a draft.
    fn is_draft(&self, written: &Written, proven: &Proven) -> bool {
        let is_shared = matches!(self.order.repository, RepositoryRef::GitHub { .. });
        self.order.draft == Consent::Granted
            || proven.failed()
            || (written.is_simulated && is_shared)
    }

    /// Adds a section to the body of a pull request that has got another commit. A comment with the
    /// task's id marks the section, so that it is added once. What people wrote into the body
    /// stays; if all of it does not fit, its end is cut rather than the mark.
    async fn extend(
        &self,
        number: u64,
        base: &Base,
        written: &Written,
        proven: &Proven,
        measured: &Measured,
    ) -> Result<PullRequest, Failure> {
        let forge = &self.link.forge;
        let pull = forge.pull_request(number).await?;
        let mark = format!("<!-- codespar-task: {} -->", self.control.record.task_id);
        if pull.body.contains(&mark) {
            return Ok(pull);
        }
        let most = forge.max_body_chars();
        let section = format!(
            "\n\n{mark}\n# Follow-up\n\n{}",
            self.body(written, proven, measured)
        );
        let room = most.saturating_sub(pull.body.chars().count());
        let section: String = section.chars().take(room.max(mark.len() + 2)).collect();
        let kept: String = pull
            .body
            .chars()
            .take(most.saturating_sub(section.chars().count()))
            .collect();
        let change = PullRequestChange {
            body: Some(format!("{kept}{section}")),
            draft: self.is_draft(written, proven).then_some(Draft::Draft),
            ..PullRequestChange::default()
        };
        let changed = forge.change_pull_request(number, &change).await?;
        self.say(
            "publish",
            &format!(
                "→ Added to #{number} on {} ({})",
                base.branch,
                dollars(self.spent().1)
            ),
        );
        Ok(changed)
    }
}

/// What our own verification came to. Nothing if the tests were not run: no check is not the same
/// as a check that passed.
fn check_of(proven: &Proven) -> Option<Check> {
    let Proven::By(evidence) = proven else {
        return None;
    };
    Some(Check {
        name: CHECK.to_owned(),
        state: if evidence.after.passed() {
            CheckState::Success
        } else {
            CheckState::Failure
        },
        summary: Some(format!(
            "{}: {}",
            evidence.command,
            evidence.after.summary()
        )),
        url: None,
    })
}
