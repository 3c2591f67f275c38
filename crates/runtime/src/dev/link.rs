//! Reaches repositories: local ones as they are, those on GitHub with a clone in the state
//! directory.
//!
//! A forge is where pull requests are; a clone is where files are read. A local repository is both.
//! One on GitHub is read from a bare clone that is brought up to date each time it is linked, and
//! shared by all runs:
//!
//! ```text
//! <state>/clones/<owner>+<name>.git
//! <state>/clones/<owner>+<name>.git/submodules/<commit>   those that a commit needed
//! <state>/clones/<owner>+<name>.lock   held while one process fetches
//! ```
//!
//! The token goes to git as a header of one call and is written to no file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use codespar_dev::{Link, Linker, RepositoryRef};
use codespar_forge::{
    Forge, GitHubAccess, GitHubForge, GitHubSetup, LocalForge, Patience, github_client,
};
use codespar_git::{
    Fetch, FetchExtent, GitError, MissingSubmodule, Repository, RepositoryKind, SubmoduleSource,
    Trust,
};
use codespar_policy::Redactor;
use codespar_protocol::CommitId;
use codespar_pulls::Publisher;
use codespar_store::Database;
use secrecy::ExposeSecret;

use super::{
    access::{github_access, github_api, github_header, github_proxy},
    repository::{github_server, is_clone_of},
};
use crate::{Project, ProjectDir};

/// How long the submodules of one commit may take, and how much of one may be sent.
const SUBMODULE_TIME: Duration = Duration::from_secs(600);
const SUBMODULE_BYTES: u64 = 2 << 30;

/// Reaches repositories with what the environment gives.
pub struct RepositoryLinker {
    /// Whose environment and trust count.
    pub project_dir: ProjectDir,
    /// Where local pull requests are.
    pub store: Arc<dyn Database>,
}

impl RepositoryLinker {
    /// With what a project has.
    pub fn of(project: &Project) -> Self {
        Self {
            project_dir: project.dir.clone(),
            store: project.store.clone(),
        }
    }
}

#[async_trait]
impl Linker for RepositoryLinker {
    /// Every forge is wrapped in a publisher, so text that leaves through it is checked for
    /// secrets.
    async fn forge(&self, repository: &RepositoryRef) -> Result<Arc<Publisher>, String> {
        let forge: Arc<dyn Forge> = match repository {
            RepositoryRef::Local { path } => {
                let trust = self.project_dir.trust_of(path).git();
                let forge = LocalForge::open(path, trust, self.store.clone(), None).await;
                Arc::new(forge.map_err(|error| error.to_string())?)
            }
            RepositoryRef::GitHub { owner, name } => Arc::new(self.github(owner, name)?),
        };
        let redactor = match repository {
            RepositoryRef::Local { .. } => self.project_dir.environment.redactor(),
            RepositoryRef::GitHub { .. } => self.redactor(),
        };
        Ok(Arc::new(Publisher::new(forge, Arc::new(redactor))))
    }

    /// A clone that fails is not an error: the link has none, and files are read through the API of
    /// the forge.
    async fn link(&self, repository: &RepositoryRef) -> Result<Link, String> {
        let forge = self.forge(repository).await?;
        let (clone, key) = match repository {
            RepositoryRef::Local { path } => (Ok(path.clone()), path.display().to_string()),
            RepositoryRef::GitHub { owner, name } => (
                self.clone_of(owner, name).await,
                format!("{}/{owner}/{name}", github_server(&self.project_dir)),
            ),
        };
        if let Err(reason) = &clone {
            tracing::warn!("{key} could not be cloned: {reason}");
        }
        let checkout = self.checkout_of(repository);
        let is_trusted = |dir: &PathBuf| self.project_dir.trust_of(dir).git() == Trust::Trusted;
        Ok(Link {
            forge,
            hooks_of: checkout.clone().filter(is_trusted),
            checkout,
            clone: clone.ok(),
            trust: self.trust(repository),
            key,
        })
    }

