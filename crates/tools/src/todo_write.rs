//! TodoWrite: the agent's own list of steps.
//!
//! The list lives in the context, for surfaces to show and for the prompt after a compaction. Each
//! call replaces it as a whole, so there is nothing to merge and a bad call leaves the old list as
//! it was.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::{Todo, TodoStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};

pub(crate) struct TodoWrite;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The whole list; it replaces the one before
    todos: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    content: String,
    status: Status,
    /// While it is being done: "Running the tests"
    active_form: Option<String>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

#[async_trait]
impl Tool for TodoWrite {
    fn name(&self) -> &str {
        "TodoWrite"
    }

    fn description(&self) -> &str {
        "Keeps the list of steps of a longer task, which the user sees. Have one step in \
         progress at a time and mark steps completed as soon as they are."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    // It changes only the list, but two calls at once would race for it.
    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, input: &RawValue, _context: &Context) -> Result<Intent, ToolError> {
        let todos = todos(input)?;
        let step = todos
            .iter()
            .find(|todo| todo.status == TodoStatus::InProgress);
        Ok(Intent {
            summary: match step {
                Some(todo) => todo.active_form.as_ref().unwrap_or(&todo.content).clone(),
                None => format!("{} steps", todos.len()),
            },
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        match todos(&call.input) {
            Ok(todos) => {
                let report = report(&todos);
                context.set_todos(todos);
                ToolOutput::text(report)
            }
            Err(error) => error.into(),
        }
    }
}

/// Own types for the input, apart from the protocol's: the schema is for the model, the protocol's
/// form is for events and transcripts, and the two may change independently.
fn todos(input: &RawValue) -> Result<Vec<Todo>, ToolError> {
    let input: Input = input::parse(input)?;
    let todos = input.todos.into_iter().enumerate().map(|(index, step)| {
        if step.content.trim().is_empty() {
            return Err(ToolError(format!(
                "invalid input: `todos[{index}].content` is empty"
            )));
        }
        Ok(Todo {
            content: step.content,
            status: match step.status {
                Status::Pending => TodoStatus::Pending,
                Status::InProgress => TodoStatus::InProgress,
                Status::Completed => TodoStatus::Completed,
            },
            active_form: step.active_form,
        })
    });
    todos.collect()
}

/// Several steps in progress are accepted with a remark, because refusing them would cost a turn.
fn report(todos: &[Todo]) -> String {
    let count = |status| todos.iter().filter(|todo| todo.status == status).count();
    let running = count(TodoStatus::InProgress);
    let advice = if running > 1 {
        ". Better have one in progress at a time"
    } else {
        ""
    };
    format!(
        "The list is kept: {} completed, {running} in progress, {} pending{advice}",
        count(TodoStatus::Completed),
        count(TodoStatus::Pending)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Bench;

    #[tokio::test]
    async fn the_list_replaces_the_one_before() {
        let bench = Bench::new();
        let one = json!({"todos": [
            {"content": "Look", "status": "completed"},
            {"content": "Run the tests", "status": "in_progress", "activeForm": "Running the tests"},
            {"content": "Report", "status": "pending"},
        ]});
        assert_eq!(
            bench.inspect(&TodoWrite, &one).unwrap().summary,
            "Running the tests"
        );
        assert_eq!(
            bench.run(&TodoWrite, one).await,
            "The list is kept: 1 completed, 1 in progress, 1 pending"
        );
        let step = |content: &str| json!({"content": content, "status": "in_progress"});
        let two = json!({"todos": [step("a"), step("b")]});
        assert_eq!(
            bench.run(&TodoWrite, two).await,
            "The list is kept: 0 completed, 2 in progress, 0 pending. Better have one in progress at a time"
        );
        let kept = bench.context().todos();
        let todo = |content: &str| Todo {
            content: content.into(),
            status: TodoStatus::InProgress,
            active_form: None,
        };
        assert_eq!(kept, [todo("a"), todo("b")]);
    }

    #[tokio::test]
    async fn a_bad_list_leaves_the_old_one() {
        let bench = Bench::new();
        let good = json!({"todos": [{"content": "a", "status": "pending"}]});
        bench.run(&TodoWrite, good).await;
        for (bad, expected) in [
            (
                json!({"todos": [{"content": " ", "status": "pending"}]}),
                "`todos[0].content` is empty",
            ),
            (
                json!({"todos": [{"content": "a", "status": "done"}]}),
                "`todos[0].status` must be one of \"pending\", \"in_progress\", \"completed\"",
            ),
            (json!({}), "`todos` is missing"),
        ] {
            assert_eq!(
                bench.fail(&TodoWrite, bad).await,
                format!("invalid input: {expected}")
            );
        }
        assert_eq!(bench.context().todos().len(), 1);
    }
}
