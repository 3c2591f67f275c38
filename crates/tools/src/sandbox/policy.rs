//! What a sandboxed command may touch.

use std::path::{Path, PathBuf};

use super::{SandboxError, git_dirs};

/// Whether a command may reach the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// It may not.
    #[default]
    Denied,
    /// It may.
    Allowed,
    /// Only through the proxy that listens on this socket.
    Proxy(PathBuf),
}

/// What a command may touch. Everything is readable; what is not named here is not writable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Trees it may write to: absolute, without symlinks.
    pub writable: Vec<PathBuf>,
    /// Holes in those trees that stay as they are: git hooks and configuration, settings.
    pub read_only: Vec<PathBuf>,
    /// The network.
    pub network: Network,
    /// Where a version that had to be put back from a hole is laid aside.
    pub aside: PathBuf,
}

/// Settings that widen what an agent may do, so no command of its may write them.
const SETTINGS: [&str; 4] = [
    ".codespar/settings.json",
    ".codespar/settings.local.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
];

/// What git runs on its own accord, outside of any sandbox, the next time somebody calls it.
const GIT_HOLES: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

impl SandboxPolicy {
    /// Writes to the workspace directories and to `temp_dir`, except to settings and git hooks.
    /// The repository of a linked worktree becomes writable with it, or git could not commit.
    pub fn for_workspace<'a>(
        workspace: impl IntoIterator<Item = &'a Path>,
        temp_dir: &Path,
        network: Network,
    ) -> Result<Self, SandboxError> {
        let mut policy = Self {
            writable: Vec::new(),
            read_only: Vec::new(),
            network,
            aside: temp_dir.to_path_buf(),
        };
        for directory in workspace {
            let directory = resolve(directory)?;
            if directory.parent().is_none() {
                return Err(SandboxError::WholeDisk);
            }
            policy
                .read_only
                .extend(SETTINGS.iter().map(|name| directory.join(name)));
            if !directory.join(".git").exists() {
                // One that a command makes must not bring hooks or configuration of its own.
                let git_dir = directory.join(".git");
                policy
                    .read_only
                    .extend(GIT_HOLES.iter().map(|name| git_dir.join(name)));
            }
            for git_dir in git_dirs::of_workspace(&directory) {
                policy
                    .read_only
                    .extend(GIT_HOLES.iter().map(|name| git_dir.join(name)));
                policy.add_writable(git_dir);
            }
            policy.add_writable(directory);
        }
        policy.add_writable(resolve(temp_dir)?);
        Ok(policy)
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
    fn a_repository_gets_holes_for_hooks_configuration_and_settings() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        std::fs::create_dir(real.join(".git")).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let policy =
            SandboxPolicy::for_workspace([root.path()], temp.path(), Network::Denied).unwrap();
        assert_eq!(
            policy,
            SandboxPolicy {
                writable: vec![real.clone(), temp.path().canonicalize().unwrap()],
                read_only: [
                    ".codespar/settings.json",
                    ".codespar/settings.local.json",
                    ".claude/settings.json",
                    ".claude/settings.local.json",
                    ".git/hooks",
                    ".git/config",
                    ".git/config.worktree",
                    ".git/commondir",
                ]
                .map(|name| real.join(name))
                .to_vec(),
                network: Network::Denied,
                aside: temp.path().to_path_buf(),
            }
        );
    }

    #[test]
    fn the_whole_disk_is_no_workspace() {
        let temp = tempfile::tempdir().unwrap();
        assert!(matches!(
            SandboxPolicy::for_workspace([Path::new("/")], temp.path(), Network::Denied),
            Err(SandboxError::WholeDisk)
        ));
    }
}
