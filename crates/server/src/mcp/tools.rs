//! The tools that are offered.

use std::sync::Arc;

use codespar_protocol::AccessRole;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

pub(super) const INSTRUCTIONS: &str = "\
CodeSpar changes code by pull requests. `dev` starts a run from an instruction to a pull request and \
waits for its end; with wait=false it returns the task at once, and task_show tells how it goes. \
`review` posts findings on a pull request, `merge` merges one. `locate` finds the files an \
instruction is about, offline. `ask` is one question to a model without the code. Agents may wait \
for a permission: task_questions lists what is open, task_answer answers.";

/// A tool and the role that a client needs for it.
pub(super) struct OfferedTool {
    pub(super) tool: Tool,
    pub(super) role: AccessRole,
}

/// What a call may do, for clients that ask their user.
#[derive(Clone, Copy)]
enum Effects {
    Reads,
    Changes,
    /// It cannot be taken back.
    Final,
}

pub(super) fn find(name: &str) -> Option<OfferedTool> {
    all().into_iter().find(|one| one.tool.name == name)
}

pub(super) fn all() -> Vec<OfferedTool> {
    let mut tools = work();
    tools.extend(tasks());
    tools
}

fn work() -> Vec<OfferedTool> {
    let model = ("model", json!({"type": "string", "description": "An alias or an id of a model"}));
    let budget = (
        "max_budget_usd",
        json!({"type": "number", "exclusiveMinimum": 0, "description": "The most that it may cost"}),
    );
    let number = ("number", json!({"type": "integer", "minimum": 1, "description": "Of the pull request"}));
    vec![
        tool(
            "dev",
            "Change the code: from an instruction to a tested pull request. Waits for the end and \
             reports steps as progress.",
            (AccessRole::Write, Effects::Changes),
            &["instruction"],
            vec![
                ("instruction", json!({"type": "string", "minLength": 1, "description": "What is to be done"})),
                ("base", json!({"type": "string", "description": "The branch that the change is for"})),
                ("pull_request", json!({"type": "integer", "minimum": 1, "description": "Add to this open pull request instead"})),
                ("draft", json!({"type": "boolean", "description": "Open the pull request as a draft"})),
                model.clone(),
                budget.clone(),
                ("wait", json!({"type": "boolean", "description": "Wait for the end; true by default"})),
                project(),
            ],
        ),
        tool(
            "review",
            "Review a pull request and post the findings. A commit is reviewed once.",
            (AccessRole::Write, Effects::Changes),
            &["number"],
            vec![number.clone(), model.clone(), budget.clone(), project()],
        ),
        tool(
            "merge",
            "Merge a pull request if nothing blocks it; otherwise every reason is given.",
            (AccessRole::Merge, Effects::Final),
            &["number"],
            vec![
                number,
                ("strategy", json!({"type": "string", "enum": ["merge", "squash", "rebase"]})),
                project(),
            ],
        ),
        tool(
            "locate",
            "Find the files that an instruction is about; offline, no model.",
            (AccessRole::Read, Effects::Reads),
            &["instruction"],
            vec![
                ("instruction", json!({"type": "string", "minLength": 1})),
                ("limit", json!({"type": "integer", "minimum": 1, "maximum": 100, "description": "How many files; 5 by default"})),
                project(),
            ],
        ),
        tool(
            "ask",
            "Ask a model one question; it sees no files.",
            (AccessRole::Write, Effects::Reads),
            &["question"],
            vec![
                ("question", json!({"type": "string", "minLength": 1})),
                model,
                budget,
                project(),
            ],
        ),
    ]
}

fn tasks() -> Vec<OfferedTool> {
    let id = ("task_id", json!({"type": "string", "description": "The whole id"}));
    vec![
        tool(
            "task_list",
            "List tasks, latest first.",
            (AccessRole::Read, Effects::Reads),
            &[],
            vec![
                ("status", json!({"type": "string", "enum": ["pending", "running", "completed", "failed", "killed"]})),
                ("limit", json!({"type": "integer", "minimum": 1, "maximum": 200})),
                ("cursor", json!({"type": "string", "description": "The `next` of the page before"})),
                project(),
            ],
        ),
        tool(
            "task_show",
            "Show a task and its recorded steps.",
            (AccessRole::Read, Effects::Reads),
            &["task_id"],
            vec![id.clone()],
        ),
        tool(
            "task_output",
            "Read a part of a task's output, by bytes.",
            (AccessRole::Read, Effects::Reads),
            &["task_id"],
            vec![
                id.clone(),
                ("offset", json!({"type": "integer", "minimum": 0})),
                ("limit", json!({"type": "integer", "minimum": 1, "maximum": 1_048_576})),
            ],
        ),
        tool(
            "task_stop",
            "Stop a task with all its processes.",
            (AccessRole::Write, Effects::Final),
            &["task_id"],
            vec![id.clone(), ("reason", json!({"type": "string", "description": "For the record"}))],
        ),
        tool(
            "task_questions",
            "List questions of agents that wait for an answer.",
            (AccessRole::Read, Effects::Reads),
            &[],
            vec![id],
        ),
        tool(
            "task_answer",
            "Answer a question of an agent, once and for all: yes, or no and why; a text; or \
             name=value pairs.",
            (AccessRole::Write, Effects::Final),
            &["question_id", "answer"],
            vec![
                ("question_id", json!({"type": "string"})),
                ("answer", json!({"type": "string", "minLength": 1})),
            ],
        ),
    ]
}

fn project() -> (&'static str, Value) {
    let about = "The key of the project; may be left out on a server with one";
    ("project", json!({"type": "string", "description": about}))
}

fn tool(
    name: &'static str,
    description: &'static str,
    (role, effects): (AccessRole, Effects),
    required: &[&str],
    properties: Vec<(&'static str, Value)>,
) -> OfferedTool {
    let properties: JsonObject = properties
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    let schema = json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    });
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let annotations = match effects {
        Effects::Reads => ToolAnnotations::new().read_only(true),
        Effects::Changes => ToolAnnotations::new().read_only(false).destructive(false),
        Effects::Final => ToolAnnotations::new().read_only(false).destructive(true),
    };
    OfferedTool {
        tool: Tool::new(name, description, Arc::new(schema)).with_annotations(annotations),
        role,
    }
}
