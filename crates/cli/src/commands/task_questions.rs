//! `codespar task questions` and `codespar task answer`.

use std::process::ExitCode;

use clap::Args;
use codespar_policy::Rule;
use codespar_protocol::{Question, QuestionId, QuestionRequest, TaskId};
use codespar_store::{Database, QuestionFilter};
use jiff::Timestamp;
use serde_json::json;

use super::task_runner::start_runner_if_none;
use crate::{
    error::CommandError,
    printer::{self, plain},
    style,
};
use codespar_runtime::{ProjectDir, remember_rules};

/// List questions of agents that wait for an answer, oldest first.
///
/// An agent in the background that needs a permission, the dev agent that needs to know what is
/// meant, or an MCP server that needs a value waits until somebody answers, here or at the
/// terminal of its session, or until `questionTimeoutSeconds` has passed.
#[derive(Args)]
pub(super) struct QuestionsArgs {
    /// Print JSON: `questions`, each with `id`, `kind` (permission, clarification, elicitation),
    /// `session_id`, `task_id`, `project_root`, `asked_at`, `expires_at`, `status` and what is asked.
    #[arg(long)]
    json: bool,
}

/// Answer a question of an agent.
///
/// A permission is answered with `yes` (this once), `always` (also saves the rule it suggests in
/// the project's settings.local.json) or `no` and a reason for the model; a clarification with a
/// text; a question of an MCP server with `name=value …` or `no`.
///
/// A call can be changed: `yes {"command": "…"}` allows it with this input, `yes without 2` without
/// the second hunk of its change, `always 'Bash(git log *)'` by a rule of yours. Rules that deny
/// a call also deny the changed one.
///
/// Example: codespar task answer q-1f3c2b8a no, use the test database
#[derive(Args)]
pub(super) struct AnswerArgs {
    /// The id of the question, or a unique prefix of it.
    id: String,
    /// `yes`, `always` or `no …` to a permission; a text or `name=value …` to other questions
    #[arg(required = true)]
    answer: Vec<String>,
    /// Print the question and its answer as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn list(
    args: &QuestionsArgs,
    store: &dyn Database,
) -> Result<ExitCode, CommandError> {
    let questions = open(store).await?;
    if args.json {
        super::print_json(&json!({ "questions": questions }))?;
    } else if questions.is_empty() {
        super::print(format_args!("no questions\n"))?;
    } else {
        for question in &questions {
            super::print(format_args!("{}\n", text(question)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn answer(
    args: &AnswerArgs,
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<ExitCode, CommandError> {
    let question = find(store, &args.id).await?;
    let typed = args.answer.join(" ");
    let answer = question.request.parse_answer(&typed).map_err(|wanted| {
        CommandError::Usage(format!("that does not answer {}: {wanted}", question.id))
    })?;
    let project_dir = match question.project_root == project_dir.root {
        true => project_dir.clone(),
        false => ProjectDir::at(project_dir.environment.clone(), &question.project_root)?,
    };
    // Before the agent goes on: the rule is there for its next call.
    if let Some(rules) = question.request.rules_to_keep(&answer) {
        if let Some(error) = rules.iter().find_map(|rule| Rule::parse(rule).err()) {
            return Err(CommandError::Usage(error.to_string()));
        }
        let kept = remember_rules(&project_dir, rules)
            .map_err(|error| CommandError::Failed(format!("the rule was not saved: {error}")))?;
        if let Some(warning) = kept.warning {
            printer::err(format_args!("{}", style::warning(warning)));
        }
    }
    let question = store
        .answer_question(&question.id, &answer, "codespar task answer")
        .await?;
    // Its process may be gone; another one goes on with it.
    if let Some(task) = &question.task_id
        && !store.task(task).await?.status.is_final()
    {
        start_runner_if_none(&project_dir, store).await?;
    }
    if args.json {
        super::print_json(&question)?;
    } else {
        printer::err(format_args!("{} answered", question.id));
    }
    Ok(ExitCode::SUCCESS)
}

/// Those whose time is up count as answered, though nobody may be there to record it.
async fn open(store: &dyn Database) -> Result<Vec<Question>, CommandError> {
    let mut questions = store.questions(QuestionFilter::Open).await?;
    let now = Timestamp::now();
    questions.retain(|question| question.expires_at > now);
    Ok(questions)
}

/// Those of one task.
pub(super) async fn of_task(
    store: &dyn Database,
    task: &TaskId,
) -> Result<Vec<Question>, CommandError> {
    let mut questions = open(store).await?;
    questions.retain(|question| question.task_id.as_ref() == Some(task));
    Ok(questions)
}

/// The question, and how to answer it.
pub(super) fn hint(question: &Question) -> String {
    let answers = match question.request {
        QuestionRequest::Permission(_) => "yes|always|no",
        QuestionRequest::Clarification(_) => "TEXT",
        QuestionRequest::Elicitation(_) => "name=value …|no",
    };
    format!(
        "{}\n  Answer with: codespar task answer {} {answers}",
        text(question),
        question.id
    )
}

/// A prefix is looked for among open questions; a whole id finds answered ones too, whose error is
/// clearer.
async fn find(store: &dyn Database, text: &str) -> Result<Question, CommandError> {
    if let Ok(id) = text.parse::<QuestionId>() {
        return Ok(store.question(&id).await?);
    }
    let mut found = open(store).await?;
    found.retain(|question| question.id.as_str().starts_with(text));
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CommandError::Usage(format!(
            "`{text}` is not the id of an open question or a prefix of one; `codespar task \
             questions` shows those there are"
        ))),
        count => Err(CommandError::Usage(format!(
            "`{text}` begins the ids of {count} questions; give more of it"
        ))),
    }
}

fn text(question: &Question) -> String {
    let asker = match &question.task_id {
        Some(task) => format!("task {task}"),
        None => format!("session {}", question.session_id),
    };
    let mut lines = vec![format!(
        "{}  {}  {}",
        style::strong(&question.id),
        plain(&question.request.summary()),
        style::faint(format!("({asker}, {})", question.project_root.display()))
    )];
    let mut add = |line: &str| lines.push(format!("  {}", style::faint(plain(line))));
    match &question.request {
        QuestionRequest::Permission(asked) => {
            add(&asked.reason);
            for (index, hunk) in asked.change.iter().flat_map(|c| &c.hunks).enumerate() {
                add(&format!("hunk {}: line {}", index + 1, hunk.first_line));
            }
            if !asked.suggested_rules.is_empty() {
                let rules = asked.suggested_rules.join(", ");
                add(&format!("always: {rules}"));
            }
        }
        QuestionRequest::Clarification(asked) => {
            for line in asked.text.lines().skip(1) {
                add(line);
            }
        }
        QuestionRequest::Elicitation(asked) => {
            let fields = asked.fields().into_iter();
            let fields: Vec<String> = fields.map(|(name, _)| format!("{name}=…")).collect();
            add(&fields.join(" "));
        }
    }
    lines.join("\n")
}
