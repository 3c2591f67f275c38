//! What a sandboxed command may touch.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Layers, ResourceLimits, SandboxError, protected};

/// Whether a command may reach the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// It may not.
    #[default]
    Denied,
    /// It may.
    Allowed,
    /// Only through the proxy that listens on this socket.
    Proxy(PathBuf),
}

/// What a command may touch. The system is readable; what is not named as writable is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Trees it may write to: absolute, without symlinks.
    pub writable: Vec<PathBuf>,
    /// Those of them that are the user's work, not scratch space.
    pub workspace: Vec<PathBuf>,
    /// Paths in those trees that stay as they are: git hooks and configuration, settings.
    pub protected: Vec<Protected>,
    /// Directories it cannot see, except for what is writable or visible in them.
    pub hidden: Vec<PathBuf>,
    /// What it can read in hidden directories.
    pub visible: Vec<PathBuf>,
    /// What it cannot see wherever it lies.
    pub secret: Vec<PathBuf>,
    pub network: Network,
    pub limits: ResourceLimits,
    /// The directory for temporary files, which the limit on scratch space holds for.
    pub scratch: Option<PathBuf>,
    /// Where changed versions of protected paths go.
    pub quarantine: PathBuf,
    /// Where placeholders are on record, if they may be made.
    pub registry: Option<PathBuf>,
    /// What is seen in the workspace besides its own files, where there are mounts.
    #[serde(default)]
    pub layers: Layers,
}

/// A path that no command may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Protected {
    /// Absolute, inside a writable tree.
    pub path: PathBuf,
    /// What happens where it does not exist.
    pub absent: Absent,
}

/// What is done about a protected path that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Absent {
    /// Something that cannot be read takes its place while a command runs.
    File,
    /// An empty directory takes its place while a command runs.
    Directory,
    /// A file with this text takes its place while a command runs: programs that find it do the
    /// same as if it were not there.
    Text(Neutral),
    /// It is looked for after the command.
    Checked,
}

/// Content that changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Neutral {
    /// Configuration without a line.
    Empty,
    /// `.git/commondir` that names its own directory.
    SameDirectory,
}

impl Neutral {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Empty => "",
            Self::SameDirectory => ".\n",
        }
    }
}

/// What a command sees of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum View {
    Hidden,
    Readable,
    Writable,
    /// Hidden, whatever else is said about the same path.
    Secret,
}

impl SandboxPolicy {
    /// Writes to the workspace directories and to `temp_dir`, except to what is protected in them.
    /// The repository of a linked worktree becomes writable with it, or git could not commit. Of a
    /// directory that holds the home directory, only what is not a hidden file of the home.
    pub fn for_workspace<'a>(
        workspace: impl IntoIterator<Item = &'a Path>,
        temp_dir: &Path,
        home: Option<&Path>,
    ) -> Result<Self, SandboxError> {
        let mut policy = Self {
            quarantine: temp_dir.to_path_buf(),
            ..Self::default()
        };
        for directory in workspace {
            let directory = resolve(directory)?;
            if directory.parent().is_none() {
                return Err(SandboxError::WholeDisk);
            }
            let home = home.and_then(|home| home.canonicalize().ok());
            if let Some(home) = home.as_deref().filter(|home| home.starts_with(&directory)) {
                policy
                    .writable
                    .extend(protected::without_dot_files(&directory, home));
                policy.visible.push(directory.clone());
                // Repositories in it are protected and searched like those of any workspace.
                policy.workspace.push(directory);
                continue;
            }
            let found = protected::in_directory(&directory, home.as_deref());
            policy.protected.extend(found.protected);
            for git_dir in found.git_dirs {
                policy.add_writable(git_dir);
            }
            policy.workspace.push(directory.clone());
            policy.add_writable(directory);
        }
        policy.protected.sort();
        policy.protected.dedup_by(|a, b| a.path == b.path);
        let temp_dir = resolve(temp_dir)?;
        let holds_work = |work: &PathBuf| work.starts_with(&temp_dir);
        if !policy.workspace.iter().any(holds_work) {
            policy.scratch = Some(temp_dir.clone());
        }
        policy.add_writable(temp_dir);
        Ok(policy)
    }

    /// Protects other repositories in the workspace like its own.
    pub(super) fn protect_nested(&mut self, repositories: &[PathBuf], home: Option<&Path>) {
        self.protected
            .extend(protected::of_nested(repositories, home));
        self.protected.sort();
        self.protected.dedup_by(|a, b| a.path == b.path);
    }

    /// Adds a tree that exists and is not inside one already there.
    pub(super) fn add_writable(&mut self, path: PathBuf) {
        if self.writable.iter().any(|tree| path.starts_with(tree)) {
            return;
        }
        self.writable.retain(|tree| !tree.starts_with(&path));
        self.writable.push(path);
    }

    /// Whether a path lies in a writable tree.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.writable.iter().any(|tree| path.starts_with(tree))
    }

    /// Every path at which the view changes, parents before what is in them. `also_hidden` are
    /// directories that the means at hand replaces by empty ones.
    pub(super) fn views(&self, also_hidden: &[PathBuf]) -> BTreeMap<PathBuf, View> {
        let mut views: BTreeMap<PathBuf, View> = BTreeMap::new();
        let mut add = |paths: &[PathBuf], view: View| {
            for path in paths {
                let known = views.entry(path.clone()).or_insert(view);
                *known = view.max(*known);
            }
        };
        add(also_hidden, View::Hidden);
        add(&self.hidden, View::Hidden);
        add(&self.visible, View::Readable);
        add(&self.writable, View::Writable);
        add(&self.secret, View::Secret);
        let known = views.clone();
        views.retain(|path, view| {
            let around = path
                .ancestors()
                .skip(1)
                .find_map(|ancestor| known.get(ancestor))
                .copied()
                .unwrap_or(View::Readable);
            match view {
                View::Hidden | View::Secret => !matches!(around, View::Hidden | View::Secret),
                // Reading is no wider than writing.
                View::Readable => matches!(around, View::Hidden | View::Secret),
                View::Writable => around != View::Writable,
            }
        });
        views
    }
}

