//! The files of submodules in a throw-away copy, from what this machine has of them.
//!
//! Git keeps the repository of a submodule in the one it belongs to (`modules/NAME`), or in the
//! submodule itself. Its objects are read from there; nothing is fetched, and none of its
//! configuration counts. The files become plain files of the copy, without a `.git`.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{
    Checkout, Git, GitError, Location, Repository, Trust, checkout::skeleton, format::Format,
    zero_separated,
};

/// Submodules of submodules are followed so far.
const DEEPEST: usize = 5;
/// The mode of a submodule in an index.
const MODE: &str = "160000";

impl Checkout {
    /// Writes the files of every submodule that this machine has at the commit it is wanted at.
    /// Returns the paths of the others; what lies in those is unknown.
    pub fn add_submodules(&self, repository: &Repository) -> Result<Vec<String>, GitError> {
        let mut missing = Vec::new();
        let location = repository.location();
        let module = Module {
            git: self.git().clone(),
            files: self.tree().to_owned(),
            common: location.common_dir.clone(),
            checkout: location.work_tree.clone(),
            prefix: String::new(),
        };
        module.add(0, &mut missing)?;
        Ok(missing)
    }
}

/// A repository with its files written out, whose submodules are looked for.
struct Module {
    git: Git,
    /// Where its files are in the copy.
    files: PathBuf,
    /// Where its own repository is.
    common: PathBuf,
    /// Its files in the user's checkout.
    checkout: Option<PathBuf>,
    /// Before the paths of what is missing.
    prefix: String,
}

impl Module {
    fn add(&self, depth: usize, missing: &mut Vec<String>) -> Result<(), GitError> {
        let listed = self.git.run(["ls-files", "-z", "--stage"])?;
        let wanted: Vec<(String, String)> = zero_separated(&listed.out)
            .filter_map(|line| {
                let (about, path) = std::str::from_utf8(line).ok()?.split_once('\t')?;
                let mut about = about.split(' ');
                let is_module = about.next() == Some(MODE);
                let commit = about.next()?.to_owned();
                is_module.then(|| (path.to_owned(), commit))
            })
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let names = self.names();
        for (path, commit) in wanted {
            let name = names.iter().find(|(_, at)| *at == path);
            let name = name.map_or(path.as_str(), |(name, _)| name);
            let is_written = match self.repository(name, &path) {
                Some(found) => self.write(&found, &path, &commit, depth, missing)?,
                None => false,
            };
            if !is_written {
                missing.push(format!("{}{path}", self.prefix));
            }
        }
        Ok(())
    }

    /// What `.gitmodules` calls the submodule at each path.
    fn names(&self) -> Vec<(String, String)> {
        let args = ["config", "--blob", ":.gitmodules", "--list", "-z"];
        let output = self.git.run(args).map(|output| output.out);
        let output = output.unwrap_or_default();
        zero_separated(&output)
            .filter_map(|entry| {
                let (key, path) = std::str::from_utf8(entry).ok()?.split_once('\n')?;
                let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
                Some((name.to_owned(), path.to_owned()))
            })
            .collect()
    }

    /// Its repository, at one of the places where git keeps it. A name or a link that leads
    /// elsewhere finds nothing.
    fn repository(&self, name: &str, path: &str) -> Option<PathBuf> {
        let modules = self.common.join("modules");
        let kept = is_plain(name).then(|| modules.join(name));
        let own = self.checkout.as_ref().filter(|_| is_plain(path));
        let own = own.map(|root| root.join(path).join(".git"));
        let is_repository = |dir: &PathBuf| {
            let is_real = dir.canonicalize().is_ok_and(|real| real == *dir);
            is_real && dir.join("HEAD").is_file() && dir.join("objects").is_dir()
        };
        [kept, own].into_iter().flatten().find(is_repository)
    }

    /// Writes its files; says whether its commit is there.
    fn write(
        &self,
        common: &Path,
        path: &str,
        commit: &str,
        depth: usize,
        missing: &mut Vec<String>,
    ) -> Result<bool, GitError> {
        let location = Location {
            git_dir: common.to_owned(),
            common_dir: common.to_owned(),
            work_tree: None,
        };
        let repository = Repository::at(location, Trust::Untrusted);
        if repository.git()?.commit_id(commit)?.as_deref() != Some(commit) || depth == DEEPEST {
            return Ok(false);
        }
        repository.git()?.check_size(commit)?;
        let files = self.files.join(path);
        // Git has made it for the entry in the index.
        if !files.canonicalize().is_ok_and(|real| real == files) {
            return Ok(false);
        }
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
            checkout: self.checkout.as_ref().map(|root| root.join(path)),
            prefix: format!("{}{path}/", self.prefix),
        };
        inner.add(depth + 1, missing)?;
        // What is in it was only needed to write the files.
        let _ = fs::remove_dir_all(scratch.path());
        Ok(true)
    }
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
}
