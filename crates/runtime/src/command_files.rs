//! Commands of the project and of the user: prompts in markdown files.
//!
//! `.codespar/commands/**/*.md` and `.claude/commands/**/*.md`, in the project and in the home
//! directory. A file `git/tidy.md` is `/git:tidy`. `$ARGUMENTS` and `$1` to `$9` are replaced;
//! ``!`command` `` stands for what the command prints. The text is sent as if the user had typed it;
//! what its commands may do is decided by the permission rules. `allowed-tools` adds rules for the
//! turn: those of a project's file count when the project is trusted with that file.
//!
//! A skill is a command too, unless its head says otherwise or a command has its name.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use codespar_files::read_text;
use codespar_policy::{Rule, RuleError, RuleSet};
use codespar_tools::{Skill, SkillAudience, frontmatter};
use serde::Deserialize;

use crate::{
    Plugin, ProjectDir, ProjectOptions, SettingSource,
    configuration::skills,
    trust::{ProjectFileKind, nested_files},
};

/// A file that is longer is no prompt.
pub(crate) const MAX_COMMAND_BYTES: u64 = 64 * 1024;
/// Below the project's root, weakest first.
pub(crate) const COMMAND_DIRS: [&str; 2] = [".claude/commands", ".codespar/commands"];

/// A command from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectCommand {
    pub description: String,
    /// What it takes, for people; empty where its file does not say.
    pub argument_hint: String,
    /// The model that its frontmatter names.
    pub model: Option<String>,
    /// Permission rules that hold for its turn; none from a file that is not trusted.
    pub allowed_tools: Vec<String>,
    body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart {
    Text(String),
    /// What this command prints.
    Command(String),
}

/// All of them, by name. Those of the project win over those of the user.
#[derive(Debug, Default)]
pub struct ProjectCommands(BTreeMap<String, ProjectCommand>);

impl ProjectCommands {
    pub fn load(dir: &ProjectDir, plugins: &[Plugin], options: &ProjectOptions) -> Self {
        let mut commands = BTreeMap::new();
        let home = dir.home().map(|home| home.join(".claude/commands"));
        let own = home.into_iter().chain([dir.state().join("commands")]);
        for place in own.filter(|_| options.wants(SettingSource::User)) {
            commands.extend(commands_in(&place));
        }
        let of_project = COMMAND_DIRS.map(|place| dir.root.join(place)).into_iter();
        for place in of_project.filter(|_| options.wants(SettingSource::Project)) {
            let files = dir.trust.files().iter();
            for file in files.filter(|file| file.kind == ProjectFileKind::Command) {
                let Some(name) = name_of(&place, &file.path) else {
                    continue;
                };
                let Ok(text) = &file.text else { continue };
                let mut command = parse(text);
                if !dir.trust.trusts(file) {
                    command.allowed_tools.clear();
                }
                commands.insert(name, command);
            }
        }
        for plugin in plugins {
            for place in plugin.command_places() {
                for (name, command) in commands_in(&place) {
                    commands.insert(format!("{}:{name}", plugin.name), command);
                }
            }
        }
        for (name, command) in skill_commands(dir, plugins, options) {
            commands.entry(name).or_insert(command);
        }
        Self(commands)
    }

    pub fn find(&self, name: &str) -> Option<&ProjectCommand> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &ProjectCommand)> {
        self.0.iter().map(|(name, one)| (name.as_str(), one))
    }
}

/// Those of a directory of the user, or the one of a file.
fn commands_in(place: &Path) -> Vec<(String, ProjectCommand)> {
    let (root, paths) = match place.is_file() {
        true => (place.parent().unwrap_or(place), vec![place.to_path_buf()]),
        false => (place, nested_files(place, "md")),
    };
    let command = |path: PathBuf| {
        let text = read_text(&path, MAX_COMMAND_BYTES).ok()?;
        Some((name_of(root, &path)?, parse(&text)))
    };
    paths.into_iter().filter_map(command).collect()
}

