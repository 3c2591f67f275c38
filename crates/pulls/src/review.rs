//! Reviewing a pull request: the model's findings, checked against the diff, and the computed risk.
//!
//! 1. The risk is computed from the diff and the checks. It needs no model.
//! 2. A review of ours of the same commit is returned as it is. It was paid for.
//! 3. The model is shown the pull request (`review_view`) and answers with one JSON object.
//! 4. Its findings are placed on lines of the diff (`findings`), and one review is posted.
//!
//! The verdict is always a comment: a model neither approves nor blocks. The review carries a key
//! in an HTML comment, by which it is found again after a crash between posting and recording.

use std::{fmt::Write as _, sync::Arc};

use codespar_agent::{AskError, Asking, Bill, Budget, Catalogue, Model, Redactor, Stop};
use codespar_change::answer;
use codespar_forge::{Forge, ForgeError, NewReview};
use codespar_protocol::{
    Check, CheckState, Cost, Message, PullRequest, Review, ReviewComment, Usd, Verdict, counted,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Risk,
    diff::{self, DiffFile},
    diff_stat::touched_by_diff,
    findings::{Finding, Findings, UnplacedFinding},
    markdown,
    review_view::ReviewView,
    risk::{Proof, risk},
};

/// Why a pull request was not reviewed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The pull request or the model's answer cannot be used; the text says why.
    #[error("{0}")]
    Refused(String),
}

const SYSTEM: &str = include_str!("prompts/review.md");
/// Of one call; an answer that is cut at it is continued, up to `MOST_ROUNDS` calls.
const MOST_TOKENS: u32 = 8_192;
const MOST_ROUNDS: u32 = 4;
/// Files that the text of a review names.
const MOST_NAMED: usize = 20;

/// What a review came to.
#[derive(Debug, Clone, Serialize)]
pub struct Reviewed {
    /// Which pull request.
    pub number: u64,
    /// Findings that stand on lines of the diff.
    pub findings: Vec<Finding>,
    /// The others; they are part of the text of the review.
    pub unplaced: Vec<UnplacedFinding>,
    /// Files that the model was not shown, or only in part, because there was no room.
    pub unseen: Vec<String>,
    /// The computed risk.
    pub risk: Risk,
    /// No model was asked.
    pub simulated: bool,
    /// The review as it was posted.
    pub review: Review,
    pub cost_usd: Option<Usd>,
}

/// What a reviewer works with.
pub struct Reviewer<'a> {
    /// Who is asked; nobody in simulation mode.
    pub model: Option<&'a Arc<dyn Model>>,
    /// How the provider was chosen: without a model, what to set to have one.
    pub provider_choice: &'a str,
    /// Prices.
    pub catalogue: &'a Catalogue,
    /// The provider's id of the model.
    pub model_id: String,
    /// Limit on money.
    pub max_budget: Option<Usd>,
    /// Takes secrets out.
    pub redactor: &'a Redactor,
}

/// What the model has to say; nothing where none was asked.
#[derive(Default)]
struct Opinion {
    summary: String,
    findings: Findings,
    unseen: Vec<String>,
    cut: Vec<String>,
    cost: Cost,
}

/// An answer, read as far as it can be: one finding in another form does not take the others along.
#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    findings: Option<Vec<Value>>,
}

