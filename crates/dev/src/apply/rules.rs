//! Which files a change may not touch unless somebody said so.

use codespar_protocol::RepoPath;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// What decides over builds and reviews, and what builds are pinned to.
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
pub enum Protected {
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
    protected: Protected,
}

/// A pattern of protected files that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no pattern of protected files: {reason}")]
pub struct BadPattern {
    /// The pattern.
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
    pub fn new(patterns: Vec<String>, protected: Protected) -> Result<Self, BadPattern> {
        let bad = |pattern: &str, error: &globset::Error| BadPattern {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        };
        let mut globs = GlobSetBuilder::new();
        for pattern in &patterns {
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

    /// The pattern that protects `path`, if one does and that counts.
    pub(crate) fn protects(&self, path: &RepoPath) -> Option<&str> {
        if self.protected == Protected::Allowed {
            return None;
        }
        let first = self.globs.matches(path.as_str()).into_iter().next()?;
        self.patterns.get(first).map(String::as_str)
    }
}