/// Skills that the user may start as `/name`. What a skill of a project allows counts for nothing:
/// skills need no trust, so they grant nothing.
fn skill_commands(
    dir: &ProjectDir,
    plugins: &[Plugin],
    options: &ProjectOptions,
) -> Vec<(String, ProjectCommand)> {
    let (skills, _) = skills(dir, plugins, options);
    let for_user = |skill: &&Skill| skill.audience != SkillAudience::Model;
    let commands = skills.iter().filter(for_user).filter_map(|skill| {
        let allowed_tools = match skill.origin {
            "user" => skill.allowed_tools.clone(),
            _ => Vec::new(),
        };
        let command = ProjectCommand {
            description: skill.description.clone(),
            argument_hint: skill.argument_hint.clone(),
            model: skill.model.clone(),
            allowed_tools,
            body: skills.body(&skill.name).ok()?,
        };
        Some((skill.name.clone(), command))
    });
    commands.collect()
}

fn name_of(root: &Path, path: &Path) -> Option<String> {
    let relative: PathBuf = path.strip_prefix(root).ok()?.with_extension("");
    let parts: Vec<&str> = relative
        .components()
        .map(|part| part.as_os_str().to_str())
        .collect::<Option<_>>()?;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = parts.iter().all(|part| part.chars().all(is_word));
    is_name.then(|| parts.join(":"))
}

/// Fields that are not known are passed over: the files were written for other tools, too.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Fields {
    description: Option<String>,
    argument_hint: Option<OneOrMany>,
    model: Option<String>,
    allowed_tools: Option<OneOrMany>,
}

impl Fields {
    fn by_lines(head: &str) -> Self {
        let field = |name: &str| {
            head.lines().find_map(|line| {
                let value = line.strip_prefix(name)?.strip_prefix(':')?.trim();
                Some(value.trim_matches(['"', '\'']).to_owned())
            })
        };
        Self {
            description: field("description"),
            argument_hint: field("argument-hint").map(OneOrMany::One),
            model: field("model"),
            allowed_tools: field("allowed-tools").map(OneOrMany::One),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// A head that is not YAML is read line by line: `argument-hint: [a] [b]` is in many files.
fn parse(text: &str) -> ProjectCommand {
    let (fields, body) = match (frontmatter::parse::<Fields>(text), frontmatter::split(text)) {
        (Ok(parsed), _) => parsed,
        (Err(_), Ok(split)) => (Fields::by_lines(split.yaml), split.body),
        (Err(_), Err(_)) => (Fields::default(), text),
    };
    let first_line = || {
        let line = body.lines().map(str::trim).find(|line| !line.is_empty());
        let line = line.unwrap_or_default().trim_start_matches(['#', ' ']);
        line.to_owned()
    };
    let allowed_tools = match fields.allowed_tools {
        None => Vec::new(),
        Some(OneOrMany::One(text)) => vec![text],
        Some(OneOrMany::Many(texts)) => texts,
    };
    let argument_hint = match fields.argument_hint {
        None => String::new(),
        Some(OneOrMany::One(text)) => text,
        // `[file]` is a list for YAML.
        Some(OneOrMany::Many(texts)) => format!("[{}]", texts.join(", ")),
    };
    let filled = |field: Option<String>| field.filter(|text| !text.trim().is_empty());
    ProjectCommand {
        description: filled(fields.description).unwrap_or_else(first_line),
        argument_hint,
        model: filled(fields.model),
        allowed_tools,
        body: body.trim().to_owned(),
    }
}

/// What `allowed-tools` in the text of a command would grant, as it is written.
pub(crate) fn granted_by(text: &str) -> Option<String> {
    let tools = parse(text).allowed_tools;
    let tools = tools.join(", ");
    (!tools.trim().is_empty()).then_some(tools)
}

impl ProjectCommand {
    /// The rules of `allowed-tools`.
    pub fn rules(&self) -> Result<Vec<Rule>, RuleError> {
        let mut rules = Vec::new();
        for text in &self.allowed_tools {
            rules.extend(RuleSet::parse_list(text)?);
        }
        Ok(rules)
    }

    /// The prompt in parts. Commands in the arguments stay text: whoever typed those can type
    /// `!command`.
    pub fn parts(&self, arguments: &str) -> Vec<PromptPart> {
        let mut parts = Vec::new();
        let mut rest = self.body.as_str();
        while let Some((before, command, after)) = next_command(rest) {
            parts.push(PromptPart::Text(before.to_owned()));
            parts.push(PromptPart::Command(command.to_owned()));
            rest = after;
        }
        parts.push(PromptPart::Text(rest.to_owned()));
        let mut has_place = false;
        for part in &mut parts {
            let (PromptPart::Text(text) | PromptPart::Command(text)) = part;
            let filled = with_arguments(text, arguments);
            has_place |= filled.is_some();
            *text = filled.unwrap_or_else(|| std::mem::take(text));
        }
        if !has_place && !arguments.is_empty() {
            parts.push(PromptPart::Text(format!("\n\n{arguments}")));
        }
        parts
    }
}

/// The text before the next ``!`command` ``, the command, and the text after it.
fn next_command(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.find("!`")?;
    let rest = &text[at + 2..];
    let end = rest.find('`')?;
    let command = rest[..end].trim();
    (!command.is_empty()).then(|| (&text[..at], command, &rest[end + 1..]))
}

/// The text with its arguments; `None` if it has no place for any.
fn with_arguments(text: &str, arguments: &str) -> Option<String> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let mut filled = String::with_capacity(text.len() + arguments.len());
    let mut has_place = false;
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digit = after.chars().next().and_then(|c| c.to_digit(10));
        if let Some(after) = after.strip_prefix("ARGUMENTS") {
            filled.push_str(arguments);
            has_place = true;
            rest = after;
        } else if let Some(number) = digit.filter(|number| *number > 0) {
            filled.push_str(words.get(number as usize - 1).unwrap_or(&""));
            has_place = true;
            rest = &after[1..];
        } else {
            filled.push('$');
            rest = after;
        }
    }
    filled.push_str(rest);
    has_place.then_some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: &[PromptPart]) -> String {
        let texts = parts.iter().map(|part| match part {
            PromptPart::Text(text) => text.clone(),
            PromptPart::Command(command) => format!("<{command}>"),
        });
        texts.collect()
    }