impl Reviewer<'_> {
    /// Reviews and posts. The same commit is not reviewed twice. Nothing is posted if the model
    /// fails, is stopped, or answers in another form; the error has its text then, and what it cost
    /// is not told. Without a model the computed part alone is posted, marked as simulated.
    pub async fn review(
        &self,
        forge: &dyn Forge,
        number: u64,
        stop: &Stop,
    ) -> Result<Reviewed, ReviewError> {
        let pull = forge.pull_request(number).await?;
        let diff = forge.diff(number).await?;
        let checks = forge.checks(&pull.head_commit).await?;
        let risk = risk(&touched_by_diff(&diff), proof_of(&checks.checks));
        if let Some(earlier) = self.earlier(forge, &pull, &risk).await? {
            return Ok(earlier);
        }
        let files = diff::parse(&diff);
        let opinion = match self.model {
            Some(model) => {
                let view = ReviewView::make(forge, &pull, &checks, &files, self.redactor).await;
                self.ask(model, view, &files, stop).await?
            }
            None => Opinion::default(),
        };
        let key = match self.model {
            None => simulated_key(&pull),
            Some(_) => key_of(&pull),
        };
        let most = forge.max_body_chars();
        let body = self.body(&opinion, &files, &risk, most, &key);
        let Opinion {
            findings,
            cost,
            unseen,
            cut,
            ..
        } = opinion;
        let new = NewReview {
            commit: pull.head_commit.clone(),
            verdict: Verdict::Comment,
            body,
            comments: findings
                .placed
                .iter()
                .map(|finding| ReviewComment {
                    path: finding.path.clone(),
                    line: finding.line,
                    body: self.redactor.redact(&finding.comment()).into_owned(),
                })
                .collect(),
            key,
        };
        let review = forge.review(number, &new).await?;
        Ok(Reviewed {
            number,
            findings: findings.placed,
            unplaced: findings.unplaced,
            unseen: unseen.into_iter().chain(cut).collect(),
            risk,
            simulated: self.model.is_none(),
            review,
            cost_usd: cost.known(),
        })
    }

    /// Our review of this commit, which is not paid for again. One without a model stands in the
    /// way of another such only. Its `unseen` files are not known any more, and it costs nothing
    /// now. A mark in a text that somebody else wrote is not believed.
    async fn earlier(
        &self,
        forge: &dyn Forge,
        pull: &PullRequest,
        risk: &Risk,
    ) -> Result<Option<Reviewed>, ReviewError> {
        let mut keys = vec![(key_of(pull), false)];
        if self.model.is_none() {
            keys.push((simulated_key(pull), true));
        }
        let reviews = forge.reviews(pull.number).await?;
        let marks: Vec<(String, bool)> = keys
            .iter()
            .map(|(key, simulated)| (mark(key), *simulated))
            .collect();
        let is_marked = |review: &&Review| {
            let mut marks = marks.iter();
            marks.any(|(mark, _)| review.body.contains(mark))
        };
        let marked: Vec<&Review> = reviews.iter().filter(is_marked).collect();
        if marked.is_empty() {
            return Ok(None);
        }
        // Anyone can copy a mark into a text of their own, and be the first with it.
        let we = forge.whoami().await?;
        let found = marks.iter().find_map(|(mark, simulated)| {
            let is_it = |review: &&&Review| review.author == we && review.body.contains(mark);
            Some((*marked.iter().find(is_it)?, *simulated))
        });
        let Some((review, simulated)) = found else {
            return Ok(None);
        };
        let findings = Findings::posted(&review.body, &review.comments);
        Ok(Some(Reviewed {
            number: pull.number,
            findings: findings.placed,
            unplaced: findings.unplaced,
            unseen: Vec::new(),
            risk: risk.clone(),
            simulated,
            review: review.clone(),
            cost_usd: Cost::default().known(),
        }))
    }

    /// With a budget of its own: `max_budget` is for one review.
    async fn ask(
        &self,
        model: &Arc<dyn Model>,
        view: ReviewView,
        files: &[DiffFile],
        stop: &Stop,
    ) -> Result<Opinion, ReviewError> {
        let budget = Arc::new(Budget::new(self.max_budget, None));
        let asking = Asking {
            model: &**model,
            catalogue: self.catalogue,
            budget: &budget,
            stop,
            redactor: self.redactor,
            id: self.model_id.clone(),
            max_tokens: MOST_TOKENS,
            max_rounds: MOST_ROUNDS,
            join: answer::join,
            watch: &|_| {},
        };
        let asked = asking
            .ask(
                SYSTEM.trim(),
                vec![Message::user(view.text)],
                &mut Bill::default(),
            )
            .await?;
        let said = read(&asked.text).ok_or_else(|| {
            ReviewError::Refused(format!(
                "the review is not in the form that was asked for; nothing was posted. The model said:\n\n{}",
                asked.text
            ))
        })?;
        Ok(Opinion {
            summary: said.summary.unwrap_or_default(),
            findings: Findings::read(&said.findings.unwrap_or_default(), files),
            unseen: view.unseen,
            cut: view.cut,
            cost: asked.cost(),
        })
    }

    /// The text of the review, at most this many characters: over the limit it would be rejected,
    /// after all the cost. The summary gets a quarter of the room and the unplaced findings half.
    /// The mark comes last and is never cut off, since without it the review would be made again.
    fn body(
        &self,
        opinion: &Opinion,
        files: &[DiffFile],
        risk: &Risk,
        most: usize,
        key: &str,
    ) -> String {
        let mut out = String::new();
        let added: usize = files.iter().map(|file| file.added).sum();
        let removed: usize = files.iter().map(|file| file.removed).sum();
        if self.model.is_none() {
            let why = markdown::line(self.provider_choice);
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "**Simulated**: no model was asked ({why}); this is the computed part alone.\n"
            );
        } else {
            let summary: String = opinion.summary.trim().chars().take(most / 4).collect();
            out.push_str(&markdown::foreign(&summary));
            out.push_str("\n\n");
        }
        let _ = writeln!(
            out,
            "{}, +{added} −{removed} lines.\n",
            counted(files.len(), "file")
        );
        let _ = writeln!(out, "**Risk: {}**", risk.level);
        for reason in &risk.reasons {
            let _ = writeln!(out, "- {}", markdown::line(reason));
        }
        if self.model.is_some() {
            let Findings { placed, unplaced } = &opinion.findings;
            let count = placed.len() + unplaced.len();
            let _ = writeln!(out, "\n{}.", counted(count, "finding"));
        }
        name_files(
            &mut out,
            "Not reviewed, because there was no room",
            &opinion.unseen,
        );
        name_files(&mut out, "Reviewed only in part", &opinion.cut);
        opinion.findings.write(&mut out, most / 2);
        let end = format!("\n{}", mark(key));
        let out = self.redactor.redact(&out);
        let room = most.saturating_sub(end.chars().count());
        out.chars().take(room).chain(end.chars()).collect()
    }
}

