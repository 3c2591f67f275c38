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
//! Only `name`, `description` and the prompt are required. An unknown key is an error: a misspelt
//! `disallowedTools` would otherwise grant what it was to take away. A bad file is reported by path
//! and line and does not affect the others.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use codespar_policy::Mode;
use codespar_protocol::Isolation;
use codespar_tools::frontmatter;
use serde::{Deserialize, Serialize};

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
}

/// A file that was read: its text, or why it has none.
#[derive(Debug, Clone)]
pub struct DefinitionFile {
    pub path: PathBuf,
    /// What it says.
    pub text: Result<String, String>,
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
    /// Its system prompt: the text below the frontmatter.
    #[serde(skip)]
    pub prompt: String,
    pub path: PathBuf,
    /// Whose it is.
    pub origin: &'static str,
}

/// A definition that cannot be used.
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
}

impl AgentDefinitions {
    /// Reads every `*.md` of the sources, nearest source first. `known_tools` is what `tools`
    /// and `disallowedTools` may name, besides MCP tools.
    pub fn load(sources: &[DefinitionSource], known_tools: &[&str]) -> Self {
        let mut found = Self::default();
        for source in sources {
            let files = match &source.files {
                Some(files) => files.clone(),
                None => markdown_files(&source.dir, &mut found.problems),
            };
            for file in files {
                match read(&file, source.origin, known_tools) {
                    Ok(agent) => found.add(agent, source),
                    Err(problems) => found.problems.extend(problems),
                }
            }
        }
        found
    }

    /// The sources come nearest first, so the first of a name stays.
    fn add(&mut self, agent: AgentDefinition, source: &DefinitionSource) {
        match self.agents.get(&agent.name) {
            // Two of one name in one place is a mistake; a nearer one hiding a farther is not.
            Some(other) if other.path.starts_with(&source.dir) => {
                self.problems.push(DefinitionProblem {
                    message: format!(
                        "an agent named `{}` is already defined in {}",
                        agent.name,
                        other.path.display()
                    ),
                    path: agent.path,
                    line: 1,
                });
            }
            Some(_) => {}
            None => {
                self.agents.insert(agent.name.clone(), agent);
            }
        }
    }
}

/// Sorted by path. A directory that does not exist has no files; one that cannot be read is a
/// problem.
fn markdown_files(dir: &Path, problems: &mut Vec<DefinitionProblem>) -> Vec<DefinitionFile> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problems.push(problem(dir, 1, format!("cannot be read: {error}")));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| DefinitionFile {
        text: codespar_files::read_text(&path, MAX_DEFINITION_BYTES)
            .map_err(|error| error.to_string()),
        path,
    };
    paths.into_iter().map(read).collect()
}

/// A list written as YAML list or as one comma-separated line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Line(String),
}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Self {
        let names = match names {
            Names::List(names) => names,
            Names::Line(line) => line.split(',').map(str::to_owned).collect(),
        };
        names
            .iter()
            .map(|n| n.trim().to_owned())
            .filter(|n| !n.is_empty())
            .collect()
    }
}

/// The frontmatter as it is written. A wrong type and an unknown key are errors of the parser, with
/// its line.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fields {
    name: String,
    description: String,
    tools: Option<Names>,
    disallowed_tools: Option<Names>,
    model: Option<String>,
    permission_mode: Option<Mode>,
    max_turns: Option<u32>,
    max_wall_seconds: Option<u64>,
    skills: Option<Names>,
    isolation: Option<Isolation>,
    #[serde(default)]
    background: bool,
    color: Option<String>,
}

/// All that is wrong with the values is reported at once; an error of the parser comes alone.
fn read(
    DefinitionFile { path, text }: &DefinitionFile,
    origin: &'static str,
    known_tools: &[&str],
) -> Result<AgentDefinition, Vec<DefinitionProblem>> {
    let text = text
        .as_deref()
        .map_err(|error| vec![problem(path, 1, format!("cannot be read: {error}"))])?;
    let (fields, body) = frontmatter::parse::<Fields>(text)
        .map_err(|error| vec![problem(path, error.line, error.message)])?;
    let agent = AgentDefinition {
        name: fields.name,
        description: fields.description,
        tools: fields.tools.map(Vec::from),
        disallowed_tools: fields.disallowed_tools.map(Vec::from).unwrap_or_default(),
        model: fields.model.filter(|model| model != "inherit"),
        permission_mode: fields.permission_mode,
        max_turns: fields.max_turns,
        max_wall_seconds: fields.max_wall_seconds,
        skills: fields.skills.map(Vec::from).unwrap_or_default(),
        isolation: fields.isolation,
        background: fields.background,
        color: fields.color,
        prompt: body.trim().to_owned(),
        path: path.clone(),
        origin,
    };
    let problems = check(&agent, text, known_tools);
    if problems.is_empty() {
        Ok(agent)
    } else {
        Err(problems)
    }
}

