//! The file of a workflow, and where in it something is wrong.
//!
//! ```text
//! name = "ship"
//!
//! [[step]]
//! id = "build"
//! command = "make"
//! retry = 2
//!
//! [[step]]
//! id = "look"
//! needs = ["build"]
//! prompt = "Explain this: {{steps.build.result}}"
//! agent = "Explore"
//! ```
//!
//! A step has either a command or a prompt. Unknown keys are errors. The result of parsing is
//! complete and consistent: later code need not check it again.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::Spanned;

use codespar_protocol::{StepWork, Workflow, WorkflowStep};

use super::{check, template};

const DEFAULT_AGENT: &str = "general-purpose";
/// A workflow is a page or two; anything larger is something else.
pub const MAX_WORKFLOW_BYTES: u64 = 256 * 1024;

/// Says whether a workflow file with this text may be used, and why not. The decision is on the
/// text that is parsed, not on a file that may have changed since. It is where the trust in the
/// repository is asked about.
pub type WorkflowGate = dyn Fn(&Path, &str) -> Result<(), String> + Send + Sync;

/// A workflow that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct WorkflowProblem {
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// What is wrong, and at which bytes.
pub(super) struct Wrong {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

impl Wrong {
    pub(super) fn at<T>(place: &Spanned<T>, message: impl Into<String>) -> Self {
        Self {
            span: place.span(),
            message: message.into(),
        }
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkflow {
    name: String,
    description: Option<String>,
    #[serde(default, rename = "step")]
    steps: Vec<RawStep>,
}

/// A step as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    pub(super) id: Spanned<String>,
    #[serde(default)]
    pub(super) needs: Vec<Spanned<String>>,
    pub(super) command: Option<Spanned<String>>,
    pub(super) prompt: Option<Spanned<String>>,
    agent: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    #[serde(default)]
    retry: u32,
}

/// Reads and checks a file that the gate lets through. `kinds` are the agents that steps may name.
pub fn load_workflow(
    path: &Path,
    kinds: &[&str],
    gate: &dyn Fn(&Path, &str) -> Result<(), String>,
) -> Result<Workflow, WorkflowProblem> {
    let problem = |message: String| WorkflowProblem {
        path: path.to_path_buf(),
        line: 1,
        message,
    };
    let bytes = codespar_tools::files::read(path, MAX_WORKFLOW_BYTES)
        .map_err(|error| problem(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| problem("it is not UTF-8 text".to_owned()))?;
    gate(path, &text).map_err(problem)?;
    parse_workflow(&text, path, kinds)
}

/// Checks the text of a file.
pub fn parse_workflow(
    text: &str,
    path: &Path,
    kinds: &[&str],
) -> Result<Workflow, WorkflowProblem> {
    let problem = |wrong: Wrong| WorkflowProblem {
        path: path.to_path_buf(),
        line: line_of(text, wrong.span.start),
        message: wrong.message,
    };
    let raw: RawWorkflow = toml::from_str(text).map_err(|error| {
        problem(Wrong {
            span: error.span().unwrap_or_default(),
            message: error.message().to_owned(),
        })
    })?;
    checked(raw, kinds).map_err(problem)
}

/// Order matters for the message: steps that fit together first, then the work of each, then
/// references in prompts.
fn checked(raw: RawWorkflow, kinds: &[&str]) -> Result<Workflow, Wrong> {
    check::steps(&raw.steps)?;
    let mut steps = Vec::with_capacity(raw.steps.len());
    for step in &raw.steps {
        steps.push(WorkflowStep {
            id: step.id.get_ref().clone(),
            needs: step.needs.iter().map(|id| id.get_ref().clone()).collect(),
            retry: step.retry,
            work: work(step, kinds)?,
        });
    }
    for step in &raw.steps {
        template::check(step, &steps)?;
    }
    Ok(Workflow {
        name: raw.name,
        description: raw.description,
        steps,
    })
}

fn work(step: &RawStep, kinds: &[&str]) -> Result<StepWork, Wrong> {
    let id = step.id.get_ref();
    match (&step.command, &step.prompt) {
        (Some(command), None) => {
            if let Some(field) = step.agent.as_ref().or(step.model.as_ref()) {
                let message =
                    format!("step `{id}` has a command; `agent` and `model` are for prompts");
                return Err(Wrong::at(field, message));
            }
            Ok(StepWork::Command {
                command: full(command, "command", id)?,
            })
        }
        (None, Some(prompt)) => Ok(StepWork::Prompt {
            prompt: full(prompt, "prompt", id)?,
            agent: agent(step.agent.as_ref(), kinds)?,
            model: step.model.as_ref().map(|model| model.get_ref().clone()),
        }),
        (Some(_), Some(prompt)) => Err(Wrong::at(
            prompt,
            format!("step `{id}` has both `command` and `prompt`; make it two steps"),
        )),
        (None, None) => Err(Wrong::at(
            &step.id,
            format!("step `{id}` has neither `command` nor `prompt`"),
        )),
    }
}

fn full(text: &Spanned<String>, field: &str, id: &str) -> Result<String, Wrong> {
    if text.get_ref().trim().is_empty() {
        return Err(Wrong::at(
            text,
            format!("the `{field}` of step `{id}` is empty"),
        ));
    }
    Ok(text.get_ref().clone())
}

/// Kinds are checked when the file is read; a kind that is gone when the step runs fails that step.
fn agent(named: Option<&Spanned<String>>, kinds: &[&str]) -> Result<String, Wrong> {
    match named {
        None => Ok(DEFAULT_AGENT.to_owned()),
        Some(name) if kinds.contains(&name.get_ref().as_str()) => Ok(name.get_ref().clone()),
        Some(name) => Err(Wrong::at(
            name,
            format!(
                "there is no kind of agent `{}`; there are: {}",
                name.get_ref(),
                kinds.join(", ")
            ),
        )),
    }
}

/// Beyond the end it is the last line.
fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 2] = ["Explore", "general-purpose"];

