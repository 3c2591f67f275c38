//! Work trees that share a repository. They are listed, made and removed here, not by `git
//! worktree`: that would check files out with the repository's configuration.
//!
//! A linked work tree is a directory in the repository and a file in the tree that point at each
//! other:
//!
//! ```text
//! REPOSITORY/.git/worktrees/NAME/gitdir      path of TREE/.git
//! REPOSITORY/.git/worktrees/NAME/commondir   ../..
//! REPOSITORY/.git/worktrees/NAME/HEAD        branch or commit
//! TREE/.git                                  gitdir: REPOSITORY/.git/worktrees/NAME
//! ```
//!
//! Programs that run in the tree can write `TREE/.git`, so it is never followed from here; it is
//! only compared with the repository's record. The format is git's own.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{GitError, Location, Repository, format::Format, location::path_of, small};

/// A work tree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkTreeEntry {
    /// Where its parts are.
    pub location: Location,
    /// Its files.
    pub path: PathBuf,
    /// The branch that is checked out. `None` when `HEAD` is detached.
    pub branch: Option<String>,
}

impl Repository {
    /// Those that are there, the main one first. Records whose tree is gone or points elsewhere are
    /// left out, as is the main one of a bare repository.
    pub fn work_trees(&self) -> Result<Vec<WorkTreeEntry>, GitError> {
        let common = &self.location().common_dir;
        let mut found = Vec::new();
        let own = &self.location().work_tree;
        let main = match own {
            Some(path) if self.location().git_dir == *common => Some(path.clone()),
            _ if common.ends_with(".git") => common.parent().map(Path::to_owned),
            _ => None,
        };
        if let Some(path) = main
            && !Format::read(common)?.is_bare
        {
            found.push(entry(common, common, path)?);
        }
        for git_dir in self.linked_dirs()? {
            // What another's link file names is not touched unless it says the same.
            if let Some(path) = tree_of(&git_dir)
                && points_back(&path, &git_dir)
            {
                found.push(entry(&git_dir, common, path)?);
            }
        }
        Ok(found)
    }

    /// The linked work tree at a path, by the repository's own record: the `.git` file in the work
    /// tree may have been rewritten. Unlike [`Repository::work_trees`] this needs no link back, so
    /// that a tree which was tampered with can still be read and removed.
    pub fn work_tree_at(&self, path: &Path) -> Result<Option<Repository>, GitError> {
        let wanted = real(path);
        for git_dir in self.linked_dirs()? {
            let Some(found) = tree_of(&git_dir) else {
                continue;
            };
            if real(&found) == wanted {
                let location = Location {
                    git_dir,
                    common_dir: self.location().common_dir.clone(),
                    work_tree: Some(wanted),
                };
                return Ok(Some(Repository::at(location, self.trust())));
            }
        }
        Ok(None)
    }

    /// Makes a work tree with the files of a commit, on a branch that is there already, or on none.
    /// `path` must not be there, or be empty. A failure while files are written leaves the record
    /// and the files so far; [`Repository::remove_work_tree`] removes both. That the branch points
    /// at the commit is for the caller to see to.
    pub fn add_work_tree(
        &self,
        path: &Path,
        commit: &str,
        branch: Option<&str>,
    ) -> Result<Repository, GitError> {
        let path = std::path::absolute(path).map_err(GitError::file(path))?;
        fs::create_dir_all(&path).map_err(GitError::file(&path))?;
        let path = path.canonicalize().map_err(GitError::file(&path))?;
        let is_empty = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if !is_empty {
            let error = io::Error::new(io::ErrorKind::AlreadyExists, "is not an empty directory");
            return Err(GitError::file(path)(error));
        }
        let commit = &self.git()?.known_commit(commit)?;
        self.git()?.check_size(commit)?;
        let head = match branch {
            Some(branch) => format!("ref: refs/heads/{branch}\n"),
            None => format!("{commit}\n"),
        };
        let git_dir = self.new_linked_dir(&path)?;
        let write = |name: &str, content: &[u8]| {
            let file = git_dir.join(name);
            fs::write(&file, content).map_err(GitError::file(file))
        };
        let link = path.join(".git");
        write("gitdir", &line(&link))?;
        write("commondir", b"../..\n")?;
        write("HEAD", head.as_bytes())?;
        let location = Location {
            git_dir: git_dir.clone(),
            common_dir: self.location().common_dir.clone(),
            work_tree: Some(path),
        };
        let tree = Repository::at(location, self.trust());
        let files = tree.git_with_files()?;
        files.run(["read-tree", "--reset", "-u", commit])?;
        // Last, so that one that is half made does not look whole.
        let pointer = [b"gitdir: ", &line(&git_dir)[..]].concat();
        fs::write(&link, pointer).map_err(GitError::file(link))?;
        Ok(tree)
    }

