//! A case: a file, edits, and what should become of it.
//!
//! One line of JSON. `unit` says whether the search text is whole lines (`codespar apply`) or any
//! string (the Edit tool); both have the same fields otherwise.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) id: String,
    unit: Unit,
    pub(super) original: String,
    pub(super) edit_blocks: Vec<CaseBlock>,
    #[serde(default)]
    pub(super) replace_all: bool,
    /// The whole file afterwards. Absent if a refusal is expected.
    #[serde(default)]
    pub(super) expected: Option<String>,
    /// A refusal is expected, if this says anything.
    #[serde(default)]
    expect_error: Value,
    /// `apply_or_refuse`: both are right.
    #[serde(default)]
    accept: Option<String>,
    /// `contains`: see [`Case::is_loose`].
    #[serde(default)]
    check: Option<String>,
    /// The reason, or `true`; anything else than nothing means contested.
    #[serde(default)]
    contested: Value,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Lines,
    String,
}

#[derive(Deserialize)]
pub(super) struct CaseBlock {
    pub(super) search: String,
    pub(super) replace: String,
}

/// What became of a case.
pub(super) enum Outcome {
    Text(String),
    Refused(String),
}

impl Case {
    pub(super) fn is_lines(&self) -> bool {
        self.unit == Unit::Lines
    }

    pub(super) fn is_contested(&self) -> bool {
        says_something(&self.contested)
    }

    pub(super) fn wants_refusal(&self) -> bool {
        says_something(&self.expect_error)
    }

    pub(super) fn allows_refusal(&self) -> bool {
        self.accept.as_deref() == Some("apply_or_refuse")
    }

    /// White space inside the text does not count.
    pub(super) fn is_loose(&self) -> bool {
        self.check.as_deref() == Some("contains")
    }
}

/// The data uses flags and texts in the same fields.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

pub(super) fn read(file: &Path) -> Result<Vec<Case>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let cases = text.lines().enumerate().map(|(index, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}, line {}", file.display(), index + 1))
    });
    cases.collect()
}

#[cfg(test)]
pub(super) fn example(json: Value) -> Case {
    serde_json::from_value(json).unwrap()
}
