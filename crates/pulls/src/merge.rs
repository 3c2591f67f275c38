//! Merging a pull request, after every check that speaks against it.
//!
//! ```text
//! merged already, branch of ours still there   delete the branch, report the merge
//! any objection                                refuse, with all of them
//! otherwise                                    merge exactly the head that was checked
//! ```
//!
//! Nothing is decided by a model. A merge that was interrupted after the base moved is finished
//! when it is asked for again. A pull request that is merged and has no branch left is refused as
//! "it is merged".

use codespar_forge::{CommitChecks, Forge, ForgeError, MergeOrder, Mergeability, Signature};
use codespar_protocol::{
    CheckState, CommitId, MergeStrategy, Permission, PullRequest, PullRequestState,
};
use serde::Serialize;

/// Branches that are ours: a run may add to them, and a merge removes them.
pub const OWN_BRANCHES: &str = "codespar/";

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Which pull request.
    pub number: u64,
    /// The commit on the base.
    pub commit: CommitId,
    pub strategy: MergeStrategy,
    /// The branch it went to.
    pub base: String,
    /// No check has looked at what was merged, as far as is known.
    pub unchecked: bool,
    /// Why not all checks are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks_unknown: Option<String>,
    /// Why the commit lacks the signature that the user's git settings ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_signed: Option<String>,
    /// The branch that was taken away after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_branch: Option<String>,
    /// The one that could not be, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_branch: Option<String>,
}

/// What checks that the token may not read mean for a merge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownChecks {
    /// They could have failed.
    #[default]
    Refuse,
    /// Whoever asks for the merge answers for them. Those that are known still count.
    Accept,
}

/// Why there was no merge.
#[derive(Debug, thiserror::Error)]
pub enum MergeRefusal {
    /// These things speak against it.
    #[error("#{number} was not merged:\n{}", bullets(.reasons))]
    Checks {
        /// Which pull request.
        number: u64,
        /// Each of them.
        reasons: Vec<String>,
    },
    /// The forge said no.
    #[error("#{number} was not merged: {error}")]
    Forge {
        /// Which pull request.
        number: u64,
        /// What it said.
        error: ForgeError,
    },
}

pub(crate) fn bullets(reasons: &[String]) -> String {
    let lines: Vec<String> = reasons
        .iter()
        .map(|reason| format!("  • {reason}"))
        .collect();
    lines.join("\n")
}

/// Merges, or says exactly why not. The head is read once, and the forge is told to merge that
/// commit only: a push after the checks were read makes it refuse. Without a `strategy` the forge's
/// own default is used. `requester` is whose permission counts, which is not always the account
/// that merges. `unknown` decides about checks that cannot be read.
pub async fn merge(
    forge: &dyn Forge,
    number: u64,
    strategy: Option<MergeStrategy>,
    requester: &str,
    unknown: UnknownChecks,
) -> Result<Merged, MergeRefusal> {
    let refused = |error| MergeRefusal::Forge { number, error };
    let pull = forge.pull_request(number).await.map_err(refused)?;
    if let Some(merged) = finished(forge, &pull, strategy).await.map_err(refused)? {
        return Ok(merged);
    }
    let checks = forge.checks(&pull.head_commit).await.map_err(refused)?;
    let reasons = objections(forge, &pull, requester, &checks, unknown).await;
    let reasons = reasons.map_err(refused)?;
    if !reasons.is_empty() {
        return Err(MergeRefusal::Checks { number, reasons });
    }
    let strategy = match strategy {
        Some(strategy) => strategy,
        None => forge.default_strategy().await.map_err(refused)?,
    };
    let order = MergeOrder {
        strategy,
        // Whatever is pushed after the checks were read is not what was checked.
        expected_head: pull.head_commit.clone(),
        title: None,
    };
    let is_ours = is_own_branch(forge, &pull).await.map_err(refused)?;
    let commit = forge.merge(number, &order).await.map_err(refused)?;
    let merged = Merged {
        number,
        not_signed: not_signed(forge, &commit).await.map_err(refused)?,
        commit,
        strategy,
        base: pull.base.clone(),
        unchecked: checks.checks.is_empty(),
        checks_unknown: checks.unknown,
        deleted_branch: None,
        kept_branch: None,
    };
    Ok(match is_ours {
        true => without_branch(forge, &pull, merged).await,
        false => merged,
    })
}

/// Why a commit is not signed, if it should be.
pub async fn not_signed(
    forge: &dyn Forge,
    commit: &CommitId,
) -> Result<Option<String>, ForgeError> {
    Ok(match forge.signature(commit).await? {
        Signature::Missing(reason) => Some(reason),
        Signature::NotWanted | Signature::Made => None,
    })
}

