//! A plan for a feature: one question to the model, whose answer is a list of steps that is checked.

use codespar_forge::{Forge, ForgeError};
use codespar_protocol::{RepoPath, Usd};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{AskOnce, ask_once};
use crate::{ProjectDir, RuntimeError};

const PROMPT: &str = include_str!("../prompts/plan.md");
/// More steps than a person reads before they approve them.
const MOST_STEPS: usize = 10;
const MOST_TITLE: usize = 120;
const MOST_INSTRUCTION: usize = 4_000;
/// Paths of files that the model is shown.
const MOST_PATHS: usize = 400;
/// How much of the README the model is shown.
const MOST_README: usize = 4_000;
const READMES: [&str; 4] = ["README.md", "README", "README.rst", "readme.md"];

/// A step of a plan: one change with a pull request of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    pub title: String,
    /// For the dev agent.
    pub instruction: String,
    /// The number of the earlier step that it builds on, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
}

/// What the model answered, and what that cost.
#[derive(Debug, Clone, PartialEq)]
pub struct FeaturePlan {
    pub steps: Vec<PlanStep>,
    pub cost: Option<Usd>,
}

/// What is to be planned.
#[derive(Debug, Clone, Default)]
pub struct PlanRequest {
    pub feature: String,
    /// The branch it is for; the default one otherwise.
    pub base: Option<String>,
    pub model: Option<String>,
    pub max_budget: Option<Usd>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    steps: Vec<PlanStep>,
}

/// Asks for a plan. An answer that is none is sent back once, with what is wrong with it.
pub async fn plan_feature(
    request: &PlanRequest,
    project_dir: &ProjectDir,
    forge: &dyn Forge,
    cancel: &CancellationToken,
) -> Result<FeaturePlan, RuntimeError> {
    let failed = |error: ForgeError| RuntimeError::Failed(error.to_string());
    let context = repository_context(request, forge).await.map_err(failed)?;
    let question = format!(
        "{}\n\n<repository>\n{context}\n</repository>\n\n<feature>\n{}\n</feature>",
        PROMPT.trim(),
        request.feature
    );
    let mut asked = AskOnce {
        question: question.clone(),
        model: request.model.clone(),
        max_budget: request.max_budget,
        ..AskOnce::default()
    };
    let first = ask_once(asked.clone(), project_dir, cancel).await?;
    let mut cost = first.cost;
    let problem = match read_steps(&first.text) {
        Ok(steps) => {
            let cost = cost.known();
            return Ok(FeaturePlan { steps, cost });
        }
        Err(problem) => problem,
    };
    asked.question = format!(
        "{question}\n\n<answer>\n{}\n</answer>\n\nThis answer cannot be used: {problem}. Answer \
         again, with the JSON alone.",
        first.text
    );
    let second = ask_once(asked, project_dir, cancel).await?;
    let steps = read_steps(&second.text)
        .map_err(|problem| RuntimeError::Failed(format!("the model gave no plan: {problem}")))?;
    cost += second.cost;
    Ok(FeaturePlan {
        steps,
        cost: cost.known(),
    })
}

/// The names of files and the beginning of the README.
async fn repository_context(
    request: &PlanRequest,
    forge: &dyn Forge,
) -> Result<String, ForgeError> {
    let branch = match &request.base {
        Some(base) => base.clone(),
        None => forge.default_branch().await?,
    };
    let Some(commit) = forge.head(&branch).await? else {
        return Err(ForgeError::Refused(format!(
            "{} has no branch `{branch}`",
            forge.describe()
        )));
    };
    let tree = forge.tree(&commit).await?;
    let mut lines: Vec<&str> = tree.iter().map(|entry| entry.path.as_str()).collect();
    let left_out = lines.len().saturating_sub(MOST_PATHS);
    lines.truncate(MOST_PATHS);
    let mut text = lines.join("\n");
    if left_out > 0 {
        text.push_str(&format!("\n… and {left_out} more files"));
    }
    for name in READMES {
        let Ok(path) = RepoPath::new(name) else {
            continue;
        };
        if let Some(file) = forge.file(&commit, &path).await? {
            let readme = String::from_utf8_lossy(&file.content);
            let start: String = readme.chars().take(MOST_README).collect();
            text.push_str(&format!("\n\n{name}:\n{start}"));
            break;
        }
    }
    Ok(text)
}

/// The steps of an answer, or what is wrong with it. Text around the JSON does no harm.
fn read_steps(text: &str) -> Result<Vec<PlanStep>, String> {
    let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return Err("it has no JSON object".to_owned());
    };
    let json = text.get(start..=end).unwrap_or_default();
    let answered: Answered = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let steps = answered.steps;
    if steps.is_empty() || steps.len() > MOST_STEPS {
        return Err(format!(
            "it has {} steps; 1 to {MOST_STEPS} are possible",
            steps.len()
        ));
    }
    for (number, step) in (1_u32..).zip(&steps) {
        let is_filled = |text: &str, most: usize| {
            !text.trim().is_empty() && text.chars().count() <= most && !text.contains('\0')
        };
        if !is_filled(&step.title, MOST_TITLE) || step.title.contains('\n') {
            return Err(format!(
                "the title of step {number} must be one line of at most {MOST_TITLE} characters"
            ));
        }
        if !is_filled(&step.instruction, MOST_INSTRUCTION) {
            return Err(format!(
                "the instruction of step {number} must have 1 to {MOST_INSTRUCTION} characters"
            ));
        }
        if step
            .after
            .is_some_and(|after| after == 0 || after >= number)
        {
            return Err(format!("step {number} can only be after an earlier one"));
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_with_text_around_it() {
        let text = "Here:\n```json\n{\"steps\": [{\"title\": \"A\", \"instruction\": \"do a\"}, \
                    {\"title\": \"B\", \"instruction\": \"do b\", \"after\": 1}]}\n```";
        let steps = read_steps(text).unwrap();
        assert_eq!(steps[1].after, Some(1));
        assert_eq!(steps.len(), 2);
    }

    #[test]
    fn what_is_no_plan_is_refused_with_the_reason() {
        let step = |after: u32| {
            format!("{{\"title\": \"A\", \"instruction\": \"do\", \"after\": {after}}}")
        };
        for (text, reason) in [
            ("no plan".to_owned(), "no JSON object"),
            ("{\"steps\": []}".to_owned(), "0 steps"),
            (format!("{{\"steps\": [{}]}}", step(1)), "an earlier one"),
            (format!("{{\"steps\": [{}]}}", step(0)), "an earlier one"),
            (
                "{\"steps\": [{\"title\": \"\", \"instruction\": \"x\"}]}".to_owned(),
                "the title of step 1",
            ),
            (
                "{\"steps\": [{\"title\": \"A\"}]}".to_owned(),
                "instruction",
            ),
        ] {
            let refused = read_steps(&text).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
