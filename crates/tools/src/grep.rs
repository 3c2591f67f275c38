//! Grep: text in files, with ripgrep's own crates.
//!
//! Files are searched twice in the mode `content`: first all of them in parallel, up to the first
//! match, to know which ones match (`search`); then those, one after the other and in order, until
//! the report is full (`report`). So matches are never collected in memory.

mod report;
mod search;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_policy::Access;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, blocking, input, paths};

pub(crate) struct Grep;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Regular expression, ripgrep's syntax
    pattern: String,
    /// Default: the current directory
    path: Option<String>,
    /// Only files like *.ts or src/**/*.{rs,toml}
    glob: Option<String>,
    /// Only files of a type: rust, js, py…
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// Default: files_with_matches
    output_mode: Option<OutputMode>,
    #[serde(rename = "-A")]
    after: Option<usize>,
    #[serde(rename = "-B")]
    before: Option<usize>,
    #[serde(rename = "-C")]
    around: Option<usize>,
    #[serde(rename = "-i")]
    ignore_case: Option<bool>,
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    /// Matches may span lines
    multiline: Option<bool>,
    /// Only the first N lines or files
    head_limit: Option<usize>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &str {
        "Grep"
    }

    fn description(&self) -> &str {
        "Searches file contents, files that .gitignore names and binary files left out. Gives \
         files (newest first), matching lines (content) or counts. -i ignores case; for content \
         -A, -B and -C add lines after, before and around, and -n (default) numbers them."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(input)?;
        search::matcher(&input)?;
        let path = place(&input, context)?;
        Ok(Intent {
            summary: format!(
                "{} in {}",
                input.pattern,
                paths::shown(&path, &context.cwd())
            ),
            access: vec![Access::Read(path)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let grep = async {
            let input: Input = input::parse(&call.input)?;
            let path = call.path()?;
            let cwd = context.cwd();
            let (hidden, ledger) = (context.hidden().clone(), context.ledger().clone());
            blocking::look(call.cancel, move |cancel| {
                let matcher = search::matcher(&input)?;
                let hits = search::hits(&input, &path, &cwd, &hidden, &matcher, cancel)?;
                report::report(&input, hits, &path, &cwd, &matcher, &ledger, cancel)
            })
            .await
        };
        grep.await.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}

fn place(input: &Input, context: &Context) -> Result<PathBuf, ToolError> {
    paths::resolve(context, input.path.as_deref().unwrap_or("."))
}

#[cfg(test)]
mod tests;
