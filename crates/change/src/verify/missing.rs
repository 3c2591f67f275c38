//! What a test run says is not there: programs and modules that an installation brings.
//!
//! A failing test is about the change, a missing dependency about the machine. Whether something is
//! missing is read from the output of a run *without* the change, so what the change itself forgot
//! counts as failing.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// More are not named.
const MOST: usize = 5;

/// Something that is not there.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// A program, by name.
    Program(String),
    /// A module, package or crate, by the name that the tool gives it.
    Module(String),
    /// A submodule of the repository, by its path.
    Submodule(String),
}

impl Missing {
    /// Whether it is part of the project itself, by its name: then no installation brings it. `has`
    /// tells of a path of the project.
    pub fn is_part_of(&self, has: impl Fn(&str) -> bool) -> bool {
        let Self::Module(name) = self else {
            return false;
        };
        let first = name.split(['.', '/']).next().unwrap_or(name);
        let places = ["", "src/", "lib/"];
        let ends = ["", ".py", ".rb", ".js", ".ts", ".mjs", ".cjs", ".php"];
        places
            .iter()
            .flat_map(|place| ends.iter().map(move |end| format!("{place}{first}{end}")))
            .any(|path| has(&path))
    }

    /// With its kind.
    pub fn describe(&self) -> String {
        match self {
            Self::Program(name) => format!("the program `{name}`"),
            Self::Module(name) => format!("the module `{name}`"),
            Self::Submodule(path) => format!("the submodule `{path}`"),
        }
    }
}

/// Of these submodules, those that an output speaks of.
pub(super) fn submodules_in(paths: &[String], texts: &[&str]) -> Vec<Missing> {
    let is_named = |path: &&String| is_name(path) && texts.iter().any(|text| names(text, path));
    let named = paths.iter().filter(is_named).take(MOST);
    named.map(|path| Missing::Submodule(path.clone())).collect()
}

/// Whether a text has a path: `lib` is not in `src/library.rs`.
fn names(text: &str, path: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        !before.is_some_and(goes_on) && !after.is_some_and(goes_on)
    })
}

/// Patterns with one name each, tried on every line.
const PROGRAMS: &[&str] = &[
    // dash, bash and zsh.
    r"^(?:\S*/)?(?:sh|dash|ash): (?:line )?\d+: ([^\s:]+): (?:not found|Permission denied)$",
    r"^(?:\S*/)?(?:ba|z)?sh: (?:line \d+: )?([^\s:]+): (?:command not found|No such file or directory)$",
    r"^zsh:\d*:? command not found: (\S+)$",
    r"^make: ([^\s:]+): No such file or directory$",
    r"^env: [‘'`]?([^\s:’']+)[’']?: No such file or directory$",
    r"/usr/bin/env: [‘'`]([^’']+)[’']: No such file or directory$",
    r"^bundler: command not found: (\S+)$",
    r"^error: no such command: `([^`]+)`$",
];

const MODULES: &[&str] = &[
    r"(?:Error: |^\s*)Cannot find module '([^']+)'",
    r"Cannot find package '([^']+)'",
    r"(?:Failed to resolve import|Could not resolve) .([^'\x22]+)['\x22]",
    r"^(?:E\s+)?ModuleNotFoundError: No module named '([^']+)'",
    r"^(?:E\s+)?ImportError: No module named '?([\w.]+)'?$",
    r"^\S*python[\d.]*: No module named ([\w.]+)$",
    r"^error: no matching package named `([^`]+)` found",
    r"^error: failed to (?:download|get) `([^` ]+)",
    r"failed to download replaced source .*`([^`]+)`",
    r"^\s*no matching package named `([^`]+)` found",
    r"no required module provides package ([^\s;]+)",
    r"cannot find module providing package ([^\s:;]+)",
    r"^go: ([^\s@]+)@\S+: (?:Get |reading |module lookup disabled|dial |missing go\.sum)",
    r"cannot load such file -- (\S+)",
    r"Could not find gem '([^' ]+)",
    r"^Could not find (\S+) in (?:any of the sources|locally installed gems)",
    r"Cannot access \S+ \(\S+\) in offline mode and the artifact (\S+) has not been downloaded",
    r"No cached version of (\S+) available for offline mode",
    r"^PHP (?:Fatal error|Warning):.*Failed opening required '([^']*vendor/autoload\.php)'",
    r"Failed opening required '([^']*vendor/autoload\.php)'",
];

struct Patterns {
    /// All of them: nearly every line matches none, and this is one pass over it.
    any: RegexSet,
    programs: Vec<Regex>,
    modules: Vec<Regex>,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let compiled = |patterns: &[&str]| {
        patterns
            .iter()
            .filter_map(|one| Regex::new(one).ok())
            .collect()
    };
    Patterns {
        any: RegexSet::new(PROGRAMS.iter().chain(MODULES)).unwrap_or_default(),
        programs: compiled(PROGRAMS),
        modules: compiled(MODULES),
    }
});

/// Collects what the lines of an output say is missing, each once.
#[derive(Debug, Default)]
pub(super) struct MissingReader(Vec<Missing>);

