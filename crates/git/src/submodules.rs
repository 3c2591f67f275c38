//! The files of submodules in a throw-away copy, from what this machine has of them.
//!
//! Git keeps the repository of a submodule in the one it belongs to (`modules/NAME`), or in the
//! submodule itself; a clone of our own has those that were fetched for it (`submodule_fetch.rs`).
//! Its objects are read from there, and none of its configuration counts. The files become plain
//! files of the copy, without a `.git`.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{
    Checkout, Git, GitError, Location, Repository, Trust,
    checkout::skeleton,
    format::Format,
    gitlinks::Gitlink,
    submodule_fetch::{DEEPEST, MOST, kept},
    zero_separated,
};

/// Bytes of the files of all submodules: a few objects can stand for any amount.
const MOST_BYTES: u64 = 8 << 30;

impl Checkout {
    /// Writes the files of every submodule that this machine has at the commit it is wanted at.
    /// Returns the paths of the others; what lies in those is unknown.
    pub fn add_submodules(&self, repository: &Repository) -> Result<Vec<String>, GitError> {
        self.add_at_most(MOST, repository)
    }

    fn add_at_most(&self, left: usize, repository: &Repository) -> Result<Vec<String>, GitError> {
        let location = repository.location();
        let module = Module {
            git: self.git().clone(),
            files: self.tree().to_owned(),
            common: location.common_dir.clone(),
            clone: &location.common_dir,
            checkout: location.work_tree.clone(),
            prefix: String::new(),
        };
        let mut writing = Writing {
            missing: Vec::new(),
            left,
            bytes_left: MOST_BYTES,
        };
        module.add(0, &mut writing)?;
        Ok(writing.missing)
    }
}

/// What is still possible, and what was not. A few repositories that name each other many times
/// stand for any number of submodules.
struct Writing {
    missing: Vec<String>,
    left: usize,
    bytes_left: u64,
}

/// A repository with its files written out, whose submodules are looked for.
struct Module<'a> {
    git: Git,
    /// Where its files are in the copy.
    files: PathBuf,
    /// Where its own repository is.
    common: PathBuf,
    /// Where the outermost repository is.
    clone: &'a Path,
    /// Its files in the user's checkout.
    checkout: Option<PathBuf>,
    /// Before the paths of what is missing.
    prefix: String,
}

impl Module<'_> {
    fn add(&self, depth: usize, writing: &mut Writing) -> Result<(), GitError> {
        for link in self.git.gitlinks("HEAD")? {
            let is_possible = depth < DEEPEST && writing.left > 0;
            let is_written = match self.repository(&link).filter(|_| is_possible) {
                Some(found) => self.write(&found, &link, depth, writing)?,
                None => false,
            };
            if !is_written {
                let path = format!("{}{}", self.prefix, link.path);
                writing.missing.push(path);
            }
        }
        Ok(())
    }

    /// Its repository, at one of the places where git or a fetch of ours keeps it. A name or a link
    /// that leads elsewhere finds nothing.
    fn repository(&self, link: &Gitlink) -> Option<PathBuf> {
        let Gitlink { name, path, .. } = link;
        let modules = self.common.join("modules");
        let by_git = is_plain(name).then(|| modules.join(name));
        let own = self.checkout.as_ref().filter(|_| is_plain(path));
        let own = own.map(|root| root.join(path).join(".git"));
        let fetched = kept(self.clone, &link.commit);
        let is_repository = |dir: &PathBuf| {
            let is_real = dir.canonicalize().is_ok_and(|real| real == *dir);
            is_real && dir.join("HEAD").is_file() && dir.join("objects").is_dir()
        };
        [by_git, own, Some(fetched)]
            .into_iter()
            .flatten()
            .find(is_repository)
    }

    /// Writes its files; says whether its commit is there and not too large.
    fn write(
        &self,
        common: &Path,
        link: &Gitlink,
        depth: usize,
        writing: &mut Writing,
    ) -> Result<bool, GitError> {
        let Gitlink { path, commit, .. } = link;
        let location = Location {
            git_dir: common.to_owned(),
            common_dir: common.to_owned(),
            work_tree: None,
        };
        let repository = Repository::at(location, Trust::Untrusted);
        if repository.git()?.commit_id(commit)?.as_deref() != Some(commit) {
            return Ok(false);
        }
        repository.git()?.check_size(commit)?;
        let files = self.files.join(path);
        // Git has made it for the entry in the index.
        if !files.canonicalize().is_ok_and(|real| real == files) {
            return Ok(false);
        }
        let bytes = size_of(&repository.git()?, commit)?;
        if bytes > writing.bytes_left {
            return Ok(false);
        }
        writing.bytes_left -= bytes;
        writing.left -= 1;
        let scratch = tempfile::Builder::new()
            .prefix("module-")
            .tempdir_in(&self.git.git_dir)
            .map_err(GitError::file(&self.git.git_dir))?;
        let own = scratch.path().to_owned();
        let config = Format::read(common)?.config() + &repository.settings()?.config();
        skeleton(&own, common, &config, commit).map_err(GitError::file(&own))?;
        let git = Git {
            index: own.join("index"),
            objects: own.join("objects"),
            git_dir: own,
            work_tree: Some(files.clone()),
            ..self.git.clone()
        };
        git.run(["read-tree", "--reset", "-u", commit])?;
        let inner = Module {
            git,
            files,
            common: common.to_owned(),
            clone: self.clone,
            checkout: self.checkout.as_ref().map(|root| root.join(path)),
            prefix: format!("{}{path}/", self.prefix),
        };
        inner.add(depth + 1, writing)?;
        // What is in it was only needed to write the files.
        let _ = fs::remove_dir_all(scratch.path());
        Ok(true)
    }
}