    fn trust(&self, repository: &RepositoryRef) -> Trust {
        match repository {
            RepositoryRef::Local { path } => self.project_dir.trust_of(path).git(),
            // What is on record is about directories of the user's.
            RepositoryRef::GitHub { .. } => Trust::Untrusted,
        }
    }

    async fn fetch_submodules(
        &self,
        repository: &RepositoryRef,
        link: &Link,
        commit: &CommitId,
    ) -> Result<Vec<MissingSubmodule>, String> {
        let (RepositoryRef::GitHub { owner, name }, Some(clone)) = (repository, &link.clone) else {
            return Ok(Vec::new());
        };
        let (url, header) = (self.url_of(owner, name), self.header(owner, name).await?);
        let (clone, commit) = (clone.clone(), commit.clone());
        tokio::task::spawn_blocking(move || {
            let _lock = lock(&clone)?;
            let source = SubmoduleSource {
                url: &url,
                header: Some(&header),
                time: SUBMODULE_TIME,
                bytes: SUBMODULE_BYTES,
            };
            let found = Repository::find(&clone, Trust::Untrusted);
            let missing = found.and_then(|found| found.fetch_submodules(&commit.0, &source));
            missing.map_err(|error| error.to_string())
        })
        .await
        .map_err(|error| error.to_string())?
    }
}

impl RepositoryLinker {
    /// The user's own files: of a repository on GitHub, those we were started in if they are of it.
    fn checkout_of(&self, repository: &RepositoryRef) -> Option<PathBuf> {
        let dir = match repository {
            RepositoryRef::Local { path } => path,
            RepositoryRef::GitHub { owner, name } => {
                let root = &self.project_dir.root;
                is_clone_of(&self.project_dir, root, owner, name).then_some(root)?
            }
        };
        let repository = Repository::find(dir, Trust::Untrusted).ok()?;
        repository.location().work_tree.clone()
    }

    /// A token of the user's sign-in is in no variable, and a secret like those that are.
    fn redactor(&self) -> Redactor {
        let environment = &self.project_dir.environment;
        match github_access(&self.project_dir) {
            Ok(Some(GitHubAccess::Token(token))) => {
                let token = ("GITHUB_TOKEN".to_owned(), token.expose_secret().to_owned());
                environment.redactor_with([token])
            }
            _ => environment.redactor(),
        }
    }

    fn access(&self) -> Result<GitHubAccess, String> {
        let access = github_access(&self.project_dir).map_err(|error| error.to_string())?;
        access.ok_or_else(no_token)
    }

    fn github(&self, owner: &str, name: &str) -> Result<GitHubForge, String> {
        let access = self.access()?;
        let api = github_api(&self.project_dir).map_err(|error| error.to_string())?;
        let proxy = github_proxy(&self.project_dir, &api).map_err(|error| error.to_string())?;
        let http = github_client(&api, proxy.as_ref()).map_err(|error| error.to_string())?;
        let setup = GitHubSetup {
            api,
            owner: owner.to_owned(),
            name: name.to_owned(),
            access,
            http,
            patience: Patience::default(),
        };
        GitHubForge::new(setup).map_err(|error| error.to_string())
    }

    /// Where git fetches from.
    pub(super) fn url_of(&self, owner: &str, name: &str) -> String {
        format!("{}/{owner}/{name}.git", github_server(&self.project_dir))
    }

    /// The token for git, in the form of a header for one call.
    pub(super) async fn header(&self, owner: &str, name: &str) -> Result<String, String> {
        let header = github_header(&self.project_dir, owner, name).await?;
        header.ok_or_else(no_token)
    }

    /// A bare clone, brought up to date. Runs on a thread for blocking work, since fetching takes
    /// as long as the network does.
    async fn clone_of(&self, owner: &str, name: &str) -> Result<PathBuf, String> {
        let dir = self
            .project_dir
            .state()
            .join("clones")
            .join(format!("{owner}+{name}.git"));
        let (url, header) = (self.url_of(owner, name), self.header(owner, name).await?);
        tokio::task::spawn_blocking(move || fetch(&dir, &url, &header).map(|()| dir))
            .await
            .map_err(|error| error.to_string())?
    }
}

