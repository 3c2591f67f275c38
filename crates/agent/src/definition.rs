//! Custom agents: markdown files with a frontmatter, checked when they are read.
//!
//! One file is one agent:
//!
//! ```text
//! ---
//! name: reviewer                # lower-case letters, digits, hyphens
//! description: Reviews a change # when to use it
//! tools: Read, Grep             # or a YAML list; all tools if absent
//! disallowedTools: Bash
//! model: haiku                  # an id or an alias; `inherit` is the same as absent
//! permissionMode: plan
//! maxTurns: 10
//! maxWallSeconds: 600           # for each attempt
//! skills: [style]
//! isolation: worktree
//! background: true
//! color: blue
//! ---
//! The system prompt.
//! ```
//!
//! Only `description` and the prompt are required. Files are read as leniently as the tools that
//! most of them were written for: unknown keys and tools are left out with a warning, a value that
//! is no YAML is the text of its line. What looks like a misspelt restriction is an error, since it
//! would otherwise grant what it was to take away. A bad file is reported by path and line and does
//! not affect the others. Files of directories below count too, since that is how collections are
//! installed.

mod read;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use codespar_policy::Mode;
use codespar_protocol::Isolation;
use codespar_tools::frontmatter;
use serde::Serialize;

pub use self::read::field_left_out;
use self::read::read;

/// A definition is a page or two; anything larger is something else.
pub const MAX_DEFINITION_BYTES: u64 = 256 * 1024;

/// A directory that may hold definitions.
#[derive(Debug, Clone)]
pub struct DefinitionSource {
    pub dir: PathBuf,
    /// As it is shown: `project`, `user`.
    pub origin: &'static str,
    /// The files, where the caller has read them: the directory is not looked at then.
    pub files: Option<Vec<DefinitionFile>>,
    /// The plugin that it is part of. Its name goes before those of its agents, and so do the names
    /// of directories: `NAME:directory:agent`.
    pub plugin: Option<String>,
}

/// A file that was read: its text, or why it has none.
#[derive(Debug, Clone)]
pub struct DefinitionFile {
    pub path: PathBuf,
    /// What it says.
    pub text: Result<String, String>,
}

impl DefinitionFile {
    /// Reads a file of the user.
    pub fn read(path: PathBuf) -> Self {
        let text = codespar_files::read_text(&path, MAX_DEFINITION_BYTES);
        Self {
            text: text.map_err(|error| error.to_string()),
            path,
        }
    }
}

impl DefinitionSource {
    /// What an agent of this name is called by, from a file at this path.
    fn full_name(&self, path: &Path, name: &str) -> String {
        let Some(plugin) = &self.plugin else {
            return name.to_owned();
        };
        let below = path
            .parent()
            .and_then(|dir| dir.strip_prefix(&self.dir).ok());
        let below = below.into_iter().flat_map(Path::components);
        let below = below.map(|part| part.as_os_str().to_string_lossy().into_owned());
        let mut parts = vec![plugin.clone()];
        parts.extend(below);
        parts.push(name.to_owned());
        parts.join(":")
    }
}

/// A custom agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// What it is called by.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The only tools it has; all when absent.
    pub tools: Option<Vec<String>>,
    /// Tools it does not have.
    pub disallowed_tools: Vec<String>,
    /// Its model, by id or alias.
    pub model: Option<String>,
    pub permission_mode: Option<Mode>,
    /// Its limit on turns.
    pub max_turns: Option<u32>,
    /// Its limit on wall time for each attempt.
    pub max_wall_seconds: Option<u64>,
    /// Skills loaded from the start.
    pub skills: Vec<String>,
    /// Where it works.
    pub isolation: Option<Isolation>,
    /// It runs beside the conversation.
    pub background: bool,
    /// For display.
    pub color: Option<String>,
    /// Hooks of its own, as in settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<serde_json::Value>,
    /// Its system prompt: the text below the frontmatter.
    #[serde(skip)]
    pub prompt: String,
    pub path: PathBuf,
    /// Whose it is.
    pub origin: &'static str,
}

/// A definition that cannot be used, or something in one that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct DefinitionProblem {
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// All definitions, and what was wrong with the others.
#[derive(Debug, Clone, Default)]
pub struct AgentDefinitions {
    /// By name; the nearest source won.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// Files that cannot be used.
    pub problems: Vec<DefinitionProblem>,
    /// What is left out of files that can be used.
    pub warnings: Vec<DefinitionProblem>,
}

impl AgentDefinitions {
    /// Reads every `*.md` of the sources and the directories below, nearest source first.
    /// `known_tools` is what `tools` and `disallowedTools` may name, besides MCP tools.
    pub fn load(sources: &[DefinitionSource], known_tools: &[&str]) -> Self {
        let mut found = Self::default();
        for source in sources {
            let files = match &source.files {
                Some(files) => files.clone(),
                None => markdown_files(&source.dir, &mut found.problems),
            };
            for file in files.iter().filter(|file| !is_documentation(file)) {
                match read(file, source.origin, known_tools) {
                    Ok((mut agent, warnings)) => {
                        found.warnings.extend(warnings);
                        agent.name = source.full_name(&agent.path, &agent.name);
                        found.add(agent, source);
                    }
                    Err(problems) => found.problems.extend(problems),
                }
            }
        }
        found
    }

