//! Reviewing a pull request: the model's findings, checked against the diff, and the computed risk.

use std::{fmt::Write as _, sync::Arc};

use codespar_agent::{AskError, Asking, Bill, Budget, Catalogue, Model, Redactor, Stop};
use codespar_change::answer;
use codespar_forge::{Forge, ForgeError, NewReview};
use codespar_protocol::{
    CheckState, Cost, Message, PullRequest, Review, ReviewComment, Usd, Verdict, counted,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Risk,
    diff::{self, DiffFile},
    diff_stat::touched_by_diff,
    markdown,
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
const MOST_TOKENS: u32 = 8_192;
const MOST_ROUNDS: u32 = 4;
/// How much of a diff the model is shown.
const MOST_DIFF: usize = 200_000;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It would be better otherwise.
    Low,
    /// It should be otherwise.
    Medium,
    /// It must not go in so.
    High,
}

impl Severity {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Something the reviewer found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub path: String,
    /// The line in the new file.
    pub line: u32,
    /// How much it matters.
    pub severity: Severity,
    pub text: String,
}

/// What a review came to.
#[derive(Debug, Clone, Serialize)]
pub struct Reviewed {
    /// Which pull request.
    pub number: u64,
    /// Findings that stand on lines of the diff.
    pub findings: Vec<Finding>,
    /// How many stood on nothing and were left out.
    pub dropped: usize,
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

/// An answer, read as far as it can be: one finding in another form does not take the others along.
#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    findings: Option<Vec<Value>>,
}

#[derive(Debug)]
struct RawFinding {
    path: String,
    line: u32,
    severity: String,
    text: String,
}

impl RawFinding {
    /// Models have other names for the same things, and write numbers as words.
    fn read(value: &Value) -> Option<Self> {
        let word = |names: &[&str]| {
            let found = names.iter().find_map(|name| value.get(name)?.as_str());
            found.map(str::to_owned)
        };
        let line = value.get("line").or_else(|| value.get("line_number"))?;
        let line = match line {
            Value::String(text) => text.trim().parse().ok()?,
            other => u32::try_from(other.as_u64()?).ok()?,
        };
        Some(Self {
            path: word(&["path", "file", "filename"])?,
            line,
            severity: word(&["severity", "level"]).unwrap_or_default(),
            text: word(&["text", "message", "body", "comment"])?,
        })
    }
}

impl Reviewer<'_> {
    /// Reviews and posts. The same commit is not reviewed twice.
    pub async fn review(
        &self,
        forge: &dyn Forge,
        number: u64,
        stop: &Stop,
    ) -> Result<Reviewed, ReviewError> {
        let pull = forge.pull_request(number).await?;
        let diff = forge.diff(number).await?;
        let files = diff::parse(&diff);
        let risk = self.risk(forge, &pull, &diff).await?;
        if let Some(earlier) = self.earlier(forge, &pull, &risk).await? {
            return Ok(earlier);
        }
        let (said, cost) = match self.model {
            Some(model) => {
                let (said, cost) = self.ask(model, &pull, &diff, stop).await?;
                (Some(said), cost)
            }
            None => (None, Cost::default()),
        };
        let simulated = said.is_none();
        let said = said.unwrap_or_default();
        let (findings, dropped) = sort_out(&said.findings.unwrap_or_default(), &files);
        let key = match simulated {
            true => simulated_key(&pull),
            false => key_of(&pull),
        };
        // Over the limit it would be rejected, after all the cost.
        let summary: String = said
            .summary
            .unwrap_or_default()
            .chars()
            .take(forge.max_body_chars() / 2)
            .collect();
        let body = self.body(&summary, &findings, dropped, &files, &risk, simulated, &key);
        let new = NewReview {
            commit: pull.head_commit.clone(),
            verdict: Verdict::Comment,
            body: self.redactor.redact(&body).into_owned(),
            comments: findings
                .iter()
                .map(|finding| ReviewComment {
                    path: finding.path.clone(),
                    line: finding.line,
                    body: self.redactor.redact(&comment(finding)).into_owned(),
                })
                .collect(),
            key,
        };
        let review = forge.review(number, &new).await?;
        Ok(Reviewed {
            number,
            findings,
            dropped,
            risk,
            simulated,
            review,
            cost_usd: cost.known(),
        })
    }

    /// Our review of this commit, which is not paid for again. One without a model stands in the
    /// way of another such only.
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
        let found = keys.iter().find_map(|(key, simulated)| {
            let mark = mark(key);
            let review = reviews.iter().find(|review| review.body.contains(&mark))?;
            Some((review, *simulated))
        });
        // Anyone can copy a mark into a text.
        let Some((review, simulated)) = found else {
            return Ok(None);
        };
        if review.author != forge.whoami().await? {
            return Ok(None);
        }
        Ok(Some(Reviewed {
            number: pull.number,
            findings: review.comments.iter().map(finding).collect(),
            dropped: 0,
            risk: risk.clone(),
            simulated,
            review: review.clone(),
            cost_usd: Cost::default().known(),
        }))
    }

    async fn risk(
        &self,
        forge: &dyn Forge,
        pull: &PullRequest,
        diff: &str,
    ) -> Result<Risk, ReviewError> {
        let checks = forge.checks(&pull.head_commit).await?;
        let proof = if checks
            .iter()
            .any(|check| check.state == CheckState::Failure)
        {
            Proof::Failed
        } else if !checks.is_empty()
            && checks
                .iter()
                .all(|check| check.state == CheckState::Success)
        {
            Proof::Passed
        } else {
            Proof::None
        };
        Ok(risk(&touched_by_diff(diff), proof))
    }

    async fn ask(
        &self,
        model: &Arc<dyn Model>,
        pull: &PullRequest,
        diff: &str,
        stop: &Stop,
    ) -> Result<(Said, Cost), ReviewError> {
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
        // Cut after that: part of a secret would not be known for one.
        let diff = self.redactor.redact(diff);
        let cut = diff.floor_char_boundary(MOST_DIFF);
        let rest = diff.len() - cut;
        let note = if rest > 0 {
            format!("\n[{rest} bytes of the diff are left out here]")
        } else {
            String::new()
        };
        let text = format!(
            "<title>{}</title>\n<description>\n{}\n</description>\n<diff>\n{}{note}\n</diff>",
            pull.title,
            pull.body,
            &diff[..cut]
        );
        let asked = asking
            .ask(
                SYSTEM.trim(),
                vec![Message::user(text)],
                &mut Bill::default(),
            )
            .await?;
        let said = read(&asked.text).ok_or_else(|| {
            ReviewError::Refused(format!(
                "the review is not in the form that was asked for; nothing was posted. The model said:\n\n{}",
                asked.text
            ))
        })?;
        Ok((said, asked.cost()))
    }

    #[allow(clippy::too_many_arguments)]
    fn body(
        &self,
        summary: &str,
        findings: &[Finding],
        dropped: usize,
        files: &[DiffFile],
        risk: &Risk,
        simulated: bool,
        key: &str,
    ) -> String {
        let mut out = String::new();
        let added: usize = files.iter().map(|file| file.added).sum();
        let removed: usize = files.iter().map(|file| file.removed).sum();
        if simulated {
            let why = markdown::line(self.provider_choice);
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "**Simulated**: no model was asked ({why}); this is the computed part alone.\n"
            );
        } else {
            out.push_str(&markdown::foreign(summary.trim()));
            out.push_str("\n\n");
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{}, +{added} −{removed} lines.\n",
            counted(files.len(), "file")
        );
        let _ = writeln!(out, "**Risk: {}**", risk.level);
        for reason in &risk.reasons {
            let _ = writeln!(out, "- {}", markdown::line(reason));
        }
        if !simulated {
            let _ = writeln!(out, "\n{}.", counted(findings.len(), "finding"));
        }
        if dropped > 0 {
            let _ = writeln!(
                out,
                "{dropped} more could not be placed on a line that the diff shows and {} left out.",
                if dropped == 1 { "was" } else { "were" }
            );
        }
        let _ = write!(out, "\n{}", mark(key));
        out
    }
}

