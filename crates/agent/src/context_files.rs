//! Instruction files of the project and the user, with their `@path` imports.
//!
//! These files come with a repository that may not be trusted, and their text goes into the system
//! prompt, so reading them is bounded in every direction: only regular files, at most 64 KiB each,
//! each at most once, four imports deep, nothing outside the directory that the file belongs to
//! (after links are resolved), nothing hidden by a rule, nothing below `.git`.
//!
//! A file that breaks a rule is left out and reported with the line that wanted it; the others are
//! used. An import is put in after its line:
//!
//! ```text
//! See @docs/style.md for the rules.
//! (the text of docs/style.md)
//! ```

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use codespar_files::OpenError;
use codespar_tools::{Hidden, PathGlobs, frontmatter};

use crate::memory;

/// In each directory, in this order.
const NAMES: [&str; 5] = [
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    ".codespar/CODESPAR.md",
    LOCAL,
];
/// Not shared with others.
const LOCAL: &str = "CLAUDE.local.md";
/// In the user's own directories.
const USER_NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CODESPAR.md"];
/// Below the root of a project: rules, each in a file of its own.
const RULE_DIRS: [&str; 2] = [".claude/rules", ".codespar/rules"];
/// More rules than this are not looked at.
const MOST_RULES: usize = 200;
/// How deep imports may import.
const MAX_HOPS: u32 = 4;
/// Of one file. A larger one is left out whole, not cut.
const MAX_BYTES: u64 = 64 * 1024;

/// Which instruction files of a project are used; all unless a caller says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectInstructions {
    /// Those that a repository shares, its rules and its notes.
    pub shared: bool,
    /// `CLAUDE.local.md`, the user's own in a project.
    pub local: bool,
}

impl Default for ProjectInstructions {
    fn default() -> Self {
        Self {
            shared: true,
            local: true,
        }
    }
}

impl ProjectInstructions {
    /// The names to look for in a directory, in their order.
    fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |name| match *name {
            LOCAL => self.local,
            _ => self.shared,
        })
    }

    fn rules(self, root: &Path) -> Vec<PathBuf> {
        match self.shared {
            true => rule_files(&RULE_DIRS.map(|dir| root.join(dir))),
            false => Vec::new(),
        }
    }
}

/// A file and its text, imports put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// A file that could not be used as it wants.
///
/// Shown to the user as a warning; none of them stops a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct ContextProblem {
    /// Which file.
    pub path: PathBuf,
    pub line: usize,
    pub message: String,
}

/// All instruction files, the most general first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextFiles {
    /// In order: the user's, then from the root down to the working directory.
    pub files: Vec<ContextFile>,
    /// Notes about the project, newest first, cut to a size.
    pub memory: Vec<ContextFile>,
    /// What was wrong.
    pub problems: Vec<ContextProblem>,
}

impl ContextFiles {
    /// Reads them. `root` and `cwd` are absolute and without symlinks. What is hidden and what git
    /// keeps for itself, which may hold credentials, is left out.
    pub fn gather(
        root: &Path,
        cwd: &Path,
        user_dirs: &[PathBuf],
        wanted: ProjectInstructions,
        hidden: &Hidden,
    ) -> Self {
        let mut found = Self::default();
        let mut seen = HashSet::new();
        for dir in user_dirs {
            let mut reader = Reader {
                inside: dir,
                hidden,
                found: &mut found,
                seen: &mut seen,
            };
            for name in USER_NAMES {
                reader.add(&dir.join(name));
            }
            for rule in rule_files(&[dir.join("rules")]) {
                reader.add_rule(&rule);
            }
        }
        let mut reader = Reader {
            inside: root,
            hidden,
            found: &mut found,
            seen: &mut seen,
        };
        for dir in from_root_down(root, cwd) {
            for name in wanted.names() {
                reader.add(&dir.join(name));
            }
        }
        for rule in wanted.rules(root) {
            reader.add_rule(&rule);
        }
        if wanted.shared {
            found.memory = memory::gather(root);
        }
        found
    }

    /// The instructions of these directories of a project alone, and these rules.
    pub(crate) fn of_parts(
        root: &Path,
        dirs: &[PathBuf],
        rules: &[PathBuf],
        wanted: ProjectInstructions,
        hidden: &Hidden,
    ) -> Self {
        let mut found = Self::default();
        let mut reader = Reader {
            inside: root,
            hidden,
            found: &mut found,
            seen: &mut HashSet::new(),
        };
        for dir in dirs {
            for name in wanted.names() {
                reader.add(&dir.join(name));
            }
        }
        for rule in rules {
            reader.add(rule);
        }
        found
    }

    /// The rules of a project that are about some of its paths, with these paths. A pattern that is
    /// none is a problem of `gather`.
    pub(crate) fn path_rules(
        root: &Path,
        wanted: ProjectInstructions,
    ) -> Vec<(PathBuf, PathGlobs)> {
        let files = wanted.rules(root).into_iter();
        let rules = files.filter_map(|file| {
            let patterns = patterns_of(&file)?;
            Some((file, PathGlobs::parse(&patterns).ok()?))
        });
        rules.collect()
    }
}

