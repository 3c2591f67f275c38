//! LS: what is in a directory.
//!
//! One level only: a tree would be long, and Glob finds what is deeper. The rules of the walk hold
//! as for the other searches (`walk.rs`): ignored files, `.git` and files that a rule hides are
//! left out, hidden ones are shown.

use std::{fs, path::Path, sync::Arc};

use async_trait::async_trait;
use codespar_policy::Access;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::DirEntry;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    Call, Context, Effect, Hidden, Intent, Tool, ToolError, ToolOutput, blocking, input, paths,
    walk,
};

/// Entries shown. The rest is counted and the result says so.
const MAX_ENTRIES: usize = 500;

pub(crate) struct Ls;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Default: the current directory
    path: Option<String>,
    /// Globs of names to leave out
    #[serde(default)]
    ignore: Vec<String>,
}

#[async_trait]
impl Tool for Ls {
    fn name(&self) -> &str {
        "LS"
    }

    fn description(&self) -> &str {
        "Lists a directory: directories first, then files with their sizes. Files that .gitignore \
         names are left out."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(input)?;
        ignored(&input.ignore)?;
        let path = paths::resolve(context, input.path.as_deref().unwrap_or("."))?;
        Ok(Intent {
            summary: paths::shown(&path, &context.cwd()),
            access: vec![Access::Read(path)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let list = async {
            let input: Input = input::parse(&call.input)?;
            let path = call.path()?;
            let leave_out = ignored(&input.ignore)?;
            let cwd = context.cwd();
            let hidden = context.hidden().clone();
            blocking::look(call.cancel, move |cancel| {
                list(&path, &cwd, &leave_out, &hidden, cancel)
            })
            .await
        };
        list.await.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}

/// The globs are compared with names, since only one level is listed. A leading `**/` and a
/// trailing slash mean nothing there and are removed.
fn ignored(globs: &[String]) -> Result<GlobSet, ToolError> {
    let wrong = |error: globset::Error| ToolError(format!("`ignore`: {error}"));
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let glob = glob.trim_end_matches('/').trim_start_matches("**/");
        if !codespar_files::is_plain_pattern(glob) {
            return Err(ToolError("`ignore` is too long or too complex".to_owned()));
        }
        set.add(GlobBuilder::new(glob).build().map_err(wrong)?);
    }
    set.build().map_err(wrong)
}

/// All entries are collected before the cut, because the order is by kind and name. One that cannot
/// be read is an error here, unlike in a search: the listing would be wrong without it.
fn list(
    dir: &Path,
    cwd: &Path,
    leave_out: &GlobSet,
    hidden: &Hidden,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    walk::directory(dir, cwd)?;
    let mut entries: Vec<DirEntry> = Vec::new();
    for entry in walk::below(dir, hidden).max_depth(Some(1)).build() {
        if cancel.is_cancelled() {
            return Err(blocking::cancelled());
        }
        match entry {
            Ok(entry) if entry.depth() == 0 || leave_out.is_match(entry.file_name()) => {}
            Ok(entry) => entries.push(entry),
            Err(error) => return Err(ToolError(format!("cannot list {}: {error}", dir.display()))),
        }
    }
    let name = paths::shown(dir, cwd);
    if entries.is_empty() {
        return Ok(format!("({name} is empty, or has only ignored files)"));
    }
    entries.sort_by_cached_key(|entry| (!is_dir(entry), entry.file_name().to_owned()));
    let mut lines: Vec<String> = entries.iter().take(MAX_ENTRIES).map(line).collect();
    if entries.len() > MAX_ENTRIES {
        lines.push(format!(
            "({MAX_ENTRIES} of {} entries; `ignore` or a pattern finds the others)",
            entries.len()
        ));
    }
    Ok(lines.join("\n"))
}

fn is_dir(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

/// A link shows where it leads and is not followed, so the size of its target is not shown.
fn line(entry: &DirEntry) -> String {
    let name = entry.file_name().to_string_lossy();
    if is_dir(entry) {
        return format!("{name}/");
    }
    if entry.path_is_symlink() {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        return format!("{name} -> {}", target.display());
    }
    match entry.metadata() {
        Ok(metadata) => format!("{name} ({} bytes)", metadata.len()),
        Err(_) => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;
    use crate::testing::Bench;

    #[tokio::test]
    async fn directories_come_first_and_ignored_files_and_git_are_left_out() {
        let bench = Bench::new();
        bench.write(".gitignore", "*.log\nbuild/\n");
        bench.write(".git/config", "");
        bench.write("b.log", "");
        bench.write("build/x", "");
        bench.write("src/main.rs", "");
        bench.write("a.txt", "12345");
        bench.write("skip.me", "");
        symlink("a.txt", bench.path("link")).unwrap();
        let listed = bench.run(&Ls, json!({"ignore": ["skip.*"]})).await;
        assert_eq!(
            listed,
            "src/\n.gitignore (13 bytes)\na.txt (5 bytes)\nlink -> a.txt"
        );
        assert_eq!(
            bench.run(&Ls, json!({"path": "src"})).await,
            "main.rs (0 bytes)"
        );
    }

    #[tokio::test]
    async fn a_long_listing_is_cut_and_says_so() {
        let bench = Bench::new();
        for index in 0..510 {
            bench.write(&format!("f{index:03}"), "");
        }
        let listed = bench.run(&Ls, json!({})).await;
        let lines: Vec<&str> = listed.lines().collect();
        assert_eq!(lines.len(), 501);
        assert_eq!(lines[499], "f499 (0 bytes)");
        assert_eq!(
            lines[500],
            "(500 of 510 entries; `ignore` or a pattern finds the others)"
        );
    }

    #[tokio::test]
    async fn what_is_not_a_directory_is_refused() {
        let bench = Bench::new();
        bench.write("a.txt", "");
        assert_eq!(
            bench.fail(&Ls, json!({"path": "a.txt"})).await,
            "a.txt is a file, not a directory"
        );
        assert_eq!(
            bench.fail(&Ls, json!({"path": "a.tx"})).await,
            "a.tx does not exist. Did you mean a.txt?"
        );
        let error = bench.fail(&Ls, json!({"ignore": ["a["]})).await;
        assert!(error.starts_with("`ignore`: "), "{error}");
        std::fs::create_dir(bench.path("void")).unwrap();
        assert_eq!(
            bench.run(&Ls, json!({"path": "void"})).await,
            "(void is empty, or has only ignored files)"
        );
    }

    #[tokio::test]
    async fn a_cancelled_call_stops() {
        let bench = Bench::new();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let output = bench.call_with(&Ls, json!({}), cancel).await;
        assert_eq!(output, ToolOutput::error("interrupted"));
    }
}