    /// Adds those of other sources; of two with one name the one that was there stays.
    pub fn extend(&mut self, others: Self) {
        self.problems.extend(others.problems);
        self.warnings.extend(others.warnings);
        for (name, agent) in others.agents {
            self.agents.entry(name).or_insert(agent);
        }
    }

    /// The sources come nearest first, so the first of a name stays.
    fn add(&mut self, agent: AgentDefinition, source: &DefinitionSource) {
        let Some(other) = self.agents.get(&agent.name) else {
            self.agents.insert(agent.name.clone(), agent);
            return;
        };
        // A nearer one hiding a farther is no mistake. One file can be part of two sources.
        if !other.path.starts_with(&source.dir) || other.path == agent.path {
            return;
        }
        let told = format!(
            "an agent named `{}` is already defined in {}",
            agent.name,
            other.path.display()
        );
        // Two of one name in one directory is a mistake; collections have the same agent in
        // several.
        match other.path.parent() == agent.path.parent() {
            true => self.problems.push(problem(&agent.path, 1, told)),
            false => {
                let told = format!("{told}; this one is left out");
                self.warnings.push(problem(&agent.path, 1, told));
            }
        }
    }
}

/// `README.md`, `CONTRIBUTING.md` and the like come with collections: a name in capitals, and no
/// head.
fn is_documentation(file: &DefinitionFile) -> bool {
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    let is_loud = |c: char| c.is_ascii_uppercase() || matches!(c, '_' | '-');
    let is_headless = |text: &String| !frontmatter::has_head(text);
    let is_loud = !stem.is_empty() && stem.chars().all(is_loud);
    is_loud && file.text.as_ref().is_ok_and(is_headless)
}

/// A directory that does not exist has no files; what cannot be read is a problem.
fn markdown_files(dir: &Path, problems: &mut Vec<DefinitionProblem>) -> Vec<DefinitionFile> {
    let found = codespar_files::nested(dir, "md");
    let left_out = found.left_out.iter();
    problems.extend(left_out.map(|(path, why)| problem(path, 1, format!("cannot be read: {why}"))));
    found.files.into_iter().map(DefinitionFile::read).collect()
}