    fn parse(text: &str) -> Result<Workflow, String> {
        parse_workflow(text, Path::new("w.toml"), &KINDS).map_err(|problem| problem.to_string())
    }

    /// The complaint about steps that follow the name on line 1.
    fn complaint(steps: &str) -> String {
        parse(&format!("name = \"w\"\n{steps}")).unwrap_err()
    }

    #[test]
    fn a_good_file_is_read_whole_and_comes_back_from_json() {
        let workflow = parse(
            "name = \"ship\"\ndescription = \"d\"\n\
             [[step]]\nid = \"build\"\ncommand = \"make\"\nretry = 2\n\
             [[step]]\nid = \"look\"\nneeds = [\"build\"]\nprompt = \"see {{steps.build.result}}\"\nagent = \"Explore\"\nmodel = \"opus\"\n\
             [[step]]\nid = \"say\"\nprompt = \"hello\"\n",
        )
        .unwrap();
        let prompt = |prompt: &str, agent: &str, model: Option<&str>| StepWork::Prompt {
            prompt: prompt.into(),
            agent: agent.into(),
            model: model.map(str::to_owned),
        };
        let step = |id: &str, needs: &[&str], retry, work| WorkflowStep {
            id: id.into(),
            needs: needs.iter().map(|id| (*id).to_owned()).collect(),
            retry,
            work,
        };
        let command = StepWork::Command {
            command: "make".into(),
        };
        let expected = Workflow {
            name: "ship".into(),
            description: Some("d".into()),
            steps: vec![
                step("build", &[], 2, command),
                step(
                    "look",
                    &["build"],
                    0,
                    prompt("see {{steps.build.result}}", "Explore", Some("opus")),
                ),
                step("say", &[], 0, prompt("hello", "general-purpose", None)),
            ],
        };
        assert_eq!(workflow, expected);
        let json = serde_json::to_value(&workflow).unwrap();
        assert_eq!(serde_json::from_value::<Workflow>(json).unwrap(), expected);
    }

    #[test]
    fn a_fifo_or_a_device_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [fifo, link, huge] = ["a.toml", "b.toml", "c.toml"].map(|name| root.join(name));
        std::fs::File::create(&huge)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for (path, expected) in [
            (fifo.as_path(), "it is not a regular file"),
            (&link, "it is not a regular file"),
            (&huge, "it has more than 262144 bytes"),
            (Path::new("/dev/zero"), "it is not a regular file"),
        ] {
            let problem = load_workflow(path, &KINDS, &|_, _| Ok(())).unwrap_err();
            assert_eq!(problem.message, expected);
        }
    }