/// Bytes of the files of a commit.
fn size_of(git: &Git, commit: &str) -> Result<u64, GitError> {
    let listed = git.run(["ls-tree", "-r", "-z", "-l", "--full-tree", commit])?;
    let sizes = zero_separated(&listed.out).filter_map(|line| {
        let about = line.split(|byte| *byte == b'\t').next()?;
        let about = std::str::from_utf8(about).ok()?;
        about.rsplit(' ').next()?.parse::<u64>().ok()
    });
    Ok(sizes.fold(0, u64::saturating_add))
}

/// Whether it stays below what it is joined to.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(dir: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
            .args(["-c", "protocol.file.allow=always"])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn repository(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        fs::create_dir(&path).unwrap();
        git(&path, &["init", "--quiet", "-b", "main"]);
        fs::write(path.join(name), name).unwrap();
        git(&path, &["add", "."]);
        git(&path, &["commit", "--quiet", "-m", name]);
        path
    }

    fn add(outer: &Path, inner: &Path, name: &str, path: &str) {
        let inner = inner.to_str().unwrap();
        let args = ["submodule", "add", "--quiet", "--name", name, inner, path];
        git(outer, &args);
        git(outer, &["commit", "--quiet", "-m", "add"]);
    }

    #[test]
    fn submodules_are_written_from_what_is_there_and_the_others_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (deep, middle, gone) = (
            repository(&root, "deep"),
            repository(&root, "middle"),
            repository(&root, "gone"),
        );
        add(&middle, &deep, "deep", "lib/deep");
        let outer = repository(&root, "outer");
        add(&outer, &middle, "named", "libs/middle");
        add(&outer, &gone, "gone", "libs/gone");
        git(
            &outer,
            &["submodule", "update", "--init", "--recursive", "--quiet"],
        );
        fs::remove_dir_all(outer.join(".git/modules/gone")).unwrap();
        let head = git(&outer, &["rev-parse", "HEAD"]);
        let found = Repository::find(&outer, Trust::Untrusted).unwrap();
        let tree = root.join("tree");
        let checkout = Checkout::create(&found, &tree, &head).unwrap();
        assert_eq!(checkout.add_submodules(&found).unwrap(), ["libs/gone"]);
        let deepest = tree.join("libs/middle/lib/deep/deep");
        // The files are not seen as changes, and stay when the tree is put back.
        checkout.reset(&head).unwrap();
        assert_eq!(fs::read_to_string(&deepest).unwrap(), "deep");
        checkout.stage_all().unwrap();
        let args = ["diff-index", "--cached", "--raw", &head];
        assert_eq!(checkout.git().run(args).unwrap().text(), "");
        Checkout::remove(&tree);
        assert_eq!(
            git(&outer, &["status", "--porcelain", "--ignore-submodules"]),
            ""
        );
    }

    #[test]
    fn a_name_that_leads_elsewhere_finds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let secret = repository(&root, "secret");
        let commit = git(&secret, &["rev-parse", "HEAD"]);
        for name in ["../../../secret/.git", "link"] {
            let outer = root.join("outer");
            fs::create_dir(&outer).unwrap();
            git(&outer, &["init", "--quiet", "-b", "main"]);
            let entry = format!("160000,{commit},sub");
            git(&outer, &["update-index", "--add", "--cacheinfo", &entry]);
            let modules = format!("[submodule \"{name}\"]\n\tpath = sub\n\turl = x\n");
            fs::write(outer.join(".gitmodules"), modules).unwrap();
            git(&outer, &["add", ".gitmodules"]);
            git(&outer, &["commit", "--quiet", "-m", "sub"]);
            fs::create_dir_all(outer.join(".git/modules")).unwrap();
            let link = outer.join(".git/modules/link");
            std::os::unix::fs::symlink(secret.join(".git"), link).unwrap();
            let found = Repository::find(&outer, Trust::Untrusted).unwrap();
            let tree = root.join("tree");
            let checkout = Checkout::create(&found, &tree, "HEAD").unwrap();
            assert_eq!(checkout.add_submodules(&found).unwrap(), ["sub"], "{name}");
            assert!(!tree.join("sub/secret").exists(), "{name}");
            fs::remove_dir_all(&outer).unwrap();
        }
    }

    #[test]
    fn submodules_that_name_each_other_many_times_end_at_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let outer = repository(&root, "outer");
        let mut inner = repository(&root, "deepest");
        for level in 0..3 {
            // Each names the one before nine times.
            let commit = git(&inner, &["rev-parse", "HEAD"]);
            let kept = outer.join(".git/submodules").join(&commit);
            let (from, to) = (inner.to_str().unwrap(), kept.to_str().unwrap());
            git(&root, &["clone", "--quiet", "--bare", from, to]);
            inner = match level {
                2 => outer.clone(),
                _ => repository(&root, &format!("level{level}")),
            };
            for number in 0..9 {
                let entry = format!("160000,{commit},sub{number}");
                git(&inner, &["update-index", "--add", "--cacheinfo", &entry]);
            }
            git(&inner, &["commit", "--quiet", "-m", "subs"]);
        }
        let found = Repository::find(&outer, Trust::Untrusted).unwrap();
        let tree = root.join("tree");
        let checkout = Checkout::create(&found, &tree, "HEAD").unwrap();
        let missing = checkout.add_at_most(12, &found).unwrap();
        // 9 + 81 + 729 are asked for.
        assert!(missing.len() > 9, "{missing:?}");
        let mut written = 0;
        let mut open = vec![tree];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                written += usize::from(entry.file_name() == "deepest");
                let is_dir = entry.file_type().unwrap().is_dir();
                open.extend(is_dir.then(|| entry.path()));
            }
        }
        assert!((1..=12).contains(&written), "{written}");
    }
}