/// What the types do not say. Tools of MCP servers are not looked up: their servers may not be
/// connected yet.
fn check(agent: &AgentDefinition, text: &str, known_tools: &[&str]) -> Vec<DefinitionProblem> {
    let mut problems = Vec::new();
    let mut complain = |key: &str, message: String| {
        problems.push(problem(&agent.path, line_of(text, key), message));
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if agent.name.is_empty() || !agent.name.chars().all(plain) {
        let name = &agent.name;
        complain(
            "name",
            format!("`{name}` is not a name: use lower-case letters, digits and hyphens"),
        );
    }
    if agent.description.trim().is_empty() {
        complain(
            "description",
            "the description is empty: say when to use this agent".to_owned(),
        );
    }
    if agent.prompt.is_empty() {
        complain(
            "---",
            "there is no text below the frontmatter: it is the agent's prompt".to_owned(),
        );
    }
    if agent.max_wall_seconds == Some(0) {
        complain(
            "maxWallSeconds",
            "maxWallSeconds must be at least 1".to_owned(),
        );
    }
    if agent.max_turns == Some(0) {
        complain("maxTurns", "maxTurns must be at least 1".to_owned());
    }
    let lists = [
        ("tools", agent.tools.as_deref()),
        ("disallowedTools", Some(&agent.disallowed_tools[..])),
    ];
    for (key, names) in lists {
        for name in names.unwrap_or_default() {
            let bare = name.split('(').next().unwrap_or_default();
            if !known_tools.contains(&bare) && !bare.starts_with("mcp__") && bare != "*" {
                complain(
                    key,
                    format!(
                        "there is no tool `{bare}`; there are: {}",
                        known_tools.join(", ")
                    ),
                );
            }
        }
    }
    problems
}

fn problem(path: &Path, line: usize, message: String) -> DefinitionProblem {
    DefinitionProblem {
        path: path.to_path_buf(),
        line,
        message,
    }
}

/// The line on which a key of the frontmatter stands; the first if it cannot be found.
fn line_of(text: &str, key: &str) -> usize {
    let wanted = if key == "---" {
        key.to_owned()
    } else {
        format!("{key}:")
    };
    text.lines()
        .position(|line| line.trim_start().starts_with(&wanted))
        .map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
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
            },
            DefinitionSource {
                dir: dir.path().join("far"),
                origin: "user",
                files: None,
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
            (
                "near/bad.md",
                "---\nname: x\ndescription: d\ntools: Read, Fly\n---\nbody\n",
            ),
            (
                "near/good.md",
                "---\nname: good\ndescription: d\n---\nbody\n",
            ),
        ]);
        assert_eq!(
            problems(&found),
            [(4, "there is no tool `Fly`; there are: Read, Bash")]
        );
        assert_eq!(found.agents.keys().collect::<Vec<_>>(), ["good"]);
    }

    #[test]
    fn an_unknown_field_is_an_error_on_its_line() {
        let (_dir, found) = load(&[(
            "near/a.md",
            "---\nname: a\ndescription: d\ntool: Read\n---\nb\n",
        )]);
        assert_eq!(found.problems.len(), 1);
        assert_eq!(found.problems[0].line, 4, "{}", found.problems[0]);
        assert!(
            found.problems[0].message.contains("tool"),
            "{}",
            found.problems[0]
        );
    }

    #[test]
    fn two_of_one_name_in_one_place_is_an_error() {
        let text = "---\nname: a\ndescription: d\n---\nb\n";
        let (_dir, found) = load(&[("near/a.md", text), ("near/b.md", text)]);
        assert_eq!(found.problems.len(), 1);
        assert!(found.problems[0].message.contains("already defined"));
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
            ("near/c.md", "---\nname: Bad Name\ndescription: d\n---\nx\n"),
        ]);
        let lines: Vec<usize> = found.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 1, 2]);
    }
}
