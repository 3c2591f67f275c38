//! What a call wants to touch, and where it runs.

use std::path::PathBuf;

use url::Url;

/// One thing a call wants to touch. Paths are absolute, with `.`/`..` and symlinks already
/// resolved by the tool that asks (as far as the path exists).
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Nothing outside the conversation (a todo list).
    Nothing,
    /// Reads a file or searches below a directory.
    Read(PathBuf),
    /// Creates or changes a file.
    Write(PathBuf),
    /// Runs a shell command.
    Command(String),
    /// Fetches an address.
    Fetch(Url),
    /// Uses something by name: a skill, an agent type.
    Named(String),
}

/// A call to decide. `access` comes from the tool's own inspection of its input, made before the
/// call runs. An empty list is decided like [`Access::Nothing`], by the name of the tool.
#[derive(Debug, Clone)]
pub struct AccessRequest<'a> {
    /// The tool's name, as in rules: `Bash`, `Edit`, `mcp__server__tool`.
    pub tool: &'a str,
    /// The tool never changes anything.
    pub read_only: bool,
    /// Everything it wants to touch; all of it must be allowed.
    pub access: &'a [Access],
}

/// Whether shell commands run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxState {
    /// They do.
    Sandboxed,
    /// None works on this machine: every command is asked about, whatever the rules allow.
    Unavailable,
    /// A person switched it off in the settings: the rules alone decide.
    SwitchedOff,
}

/// Which repository git finds from the current directory. The agent determines it for the current
/// directory before a command is decided; git in a nested repository is asked about even where a
/// rule allows the command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RepositoryScope {
    #[default]
    Project,
    /// Another one, inside the project's tree: its configuration came with the files and can run
    /// commands.
    Nested,
}

/// How long a workspace is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// It is the user's own.
    #[default]
    Kept,
    /// It was made for this work and goes with it: everything that the sandbox confines is free.
    ThrowAway,
}

/// Where the agent works.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The project root: relative paths in rules of project settings start here.
    pub root: PathBuf,
    /// The current directory of shell commands.
    pub cwd: PathBuf,
    /// The user's home, for `~/` in rules and start-up files.
    pub home: Option<PathBuf>,
    /// Directories that count as the workspace (the root and every `--add-dir`).
    pub workspace: Vec<PathBuf>,
    /// Directories that may be read and written without asking (scratchpad, session temp).
    pub free: Vec<PathBuf>,
    /// Whether shell commands are sandboxed.
    pub sandbox_state: SandboxState,
    /// Whose repository git works on in `cwd`.
    pub repository: RepositoryScope,
    /// How long the workspace is there.
    pub lifetime: Lifetime,
}
