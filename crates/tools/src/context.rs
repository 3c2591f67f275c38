//! What tools share during one agent's run.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use codespar_policy::{Redactor, RuleKind, RuleSet, Scope};
use codespar_protocol::Todo;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    Checkpoints, FileLedger, OutputWatch, Skills, bash::CwdNote, sandbox::Sandbox,
    write::FileRecords,
};

/// Answers a question about a fetched page; the agent gives its model for it.
#[async_trait]
pub trait PageReader: Send + Sync {
    /// Answers `prompt` from `page` (markdown, possibly cut). The error goes to the model.
    async fn read(
        &self,
        page: &str,
        prompt: &str,
        cancel: CancellationToken,
    ) -> Result<String, String>;
}

/// Which files a search leaves out and a command cannot read: those that a rule forbids to read.
#[derive(Clone, Default)]
pub struct Hidden {
    covers: Option<Arc<Covers>>,
    named: Vec<PathBuf>,
    found: Arc<Mutex<Option<Found>>>,
}

type Covers = dyn Fn(&Path) -> bool + Send + Sync;

/// What was found, and when.
type Found = (Instant, Vec<PathBuf>);

/// How long it is remembered which files of the workspace are hidden.
const FOUND_KNOWN: Duration = Duration::from_secs(10);

/// More entries of a workspace are not looked at.
const MOST_ENTRIES: usize = 50_000;

/// The same for directories of dependencies, which are larger.
const MOST_LAYER_ENTRIES: usize = 500_000;

impl Hidden {
    /// What `covers` says is hidden.
    pub fn by(covers: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self {
            covers: Some(Arc::new(covers)),
            ..Self::default()
        }
    }

    /// What the rules forbid to read.
    pub fn by_rules(rules: &RuleSet, scope: &Scope) -> Self {
        if rules.list(RuleKind::Deny).next().is_none() {
            return Self::default();
        }
        let named = rules
            .list(RuleKind::Deny)
            .filter_map(|(rule, _)| named_outside(&rule.to_string(), scope.home.as_deref()))
            .collect();
        let (rules, scope) = (rules.clone(), scope.clone());
        Self::by(move |path| rules.read_denied(path, &scope).is_some()).with_named(named)
    }

    /// Paths outside of the workspace that are hidden too.
    #[must_use]
    pub fn with_named(mut self, named: Vec<PathBuf>) -> Self {
        self.named = named;
        self
    }

    /// Whether this path is hidden.
    pub fn covers(&self, path: &Path) -> bool {
        self.covers.as_ref().is_some_and(|covers| covers(path))
    }

    /// What is hidden and exists: in the workspace, and by name elsewhere.
    ///
    /// The sandbox needs paths to mount over, not patterns, so the workspace is walked. The answer
    /// is kept for a few seconds, because commands come in quick succession; a file that is created
    /// and hidden meanwhile is seen when it runs out. A hidden directory is not entered.
    pub(crate) fn found_in<'a>(&self, trees: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
        if self.covers.is_none() {
            return Vec::new();
        }
        let mut known = self.found.lock();
        if let Some((when, found)) = &*known
            && when.elapsed() < FOUND_KNOWN
            // What was moved is somewhere else now.
            && found.iter().all(|path| path.symlink_metadata().is_ok())
        {
            return found.clone();
        }
        let named = self
            .named
            .iter()
            .filter_map(|path| path.canonicalize().ok());
        let mut found: Vec<PathBuf> = named.collect();
        let mut left = MOST_ENTRIES;
        let mut open: Vec<PathBuf> = trees.filter_map(|tree| tree.canonicalize().ok()).collect();
        while let Some(directory) = open.pop() {
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            for entry in entries.flatten() {
                left = left.saturating_sub(1);
                let path = entry.path();
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if self.covers(&path) {
                    found.push(path);
                } else if is_dir && left > 0 && entry.file_name() != ".git" {
                    open.push(path);
                }
            }
        }
        *known = Some((Instant::now(), found.clone()));
        found
    }
}

impl Hidden {
    /// What is hidden in a directory that commands see at another path, by that path. `None` where
    /// there are too many entries to look at them all.
    pub(crate) fn in_layer(&self, source: &Path, at: &Path) -> Option<Vec<PathBuf>> {
        let mut found = Vec::new();
        if self.covers.is_none() {
            return Some(found);
        }
        let mut left = MOST_LAYER_ENTRIES;
        let mut open = vec![(source.to_path_buf(), at.to_path_buf())];
        while let Some((directory, at)) = open.pop() {
            for entry in std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten()
            {
                left = left.checked_sub(1)?;
                let seen = at.join(entry.file_name());
                let kind = entry.file_type().ok();
                if self.covers(&seen) {
                    // A link leads to something that has its own place.
                    if kind.is_some_and(|kind| !kind.is_symlink()) {
                        found.push(seen);
                    }
                } else if kind.is_some_and(|kind| kind.is_dir()) {
                    open.push((entry.path(), seen));
                }
            }
        }
        Some(found)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hidden")
            .field("named", &self.named)
            .finish_non_exhaustive()
    }
}

