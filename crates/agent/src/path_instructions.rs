//! Instructions about parts of a project: the model is given them with the result of the first call
//! that touches such a part.
//!
//! Two kinds: instruction files of directories below the working directory (or beside it), and rules
//! with `paths`. They are part of a result, so a summary of older turns may lose them: after one
//! they are given again.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use codespar_tools::{Hidden, PathGlobs};
use parking_lot::Mutex;

use crate::{Briefing, ContextFiles, ProjectInstructions, briefing::instructions};

/// Of one agent.
pub(crate) struct PathInstructions {
    root: PathBuf,
    cwd: PathBuf,
    wanted: ProjectInstructions,
    hidden: Hidden,
    rules: OnceLock<Vec<(PathBuf, PathGlobs)>>,
    /// Directories and rules that the model has been told of, or that have nothing to tell.
    told: Mutex<HashSet<PathBuf>>,
}

impl PathInstructions {
    pub(crate) fn new(briefing: &Briefing) -> Self {
        Self {
            root: briefing.root.clone(),
            cwd: briefing.cwd.clone(),
            wanted: briefing.project_files,
            hidden: briefing.hidden.clone(),
            rules: OnceLock::new(),
            told: Mutex::new(HashSet::new()),
        }
    }

    /// What is to be told with a call that touched these files.
    pub(crate) fn about(&self, paths: &[PathBuf]) -> Option<String> {
        if self.root.as_os_str().is_empty() {
            return None;
        }
        let mut dirs = Vec::new();
        let mut rules = Vec::new();
        let mut told = self.told.lock();
        for path in paths {
            let Ok(inside) = path.strip_prefix(&self.root) else {
                continue;
            };
            for dir in self.parts_of(path) {
                if told.insert(dir.to_path_buf()) {
                    dirs.push(dir.to_path_buf());
                }
            }
            for (file, globs) in self.rules() {
                if globs.covers(inside) && told.insert(file.clone()) {
                    rules.push(file.clone());
                }
            }
        }
        drop(told);
        if dirs.is_empty() && rules.is_empty() {
            return None;
        }
        let found = ContextFiles::of_parts(&self.root, &dirs, &rules, self.wanted, &self.hidden);
        let text = instructions(&found.files);
        (!text.is_empty()).then_some(text)
    }

    /// Older results may be gone.
    pub(crate) fn forget(&self) {
        self.told.lock().clear();
    }

    fn rules(&self) -> &[(PathBuf, PathGlobs)] {
        self.rules
            .get_or_init(|| ContextFiles::path_rules(&self.root, self.wanted))
    }

    /// The directories around a file from below the root on, without those whose instructions are in
    /// the system prompt.
    fn parts_of<'a>(&self, path: &'a Path) -> Vec<&'a Path> {
        let around = path.ancestors().skip(1);
        let below = around.take_while(|dir| dir.starts_with(&self.root) && *dir != self.root);
        let mut dirs: Vec<&Path> = below.filter(|dir| !self.cwd.starts_with(dir)).collect();
        dirs.reverse();
        dirs
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_part_is_told_with_the_first_file_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("CLAUDE.md", "whole");
        write("web/CLAUDE.md", "about web");
        write("web/ui/AGENTS.md", "about ui");
        write(".claude/rules/all.md", "for all");
        write(
            ".claude/rules/ts.md",
            "---\npaths: web/**/*.ts, *.ts\n---\nabout ts",
        );
        let briefing = Briefing {
            root: root.clone(),
            cwd: root.clone(),
            ..Briefing::default()
        };
        let prompt = briefing.render().0;
        assert!(
            prompt.contains("whole") && prompt.contains("for all"),
            "{prompt}"
        );
        assert!(!prompt.contains("about web"), "{prompt}");
        assert!(!prompt.contains("about ts"), "{prompt}");
        let parts = PathInstructions::new(&briefing);
        let about = |name: &str| parts.about(&[root.join(name)]).unwrap_or_default();
        assert_eq!(about("main.rs"), "");
        let told = about("web/ui/a.ts");
        let places: Vec<_> = ["about web", "about ui", "about ts"]
            .map(|text| told.find(text).unwrap())
            .to_vec();
        assert!(places.is_sorted(), "{told}");
        assert!(!told.contains("paths:"), "{told}");
        assert_eq!(about("web/ui/b.ts"), "");
        parts.forget();
        assert!(about("web/index.html").contains("about web"));
        assert_eq!(parts.about(&[PathBuf::from("/elsewhere/a.ts")]), None);
    }
}
