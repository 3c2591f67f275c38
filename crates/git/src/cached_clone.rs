//! A clone with files in a directory of our own, made once and brought up to date.
//!
//! It is made beside its place and moved there when it is whole. Nothing of the remote's is run:
//! there is no template, no hook and no filter, and only the protocol of the address is allowed.
//! Whoever calls this holds a lock for the directory.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Fetch, FetchExtent, Git, GitError, RemoteAddress, Repository, RepositoryKind, Trust, init,
    is_branch_name,
};

/// Where the branches of the remote are in the clone.
const BRANCHES: &str = "refs/remotes/origin/";

impl RemoteAddress {
    /// Makes the clone at `dir`, on the default branch of the remote. `header` is for requests to
    /// the address alone.
    pub fn clone_to(&self, dir: &Path, header: Option<&str>) -> Result<(), GitError> {
        let making = beside(dir);
        match fs::remove_dir_all(&making) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(GitError::file(making)(error));
            }
            _ => {}
        }
        let made = self.make(&making, header);
        if made.is_err() {
            let _ = fs::remove_dir_all(&making);
        }
        made?;
        fs::rename(&making, dir).map_err(GitError::file(dir))
    }

    fn make(&self, dir: &Path, header: Option<&str>) -> Result<(), GitError> {
        let repository = init(dir, RepositoryKind::WorkTree)?;
        let git_dir = &repository.location().git_dir;
        let config = git_dir.join("config");
        let remote = format!(
            "[remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:{BRANCHES}*\n",
            self.url()
        );
        let written =
            fs::read_to_string(&config).and_then(|text| fs::write(&config, text + &remote));
        written.map_err(GitError::file(&config))?;
        let git = repository.git()?;
        let (branch, commit) = self.fetch_into(&git, header)?;
        git.check_size(&commit)?;
        let head = git_dir.join("HEAD");
        fs::write(&head, format!("ref: refs/heads/{branch}\n")).map_err(GitError::file(head))?;
        git.run(["update-ref", &format!("refs/heads/{branch}"), &commit])?;
        let files = repository.git_with_files()?;
        files.run(["read-tree", "--reset", "-u", &commit])?;
        Ok(())
    }

    /// Fetches the branches into a clone of ours.
    pub fn update(&self, dir: &Path, header: Option<&str>) -> Result<(), GitError> {
        let repository = Repository::find(dir, Trust::Untrusted)?;
        self.fetch_into(&repository.git()?, header)?;
        repository.git()?.tidy()
    }

    /// Puts the files of a clone of ours to the default branch as it was last fetched. Files that
    /// somebody changed stay, and then the others do, too.
    pub fn advance(&self, dir: &Path) -> Result<(), GitError> {
        let repository = Repository::find(dir, Trust::Untrusted)?;
        let git = repository.git()?;
        let name = git
            .call(["symbolic-ref", "--quiet", "--short", "HEAD"])
            .run()?;
        let branch = name.text();
        let Some(commit) = git.commit_id(&format!("{BRANCHES}{branch}"))? else {
            return Ok(());
        };
        if git.commit_id("HEAD")?.as_ref() != Some(&commit) {
            repository.switch(&branch, &commit)?;
        }
        Ok(())
    }

    /// Gives the default branch and its commit.
    fn fetch_into(&self, git: &Git, header: Option<&str>) -> Result<(String, String), GitError> {
        let fetch = Fetch {
            url: self.url(),
            refspec: &format!("+refs/heads/*:{BRANCHES}*"),
            header,
            extent: FetchExtent::History,
        };
        git.fetch(&fetch)?.checked()?;
        let branch = git.default_branch_at(self.url(), header)?;
        let branch = branch.filter(|branch| is_branch_name(branch));
        let found = match branch {
            Some(branch) => {
                let commit = git.commit_id(&format!("{BRANCHES}{branch}"))?;
                commit.map(|commit| (branch, commit))
            }
            None => None,
        };
        found.ok_or_else(|| GitError::Failed {
            command: "fetch".to_owned(),
            message: "the repository has no commit yet".to_owned(),
        })
    }
}

fn beside(dir: &Path) -> PathBuf {
    let mut name = OsString::from(dir.file_name().unwrap_or_default());
    // No repository has such a name.
    name.push("+new");
    dir.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(dir: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn upstream(dir: &Path) -> (PathBuf, RemoteAddress) {
        let up = dir.join("up");
        git(dir, &["init", "--quiet", "-b", "trunk", "up"]);
        fs::write(up.join("a"), "one\n").unwrap();
        fs::write(up.join(".gitattributes"), "a filter=evil\n").unwrap();
        git(&up, &["add", "."]);
        git(&up, &["commit", "--quiet", "-m", "One"]);
        let address = RemoteAddress::parse(up.to_str().unwrap()).unwrap();
        (up, address)
    }

    #[test]
    fn a_clone_is_made_once_on_the_default_branch_and_brought_up_to_date() {
        let room = tempfile::tempdir().unwrap();
        let (up, address) = upstream(room.path());
        let dir = room.path().join("cache/api");
        fs::create_dir_all(dir.with_file_name("api+new/left")).unwrap();
        address.clone_to(&dir, None).unwrap();
        assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "one\n");
        assert_eq!(git(&dir, &["status", "--porcelain", "-b"]), "## trunk");
        let found = Repository::find(&dir, Trust::Untrusted).unwrap();
        let origin = found.remote_url("origin").unwrap().unwrap();
        assert_eq!(RemoteAddress::parse(&origin), Some(address.clone()));

        fs::write(up.join("a"), "two\n").unwrap();
        git(&up, &["commit", "--quiet", "-am", "Two"]);
        address.update(&dir, None).unwrap();
        assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "one\n");
        address.advance(&dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "two\n");
        // What somebody changed there stays.
        fs::write(dir.join("a"), "mine\n").unwrap();
        fs::write(up.join("a"), "three\n").unwrap();
        git(&up, &["commit", "--quiet", "-am", "Three"]);
        address.update(&dir, None).unwrap();
        address.advance(&dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "mine\n");
    }

    #[test]
    fn what_cannot_be_cloned_leaves_nothing() {
        let room = tempfile::tempdir().unwrap();
        let gone = room.path().join("gone.git");
        let address = RemoteAddress::parse(gone.to_str().unwrap()).unwrap();
        let dir = room.path().join("cache/api");
        address.clone_to(&dir, None).unwrap_err();
        git(room.path(), &["init", "--quiet", "--bare", "empty.git"]);
        let empty = room.path().join("empty.git");
        let address = RemoteAddress::parse(empty.to_str().unwrap()).unwrap();
        let error = address.clone_to(&dir, None).unwrap_err();
        assert!(error.to_string().contains("no commit yet"), "{error}");
        assert_eq!(fs::read_dir(room.path().join("cache")).unwrap().count(), 0);
    }

    #[test]
    fn nothing_of_the_remote_runs() {
        let room = tempfile::tempdir().unwrap();
        let (up, address) = upstream(room.path());
        let mark = room.path().join("ran");
        let evil = format!("touch {}; cat", mark.display());
        for key in [
            "filter.evil.smudge",
            "core.fsmonitor",
            "uploadpack.packObjectsHook",
        ] {
            git(&up, &["config", key, &evil]);
        }
        let dir = room.path().join("cache/api");
        address.clone_to(&dir, None).unwrap();
        address.update(&dir, None).unwrap();
        assert!(!mark.exists());
    }
}
