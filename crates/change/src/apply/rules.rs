//! Which files a change may not touch unless somebody said so.

use std::{fmt, path::Path};

use codespar_policy::{Protection, protected};
use codespar_protocol::RepoPath;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// What decides over builds and reviews, and what builds are pinned to. Lock files are among them:
/// a change of one decides which code of others is run by every build, and nobody reads it.
const PROTECTED: &[&str] = &[
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    ".buildkite/**",
    ".travis.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    "CODEOWNERS",
    ".github/CODEOWNERS",
    "docs/CODEOWNERS",
    ".gitlab/CODEOWNERS",
    "**/Cargo.lock",
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/yarn.lock",
    "**/pnpm-lock.yaml",
    "**/bun.lock",
    "**/bun.lockb",
    "**/poetry.lock",
    "**/uv.lock",
    "**/Pipfile.lock",
    "**/Gemfile.lock",
    "**/composer.lock",
    "**/go.sum",
];

/// Whether protected files may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectedFiles {
    /// They stay as they are.
    #[default]
    Refused,
    /// They may change.
    Allowed,
}

/// What a change may touch.
#[derive(Debug, Clone)]
pub struct Rules {
    globs: GlobSet,
    patterns: Vec<String>,
    protected: ProtectedFiles,
}

/// A pattern of protected files that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no pattern of protected files: {reason}")]
pub struct BadPattern {
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Rules {
    /// The patterns that hold when nobody sets others.
    pub fn default_patterns() -> Vec<String> {
        PROTECTED
            .iter()
            .map(|&pattern| pattern.to_owned())
            .collect()
    }

    /// Rules with these patterns of protected files, from the root of the repository. `*` stays
    /// within a directory; case does not count, as it does not on some file systems.
    pub fn new(patterns: Vec<String>, protected: ProtectedFiles) -> Result<Self, BadPattern> {
        let bad = |pattern: &str, error: &globset::Error| BadPattern {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        };
        let mut globs = GlobSetBuilder::new();
        for pattern in &patterns {
            if !codespar_files::is_plain_pattern(pattern) {
                return Err(BadPattern {
                    pattern: pattern.chars().take(80).collect(),
                    reason: "it is too long or too complex".to_owned(),
                });
            }
            let glob = GlobBuilder::new(pattern)
                .literal_separator(true)
                .case_insensitive(true)
                .build();
            globs.add(glob.map_err(|error| bad(pattern, &error))?);
        }
        let globs = globs
            .build()
            .map_err(|error| bad(&patterns.join(", "), &error))?;
        Ok(Self {
            globs,
            patterns,
            protected,
        })
    }

    /// Why a change may not touch `path`, if so. First what nobody can allow, whatever the patterns
    /// say. Then the patterns, unless the user allowed protected files for this change.
    pub fn protects(&self, path: &RepoPath) -> Option<Guard<'_>> {
        match protected(Path::new(path.as_str()), None) {
            // Whether these may change is for the patterns to say.
            None | Some(Protection::Ci) => {}
            Some(protection) => return Some(Guard::Always(protection)),
        }
        if self.protected == ProtectedFiles::Allowed {
            return None;
        }
        let first = self.globs.matches(path.as_str()).into_iter().next()?;
        let pattern = self.patterns.get(first)?;
        Some(Guard::Pattern(pattern))
    }
}

/// Why a change may not touch a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard<'a> {
    /// Nobody can allow it: it would decide what runs or what is permitted.
    Always(Protection),
    /// A pattern protects it; the user can allow it.
    Pattern(&'a str),
}

impl fmt::Display for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(protection) => write!(
                f,
                "is protected ({protection}) and is never part of a change; leave it as it is, a \
                 person has to edit it"
            ),
            Self::Pattern(pattern) => write!(
                f,
                "is protected (`{pattern}`) and may only be changed when the user \
                 allows it (--allow-protected); leave it as it is"
            ),
        }
    }
}
