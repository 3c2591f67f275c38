//! What a run came to, for people and for programs.
//!
//! The report is recorded as the last step, and its fields are the object of `dev --json`. A field
//! that was added later has a default, so that older records can be read. `text` is what a terminal
//! or a chat shows.

use std::fmt::Write as _;

use codespar_change::verify::{Evidence, HookRun};
use codespar_protocol::{CommitId, FileChange, TaskId, TaskRecord, TaskStatus, Usd};
use codespar_pulls::{Risk, Touched};
use codespar_tasks::{StoreError, TaskStore};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    run::{Run, dollars},
    steps::{Base, Located, Proven, Published, Written},
};

/// The step that holds the report.
pub(crate) const REPORT: &str = "report";

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedFile {
    /// Where it is, or was.
    pub path: String,
    /// `new`, `modified`, `deleted` or `moved`.
    pub change: String,
    /// Where a moved file was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Lines that are new.
    #[serde(default)]
    pub added: usize,
    /// Lines that are gone.
    #[serde(default)]
    pub removed: usize,
}

/// A file of the instruction that the model was not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadFile {
    pub path: String,
    pub reason: String,
}

/// The pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedPull {
    pub number: u64,
    pub title: String,
    /// Not ready to be merged.
    pub draft: bool,
    /// Where a person can look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What the tests say of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestVerdict {
    /// They pass with it.
    Verified,
    /// They do not pass with it, whether or not they did before.
    TestsFail,
    /// They were not run.
    NotVerified,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DevReport {
    pub task_id: TaskId,
    /// No model was asked.
    pub simulated: bool,
    /// Why, and what to set to have one asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_simulated: Option<String>,
    /// Files that were read.
    pub located: Vec<String>,
    /// Files that the instruction names and that could not be read, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<UnreadFile>,
    pub branch: String,
    /// The branch it is for.
    pub base: String,
    /// The commit on it.
    pub commit: CommitId,
    pub pull_request: ReportedPull,
    /// What changed.
    pub files: Vec<ReportedFile>,
    /// The tests, before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Evidence>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_verified: Option<String>,
    /// How much care it needs.
    pub risk: Risk,
    /// What it cost; `None` when some model has no known price.
    pub cost_usd: Option<Usd>,
    /// The model that wrote it.
    pub model: String,
    /// The model's words.
    pub summary: String,
    /// The cost in words.
    pub cost: String,
    /// Why the commit lacks the signature that the user's git settings ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_signed: Option<String>,
}

/// Of the tests it keeps names, counts and the end of the output (`Evidence::without_messages`).
pub(crate) fn of(
    run: &Run,
    base: &Base,
    located: &Located,
    written: &Written,
    proven: &Proven,
    published: &Published,
) -> DevReport {
    let cost = run.spent().1;
    let (verification, not_verified) = match proven {
        Proven::By(evidence) => (Some((**evidence).clone().without_messages()), None),
        Proven::Not(reason) => (None, Some(reason.clone())),
    };
    DevReport {
        task_id: run.control.record.task_id.clone(),
        simulated: written.is_simulated,
        why_simulated: written.why_simulated.clone(),
        located: located.paths().map(str::to_owned).collect(),
        not_read: located
            .unreadable
            .iter()
            .map(|(path, reason)| UnreadFile {
                path: path.clone(),
                reason: reason.clone(),
            })
            .collect(),
        branch: base.branch.clone(),
        base: base.base.clone(),
        commit: published.commit.clone(),
        pull_request: ReportedPull {
            number: published.pull.number,
            title: published.pull.title.clone(),
            draft: published.pull.draft,
            url: published.pull.url.clone(),
        },
        files: written
            .changes
            .0
            .iter()
            .enumerate()
            .map(|(index, change)| file(change, published.touched.get(index)))
            .collect(),
        verification,
        not_verified,
        risk: published.risk.clone(),
        cost_usd: cost.known(),
        model: written.model.clone(),
        summary: run.setup.redactor.redact(&written.summary).into_owned(),
        cost: dollars(cost),
        not_signed: published.not_signed.clone(),
    }
}

fn file(change: &FileChange, touched: Option<&Touched>) -> ReportedFile {
    ReportedFile {
        added: touched.map_or(0, |touched| touched.added),
        removed: touched.map_or(0, |touched| touched.removed),
        path: change.path().to_string(),
        change: change.word().to_owned(),
        from: match change {
            FileChange::Moved { from, .. } => Some(from.to_string()),
            _ => None,
        },
    }
}

impl ReportedFile {
    /// As in `+3 −1`.
    fn lines(&self) -> String {
        let touched = Touched {
            path: String::new(),
            added: self.added,
            removed: self.removed,
            is_deleted: false,
            parts: Vec::new(),
        };
        touched.lines()
    }
}