/// Files that the reader has to look at without help.
fn name_files(out: &mut String, what: &str, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let named = paths.iter().take(MOST_NAMED);
    let named: Vec<String> = named
        .map(|path| format!("`{}`", markdown::code(path)))
        .collect();
    let more = match paths.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n**{what}:** {}{more}", named.join(", "));
}

/// Checks of a forge say nothing about the code before the change, so they are never a proof that
/// tests fail without it. One that is pending leaves it open.
fn proof_of(checks: &[Check]) -> Proof {
    let has = |state| checks.iter().any(|check| check.state == state);
    if has(CheckState::Failure) {
        Proof::Failed
    } else if has(CheckState::Success) && !has(CheckState::Pending) {
        Proof::Passed
    } else {
        Proof::None
    }
}

/// By commit: a push makes another review possible.
fn key_of(pull: &PullRequest) -> String {
    format!("review-{}", pull.head_commit)
}

fn simulated_key(pull: &PullRequest) -> String {
    format!("review-simulated-{}", pull.head_commit)
}

fn mark(key: &str) -> String {
    format!("<!-- codespar-key: {key} -->")
}

/// The object in an answer; models put words or a fence around it at times. Every brace is tried as
/// the beginning, the first one first; a brace in the words before the object does not spoil it.
fn read(answer: &str) -> Option<Said> {
    answer.match_indices('{').find_map(|(at, _)| {
        let mut stream = serde_json::Deserializer::from_str(&answer[at..]).into_iter::<Said>();
        let said = stream.next()?.ok()?;
        // Any object can be read so; one that has neither is not the answer.
        (said.summary.is_some() || said.findings.is_some()).then_some(said)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_found_among_words() {
        let said = read(r#"Here: {"foo": 1} {"summary": "Bad", "findings": ["x"]} so."#).unwrap();
        assert_eq!(said.summary.as_deref(), Some("Bad"));
        assert_eq!(said.findings.unwrap().len(), 1);
        assert!(read(r#"{"foo": 1}"#).is_none() && read("fine").is_none());
    }
}