fn no_token() -> String {
    "GITHUB_TOKEN is not set, and neither `gh auth token` nor git's credential helper has a token"
        .to_owned()
}

/// One process at a time: two that fetch at once would be in each other's way, and the one that
/// loses would have no clone. A lock file of git that a killed process left is removed and the
/// fetch tried again: while our own lock is held, no other fetch is under way.
fn fetch(dir: &Path, url: &str, header: &str) -> Result<(), String> {
    let _lock = lock(dir)?;
    let failed = |error: GitError| error.to_string();
    let repository = match dir.join("HEAD").exists() {
        true => Repository::find(dir, Trust::Untrusted),
        false => codespar_git::init(dir, RepositoryKind::Bare),
    };
    let git = repository.and_then(|found| found.git()).map_err(failed)?;
    let fetch = Fetch {
        url,
        refspec: "+refs/heads/*:refs/heads/*",
        header: Some(header),
        extent: FetchExtent::History,
    };
    loop {
        let output = git.fetch(&fetch).map_err(failed)?;
        if output.code == Some(0) {
            return git.tidy().map_err(failed);
        }
        // Nobody else is at it, so it was left by a git that was killed.
        let stale = left_lock(dir, &output.message);
        let stale = stale.filter(|lock| std::fs::remove_file(lock).is_ok());
        if stale.is_none() {
            return Err(output.message.trim().to_owned());
        }
    }
}

/// Held until it is dropped.
fn lock(dir: &Path) -> Result<std::fs::File, String> {
    let message = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(dir.parent().unwrap_or(Path::new("."))).map_err(message)?;
    let lock = std::fs::File::create(dir.with_extension("lock")).map_err(message)?;
    lock.lock().map_err(message)?;
    Ok(lock)
}

/// The lock file of git's that is in the way, if it is below `dir`. Found in the message, because
/// git has no other way to name it.
fn left_lock(dir: &Path, message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("Unable to create '")?;
    let (path, _) = rest.split_once("': File exists")?;
    // Git works in a directory of its own whose links lead into `dir`. A lock beside such a link is
    // told of there, and is made here.
    let name = Path::new(path).file_name()?;
    let path = dir.join(path).canonicalize();
    let path = path.or_else(|_| dir.join(name).canonicalize()).ok()?;
    let is_lock = path.extension().is_some_and(|ending| ending == "lock");
    (is_lock && path.starts_with(dir.canonicalize().ok()?)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(dir: &Path, args: &[&str]) -> bool {
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        output.status.success()
    }

    fn upstream(dir: &Path) -> String {
        assert!(git(dir, &["init", "--quiet", "-b", "main", "up"]));
        let up = dir.join("up");
        let commit = [
            "commit",
            "--quiet",
            "--no-gpg-sign",
            "--allow-empty",
            "-m",
            "x",
        ];
        assert!(git(&up, &commit));
        for number in 0..20 {
            assert!(git(&up, &["branch", &format!("b{number}")]));
        }
        up.to_str().unwrap().to_owned()
    }

    #[test]
    fn many_can_fetch_at_once_and_a_lock_that_a_killed_git_left_is_taken_away() {
        let room = tempfile::tempdir().unwrap();
        let url = upstream(room.path());
        let dir = room.path().join("clones/o+n.git");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(fetch(&dir, &url, "X-A: b"), Ok(())));
            }
        });
        assert!(git(Path::new(&url), &["branch", "--delete", "b1"]));
        assert!(git(Path::new(&url), &["branch", "fresh"]));
        std::fs::write(dir.join("packed-refs.lock"), "").unwrap();
        std::fs::write(dir.join("refs/heads/fresh.lock"), "").unwrap();
        assert_eq!(fetch(&dir, &url, "X-A: b"), Ok(()));
        let known = |name: &str| {
            let name = format!("refs/heads/{name}");
            git(&dir, &["rev-parse", "--quiet", "--verify", &name])
        };
        assert_eq!(
            (known("fresh"), known("b1"), known("b2")),
            (true, false, true)
        );
    }
}
