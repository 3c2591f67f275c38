//! Patterns of paths in a project, as instruction files name them: `src/**/*.ts`, `*.{md,txt}`.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns of which one must fit.
#[derive(Debug, Clone)]
pub struct PathGlobs(GlobSet);

impl PathGlobs {
    /// `*` stays within a directory, `**` does not. The error names the pattern.
    pub fn parse(patterns: &[String]) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let plain = pattern.trim_start_matches("./");
            let glob = GlobBuilder::new(plain).literal_separator(true).build();
            set.add(glob.map_err(|error| error.to_string())?);
        }
        set.build().map(Self).map_err(|error| error.to_string())
    }

    /// Whether they cover a path, which is relative to the project.
    pub fn covers(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_its_directory() {
        let globs = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            PathGlobs::parse(&patterns)
        };
        let some = globs(&["src/**/*.{ts,tsx}", "./*.md"]).unwrap();
        for (path, is_covered) in [
            ("src/a.ts", true),
            ("src/deep/er/a.tsx", true),
            ("lib/a.ts", false),
            ("README.md", true),
            ("docs/README.md", false),
        ] {
            assert_eq!(some.covers(Path::new(path)), is_covered, "{path}");
        }
        assert!(globs(&["a["]).is_err());
    }
}
