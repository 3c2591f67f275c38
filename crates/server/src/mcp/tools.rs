//! The tools that are offered.
//!
//! Names and forms are an interface that other programs are configured with: arguments may be
//! added, and are never renamed or given another meaning. Descriptions are read by models, at the
//! cost of whoever connects, and are kept to a sentence or two. The role of each tool is enforced
//! when it is called; a client is not even shown the ones it may not call.

use std::sync::Arc;

use codespar_protocol::AccessRole;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// What a client tells its model about this server as a whole: in which order the tools make sense.
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

/// By the name that a call has; nothing for a name that is not offered.
pub(super) fn find(name: &str) -> Option<OfferedTool> {
    all().into_iter().find(|one| one.tool.name == name)
}

/// In the order in which clients show them: what does work first, then what looks after it.
pub(super) fn all() -> Vec<OfferedTool> {
    vec![
        dev(),
        review(),
        merge(),
        locate(),
        ask(),
        task_list(),
        task_show(),
        task_output(),
        task_stop(),
        task_questions(),
        task_answer(),
    ]
}

/// A property of the input and its schema.
type Property = (&'static str, Value);

fn text(name: &'static str, about: &str) -> Property {
    (
        name,
        json!({"type": "string", "minLength": 1, "description": about}),
    )
}

/// A number from `least` on.
fn number(name: &'static str, least: u64, about: &str) -> Property {
    (
        name,
        json!({"type": "integer", "minimum": least, "description": about}),
    )
}

fn flag(name: &'static str, about: &str) -> Property {
    (name, json!({"type": "boolean", "description": about}))
}

fn word(name: &'static str, words: &[&str]) -> Property {
    (name, json!({"type": "string", "enum": words}))
}

fn model() -> Property {
    text("model", "An alias or an id of a model")
}

fn budget() -> Property {
    let about = "The most that it may cost";
    let schema = json!({"type": "number", "exclusiveMinimum": 0, "description": about});
    ("max_budget_usd", schema)
}

fn task_id() -> Property {
    text("task_id", "The whole id of a task")
}

fn dev() -> OfferedTool {
    tool(
        "dev",
        "Change the code: from an instruction to a tested pull request. Waits for the end and \
         reports steps as progress.",
        (AccessRole::Write, Effects::Changes),
        &["instruction"],
        vec![
            text("instruction", "What is to be done"),
            text("base", "The branch that the change is for"),
            number("pull_request", 1, "Add to this open pull request instead"),
            flag("draft", "Open the pull request as a draft"),
            model(),
            budget(),
            flag("wait", "Wait for the end; true by default"),
            project(),
        ],
    )
}

fn review() -> OfferedTool {
    tool(
        "review",
        "Review a pull request and post the findings. A commit is reviewed once.",
        (AccessRole::Write, Effects::Changes),
        &["number"],
        vec![
            number("number", 1, "Of the pull request"),
            model(),
            budget(),
            project(),
        ],
    )
}

fn merge() -> OfferedTool {
    tool(
        "merge",
        "Merge a pull request if nothing blocks it; otherwise every reason is given.",
        (AccessRole::Merge, Effects::Final),
        &["number"],
        vec![
            number("number", 1, "Of the pull request"),
            word("strategy", &["merge", "squash", "rebase"]),
            project(),
        ],
    )
}

fn locate() -> OfferedTool {
    tool(
        "locate",
        "Find the files that an instruction is about; offline, no model.",
        (AccessRole::Read, Effects::Reads),
        &["instruction"],
        vec![
            text("instruction", "What the change is about"),
            number("limit", 1, "How many files; 5 by default, at most 100"),
            project(),
        ],
    )
}

fn ask() -> OfferedTool {
    tool(
        "ask",
        "Ask a model one question; it sees no files.",
        (AccessRole::Write, Effects::Reads),
        &["question"],
        vec![
            text("question", "With all that the model needs to know"),
            model(),
            budget(),
            project(),
        ],
    )
}

fn task_list() -> OfferedTool {
    let statuses = ["pending", "running", "completed", "failed", "killed"];
    tool(
        "task_list",
        "List tasks, latest first.",
        (AccessRole::Read, Effects::Reads),
        &[],
        vec![
            word("status", &statuses),
            number("limit", 1, "At most so many; 50 by default, 200 at most"),
            text("cursor", "The `next` of the page before"),
            project(),
        ],
    )
}

fn task_show() -> OfferedTool {
    tool(
        "task_show",
        "Show a task and its recorded steps.",
        (AccessRole::Read, Effects::Reads),
        &["task_id"],
        vec![task_id()],
    )
}

fn task_output() -> OfferedTool {
    tool(
        "task_output",
        "Read a part of a task's output, by bytes.",
        (AccessRole::Read, Effects::Reads),
        &["task_id"],
        vec![
            task_id(),
            number("offset", 0, "The first byte"),
            number("limit", 1, "At most so many bytes, 1048576 at most"),
        ],
    )
}

fn task_stop() -> OfferedTool {
    tool(
        "task_stop",
        "Stop a task with all its processes.",
        (AccessRole::Write, Effects::Final),
        &["task_id"],
        vec![task_id(), text("reason", "For the record")],
    )
}

fn task_questions() -> OfferedTool {
    tool(
        "task_questions",
        "List questions of agents that wait for an answer.",
        (AccessRole::Read, Effects::Reads),
        &[],
        vec![task_id()],
    )
}

fn task_answer() -> OfferedTool {
    tool(
        "task_answer",
        "Answer a question of an agent, once and for all: yes, or no and why; a text; or \
         name=value pairs.",
        (AccessRole::Write, Effects::Final),
        &["question_id", "answer"],
        vec![
            text("question_id", "The whole id of a question"),
            text("answer", "In the form that the question asks for"),
        ],
    )
}

fn project() -> Property {
    let about = "The key of the project; may be left out on a server with one";
    ("project", json!({"type": "string", "description": about}))
}

/// Every input is closed: an argument that is not named here is refused. The annotations are hints
/// for clients that ask their user before a call, and protect nothing.
fn tool(
    name: &'static str,
    description: &'static str,
    (role, effects): (AccessRole, Effects),
    required: &[&str],
    properties: Vec<Property>,
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