/// Sorted, also those in directories below. Links are not followed.
fn rule_files(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = dirs.to_vec();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if kind.is_ok_and(|kind| kind.is_file())
                && path.extension().is_some_and(|end| end == "md")
            {
                found.push(path);
            }
        }
        if found.len() > MOST_RULES {
            break;
        }
    }
    found.sort();
    found.truncate(MOST_RULES);
    found
}

/// What the `paths` of a rule say; `None` for one about everything.
fn patterns_of(file: &Path) -> Option<Vec<String>> {
    let text = codespar_files::read_text(file, MAX_BYTES).ok()?;
    let (fields, _, _) = frontmatter::parse_loosely(&text, &["paths"]).ok()?;
    let patterns = frontmatter::names(fields.get("paths")?);
    (!patterns.is_empty()).then_some(patterns)
}

/// Only the root if `cwd` is not below it.
fn from_root_down(root: &Path, cwd: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = cwd
        .ancestors()
        .take_while(|dir| dir.starts_with(root))
        .map(Path::to_path_buf)
        .collect();
    dirs.reverse();
    if dirs.is_empty() {
        dirs.push(root.to_path_buf());
    }
    dirs
}

/// Reads files and their imports, each at most once, and nothing outside `inside`: a repository
/// must not be able to pull the user's private files into the prompt.
struct Reader<'a> {
    inside: &'a Path,
    hidden: &'a Hidden,
    found: &'a mut ContextFiles,
    seen: &'a mut HashSet<PathBuf>,
}

impl Reader<'_> {
    fn add(&mut self, path: &Path) {
        if !path.is_file() {
            return;
        }
        if let Some(text) = self.read(path, 0, (path, 1))
            && !text.trim().is_empty()
        {
            self.found.files.push(ContextFile {
                path: path.to_path_buf(),
                text,
            });
        }
    }

    /// A rule about everything is read; one about some paths waits until one of them is touched.
    fn add_rule(&mut self, path: &Path) {
        match patterns_of(path).map(|patterns| PathGlobs::parse(&patterns)) {
            None => self.add(path),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                self.problem((path, 1), format!("paths: {error}; the rule is left out"));
            }
        }
    }

    /// `from` is where the wish for this file stands, for the message when it cannot be met. `None`
    /// with a problem noted, or without one where the file was read before: a cycle of imports ends
    /// there, and a file that two others import stands where it is met first.
    fn read(&mut self, path: &Path, hops: u32, from: (&Path, usize)) -> Option<String> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) => return self.problem(from, format!("{}: {error}", path.display())),
        };
        let inside = self
            .inside
            .canonicalize()
            .unwrap_or_else(|_| self.inside.to_path_buf());
        if !real.starts_with(&inside) {
            let message = format!(
                "{} is outside {} and was left out",
                path.display(),
                self.inside.display()
            );
            return self.problem(from, message);
        }
        let is_gits = real
            .strip_prefix(&inside)
            .is_ok_and(|path| path.iter().any(|part| part.eq_ignore_ascii_case(".git")));
        if is_gits || self.hidden.covers(&real) || self.hidden.covers(path) {
            let message = format!("{} may not be read and was left out", path.display());
            return self.problem(from, message);
        }
        if !self.seen.insert(real.clone()) {
            return None;
        }
        let opened = match codespar_files::open(&real) {
            Ok(opened) => opened,
            Err(error) => return self.problem(from, format!("{}: {error}", path.display())),
        };
        let size = opened.metadata.len();
        match opened.read(MAX_BYTES).map(String::from_utf8) {
            Ok(Ok(text)) => Some(self.with_imports(without_head(&text, path), path, hops)),
            Err(OpenError::TooLarge { .. }) => {
                let message = format!(
                    "{} has {size} bytes, more than the {MAX_BYTES} allowed, and was left out",
                    path.display()
                );
                self.problem(from, message)
            }
            Ok(Err(_)) => self.problem(from, format!("{}: it is not UTF-8 text", path.display())),
            Err(error) => self.problem(from, format!("{}: {error}", path.display())),
        }
    }

    /// Puts each imported file after the line that names it.
    fn with_imports(&mut self, text: &str, path: &Path, hops: u32) -> String {
        let mut out = String::with_capacity(text.len());
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            out.push_str(line);
            out.push('\n');
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            if fenced {
                continue;
            }
            for import in imports(line) {
                let target = resolve(import, path);
                if hops == MAX_HOPS {
                    let message =
                        format!("@{import} is more than {MAX_HOPS} imports deep and was left out");
                    self.problem((path, index + 1), message);
                } else if let Some(text) = self.read(&target, hops + 1, (path, index + 1)) {
                    out.push_str(text.trim_end());
                    out.push('\n');
                }
            }
        }
        out
    }

    /// Always `None`, so that a caller can note and return in one step.
    fn problem(&mut self, (path, line): (&Path, usize), message: String) -> Option<String> {
        self.found.problems.push(ContextProblem {
            path: path.to_path_buf(),
            line,
            message,
        });
        None
    }
}