fn problem(path: &Path, line: usize, message: String) -> DefinitionProblem {
    DefinitionProblem {
        path: path.to_path_buf(),
        line,
        message,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TOOLS: [&str; 2] = ["Read", "Bash"];

    fn load(files: &[(&str, &str)]) -> (tempfile::TempDir, AgentDefinitions) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let sources = [
            DefinitionSource {
                dir: dir.path().join("near"),
                origin: "project",
                files: None,
                plugin: None,
            },
            DefinitionSource {
                dir: dir.path().join("far"),
                origin: "user",
                files: None,
                plugin: None,
            },
        ];
        let found = AgentDefinitions::load(&sources, &TOOLS);
        (dir, found)
    }

    fn problems(found: &AgentDefinitions) -> Vec<(usize, &str)> {
        found
            .problems
            .iter()
            .map(|p| (p.line, p.message.as_str()))
            .collect()
    }

    #[test]
    fn every_field_is_read_and_the_nearest_definition_wins() {
        let near = "---\nname: reviewer\ndescription: Reviews a change\ntools: Read, Bash\nmodel: haiku\npermissionMode: plan\nmaxTurns: 7\nskills: [style]\nisolation: worktree\nbackground: true\ncolor: blue\n---\nYou review.\n";
        let far = "---\nname: reviewer\ndescription: other\n---\nOther.\n";
        let (_dir, found) = load(&[("near/r.md", near), ("far/r.md", far)]);
        assert_eq!(problems(&found), []);
        let agent = &found.agents["reviewer"];
        assert_eq!(
            agent.tools.as_deref(),
            Some(&["Read".to_owned(), "Bash".to_owned()][..])
        );
        assert_eq!(agent.permission_mode, Some(Mode::Plan));
        assert_eq!((agent.max_turns, agent.background), (Some(7), true));
        assert_eq!(agent.isolation, Some(Isolation::Worktree));
        assert_eq!(
            (agent.prompt.as_str(), agent.origin),
            ("You review.", "project")
        );
    }

    #[test]
    fn a_bad_file_is_named_with_its_line_and_the_others_still_load() {
        let (_dir, found) = load(&[
            ("near/bad.md", "---\nname: x\ndescription: ''\n---\nbody\n"),
            (
                "near/good.md",
                "---\nname: good\ndescription: d\n---\nbody\n",
            ),
        ]);
        let empty = "the description is empty: say when to use this agent";
        assert_eq!(problems(&found), [(3, empty)]);
        assert_eq!(found.agents.keys().collect::<Vec<_>>(), ["good"]);
    }

    #[test]
    fn what_is_not_known_is_left_out_with_a_warning_on_its_line() {
        let text = "---\nname: Code Reviewer\ndescription: Use this: always. Example: x\ntools: Read, Fly\nversion: 2\npermissionMode: auto\nmaxTurns: many\n---\nb\n";
        let (_dir, found) = load(&[("near/a.md", text)]);
        assert_eq!(problems(&found), []);
        let agent = &found.agents["code-reviewer"];
        assert_eq!(agent.description, "Use this: always. Example: x");
        assert_eq!(agent.tools.as_deref(), Some(&["Read".to_owned()][..]));
        assert_eq!((agent.permission_mode, agent.max_turns), (None, None));
        let told: Vec<(usize, &str)> = found
            .warnings
            .iter()
            .map(|warning| (warning.line, warning.message.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (1, "the frontmatter is not YAML; it was read line by line"),
                (
                    2,
                    "the agent is called `code-reviewer`: names have lower-case letters, digits and hyphens"
                ),
                (
                    6,
                    "`permissionMode` is left out: `auto` is not one of default, acceptEdits, plan, dontAsk, bypassPermissions"
                ),
                (7, "`maxTurns` is left out: it must be a number, at least 1"),
                (4, "there is no tool `Fly`; it is left out"),
                (5, "`version` is not known and left out"),
            ]
        );
    }

    #[test]
    fn a_misspelt_restriction_is_an_error_on_its_line() {
        for key in [
            "disalowedTools",
            "disallowed_tools",
            "permisionMode",
            "tool",
        ] {
            let text = format!("---\nname: a\ndescription: d\n{key}: Bash\n---\nb\n");
            let (_dir, found) = load(&[("near/a.md", &text)]);
            assert_eq!(found.problems.len(), 1, "{key}");
            assert_eq!(found.problems[0].line, 4, "{}", found.problems[0]);
            assert!(found.problems[0].message.contains("did you mean"), "{key}");
        }
    }

    #[test]
    fn two_of_one_name_in_one_place_is_an_error() {
        let text = "---\nname: a\ndescription: d\n---\nb\n";
        let (_dir, found) = load(&[("near/a.md", text), ("near/b.md", text)]);
        assert_eq!(found.problems.len(), 1);
        assert!(found.problems[0].message.contains("already defined"));
    }

    #[test]
    fn agents_of_directories_below_are_read_and_documentation_is_passed_over() {
        let agent = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nb\n");
        let (dir, found) = load(&[
            ("near/README.md", "# A collection\n"),
            ("near/core/lead.md", &agent("lead")),
            ("near/core/web/page.md", &agent("page")),
            ("near/data/lead.md", &agent("lead")),
            ("near/data/NOTES.md", &agent("notes")),
        ]);
        let names: Vec<&String> = found.agents.keys().collect();
        assert_eq!(names, ["lead", "notes", "page"]);
        assert_eq!(problems(&found), []);
        let first = dir.path().join("near/core/lead.md");
        assert_eq!(found.agents["lead"].path, first);
        let told: Vec<&str> = found
            .warnings
            .iter()
            .map(|it| it.message.as_str())
            .collect();
        assert_eq!(
            told,
            [format!(
                "an agent named `lead` is already defined in {}; this one is left out",
                first.display()
            )]
        );
    }

    #[test]
    fn the_directories_of_a_plugin_are_part_of_the_names() {
        let agent = "---\nname: lead\ndescription: d\n---\nb\n";
        let (dir, _) = load(&[("near/lead.md", agent), ("near/web/a/lead.md", agent)]);
        let source = DefinitionSource {
            dir: dir.path().join("near"),
            origin: "plugin",
            files: None,
            plugin: Some("kit".to_owned()),
        };
        let found = AgentDefinitions::load(&[source], &TOOLS);
        let names: Vec<&String> = found.agents.keys().collect();
        assert_eq!(names, ["kit:lead", "kit:web:a:lead"]);
        assert_eq!(found.warnings, []);
    }

    #[test]
    fn a_fifo_is_named_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(dir.path().join("a.md"))
            .status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("b.md")).unwrap();
        let source = DefinitionSource {
            dir: dir.path().to_path_buf(),
            origin: "user",
            files: None,
            plugin: None,
        };
        let found = AgentDefinitions::load(&[source], &TOOLS);
        let message = "cannot be read: it is not a regular file";
        assert_eq!(problems(&found), [(1, message), (1, message)]);
    }

    #[test]
    fn a_file_without_frontmatter_or_prompt_is_an_error() {
        let (_dir, found) = load(&[
            ("near/a.md", "just text\n"),
            ("near/b.md", "---\nname: b\ndescription: d\n---\n"),
            ("near/c.md", "---\nname: '!'\ndescription: d\n---\nx\n"),
        ]);
        let lines: Vec<usize> = found.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 1, 2]);
    }
}
