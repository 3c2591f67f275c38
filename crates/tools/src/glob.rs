//! Glob: files by name.
//!
//! `inspect` and `run` both parse the pattern, but the directory that is walked is the one that the
//! decision was made on. The walk is parallel, so files are collected first and sorted afterwards;
//! a pattern that matches many files costs their metadata as well.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::SystemTime,
};

use async_trait::async_trait;
use codespar_policy::Access;
use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkState;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    Call, Context, Effect, Hidden, Intent, Tool, ToolError, ToolOutput, blocking, input, paths,
    walk,
};

/// Files shown: the newest. The result says how many there are.
const MAX_FILES: usize = 200;

pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Such as src/**/*.ts; without a slash it matches names at any depth
    pattern: String,
    /// Directory to look in; default: the current one
    path: Option<String>,
}

#[async_trait]
impl Tool for Glob {
    fn name(&self) -> &str {
        "Glob"
    }

    fn description(&self) -> &str {
        "Finds files by name, newest first, 200 at most. Files that .gitignore names are left out."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(input)?;
        let hunt = Hunt::new(&input, context)?;
        Ok(Intent {
            summary: input.pattern,
            access: vec![Access::Read(hunt.dir)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let find = async {
            let input: Input = input::parse(&call.input)?;
            let hunt = Hunt {
                dir: call.path()?,
                ..Hunt::new(&input, context)?
            };
            let cwd = context.cwd();
            blocking::look(call.cancel, move |cancel| find(&hunt, &cwd, cancel)).await
        };
        find.await.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}

/// Where to look and for what. Made from the input alone; nothing on disk but links has been looked
/// at.
struct Hunt {
    /// Resolved: absolute and without links.
    dir: PathBuf,
    hidden: Hidden,
    pattern: GlobMatcher,
    /// The pattern is for names, not for paths. `*.rs` finds files at any depth; `src/*.rs` only
    /// directly in `src`.
    by_name: bool,
}

impl Hunt {
    /// Leading parts of the pattern that are plain names become part of the directory, so that
    /// only what can match is walked. Absolute patterns and `..` work the same way.
    fn new(input: &Input, context: &Context) -> Result<Self, ToolError> {
        let mut dir = PathBuf::from(input.path.as_deref().unwrap_or("."));
        let mut rest = input.pattern.as_str();
        let by_name = !rest.contains('/');
        while let Some((part, after)) = rest.split_once('/') {
            if part.contains(['*', '?', '[', '{', '\\']) {
                break;
            }
            dir.push(if part.is_empty() { "/" } else { part });
            rest = after.trim_start_matches('/');
        }
        if rest.is_empty() {
            return Err(ToolError(
                "`pattern` is empty or ends in a slash; a directory is listed, not matched"
                    .to_owned(),
            ));
        }
        if !codespar_files::is_plain_pattern(rest) {
            return Err(ToolError("`pattern` is too long or too complex".to_owned()));
        }
        let pattern = GlobBuilder::new(rest)
            .literal_separator(true)
            .build()
            .map_err(|error| ToolError(format!("`pattern`: {error}")))?;
        let dir = dir.to_str().unwrap_or_default();
        Ok(Self {
            dir: paths::resolve(context, dir)?,
            hidden: context.hidden().clone(),
            pattern: pattern.compile_matcher(),
            by_name,
        })
    }

    /// A path is compared relative to the directory, since the pattern's leading parts have become
    /// that.
    fn wants(&self, path: &Path) -> bool {
        let tail = if self.by_name {
            path.file_name().map(Path::new)
        } else {
            path.strip_prefix(&self.dir).ok()
        };
        tail.is_some_and(|tail| self.pattern.is_match(tail))
    }
}

/// Walks, sorts and cuts. Each worker of the walk looks at the cancellation before every entry. An
/// entry that cannot be read is left out: one unreadable directory should not hide the others.
fn find(hunt: &Hunt, cwd: &Path, cancel: &CancellationToken) -> Result<String, ToolError> {
    walk::directory(&hunt.dir, cwd)?;
    let (found, files) = mpsc::channel();
    walk::below(&hunt.dir, &hunt.hidden)
        .build_parallel()
        .run(|| {
            let found = found.clone();
            Box::new(move |entry| {
                if cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                if let Ok(entry) = entry
                    && walk::is_file(&entry)
                    && hunt.wants(entry.path())
                {
                    let _ = found.send(entry.into_path());
                }
                WalkState::Continue
            })
        });
    drop(found);
    if cancel.is_cancelled() {
        return Err(blocking::cancelled());
    }
    let files = newest_first(files.into_iter().collect());
    if files.is_empty() {
        return Ok("No files found".to_owned());
    }
    let shown = files.iter().take(MAX_FILES);
    let mut lines: Vec<String> = shown.map(|path| paths::shown(path, cwd)).collect();
    if files.len() > MAX_FILES {
        lines.push(format!(
            "({MAX_FILES} of {} files, the newest; narrow the pattern for the others)",
            files.len()
        ));
    }
    Ok(lines.join("\n"))
}

/// The latest change first; files of the same moment by name. A file whose time cannot be read
/// comes last. The order does not depend on the order of the walk, so that the same call gives the
/// same answer.
pub(crate) fn newest_first(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let changed = |path: &Path| {
        std::fs::metadata(path)
            .and_then(|found| found.modified())
            .ok()
    };
    let mut dated: Vec<(Option<SystemTime>, PathBuf)> = files
        .into_iter()
        .map(|path| (changed(&path), path))
        .collect();
    dated.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    dated.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::Duration};

    use serde_json::json;

    use super::*;
    use crate::testing::Bench;

    /// Files, each older than the one before.
    fn bench(files: &[&str]) -> Bench {
        let bench = Bench::new();
        for (age, file) in files.iter().enumerate() {
            let path = bench.write(file, "");
            let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000 - age as u64);
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(moment).unwrap();
        }
        bench
    }

    #[tokio::test]
    async fn files_come_newest_first_without_ignored_ones() {
        let bench = bench(&[
            "z.rs",
            "src/b.rs",
            "src/deep/a.rs",
            "src/c.ts",
            "out/x.rs",
            ".hidden/h.rs",
        ]);
        bench.write(".gitignore", "out\n");
        bench.write(".git/y.rs", "");
        let find = |pattern: &'static str| bench.run(&Glob, json!({"pattern": pattern}));
        assert_eq!(
            find("**/*.rs").await,
            "z.rs\nsrc/b.rs\nsrc/deep/a.rs\n.hidden/h.rs"
        );
        assert_eq!(
            find("*.rs").await,
            "z.rs\nsrc/b.rs\nsrc/deep/a.rs\n.hidden/h.rs"
        );
        assert_eq!(find("src/*.{rs,ts}").await, "src/b.rs\nsrc/c.ts");
        assert_eq!(find("src/**/a.rs").await, "src/deep/a.rs");
        assert_eq!(find("src/b.rs").await, "src/b.rs");
        assert_eq!(find("./src/?.rs").await, "src/b.rs");
        assert_eq!(find("*.py").await, "No files found");
    }

    #[tokio::test]
    async fn a_pattern_may_be_absolute_or_start_from_a_path() {
        let bench = bench(&["src/b.rs"]);
        let absolute = format!("{}/src/*.rs", bench.root().display());
        assert_eq!(
            bench.run(&Glob, json!({"pattern": absolute})).await,
            "src/b.rs"
        );
        let relative = json!({"pattern": "../src/*.rs", "path": "src"});
        let intent = bench.inspect(&Glob, &relative).unwrap();
        assert_eq!(intent.access, [Access::Read(bench.path("src"))]);
        assert_eq!(bench.run(&Glob, relative).await, "src/b.rs");
    }

    #[tokio::test]
    async fn many_files_are_cut_and_it_says_so() {
        let bench = Bench::new();
        for index in 0..205 {
            bench.write(&format!("f{index:03}.txt"), "");
        }
        let found = bench.run(&Glob, json!({"pattern": "*.txt"})).await;
        assert_eq!(found.lines().count(), 201);
        assert_eq!(
            found.lines().last(),
            Some("(200 of 205 files, the newest; narrow the pattern for the others)")
        );
    }

    #[tokio::test]
    async fn a_bad_pattern_or_directory_is_refused() {
        let bench = Bench::new();
        bench.write("a.txt", "");
        let fail = |input| bench.fail(&Glob, input);
        let error = fail(json!({"pattern": "a["})).await;
        assert!(error.starts_with("`pattern`: "), "{error}");
        assert_eq!(
            fail(json!({"pattern": "src/"})).await,
            "`pattern` is empty or ends in a slash; a directory is listed, not matched"
        );
        assert_eq!(
            fail(json!({"pattern": "*", "path": "a.txt"})).await,
            "a.txt is a file, not a directory"
        );
        assert_eq!(
            fail(json!({"pattern": "src/*.rs"})).await,
            "src does not exist"
        );
    }
}