fn resolve(path: &Path) -> Result<PathBuf, SandboxError> {
    path.canonicalize()
        .map_err(|error| SandboxError::Unresolvable {
            path: path.to_path_buf(),
            error,
        })
}

/// A tree beside the workspace that settings make writable. The whole disk and anything that
/// contains the home directory are refused: they would undo the sandbox by a slip.
pub(super) fn extra_writable(path: &Path, home: Option<&Path>) -> Result<PathBuf, SandboxError> {
    let resolved = resolve(path)?;
    if resolved.parent().is_none() {
        return Err(SandboxError::WholeDisk);
    }
    let home = home.and_then(|home| home.canonicalize().ok());
    if home.is_some_and(|home| home.starts_with(&resolved)) {
        return Err(SandboxError::WholeHome {
            path: path.to_path_buf(),
        });
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_and_the_home_are_never_writable_by_settings() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("cache");
        std::fs::create_dir(&inside).unwrap();
        let real = home.path().canonicalize().unwrap();
        assert!(matches!(
            extra_writable(Path::new("/"), Some(home.path())),
            Err(SandboxError::WholeDisk)
        ));
        assert!(matches!(
            extra_writable(home.path(), Some(home.path())),
            Err(SandboxError::WholeHome { .. })
        ));
        assert!(matches!(
            extra_writable(real.parent().unwrap(), Some(home.path())),
            Err(SandboxError::WholeHome { .. })
        ));
        assert_eq!(
            extra_writable(&inside, Some(home.path())).unwrap(),
            real.join("cache")
        );
    }

    #[test]
    fn the_nearest_view_counts_and_secrets_win() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let policy = SandboxPolicy {
            writable: paths(&["/home/ann/project", "/home/ann/.codespar/tmp/1"]),
            hidden: paths(&["/home", "/home/ann"]),
            visible: paths(&["/home/ann/.cargo", "/home/ann/project/sub", "/usr"]),
            secret: paths(&[
                "/home/ann/.cargo/credentials.toml",
                "/home/ann/.ssh",
                "/home/ann/.codespar",
                "/home/ann/project/.env",
            ]),
            ..SandboxPolicy::default()
        };
        let views: Vec<(PathBuf, View)> = policy.views(&[]).into_iter().collect();
        let expected = [
            ("/home", View::Hidden),
            ("/home/ann/.cargo", View::Readable),
            ("/home/ann/.cargo/credentials.toml", View::Secret),
            ("/home/ann/.codespar/tmp/1", View::Writable),
            ("/home/ann/project", View::Writable),
            ("/home/ann/project/.env", View::Secret),
        ];
        assert_eq!(views, expected.map(|(path, view)| (path.into(), view)));
    }

    #[test]
    fn the_whole_disk_is_no_workspace() {
        let temp = tempfile::tempdir().unwrap();
        assert!(matches!(
            SandboxPolicy::for_workspace([Path::new("/")], temp.path(), None),
            Err(SandboxError::WholeDisk)
        ));
    }
}