    /// Removes a linked work tree, whatever is in it, and the repository's record of it. Whether
    /// there was one. The files go first: while the record exists, a second call can finish the
    /// job. The branch stays.
    pub fn remove_work_tree(&self, path: &Path) -> Result<bool, GitError> {
        let Some(tree) = self.work_tree_at(path)? else {
            return Ok(false);
        };
        let git_dir = &tree.location().git_dir;
        for dir in [tree.location().work_tree.as_ref(), Some(git_dir)] {
            let Some(dir) = dir else { continue };
            match fs::remove_dir_all(dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(GitError::file(dir)(error));
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// The repository's records of linked work trees, in the order of their names.
    fn linked_dirs(&self) -> Result<Vec<PathBuf>, GitError> {
        let dir = self.location().common_dir.join("worktrees");
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(GitError::file(dir)(error)),
        };
        let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        dirs.sort();
        Ok(dirs)
    }

    /// A directory of its own, named after the path. A number is appended when the name is taken.
    /// Making the directory is what claims the name, so two processes cannot get the same one.
    fn new_linked_dir(&self, path: &Path) -> Result<PathBuf, GitError> {
        let all = self.location().common_dir.join("worktrees");
        fs::create_dir_all(&all).map_err(GitError::file(&all))?;
        let allowed = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().map(allowed).collect();
        for number in 0_u32.. {
            let dir = match number {
                0 => all.join(&name),
                number => all.join(format!("{name}{number}")),
            };
            match fs::create_dir(&dir) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(GitError::file(dir)(error)),
                Ok(()) => return Ok(dir),
            }
        }
        Err(GitError::file(all)(io::ErrorKind::AlreadyExists.into()))
    }
}

/// Only a branch of `refs/heads/` is one; `HEAD` that names another reference counts as detached.
fn entry(git_dir: &Path, common: &Path, path: PathBuf) -> Result<WorkTreeEntry, GitError> {
    let head = git_dir.join("HEAD");
    let content = small::read_line(&head).map_err(GitError::file(&head))?;
    let content = String::from_utf8_lossy(&content).into_owned();
    let branch = content.strip_prefix("ref:").map(str::trim);
    let branch = branch.and_then(|name| name.strip_prefix("refs/heads/"));
    Ok(WorkTreeEntry {
        location: Location {
            git_dir: git_dir.to_owned(),
            common_dir: common.to_owned(),
            work_tree: Some(path.clone()),
        },
        path,
        branch: branch.map(str::to_owned),
    })
}

/// The directory of the work tree that a record is of.
fn tree_of(git_dir: &Path) -> Option<PathBuf> {
    let line = small::read_line(&git_dir.join("gitdir")).ok()?;
    let link = git_dir.join(path_of(&line));
    Some(link.parent()?.to_owned())
}

/// Whether the `.git` file of the tree names the record that names the tree.
fn points_back(path: &Path, git_dir: &Path) -> bool {
    let line = small::read_line(&path.join(".git")).unwrap_or_default();
    let target = line.strip_prefix(b"gitdir: ");
    target.is_some_and(|target| real(&path.join(path_of(target))) == real(git_dir))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn line(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_bytes(), b"\n"].concat()
}
