//! Path patterns of rules: gitignore-like, with Claude Code's anchors.
//!
//! ```text
//! //etc/**        from the root of the file system
//! ~/.ssh/**       from the home directory
//! /src, ./src     from the base of the rule's source (the project root)
//! src/*.rs        the same: a slash inside anchors the pattern
//! *.env           a bare name, at any depth
//! ```
//!
//! `*` does not cross a slash, `**` does. A pattern whose last component has no wildcard also
//! matches everything below it. Case is significant. Paths are compared by text; the file system is
//! not consulted.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::paths::normalise;

/// Where a pattern starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// `//path`: the root of the file system.
    FileSystem,
    /// `~/path`: the user's home.
    Home,
    /// `/path`, `./path`, `a/b`: the base of the rule's source.
    Base,
    /// A bare name: at any depth.
    AnyDepth,
}

/// How much a pattern takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As the author wrote it: for rules that permit.
    AsWritten,
    /// Whatever it may have meant: for rules that forbid or ask. Names match outside the base too,
    /// relative patterns also match from the current directory, and a match includes everything
    /// below it.
    Wide,
}

/// The directories that anchors stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PatternBase<'a> {
    pub(crate) base: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) home: Option<&'a Path>,
}

/// Compiled once when the rule is read.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    anchor: Anchor,
    /// `None`: everything below the anchor.
    glob: Option<GlobMatcher>,
    /// Matching a directory matches what is below it.
    below: bool,
}

impl PathPattern {
    /// Reads a pattern; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('!') {
            return Err("a path cannot be negated; write a rule in another list instead".into());
        }
        let (anchor, rest) = if let Some(rest) = text.strip_prefix("//") {
            (Anchor::FileSystem, rest)
        } else if text == "~" {
            (Anchor::Home, "")
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Anchor::Home, rest)
        } else if text.starts_with('~') {
            return Err("only `~/` is known, not the home of another person".into());
        } else if let Some(rest) = text.strip_prefix('/').or_else(|| text.strip_prefix("./")) {
            (Anchor::Base, rest)
        } else if text == "." {
            (Anchor::Base, "")
        } else if text == "*" || text == "**" {
            (Anchor::Base, "**")
        } else if text.trim_end_matches('/').contains('/') {
            (Anchor::Base, text)
        } else {
            (Anchor::AnyDepth, text)
        };
        if rest.split('/').any(|name| name == "..") {
            return Err("`..` is not possible in a pattern; write the path without it".into());
        }
        let (body, everything_below) = match strip_below(rest) {
            Some(body) => (body, true),
            None => (rest.trim_end_matches('/'), false),
        };
        let body = body.trim_start_matches("./");
        let last = body.rsplit('/').next().unwrap_or(body);
        let below = everything_below || !last.contains(['*', '?', '[', '{']);
        let glob = match body {
            "" => None,
            body => Some(compile(body)?),
        };
        Ok(Self {
            anchor,
            glob,
            below,
        })
    }

    /// Whether the path is meant.
    pub(crate) fn matches(&self, path: &Path, bases: PatternBase<'_>, reach: Reach) -> bool {
        let path = normalise(path);
        let wide = reach == Reach::Wide;
        match self.anchor {
            Anchor::FileSystem => self.matches_from(&path, Path::new("/"), reach),
            Anchor::Home => bases
                .home
                .is_some_and(|home| self.matches_from(&path, home, reach)),
            Anchor::AnyDepth if wide => self.matches_a_name(&path, reach),
            Anchor::AnyDepth => path
                .strip_prefix(normalise(bases.base))
                .is_ok_and(|relative| self.matches_a_name(relative, reach)),
            Anchor::Base => {
                self.matches_from(&path, bases.base, reach)
                    || (wide && self.matches_from(&path, bases.cwd, reach))
            }
        }
    }

    /// Tries the path itself and, if what is below counts, each of its parent directories up to the
    /// anchor.
    fn matches_from(&self, path: &Path, anchor: &Path, reach: Reach) -> bool {
        let Ok(relative) = path.strip_prefix(normalise(anchor)) else {
            return false;
        };
        let Some(glob) = &self.glob else {
            return true;
        };
        let below = self.below || reach == Reach::Wide;
        let levels = if below { usize::MAX } else { 1 };
        relative
            .ancestors()
            .filter(|ancestor| !ancestor.as_os_str().is_empty())
            .take(levels)
            .any(|ancestor| glob.is_match(ancestor))
    }

    fn matches_a_name(&self, path: &Path, reach: Reach) -> bool {
        let Some(glob) = &self.glob else {
            return true;
        };
        let below = self.below || reach == Reach::Wide;
        let levels = if below { usize::MAX } else { 1 };
        let names: Vec<PathBuf> = path.iter().rev().take(levels).map(PathBuf::from).collect();
        names.iter().any(|name| glob.is_match(name))
    }
}

