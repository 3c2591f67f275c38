//! Commands of the project and of the user: prompts in markdown files.
//!
//! `.codespar/commands/**/*.md` and `.claude/commands/**/*.md`, in the project and in the home
//! directory. A file `git/tidy.md` is `/git:tidy`. `$ARGUMENTS` and `$1` to `$9` are replaced. A
//! command is a prompt and grants nothing: its text is sent as if the user had typed it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use codespar_runtime::ProjectDir;

/// A file that is longer is no prompt.
const LARGEST: u64 = 64 * 1024;
/// Directories below a directory of commands.
const DEEPEST: usize = 4;

/// A command from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectCommand {
    pub(crate) description: String,
    /// The model that its frontmatter names.
    pub(crate) model: Option<String>,
    body: String,
}

/// All of them, by name. Those of the project win over those of the user.
#[derive(Debug, Default)]
pub(crate) struct ProjectCommands(BTreeMap<String, ProjectCommand>);

impl ProjectCommands {
    pub(crate) fn load(dir: &ProjectDir) -> Self {
        let mut commands = BTreeMap::new();
        let home = dir.home().map(|home| home.join(".claude/commands"));
        let places = [
            home,
            Some(dir.state().join("commands")),
            Some(dir.root.join(".claude/commands")),
            Some(dir.root.join(".codespar/commands")),
        ];
        for place in places.into_iter().flatten() {
            collect(&place, &place, 0, &mut commands);
        }
        Self(commands)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&ProjectCommand> {
        self.0.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &ProjectCommand)> {
        self.0.iter().map(|(name, one)| (name.as_str(), one))
    }
}

/// Links are not followed: a repository must not read files from elsewhere.
fn collect(
    root: &Path,
    directory: &Path,
    depth: usize,
    commands: &mut BTreeMap<String, ProjectCommand>,
) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        if found.is_dir() && depth < DEEPEST {
            collect(root, &path, depth + 1, commands);
        } else if found.is_file()
            && found.len() <= LARGEST
            && path.extension().is_some_and(|end| end == "md")
            && let Some(name) = name_of(root, &path)
            && let Ok(text) = fs::read_to_string(&path)
        {
            commands.insert(name, parse(&text));
        }
    }
}

fn name_of(root: &Path, path: &Path) -> Option<String> {
    let relative = path.strip_prefix(root).ok()?.with_extension("");
    let parts: Vec<&str> = relative
        .components()
        .map(|part| part.as_os_str().to_str())
        .collect::<Option<_>>()?;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = parts.iter().all(|part| part.chars().all(is_word));
    is_name.then(|| parts.join(":"))
}

/// Fields of the frontmatter that are not known are passed over.
fn parse(text: &str) -> ProjectCommand {
    let (front, body) = match text.strip_prefix("---\n").and_then(|rest| {
        let end = rest.find("\n---")?;
        let after = &rest[end + 4..];
        Some((&rest[..end], after.strip_prefix('\n').unwrap_or(after)))
    }) {
        Some((front, body)) => (front, body),
        None => ("", text),
    };
    let field = |name: &str| {
        front.lines().find_map(|line| {
            let value = line.strip_prefix(name)?.strip_prefix(':')?.trim();
            let value = value.trim_matches(['"', '\'']);
            (!value.is_empty()).then(|| value.to_owned())
        })
    };
    let first_line = || {
        let line = body.lines().map(str::trim).find(|line| !line.is_empty());
        let line = line.unwrap_or_default().trim_start_matches(['#', ' ']);
        line.to_owned()
    };
    ProjectCommand {
        description: field("description").unwrap_or_else(first_line),
        model: field("model"),
        body: body.trim().to_owned(),
    }
}

impl ProjectCommand {
    /// The prompt. Without a place for them, arguments are appended.
    pub(crate) fn prompt(&self, arguments: &str) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let mut prompt = String::with_capacity(self.body.len() + arguments.len());
        let mut has_place = false;
        let mut rest = self.body.as_str();
        while let Some(at) = rest.find('$') {
            prompt.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let digit = after.chars().next().and_then(|c| c.to_digit(10));
            if let Some(after) = after.strip_prefix("ARGUMENTS") {
                prompt.push_str(arguments);
                has_place = true;
                rest = after;
            } else if let Some(number) = digit.filter(|number| *number > 0) {
                prompt.push_str(words.get(number as usize - 1).unwrap_or(&""));
                has_place = true;
                rest = &after[1..];
            } else {
                prompt.push('$');
                rest = after;
            }
        }
        prompt.push_str(rest);
        if !has_place && !arguments.is_empty() {
            prompt.push_str("\n\n");
            prompt.push_str(arguments);
        }
        prompt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_put_in_once() {
        let one = parse(
            "---\ndescription: \"Tidy up\"\nmodel: haiku\n---\nTidy $1 ($ARGUMENTS), cost $0\n",
        );
        assert_eq!(one.description, "Tidy up");
        assert_eq!(one.model.as_deref(), Some("haiku"));
        assert_eq!(one.prompt("a $2 c"), "Tidy a (a $2 c), cost $0");
        let two = parse("# Explain the build\n\nShortly.");
        assert_eq!(two.description, "Explain the build");
        assert_eq!(two.prompt("now"), "# Explain the build\n\nShortly.\n\nnow");
    }

    #[test]
    fn files_below_directories_have_their_names_in_the_command() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("commands");
        fs::create_dir_all(root.join("git")).unwrap();
        fs::write(root.join("git/tidy.md"), "Tidy").unwrap();
        fs::write(root.join("bad name.md"), "No").unwrap();
        fs::write(dir.path().join("secret.md"), "secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret.md"), root.join("link.md")).unwrap();
        let mut commands = BTreeMap::new();
        collect(&root, &root, 0, &mut commands);
        let names: Vec<&str> = commands.keys().map(String::as_str).collect();
        assert_eq!(names, ["git:tidy"]);
    }
}