impl MissingReader {
    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if self.0.len() == MOST || !PATTERNS.any.is_match(line) {
            return;
        }
        let named = |patterns: &[Regex]| {
            let captures = patterns.iter().find_map(|pattern| pattern.captures(line))?;
            Some(captures[1].to_owned())
        };
        let one = match named(&PATTERNS.programs) {
            Some(name) if is_name(&name) => Missing::Program(name),
            Some(_) => return,
            None => match named(&PATTERNS.modules).map(|name| module(&name)) {
                Some(Some(name)) => Missing::Module(name),
                _ => return,
            },
        };
        if !self.0.contains(&one) {
            self.0.push(one);
        }
    }

    pub(super) fn finish(self) -> Vec<Missing> {
        self.0
    }
}

/// The name of a package; `None` for a file of the project itself.
fn module(name: &str) -> Option<String> {
    let name = name.trim();
    if name.ends_with("vendor/autoload.php") {
        return Some("vendor/autoload.php".to_owned());
    }
    if name.is_empty() || name.starts_with(['.', '/', '#', '~', '@']) && !is_scoped(name) {
        return None;
    }
    is_name(name).then(|| name.to_owned())
}

/// `@scope/name` of npm; `@/name` is an alias for a directory of the project.
fn is_scoped(name: &str) -> bool {
    let rest = name.strip_prefix('@').unwrap_or_default();
    rest.split_once('/')
        .is_some_and(|(scope, name)| !scope.is_empty() && !name.is_empty())
}

/// It is published, so it holds nothing but what names hold.
fn is_name(name: &str) -> bool {
    name.len() <= 100
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./@:+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(output: &str) -> Vec<Missing> {
        let mut reader = MissingReader::default();
        output.lines().for_each(|line| reader.line(line));
        reader.finish()
    }

    fn program(name: &str) -> Vec<Missing> {
        vec![Missing::Program(name.to_owned())]
    }

    fn package(name: &str) -> Vec<Missing> {
        vec![Missing::Module(name.to_owned())]
    }

    #[test]
    fn a_submodule_is_missing_where_the_output_speaks_of_its_path() {
        let paths = ["lib".to_owned(), "libs/zlib".to_owned()];
        let found = |text: &str| submodules_in(&paths, &["", text]);
        let lib = vec![Missing::Submodule("lib".to_owned())];
        assert_eq!(found("cat: lib/value: No such file"), lib);
        assert_eq!(found("cannot open '../lib'"), lib);
        assert_eq!(found("src/library.rs: my-lib failed"), []);
        let zlib = vec![Missing::Submodule("libs/zlib".to_owned())];
        assert_eq!(found("failed to read `./libs/zlib/Cargo.toml`"), zlib);
    }

    #[test]
    fn every_pattern_can_be_read() {
        assert_eq!(PATTERNS.programs.len(), PROGRAMS.len());
        assert_eq!(PATTERNS.modules.len(), MODULES.len());
    }

    #[test]
    fn missing_programs_are_named() {
        for output in [
            "> p@1.0.0 test\n> jest\n\nsh: 1: jest: not found\n",
            "bash: line 1: jest: command not found\n",
            "/bin/sh: line 1: jest: command not found\n",
            "make: jest: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n",
            "/usr/bin/env: ‘jest’: No such file or directory\n",
            "sh: 1: jest: Permission denied\n",
        ] {
            assert_eq!(missing(output), program("jest"), "{output}");
        }
    }

    #[test]
    fn missing_modules_of_each_ecosystem_are_named() {
        for (output, name) in [
            (
                "Error: Cannot find module 'left-pad'\nRequire stack:\n- /t/test.js\n",
                "left-pad",
            ),
            (
                "    Cannot find module '@babel/core' from 'test.js'\nError: Cannot find module '@babel/core'",
                "@babel/core",
            ),
            (
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chai' imported from /t/a.mjs",
                "chai",
            ),
            (
                "E   ModuleNotFoundError: No module named 'requests'\n",
                "requests",
            ),
            ("/usr/bin/python3: No module named pytest\n", "pytest"),
            (
                "error: no matching package named `serde` found\nlocation searched: registry\n",
                "serde",
            ),
            (
                "error: failed to download `serde v1.0.0`\n\nCaused by:\n  offline\n",
                "serde",
            ),
            (
                "a.go:3:8: no required module provides package example.com/x/y; to add it:\n",
                "example.com/x/y",
            ),
            (
                "go: example.com/x@v1.2.3: Get \"https://proxy/x\": dial tcp: lookup\n",
                "example.com/x",
            ),
            (
                "<internal:x>:136:in 'require': cannot load such file -- rspec (LoadError)\n",
                "rspec",
            ),
            (
                "Could not find rake-13.0.6 in locally installed gems\n",
                "rake-13.0.6",
            ),
            (
                "Cannot access central (https://x) in offline mode and the artifact org.j:junit:jar:4 has not been downloaded from it before.",
                "org.j:junit:jar:4",
            ),
        ] {
            assert_eq!(missing(output), package(name), "{output}");
        }
    }

    #[test]
    fn a_file_of_the_project_and_a_failing_test_are_not_missing_dependencies() {
        for output in [
            "Error: Cannot find module './greet'\n",
            "Error: Cannot find module '../lib/greet.js'\n",
            "Error: Cannot find module '/t/greet'\n",
            "Error: Cannot find module '@/greet'\n",
            "AssertionError: expected 1 to equal 2\n",
            "assert 'x' == 'No module named y'\n",
            "sh: 1: $(rm -rf ~): not found\n",
        ] {
            assert_eq!(missing(output), [], "{output}");
        }
    }
}