/// The pattern without a last `**` component, if it has one.
fn strip_below(text: &str) -> Option<&str> {
    if text == "**" {
        return Some("");
    }
    let mut body = text.strip_suffix("/**")?;
    while let Some(shorter) = body.strip_suffix("/**") {
        body = shorter;
    }
    Some(if body == "**" { "" } else { body })
}

/// More alternatives in one pattern are refused: they are compiled by recursion.
const MOST_ALTERNATIVES: usize = 64;

fn compile(body: &str) -> Result<GlobMatcher, String> {
    if body.matches('{').count() > MOST_ALTERNATIVES {
        return Err("the path pattern is too complex".to_owned());
    }
    GlobBuilder::new(body)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| format!("the path pattern is wrong ({})", error.kind()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn bases() -> PatternBase<'static> {
        PatternBase {
            base: Path::new("/w"),
            cwd: Path::new("/w/sub"),
            home: Some(Path::new("/home/ann")),
        }
    }

    #[rstest]
    #[case("./secrets/**", "/w/secrets/a/b", true)]
    #[case("./secrets/**", "/w/secrets", true)]
    #[case("./secrets/**", "/w/secretsx", false)]
    #[case("./secrets", "/w/secrets/a", true)]
    #[case("secrets/", "/w/deep/secrets/a", true)]
    #[case("~/.ssh/**", "/home/ann/.ssh/id", true)]
    #[case("~/.ssh/**", "/home/bob/.ssh/id", false)]
    #[case("//etc/**", "/etc/passwd", true)]
    #[case("/etc/**", "/etc/passwd", false)]
    #[case("/src/**", "/w/src/a.rs", true)]
    #[case("src/**", "/w/src/a.rs", true)]
    #[case("src/**", "/w/x/src/a.rs", false)]
    #[case("src/*.rs", "/w/src/a.rs", true)]
    #[case("src/*.rs", "/w/src/b/a.rs", false)]
    #[case("src/*", "/w/src/b/a.rs", false)]
    #[case("src/**/*.rs", "/w/src/b/c/a.rs", true)]
    #[case("*.env", "/w/a/b/x.env", true)]
    #[case("*.env", "/w/.env", true)]
    #[case("*.env", "/elsewhere/.env", false)]
    #[case("**", "/w/a", true)]
    #[case("**", "/elsewhere/a", false)]
    #[case("//**", "/elsewhere/a", true)]
    #[case("src/[[]id]/**", "/w/src/[id]/a", true)]
    fn an_allowing_pattern_takes_in_what_is_written(
        #[case] pattern: &str,
        #[case] path: &str,
        #[case] matches: bool,
    ) {
        let pattern = PathPattern::parse(pattern).unwrap();
        assert_eq!(
            pattern.matches(Path::new(path), bases(), Reach::AsWritten),
            matches
        );
    }

    #[rstest]
    #[case("./secrets/**", "/w/sub/secrets/a")]
    #[case("*.env", "/elsewhere/.env")]
    #[case("src/*", "/w/src/b/a.rs")]
    #[case("./secrets/**", "/w/x/../secrets/a")]
    fn a_forbidding_pattern_takes_in_more(#[case] pattern: &str, #[case] path: &str) {
        let pattern = PathPattern::parse(pattern).unwrap();
        assert!(pattern.matches(Path::new(path), bases(), Reach::Wide));
    }

    #[rstest]
    #[case("!x")]
    #[case("~bob/x")]
    #[case("../x/**")]
    #[case("a/[")]
    fn a_pattern_that_cannot_be_meant_is_refused(#[case] pattern: &str) {
        assert!(PathPattern::parse(pattern).is_err());
    }
}