    #[test]
    fn arguments_are_put_in_once() {
        let one = parse(
            "---\ndescription: \"Tidy up\"\nmodel: haiku\n---\nTidy $1 ($ARGUMENTS), cost $0\n",
        );
        assert_eq!(one.description, "Tidy up");
        assert_eq!(one.model.as_deref(), Some("haiku"));
        assert_eq!(text(&one.parts("a $2 c")), "Tidy a (a $2 c), cost $0");
        let two = parse("# Explain the build\n\nShortly.");
        assert_eq!(two.description, "Explain the build");
        assert_eq!(
            text(&two.parts("now")),
            "# Explain the build\n\nShortly.\n\nnow"
        );
    }

    #[test]
    fn commands_are_told_from_text_and_from_what_was_typed() {
        let one = parse("Status:\n!`git status --short $1`\nof `main`! $2");
        assert_eq!(
            text(&one.parts("src !`rm`")),
            "Status:\n<git status --short src>\nof `main`! !`rm`"
        );
        for broken in ["!`", "!``", "a ! `b`"] {
            assert_eq!(text(&parse(broken).parts("")), broken);
        }
    }

    #[test]
    fn what_a_command_takes_is_read_as_it_is_written() {
        let hint = |head: &str| parse(&format!("---\n{head}\n---\nGo")).argument_hint;
        assert_eq!(hint("argument-hint: NAME"), "NAME");
        assert_eq!(hint("argument-hint: [file]"), "[file]");
        assert_eq!(hint("argument-hint: [file] [more]"), "[file] [more]");
        assert_eq!(hint("model: haiku"), "");
    }

    #[test]
    fn allowed_tools_may_be_a_text_or_a_list() {
        let rules = |head: &str| {
            let command = parse(&format!("---\nallowed-tools: {head}\n---\nGo"));
            let rules = command.rules().unwrap();
            rules.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let wanted = ["Bash(git add:*)", "Read"];
        assert_eq!(rules("Bash(git add:*), Read"), wanted);
        assert_eq!(rules("[\"Bash(git add:*)\", Read]"), wanted);
        assert_eq!(rules(""), Vec::<String>::new());
        assert_eq!(
            rules("Bash(git add:*), Read\nargument-hint: [file] [more]"),
            wanted
        );
    }
}