fn key_of(pull: &PullRequest) -> String {
    format!("review-{}", pull.head_commit)
}

fn simulated_key(pull: &PullRequest) -> String {
    format!("review-simulated-{}", pull.head_commit)
}

fn mark(key: &str) -> String {
    format!("<!-- codespar-key: {key} -->")
}

fn comment(finding: &Finding) -> String {
    format!(
        "**{}**: {}",
        finding.severity.as_str(),
        markdown::foreign(finding.text.trim())
    )
}

/// The other way round.
fn finding(comment: &ReviewComment) -> Finding {
    let all = [Severity::Low, Severity::Medium, Severity::High];
    let known = all.into_iter().find_map(|severity| {
        let start = format!("**{}**: ", severity.as_str());
        Some((severity, comment.body.strip_prefix(&start)?))
    });
    let (severity, text) = known.unwrap_or((Severity::Medium, &comment.body));
    Finding {
        path: comment.path.clone(),
        line: comment.line,
        severity,
        text: text.to_owned(),
    }
}

/// The object in an answer; models put words or a fence around it at times.
fn read(answer: &str) -> Option<Said> {
    answer.match_indices('{').find_map(|(at, _)| {
        let mut stream = serde_json::Deserializer::from_str(&answer[at..]).into_iter::<Said>();
        let said = stream.next()?.ok()?;
        // Any object can be read so; one that has neither is not the answer.
        (said.summary.is_some() || said.findings.is_some()).then_some(said)
    })
}

/// Keeps what stands on a line that the diff shows.
fn sort_out(raw: &[Value], files: &[DiffFile]) -> (Vec<Finding>, usize) {
    let findings: Vec<Finding> = raw
        .iter()
        .filter_map(RawFinding::read)
        .filter(|finding| {
            files
                .iter()
                .any(|file| file.path == finding.path && file.shown.contains(&finding.line))
        })
        .map(|finding| Finding {
            severity: match finding.severity.to_ascii_lowercase().as_str() {
                "high" | "critical" => Severity::High,
                "low" | "minor" => Severity::Low,
                _ => Severity::Medium,
            },
            path: finding.path,
            line: finding.line,
            text: finding.text,
        })
        .collect();
    let dropped = raw.len() - findings.len();
    (findings, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_finding_in_another_form_does_not_take_the_others_along() {
        let answer = r#"Here: {"summary": "Bad", "findings": [
            {"path": "a.rs", "line": 2, "severity": "high", "text": "drops the table"},
            {"file": "a.rs", "line": "3", "message": "and this"},
            {"path": "a.rs", "line": 900, "text": "nowhere"},
            "words alone"]}"#;
        let said = read(answer).unwrap();
        let file = DiffFile {
            path: "a.rs".to_owned(),
            shown: [2, 3].into(),
            ..DiffFile::default()
        };
        let (findings, dropped) = sort_out(&said.findings.unwrap(), &[file]);
        let found: Vec<(u32, Severity, &str)> = findings
            .iter()
            .map(|finding| (finding.line, finding.severity, finding.text.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (2, Severity::High, "drops the table"),
                (3, Severity::Medium, "and this")
            ]
        );
        assert_eq!((dropped, said.summary.as_deref()), (2, Some("Bad")));
        assert!(read(r#"{"foo": 1}"#).is_none() && read("fine").is_none());
    }
}