impl DevReport {
    /// What the tests say of the change.
    pub fn verdict(&self) -> TestVerdict {
        match &self.verification {
            Some(evidence) if evidence.after.passed() => TestVerdict::Verified,
            Some(_) => TestVerdict::TestsFail,
            None => TestVerdict::NotVerified,
        }
    }

    /// For a terminal or a chat.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    /// "Fix ready" only where tests passed with the change. A change that could not be tested says
    /// so.
    fn headline(&self) -> &'static str {
        match (&self.verification, self.simulated) {
            (_, true) => "⚠️  Simulated: no model was asked, no file was changed",
            (Some(evidence), _) if evidence.after.failed_like(&evidence.before) => {
                "⚠️  Draft ready: the tests fail as they did before it"
            }
            (Some(evidence), _) if !evidence.after.passed() => {
                "⚠️  Draft ready: the tests do not pass with it"
            }
            (Some(evidence), _) if evidence.hooks.iter().any(HookRun::refuses) => {
                "⚠️  Draft ready: a hook of the repository refuses it"
            }
            (Some(_), _) => "✅ Fix ready",
            (None, _) => "✅ Change ready, not verified",
        }
    }

    /// What tests and hooks say, whether the commit is signed, and which hosts were refused.
    fn write_evidence(&self, out: &mut String) -> std::fmt::Result {
        match (&self.verification, &self.not_verified) {
            (Some(evidence), _) => writeln!(
                out,
                "→ {} {}: before {}, after {}",
                match self.verdict() {
                    TestVerdict::Verified => "Verified by",
                    _ => "Tests fail:",
                },
                evidence.command,
                evidence.before.summary(),
                evidence.after.summary()
            )?,
            (None, Some(reason)) if !self.simulated => writeln!(out, "→ Not verified: {reason}")?,
            _ => {}
        }
        if let Some(tests) = self.verification.iter().find_map(|e| e.new_tests.as_ref()) {
            writeln!(out, "→ {}", tests.sentence())?;
        }
        for hook in self
            .verification
            .iter()
            .flat_map(|evidence| &evidence.hooks)
        {
            writeln!(out, "→ Hook {}: {}", hook.name, hook.summary())?;
        }
        if let Some(reason) = &self.not_signed {
            writeln!(out, "→ Not signed: {reason}")?;
        }
        for host in self.verification.iter().flat_map(Evidence::blocked) {
            writeln!(out, "→ blocked: {host}")?;
        }
        Ok(())
    }

    /// The last line names the pull request, for scripts that read the last line only.
    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "{}", self.headline())?;
        if let Some(why) = &self.why_simulated {
            writeln!(out, "→ Why: {why}")?;
        }
        writeln!(out, "→ Branch: {}", self.branch)?;
        let draft = if self.pull_request.draft {
            " (draft)"
        } else {
            ""
        };
        writeln!(
            out,
            "→ PR #{}{draft}: {}",
            self.pull_request.number, self.pull_request.title
        )?;
        write!(out, "→ Files changed: {}", self.files.len())?;
        for file in &self.files {
            match &file.from {
                Some(from) => write!(out, "\n   • {from} → {} (moved", file.path)?,
                None => write!(out, "\n   • {} ({}", file.path, file.change)?,
            }
            match file.lines() {
                lines if lines.is_empty() => write!(out, ")")?,
                lines => write!(out, ", {lines})")?,
            }
        }
        writeln!(out)?;
        for UnreadFile { path, reason } in &self.not_read {
            writeln!(out, "→ Not read: {path}: {reason}")?;
        }
        self.write_evidence(out)?;
        let reasons = match self.risk.reasons.as_slice() {
            [] => String::new(),
            reasons => format!(" ({})", reasons.join("; ")),
        };
        writeln!(
            out,
            "→ Risk: {}{reasons}   → Cost: {}",
            self.risk.level, self.cost
        )?;
        // The last line is what people and scripts see.
        let what = match self.simulated {
            true => "Simulated, nothing was changed",
            false => "Review",
        };
        match &self.pull_request.url {
            Some(url) => write!(out, "{what}: {url}"),
            None => write!(out, "{what}: codespar pr diff {}", self.pull_request.number),
        }
    }
}

/// The report of a run of the dev agent that has come to its end; none of one that has not. By the
/// status of the task, not by the step alone: an attempt may have recorded the step and been killed
/// before the task ended.
pub async fn recorded_report(
    store: &dyn TaskStore,
    record: &TaskRecord,
) -> Result<Option<DevReport>, StoreError> {
    if record.status != TaskStatus::Completed {
        return Ok(None);
    }
    let steps = store.steps(&record.task_id).await?;
    Ok(report_in(&steps))
}

/// The report among the recorded steps of a run.
pub fn report_in(steps: &[(String, Value)]) -> Option<DevReport> {
    let (_, value) = steps.iter().find(|(step, _)| step == REPORT)?;
    DevReport::deserialize(value).ok()
}