/// A merge that ended after the base moved: our branch is still there, and nothing else is left to
/// do. The strategy in the result is the one asked for: which one was used is not on record. Only
/// for our own branches, since for others nothing is left to do.
async fn finished(
    forge: &dyn Forge,
    pull: &PullRequest,
    strategy: Option<MergeStrategy>,
) -> Result<Option<Merged>, ForgeError> {
    let Some(commit) = pull.merge_commit.clone() else {
        return Ok(None);
    };
    if pull.state != PullRequestState::Merged || !is_own_branch(forge, pull).await? {
        return Ok(None);
    }
    let strategy = match strategy {
        Some(strategy) => strategy,
        None => forge.default_strategy().await?,
    };
    let checks = forge.checks(&pull.head_commit).await?;
    let merged = Merged {
        number: pull.number,
        not_signed: not_signed(forge, &commit).await?,
        commit,
        strategy,
        base: pull.base.clone(),
        unchecked: checks.checks.is_empty(),
        checks_unknown: checks.unknown,
        deleted_branch: None,
        kept_branch: None,
    };
    Ok(Some(without_branch(forge, pull, merged).await))
}

/// A fork can have a branch of the same name, which is not the one here. So the name is not enough:
/// the branch of this repository must be at the head of the pull request. If something was pushed
/// to it meanwhile it is not deleted either.
pub(crate) async fn is_own_branch(
    forge: &dyn Forge,
    pull: &PullRequest,
) -> Result<bool, ForgeError> {
    Ok(pull.head.starts_with(OWN_BRANCHES)
        && forge.head(&pull.head).await?.as_ref() == Some(&pull.head_commit))
}

/// The merge stands, whether or not the branch goes.
async fn without_branch(forge: &dyn Forge, pull: &PullRequest, mut merged: Merged) -> Merged {
    match forge.delete_branch(&pull.head).await {
        Ok(()) => merged.deleted_branch = Some(pull.head.clone()),
        Err(error) => merged.kept_branch = Some(format!("{}: {error}", pull.head)),
    }
    merged
}

/// Everything that speaks against it, not only the first thing. A failure to read one of them is an
/// error and not an absence of objections: what cannot be checked is not merged. `Unknown` is an
/// objection, too; GitHub computes mergeability in the background.
async fn objections(
    forge: &dyn Forge,
    pull: &PullRequest,
    requester: &str,
    checks: &CommitChecks,
    unknown: UnknownChecks,
) -> Result<Vec<String>, ForgeError> {
    if pull.state != PullRequestState::Open {
        return Ok(vec![format!("it is {}", pull.state)]);
    }
    let mut reasons = Vec::new();
    if pull.draft {
        reasons.push(format!(
            "it is a draft (`codespar pr ready {}` makes it ready)",
            pull.number
        ));
    }
    reasons.extend(check_objections(checks));
    if let Some(reason) = &checks.unknown
        && unknown == UnknownChecks::Refuse
    {
        reasons.push(format!(
            "its checks are unknown, and `--without-checks` is not given ({reason})"
        ));
    }
    if forge.diff(pull.number).await?.trim().is_empty() {
        reasons.push("it changes nothing".to_owned());
    }
    match forge.mergeability(pull.number).await? {
        Mergeability::Clean => {}
        Mergeability::Conflict(files) if files.is_empty() => {
            reasons.push(format!("it conflicts with {}", pull.base));
        }
        Mergeability::Conflict(files) => reasons.push(format!(
            "it conflicts with {} in {}",
            pull.base,
            files.join(", ")
        )),
        Mergeability::Blocked(reason) => reasons.push(reason),
        Mergeability::Unknown => reasons.push(
            "the forge has not worked out whether it can be merged; try again in a moment"
                .to_owned(),
        ),
    }
    let permission = match forge.permission(requester).await {
        Ok(permission) => permission,
        // Who may not even ask may not write either.
        Err(ForgeError::Forbidden { .. }) => Permission::None,
        Err(other) => return Err(other),
    };
    if permission < Permission::Write {
        reasons.push(format!("{requester} may not write to {}", forge.describe()));
    }
    Ok(reasons)
}

/// Checks that failed, or are not over. Each check by name, with its summary. A head without checks
/// has no objection: `Merged::unchecked` says so afterwards.
pub(crate) fn check_objections(checks: &CommitChecks) -> Vec<String> {
    let mut reasons = Vec::new();
    for check in &checks.checks {
        let detail = check
            .summary
            .as_ref()
            .map(|summary| format!(" ({summary})"))
            .unwrap_or_default();
        match check.state {
            CheckState::Success => {}
            CheckState::Failure => reasons.push(format!("check `{}` failed{detail}", check.name)),
            CheckState::Pending => {
                reasons.push(format!("check `{}` is not over{detail}", check.name));
            }
        }
    }
    reasons
}
