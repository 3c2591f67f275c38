//! Fetches the submodules of a clone of our own, each at the commit that is wanted of it.
//!
//! ```text
//! CLONE/submodules/COMMIT     a repository with the files of that commit
//! ```
//!
//! They are kept by commit: whatever address a commit came from, it is the same. A directory gets its
//! name when it is complete.
//!
//! What is fetched from where is said by repositories that may be hostile. So addresses are at the
//! server of the clone (`submodule_address.rs`), the login goes to repositories of the same owner
//! only (a repository must not reach what its submodule's owner keeps private with it), and depth,
//! number, size and time are bounded.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crate::{
    Fetch, FetchExtent, GitError, Repository, RepositoryKind, Trust,
    gitlinks::Gitlink,
    init,
    submodule_address::{Address, NoAddress},
};

/// Submodules of submodules are followed so far.
pub(crate) const DEEPEST: usize = 5;
/// Submodules of one commit, with those of submodules.
pub(crate) const MOST: usize = 64;
/// Where they are kept in a clone.
const DIR: &str = "submodules";
/// One that was used so recently stays: a run may read it.
const IN_USE: Duration = Duration::from_secs(24 * 3600);

/// Where a clone is from.
#[derive(Debug, Clone, Copy)]
pub struct SubmoduleSource<'a> {
    pub url: &'a str,
    /// The login. It is sent for submodules of the same owner, not for others.
    pub header: Option<&'a str>,
    /// For all of them.
    pub time: Duration,
    /// Bytes of what is sent for one of them.
    pub bytes: u64,
}

/// A submodule that could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSubmodule {
    pub path: String,
    pub reason: String,
}

/// Where a commit of a submodule is kept in a clone, if it was fetched.
pub(crate) fn kept(clone: &Path, commit: &str) -> PathBuf {
    clone.join(DIR).join(commit)
}

impl Repository {
    /// Brings the submodules of a commit into this repository, which has to be a clone of our own,
    /// and removes those that were not used for long. One process at a time. Returns those that
    /// could not be had.
    pub fn fetch_submodules(
        &self,
        commit: &str,
        source: &SubmoduleSource,
    ) -> Result<Vec<MissingSubmodule>, GitError> {
        let git = self.git()?;
        git.check_size(commit)?;
        let links = git.gitlinks(commit)?;
        let Some(address) = Address::of_repository(source.url).filter(|_| !links.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut fetching = Fetching {
            clone: self.location().common_dir.clone(),
            source,
            root: &address,
            deadline: Instant::now() + source.time,
            left: MOST,
            missing: Vec::new(),
        };
        let dir = fetching.clone.join(DIR);
        fs::create_dir_all(&dir).map_err(GitError::file(&dir))?;
        fetching.all(&links, &address, "", 0)?;
        prune(&dir);
        Ok(fetching.missing)
    }
}

struct Fetching<'a> {
    clone: PathBuf,
    source: &'a SubmoduleSource<'a>,
    /// Of the clone.
    root: &'a Address,
    deadline: Instant,
    left: usize,
    missing: Vec<MissingSubmodule>,
}

impl Fetching<'_> {
    fn all(
        &mut self,
        links: &[Gitlink],
        parent: &Address,
        prefix: &str,
        depth: usize,
    ) -> Result<(), GitError> {
        for link in links {
            let path = format!("{prefix}{}", link.path);
            if let Err(reason) = self.one(link, parent, &path, depth)? {
                self.missing.push(MissingSubmodule { path, reason });
            }
        }
        Ok(())
    }

    /// The inner error is why it is missing.
    fn one(
        &mut self,
        link: &Gitlink,
        parent: &Address,
        path: &str,
        depth: usize,
    ) -> Result<Result<(), String>, GitError> {
        if depth == DEEPEST {
            return Ok(Err(format!("it is more than {DEEPEST} submodules deep")));
        }
        if self.left == 0 {
            return Ok(Err(format!("there are more than {MOST} submodules")));
        }
        self.left -= 1;
        let url = link.url.as_deref().ok_or(NoAddress::Missing);
        let address = match url.and_then(|url| parent.of_submodule(url)) {
            Ok(address) => address,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let dir = kept(&self.clone, &link.commit);
        if !dir.is_dir()
            && let Err(reason) = self.fetch(&dir, &link.commit, &address)?
        {
            return Ok(Err(reason));
        }
        // Its age says what may go.
        let _ = fs::File::open(&dir).and_then(|file| file.set_modified(SystemTime::now()));
        let git = Repository::find(&dir, Trust::Untrusted)?.git()?;
        git.check_size(&link.commit)?;
        let inner = git.gitlinks(&link.commit)?;
        self.all(&inner, &address, &format!("{path}/"), depth + 1)?;
        Ok(Ok(()))
    }

    fn fetch(
        &self,
        dir: &Path,
        commit: &str,
        address: &Address,
    ) -> Result<Result<(), String>, GitError> {
        let time = self.deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            let seconds = self.source.time.as_secs();
            return Ok(Err(format!("fetching took longer than {seconds} s")));
        }
        let parent = dir.parent().unwrap_or(&self.clone);
        let making = tempfile::Builder::new()
            .prefix("making-")
            .tempdir_in(parent)
            .map_err(GitError::file(parent))?;
        let git = init(making.path(), RepositoryKind::Bare)?.git()?;
        let is_own = self.root.is_beside(address);
        let fetch = Fetch {
            url: &address.url(),
            refspec: &format!("+{commit}:refs/heads/wanted"),
            header: self.source.header.filter(|_| is_own),
            extent: FetchExtent::Files {
                time,
                bytes: self.source.bytes,
            },
        };
        let fetched = match git.fetch(&fetch) {
            Ok(output) => output.checked(),
            Err(error) => Err(error),
        };
        let reason = match fetched {
            Ok(_) if git.commit_id(commit)?.as_deref() == Some(commit) => None,
            Ok(_) => Some("the commit that is wanted of it is not there".to_owned()),
            Err(GitError::Failed { message, .. }) => {
                let last = message.lines().next_back().unwrap_or_default();
                Some(format!("it could not be fetched: {last}"))
            }
            Err(error @ GitError::TimedOut { .. }) => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        if let Some(reason) = reason {
            return Ok(Err(reason));
        }
        let made = making.keep();
        fs::rename(&made, dir).map_err(GitError::file(dir))?;
        Ok(Ok(()))
    }
}

/// Removes what was not used for long, and what was never finished.
fn prune(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries {
        let age = entry.metadata().and_then(|facts| facts.modified());
        let age = age.ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > IN_USE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
