//! `{{steps.ID.result}}` in prompts.
//!
//! A reference is checked when the file is read and filled in when the step is made. Results are
//! text of models and commands, so they may enter a prompt, never a command, and braces in them
//! stay as they are.

use std::collections::HashSet;

use codespar_protocol::WorkflowStep;
use toml::Spanned;

use super::file::{RawStep, Wrong};

/// Whether all that a step refers to is known, safe, and there when the step begins.
pub(super) fn check(raw: &RawStep, steps: &[WorkflowStep]) -> Result<(), Wrong> {
    if let Some(command) = &raw.command
        && references(command.get_ref()).next().is_some()
    {
        // Text of a model or of a file, spliced into a command, is a command.
        return Err(Wrong::at(
            command,
            "results of other steps cannot stand in a command; use a prompt, or a file that step \
             writes",
        ));
    }
    match &raw.prompt {
        Some(prompt) => check_prompt(raw, prompt, steps),
        None => Ok(()),
    }
}

fn check_prompt(
    raw: &RawStep,
    prompt: &Spanned<String>,
    steps: &[WorkflowStep],
) -> Result<(), Wrong> {
    let id = raw.id.get_ref();
    let above = above(id, steps);
    for reference in references(prompt.get_ref()) {
        let Some(step) = reference.step() else {
            let message = format!(
                "`{}` is not known; there is `{{{{steps.ID.result}}}}`",
                reference.text
            );
            return Err(Wrong::at(prompt, message));
        };
        if !above.contains(step) {
            let message = format!(
                "the prompt uses the result of `{step}`, but step `{id}` does not need it; add it \
                 to `needs`"
            );
            return Err(Wrong::at(prompt, message));
        }
    }
    Ok(())
}

/// Puts results in. What they say is not looked at again. A reference without result stays as it is
/// written.
pub(super) fn fill(prompt: &str, result: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(prompt.len());
    let mut from = 0;
    for reference in references(prompt) {
        let Some(text) = reference.step().and_then(&result) else {
            continue;
        };
        filled.push_str(&prompt[from..reference.start]);
        filled.push_str(&text);
        from = reference.start + reference.text.len();
    }
    filled.push_str(&prompt[from..]);
    filled
}

struct Reference<'a> {
    start: usize,
    /// With its braces.
    text: &'a str,
    inner: &'a str,
}

impl<'a> Reference<'a> {
    fn step(&self) -> Option<&'a str> {
        self.inner.strip_prefix("steps.")?.strip_suffix(".result")
    }
}

/// Everything in double braces that speaks of steps; other braces are the prompt's own.
fn references(text: &str) -> impl Iterator<Item = Reference<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find("{{")?;
            let Some(length) = text[start + 2..].find("}}") else {
                from = text.len();
                return None;
            };
            let end = start + 2 + length;
            let inner = text[start + 2..end].trim();
            if inner.starts_with("steps.") {
                from = end + 2;
                return Some(Reference {
                    start,
                    text: &text[start..end + 2],
                    inner,
                });
            }
            // One brace on, so that `{{{steps.a.result}}` is seen too.
            from = start + 1;
        }
    })
}

/// All that a step needs, directly or through others. A reference may go to any of them: all have
/// completed when the step begins.
fn above<'a>(id: &str, steps: &'a [WorkflowStep]) -> HashSet<&'a str> {
    let needs = |id: &str| {
        steps
            .iter()
            .find(|step| step.id == id)
            .map_or(&[][..], |step| &step.needs)
    };
    let mut found = HashSet::new();
    let mut open: Vec<&str> = needs(id).iter().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(needs(next).iter().map(String::as_str));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_put_in_once_and_not_read_for_more() {
        let result = |id: &str| match id {
            "a" => Some("{{steps.b.result}}".to_owned()),
            "b" => Some("B".to_owned()),
            _ => None,
        };
        assert_eq!(
            fill(
                "x {{ steps.a.result }} {{y}} {{{steps.b.result}}} {{steps.c.result}} {{",
                result
            ),
            "x {{steps.b.result}} {{y}} {B} {{steps.c.result}} {{"
        );
    }
}