/// The path that a rule about one file or a whole directory outside of the project names. `//etc/x`
/// is absolute, `~/x` is below the home directory, as in rules. Patterns with wildcards are `None`:
/// outside of the workspace nothing is walked to find what they match.
fn named_outside(rule: &str, home: Option<&Path>) -> Option<PathBuf> {
    let pattern = rule.strip_prefix("Read(")?.strip_suffix(')')?;
    let pattern = pattern.strip_suffix("/**").unwrap_or(pattern);
    if pattern.contains(['*', '?', '[', '{']) {
        return None;
    }
    match pattern.strip_prefix("//") {
        Some(rest) => Some(Path::new("/").join(rest)),
        None => Some(home?.join(pattern.strip_prefix("~/")?)),
    }
}

/// What a `Context` is made from.
pub struct ContextParts {
    /// The project root: an absolute path without symlinks.
    pub root: PathBuf,
    /// Where work starts; inside the root.
    pub cwd: PathBuf,
    /// Other directories that count as the workspace.
    pub extra_dirs: Vec<PathBuf>,
    /// Private to this session, writable from the sandbox, `TMPDIR` of its commands.
    pub temp_dir: PathBuf,
    /// Where outputs too long for the conversation go.
    pub output_dir: PathBuf,
    /// The environment of child processes, secrets already taken out.
    pub child_env: Vec<(OsString, OsString)>,
    /// How commands are run.
    pub sandbox: Arc<Sandbox>,
    pub skills: Arc<Skills>,
    /// For WebFetch; without one the page itself is the answer.
    pub page_reader: Option<Arc<dyn PageReader>>,
    /// What LS, Glob and Grep do not show.
    pub hidden: Hidden,
    /// Takes secrets out of what is written to files.
    pub redactor: Arc<Redactor>,
}

/// What tools share during one agent's run. One per agent: a subagent has its own, with its own
/// ledger. The parts never change; what does is behind a lock that is held for a moment only, never
/// across an `await`.
pub struct Context {
    parts: ContextParts,
    cwd: Mutex<PathBuf>,
    cwd_note: Mutex<Option<CwdNote>>,
    todos: Mutex<Vec<Todo>>,
    ledger: FileLedger,
    checkpoints: Option<Arc<Checkpoints>>,
    output_watch: Mutex<Option<OutputWatch>>,
}

impl Context {
    pub fn new(parts: ContextParts) -> Self {
        let cwd = Mutex::new(parts.cwd.clone());
        Self {
            parts,
            cwd,
            cwd_note: Mutex::default(),
            todos: Mutex::default(),
            ledger: FileLedger::default(),
            checkpoints: None,
            output_watch: Mutex::default(),
        }
    }

    /// What files are before its tools change them is kept here.
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = Some(Arc::new(checkpoints));
        self
    }

    /// The project root.
    pub fn root(&self) -> &Path {
        &self.parts.root
    }

    /// The root and every other directory of the workspace.
    pub fn workspace(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.root()).chain(self.parts.extra_dirs.iter().map(PathBuf::as_path))
    }

    /// Where shell commands stand now.
    pub fn cwd(&self) -> PathBuf {
        self.cwd.lock().clone()
    }

    /// Shell commands go on from here.
    pub fn set_cwd(&self, cwd: PathBuf) {
        *self.cwd.lock() = cwd;
    }

    /// The file of the last shell command for where it ended, while no other command uses it.
    pub(crate) fn cwd_note(&self) -> &Mutex<Option<CwdNote>> {
        &self.cwd_note
    }

    /// Private temporary directory.
    pub fn temp_dir(&self) -> &Path {
        &self.parts.temp_dir
    }

    /// Where long outputs go.
    pub fn output_dir(&self) -> &Path {
        &self.parts.output_dir
    }

    /// The environment of child processes.
    pub fn child_env(&self) -> &[(OsString, OsString)] {
        &self.parts.child_env
    }

    /// How commands are run.
    pub fn sandbox(&self) -> &Sandbox {
        &self.parts.sandbox
    }

    /// The same, to be held on to.
    pub fn shared_sandbox(&self) -> &Arc<Sandbox> {
        &self.parts.sandbox
    }

    /// Takes secrets out of what is written to files.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.parts.redactor
    }

    pub fn skills(&self) -> &Skills {
        &self.parts.skills
    }

    /// Who answers questions about pages.
    pub fn page_reader(&self) -> Option<&Arc<dyn PageReader>> {
        self.parts.page_reader.as_ref()
    }

    /// What searches leave out.
    pub(crate) fn hidden(&self) -> &Hidden {
        &self.parts.hidden
    }

    /// The list of steps.
    pub fn todos(&self) -> Vec<Todo> {
        self.todos.lock().clone()
    }

    /// Replaces the list of steps.
    pub fn set_todos(&self, todos: Vec<Todo>) {
        *self.todos.lock() = todos;
    }

    /// Who sees the output of commands, and the progress of other calls, while they run.
    pub fn output_watch(&self) -> Option<OutputWatch> {
        self.output_watch.lock().clone()
    }

    /// From the next command on. Without a watch, output is seen at the end of a command alone.
    pub fn watch_output(&self, watch: OutputWatch) {
        *self.output_watch.lock() = Some(watch);
    }

    /// Which files were read, and as what.
    pub fn ledger(&self) -> &FileLedger {
        &self.ledger
    }

    /// `None` where files need not be restored: in trees that are thrown away.
    pub fn checkpoints(&self) -> Option<&Checkpoints> {
        self.checkpoints.as_deref()
    }

    pub(crate) fn file_records(&self) -> FileRecords {
        FileRecords {
            ledger: self.ledger.clone(),
            checkpoints: self.checkpoints.clone(),
        }
    }
}