/// The text of a rule without its fields; other files have none.
fn without_head<'a>(text: &'a str, path: &Path) -> &'a str {
    let is_rule = path.iter().any(|part| part == "rules");
    match frontmatter::split(text) {
        Ok(split) if is_rule => split.body,
        _ => text,
    }
}

fn resolve(import: &str, from: &Path) -> PathBuf {
    from.parent().unwrap_or(Path::new("/")).join(import)
}

/// `@path` words of a line, outside of code spans. A path has a dot or a slash in it, so that
/// `@someone` is left alone.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    line.split('`')
        .step_by(2)
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.strip_prefix('@'))
        .map(|path| path.trim_end_matches([',', ';', ':', ')', '.']))
        .filter(|path| path.contains(['.', '/']) && !path.contains('@'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("repo");
        fs::create_dir_all(&root).unwrap();
        (dir, root)
    }

    /// What a project has for an agent that works at its root.
    fn gathered(root: &Path) -> ContextFiles {
        let all = ProjectInstructions::default();
        ContextFiles::gather(root, root, &[], all, &Hidden::default())
    }

    fn texts(found: &ContextFiles) -> Vec<&str> {
        found.files.iter().map(|file| file.text.as_str()).collect()
    }

    #[test]
    fn files_come_from_the_user_first_then_from_the_root_down() {
        let (dir, root) = project();
        let home = dir.path().canonicalize().unwrap().join("home");
        write(&home, "CODESPAR.md", "mine\n");
        write(&root, "AGENTS.md", "root\n");
        write(&root, "a/b/.codespar/CODESPAR.md", "deep\n");
        write(&root, "other/AGENTS.md", "elsewhere\n");
        let found = ContextFiles::gather(
            &root,
            &root.join("a/b"),
            &[home],
            ProjectInstructions::default(),
            &Hidden::default(),
        );
        assert_eq!(texts(&found), ["mine\n", "root\n", "deep\n"]);
        assert_eq!(found.problems, []);
    }

    #[test]
    fn imports_are_put_in_four_hops_deep_and_no_deeper() {
        let (_dir, root) = project();
        write(&root, "AGENTS.md", "see @1.md\n");
        for n in 1..=5 {
            write(
                &root,
                &format!("{n}.md"),
                &format!("file {n} @{}.md\n", n + 1),
            );
        }
        let found = gathered(&root);
        assert_eq!(
            texts(&found),
            ["see @1.md\nfile 1 @2.md\nfile 2 @3.md\nfile 3 @4.md\nfile 4 @5.md\n"]
        );
        assert_eq!(found.problems.len(), 1);
        assert!(
            found.problems[0]
                .message
                .starts_with("@5.md is more than 4 imports deep")
        );
    }

    #[test]
    fn code_and_names_of_people_are_not_imports() {
        let (_dir, root) = project();
        write(
            &root,
            "AGENTS.md",
            "ask @anna or `@x.md`\n```\n@y.md\n```\n",
        );
        let found = gathered(&root);
        assert_eq!(found.problems, []);
        assert_eq!(found.files.len(), 1);
    }

    #[test]
    fn a_project_cannot_pull_in_files_from_outside() {
        let (dir, root) = project();
        write(dir.path(), "secret.txt", "key\n");
        write(
            &root,
            "AGENTS.md",
            "@../secret.txt\n@missing.md\n@link.md\n",
        );
        std::os::unix::fs::symlink("../secret.txt", root.join("link.md")).unwrap();
        let found = gathered(&root);
        assert!(!texts(&found)[0].contains("key"));
        let lines: Vec<usize> = found.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn a_project_cannot_pull_in_what_a_rule_hides_or_git_keeps() {
        let (_dir, root) = project();
        write(&root, ".env", "key\n");
        write(&root, ".git/config", "key\n");
        write(&root, "AGENTS.md", "@.env\n@.git/config\n@link.md\n");
        std::os::unix::fs::symlink(".env", root.join("link.md")).unwrap();
        let hidden = Hidden::by(|path| path.ends_with(".env"));
        let found =
            ContextFiles::gather(&root, &root, &[], ProjectInstructions::default(), &hidden);
        assert_eq!(texts(&found), ["@.env\n@.git/config\n@link.md\n"]);
        let lines: Vec<usize> = found.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn an_imported_fifo_is_left_out_and_not_waited_for() {
        let (_dir, root) = project();
        write(&root, "AGENTS.md", "rules\n@pipe.md\n");
        let made = std::process::Command::new("mkfifo")
            .arg(root.join("pipe.md"))
            .status();
        assert!(made.unwrap().success());
        let found = gathered(&root);
        assert_eq!(texts(&found), ["rules\n@pipe.md\n"]);
        assert!(found.problems[0].message.ends_with("is not a regular file"));
    }

    #[test]
    fn an_import_cycle_ends() {
        let (_dir, root) = project();
        write(&root, "AGENTS.md", "@b.md\n");
        write(&root, "b.md", "b @AGENTS.md\n");
        let found = gathered(&root);
        assert_eq!(texts(&found), ["@b.md\nb @AGENTS.md\n"]);
    }
}