    #[test]
    fn the_gate_sees_the_text_that_is_parsed_and_may_refuse_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("w.toml");
        std::fs::write(
            &path,
            "name = \"w\"\n[[step]]\nid = \"a\"\ncommand = \"x\"\n",
        )
        .unwrap();
        let refused = load_workflow(&path, &KINDS, &|_, text| {
            assert!(text.starts_with("name = \"w\""));
            Err("not trusted".to_owned())
        });
        assert_eq!(refused.unwrap_err().message, "not trusted");
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line() {
        let cases = [
            ("", "w.toml:1: there are no steps; add a [[step]]"),
            (
                "[[step]]\nid = \"a\"\n",
                "w.toml:3: step `a` has neither `command` nor `prompt`",
            ),
            (
                "[[step]]\nid = \"a\"\ncommand = \"x\"\nprompt = \"y\"\n",
                "w.toml:5: step `a` has both `command` and `prompt`; make it two steps",
            ),
            (
                "[[step]]\nid = \"a\"\ncommand = \" \"\n",
                "w.toml:4: the `command` of step `a` is empty",
            ),
            (
                "[[step]]\nid = \"a\"\ncommand = \"x\"\n[[step]]\nid = \"a\"\ncommand = \"y\"\n",
                "w.toml:6: there are two steps `a`",
            ),
            (
                "[[step]]\nid = \"a b\"\ncommand = \"x\"\n",
                "w.toml:3: `a b` cannot be an id; use letters, digits, `-` and `_`",
            ),
            (
                "[[step]]\nid = \"a\"\ncommand = \"x\"\nneeds = [\n  \"b\"\n]\n",
                "w.toml:6: step `a` needs `b`, which is not a step here",
            ),
            (
                "[[step]]\nid = \"a\"\ncommand = \"x\"\nneeds = [\"c\"]\n\
                 [[step]]\nid = \"b\"\ncommand = \"x\"\nneeds = [\"a\"]\n\
                 [[step]]\nid = \"c\"\ncommand = \"x\"\nneeds = [\"b\"]\n",
                "w.toml:3: steps wait for each other: a → c → b → a",
            ),
            (
                "[[step]]\nid = \"a\"\nprompt = \"x\"\nagent = \"Nobody\"\n",
                "w.toml:5: there is no kind of agent `Nobody`; there are: Explore, general-purpose",
            ),
            (
                "[[step]]\nid = \"a\"\ncommand = \"x\"\nmodel = \"opus\"\n",
                "w.toml:5: step `a` has a command; `agent` and `model` are for prompts",
            ),
        ];
        for (steps, expected) in cases {
            assert_eq!(complaint(steps), expected);
        }
        let unknown = complaint("[[step]]\nid = \"a\"\ncommand = \"x\"\nretries = 2\n");
        assert!(
            unknown.starts_with("w.toml:5: unknown field `retries`"),
            "{unknown}"
        );
        let broken = complaint("[[step]\n");
        assert!(broken.starts_with("w.toml:2: "), "{broken}");
        let nameless = parse("[[step]]\nid = \"a\"\ncommand = \"x\"\n").unwrap_err();
        assert!(nameless.contains("missing field `name`"), "{nameless}");
    }

    #[test]
    fn results_of_other_steps_stand_only_where_they_are_safe_and_sure_to_be_there() {
        let two = |second: &str| {
            complaint(&format!(
                "[[step]]\nid = \"a\"\ncommand = \"x\"\n[[step]]\nid = \"b\"\n{second}\n"
            ))
        };
        assert_eq!(
            two("needs = [\"a\"]\ncommand = \"echo {{steps.a.result}}\""),
            "w.toml:8: results of other steps cannot stand in a command; use a prompt, or a file \
             that step writes"
        );
        assert_eq!(
            two("prompt = \"{{steps.a.result}}\""),
            "w.toml:7: the prompt uses the result of `a`, but step `b` does not need it; add it to \
             `needs`"
        );
        assert_eq!(
            two("needs = [\"a\"]\nprompt = \"{{steps.a.output}}\""),
            "w.toml:8: `{{steps.a.output}}` is not known; there is `{{steps.ID.result}}`"
        );
        let through = "name = \"w\"\n[[step]]\nid = \"a\"\ncommand = \"x\"\n\
             [[step]]\nid = \"b\"\ncommand = \"y\"\nneeds = [\"a\"]\n\
             [[step]]\nid = \"c\"\nprompt = \"{{ steps.a.result }} {{other}}\"\nneeds = [\"b\"]\n";
        assert!(parse(through).is_ok());
    }
}
