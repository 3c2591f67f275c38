//! Which files match: all of them in parallel, each only as far as it takes to know.
//!
//! The pattern comes from a model and the files from a repository; neither may take unbounded time
//! or memory. The expressions have no backreferences or look-around, so matching is linear in the
//! text. A file is binary from its first zero byte on and is not searched further. Files are opened
//! as regular files without following links, because the walk may be out of date.

use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc,
};

use codespar_files::OpenError;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::{
    WalkBuilder, WalkState,
    overrides::OverrideBuilder,
    types::{Types, TypesBuilder},
};
use tokio_util::sync::CancellationToken;

use super::{Input, OutputMode};
use crate::{Hidden, ToolError, blocking, paths, walk};

/// Memory one search may take: a line longer than this is not searched. With `multiline` that holds
/// for a whole file.
const HEAP_BYTES: usize = 128 * 1024 * 1024;

/// A file that matches.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub(super) path: PathBuf,
    /// Matching lines; where only the file is asked for, at least one.
    pub(super) count: u64,
}

/// The expression, or what is wrong with it. `^` and `$` match at lines. Without `multiline` a
/// match never spans lines, and a pattern with a literal line break is an error.
pub(super) fn matcher(input: &Input) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(input.ignore_case == Some(true))
        .multi_line(true)
        .crlf(true);
    if input.multiline == Some(true) {
        builder.dot_matches_new_line(true).line_terminator(None);
    }
    builder
        .build(&input.pattern)
        .map_err(|error| ToolError(explain(&input.pattern, &error.to_string())))
}

/// The parser's message, with a hint for the mistakes that come from other dialects of expressions.
fn explain(pattern: &str, error: &str) -> String {
    let hint = if error.contains("repetition") && pattern.contains('{') {
        "; for a literal brace write \\{"
    } else if error.contains("\\n") && error.contains("not allowed") {
        "; set multiline for a pattern with line breaks"
    } else if error.contains("look-around") || error.contains("backreferences") {
        "; look-around and backreferences do not exist here"
    } else if error.contains("unclosed group") || error.contains("unopened group") {
        "; for a literal parenthesis write \\( or \\)"
    } else if error.contains("unclosed character class") {
        "; for a literal bracket write \\["
    } else {
        ""
    };
    let error = error.strip_prefix("regex parse error:").unwrap_or(error);
    format!(
        "`pattern` is not a regular expression: {}{hint}",
        error.trim()
    )
}

/// Searches a file that may have become something else since it was listed. `None` when it cannot
/// be opened or read; such a file counts as one without a match.
pub(super) fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    sink: &mut impl Sink,
) -> Option<()> {
    let opened = codespar_files::open(path).ok()?;
    searcher.search_file(matcher, &opened.file, sink).ok()
}

/// A searcher as the call wants it.
pub(super) fn searcher(input: &Input) -> SearcherBuilder {
    let mut builder = SearcherBuilder::new();
    builder
        .binary_detection(BinaryDetection::quit(0))
        .line_terminator(LineTerminator::crlf())
        .multi_line(input.multiline == Some(true))
        .heap_limit(Some(HEAP_BYTES))
        .line_number(false);
    builder
}

/// Every file that matches, in order of path. A path to a file searches that file alone, even if it
/// is ignored.
pub(super) fn hits(
    input: &Input,
    path: &Path,
    cwd: &Path,
    hidden: &Hidden,
    matcher: &RegexMatcher,
    cancel: &CancellationToken,
) -> Result<Vec<Hit>, ToolError> {
    let name = paths::shown(path, cwd);
    match codespar_files::open(path) {
        Ok(_) => {}
        Err(OpenError::Directory) => walk::directory(path, cwd)?,
        Err(OpenError::Missing) => return Err(paths::missing(path, cwd)),
        Err(OpenError::NotRegular) => {
            return Err(ToolError(format!("{name} is not a regular file")));
        }
        Err(error) => return Err(ToolError(format!("cannot read {name}: {error}"))),
    }
    let walk = walk_of(input, path, hidden)?;
    let count_all = input.output_mode == Some(OutputMode::Count);
    let (found, hits) = mpsc::channel();
    walk.build_parallel().run(|| {
        let found = found.clone();
        let mut searcher = searcher(input).build();
        Box::new(move |entry| {
            if cancel.is_cancelled() {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else {
                return WalkState::Continue;
            };
            if walk::is_file(&entry) {
                let mut tally = Tally {
                    count: 0,
                    count_all,
                };
                // A file that cannot be read has no matches to show.
                let searched = search(&mut searcher, matcher, entry.path(), &mut tally);
                if searched.is_some() && tally.count > 0 {
                    let path = entry.into_path();
                    let _ = found.send(Hit {
                        path,
                        count: tally.count,
                    });
                }
            }
            WalkState::Continue
        })
    });
    drop(found);
    if cancel.is_cancelled() {
        return Err(blocking::cancelled());
    }
    let mut hits: Vec<Hit> = hits.into_iter().collect();
    hits.sort_unstable();
    Ok(hits)
}

/// A glob with `!` in front excludes files. A type is one of ripgrep's own list.
fn walk_of(input: &Input, path: &Path, hidden: &Hidden) -> Result<WalkBuilder, ToolError> {
    let mut walk = walk::below(path, hidden);
    if let Some(glob) = &input.glob {
        let wrong = |error: ignore::Error| ToolError(format!("`glob`: {error}"));
        if !codespar_files::is_plain_pattern(glob) {
            return Err(ToolError("`glob` is too long or too complex".to_owned()));
        }
        let mut overrides = OverrideBuilder::new(path);
        overrides.add(glob).map_err(wrong)?;
        walk.overrides(overrides.build().map_err(wrong)?);
    }
    if let Some(name) = &input.file_type {
        walk.types(types(name)?);
    }
    Ok(walk)
}

/// An unknown type is an error with similar names, because a search with it would silently find
/// nothing.
fn types(name: &str) -> Result<Types, ToolError> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let known = builder.definitions();
    if !known.iter().any(|definition| definition.name() == name) {
        let alike = paths::close_names(name, known.iter().map(|definition| definition.name()));
        let hint = match alike.as_slice() {
            [] => "use `glob` instead".to_owned(),
            alike => format!("did you mean {}? Or use `glob`", alike.join(" or ")),
        };
        return Err(ToolError(format!(
            "`type`: there is no type `{name}`; {hint}"
        )));
    }
    let types = builder.select(name).build();
    types.map_err(|error| ToolError(format!("`type`: {error}")))
}

/// Counts matches, or stops at the first.
struct Tally {
    count: u64,
    count_all: bool,
}

impl Sink for Tally {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        Ok(self.count_all)
    }
}
