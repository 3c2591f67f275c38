//! Gives a throw-away tree the dependencies of its project: those of the user's checkout, or those
//! that an installation brings.
//!
//! An installation runs in a tree of its own and is kept for later runs, by repository, command and
//! lock files:
//!
//! ```text
//! DIR/deps/making-XXXX/tree     where it runs; gone afterwards
//! DIR/deps/KEY/entry.json       which directories it made
//! DIR/deps/KEY/dirs/0           the first of them
//! DIR/deps/KEY/caches           what it downloaded besides, for tools that look there
//! ```
//!
//! The directory gets its name when it is complete, so one that was interrupted is never used. Runs
//! see it as they see directories of the checkout: what they change in it is theirs alone.
//!
//! The tree is seen at a second path, which is the same for the installation and for every run
//! after it (the checkout, or `DIR/deps/KEY/at`): scripts of a virtual environment name their
//! interpreter by its absolute path.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use codespar_git::{Repository, Trust};
use codespar_protocol::CommitId;
use codespar_tasks::ShellSetup;
use codespar_tools::sandbox::{Layer, LayerWrites, Layers, WithoutOverlay};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::{
    TestRun, Tree,
    dependencies::{self, Found, Installed},
    kept::{Entry, prune},
    run,
    setup::{Due, Installation, installation},
    variables::{cache_variables, setup_variables},
};
use crate::TreeError;

/// What a project's dependencies are found by.
pub struct Dependencies<'a> {
    /// How tests are run.
    pub shell: &'a ShellSetup,
    /// How installations are run: they reach the hosts of package managers.
    pub installer: &'a ShellSetup,
    /// The repository, and the commit that tests run on.
    pub clone: &'a Path,
    pub commit: &'a CommitId,
    pub trust: Trust,
    /// The name of the repository: no other one gets what is installed for it.
    pub key: &'a str,
    /// The user's own files, where there are any.
    pub checkout: Option<&'a Path>,
    /// Installations are kept in here.
    pub dir: &'a Path,
    /// `verify.setup`.
    pub setup: Option<&'a str>,
    /// The command that needs them.
    pub tests: Option<&'a str>,
    /// How long an installation may take.
    pub limit: Duration,
    pub cancel: &'a CancellationToken,
}

/// Why dependencies are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Tests are about to run.
    Tests,
    /// They ran, and something was missing.
    Missing,
}

/// What a tree got.
#[derive(Debug, Default)]
pub struct Provided {
    /// For the user, a line each.
    pub notes: Vec<String>,
    /// An installation that failed, with its command.
    pub failed: Option<(String, TestRun)>,
    /// Hosts that an installation was refused.
    pub blocked: Vec<String>,
    /// Whether an installation was asked for, now or earlier. A second one would do the same.
    pub is_installed: bool,
    /// Whether there is something now that was not there before.
    pub is_changed: bool,
}

impl Dependencies<'_> {
    /// Puts the layers of a tree together; `say` is told before something takes long. A failing
    /// installation is not an error: the tests run without and say what they miss. `Err` is for a
    /// stop, and for a failure of git or the file system.
    pub async fn provide(
        &self,
        tree: &Path,
        need: Need,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<Provided, TreeError> {
        let mut provided = Provided::default();
        let found = match self.checkout.map(Path::to_path_buf) {
            Some(checkout) => blocking(move || dependencies::find(&checkout)).await,
            None => Ok(Found::default()),
        };
        // The tests say what they miss.
        let found = found.unwrap_or_else(|error| {
            let note = "the dependencies of the checkout cannot be found";
            provided.notes.push(format!("{note}: {error}"));
            Found::default()
        });
        for link in &found.links {
            let note = "is a symbolic link, so the tests do not see it";
            provided.notes.push(format!("`{}` {note}", link.display()));
        }
        let wanted = installation(tree, self.checkout, &found, self.setup, self.tests);
        let wanted =
            wanted.filter(|one| need == Need::Missing || one.due == Due::Now || self.is_kept(one));
        provided.is_installed = wanted.is_some();
        if !self.shell.sandbox.shows_layers() {
            if !found.installed.is_empty() {
                provided.notes.push(
                    "the dependencies of the checkout are not visible to the tests: this sandbox \
                     has no mounts; install the package `bubblewrap`"
                        .to_owned(),
                );
            }
            if let Some(wanted) = wanted {
                self.install_in_place(tree, &wanted, say, &mut provided)
                    .await?;
            }
            return Ok(provided);
        }
        let entry = match wanted {
            Some(wanted) => self.installed(&wanted, say, &mut provided).await?,
            None => None,
        };
        provided.is_changed = match entry {
            Some(entry) => self.show_entry(tree, &entry, &found)?,
            None if need == Need::Missing => false,
            None => self.show_checkout(tree, &found)?,
        };
        Ok(provided)
    }

    /// The directories of the checkout. Says whether there are any.
    fn show_checkout(&self, tree: &Path, found: &Found) -> Result<bool, TreeError> {
        let Some(checkout) = self.checkout.filter(|_| !found.installed.is_empty()) else {
            return Ok(false);
        };
        let sources = found
            .installed
            .iter()
            .map(|one| (one.clone(), checkout.join(&one.path)));
        let layers = self.layers(tree, sources, self.alias().as_deref());
        write(&layers, tree)?;
        Ok(true)
    }

    /// What was installed, and what the checkout has of other kinds.
    fn show_entry(&self, tree: &Path, entry: &Entry, found: &Found) -> Result<bool, TreeError> {
        let alias = self.alias().unwrap_or_else(|| entry.dir.join("at"));
        let dirs = entry.record.dirs.iter().enumerate();
        let new = dirs.map(|(number, one)| {
            let installed = Installed {
                path: one.path.clone(),
                otherwise: one.otherwise,
            };
            (installed, entry.dir.join("dirs").join(number.to_string()))
        });
        let is_new = |one: &Installed| {
            let mut new = entry.record.dirs.iter();
            new.any(|new| {
                new.path.file_name() == one.path.file_name() || one.path.starts_with(&new.path)
            })
        };
        let checkout = self.checkout.unwrap_or(tree);
        let old = found.installed.iter().filter(|one| !is_new(one));
        let old = old.map(|one| (one.clone(), checkout.join(&one.path)));
        let sources: Vec<(Installed, PathBuf)> = new.chain(old).collect();
        let mut layers = self.layers(tree, sources.into_iter(), Some(&alias));
        let caches = entry.dir.join("caches");
        layers.layers.push(Layer {
            source: caches.clone(),
            at: caches.clone(),
            writes: aside(tree, "caches", WithoutOverlay::ReadOnly),
        });
        // A tool that nothing was downloaded for keeps the user's cache.
        let variables = cache_variables(&caches).into_iter();
        let filled = variables.filter(|(name, _)| caches.join(name).is_dir());
        layers
            .variables
            .extend(filled.flat_map(|(_, variables)| variables));
        write(&layers, tree)?;
        Ok(true)
    }

    fn layers(
        &self,
        tree: &Path,
        sources: impl Iterator<Item = (Installed, PathBuf)>,
        alias: Option<&Path>,
    ) -> Layers {
        let mut layers = Layers {
            alias: alias.map(Path::to_path_buf),
            objects: self.objects(),
            ..Layers::default()
        };
        for (number, (one, source)) in sources.enumerate() {
            let at = tree.join(&one.path);
            let is_environment = source.join("pyvenv.cfg").is_file();
            if is_environment && layers.programs.is_empty() {
                let seen = alias.map_or_else(|| at.clone(), |alias| alias.join(&one.path));
                layers.programs.push(seen.join("bin"));
                let seen = seen.display().to_string();
                layers.variables.push(("VIRTUAL_ENV".to_owned(), seen));
            }
            if one.path == Path::new("vendor") && source.join("bundle").is_dir() {
                let variable = ("BUNDLE_PATH".to_owned(), "vendor/bundle".to_owned());
                layers.variables.push(variable);
            }
            layers.layers.push(Layer {
                source,
                at,
                writes: aside(tree, &number.to_string(), one.otherwise),
            });
        }
        layers
    }

    /// The objects that a tree borrows, where the checkout is covered.
    fn objects(&self) -> Option<PathBuf> {
        let repository = Repository::find(self.clone, self.trust).ok()?;
        Some(repository.location().common_dir.join("objects"))
    }

    /// Where the tree is seen as well: in place of the checkout, unless our own files are in it.
    fn alias(&self) -> Option<PathBuf> {
        let checkout = self.checkout?;
        let dir = self.dir.canonicalize().ok()?;
        (!dir.starts_with(checkout)).then(|| checkout.to_path_buf())
    }

    /// Whether an installation was needed earlier and can be shown now, which costs nothing.
    fn is_kept(&self, wanted: &Installation) -> bool {
        let dir = self.dir.join("deps").join(self.key_of(wanted));
        self.shell.sandbox.shows_layers() && Entry::open(&dir).is_some()
    }

    /// What an installation left earlier, or leaves now. `None` if it fails.
    async fn installed(
        &self,
        wanted: &Installation,
        say: &(dyn Fn(&str) + Sync),
        provided: &mut Provided,
    ) -> Result<Option<Entry>, TreeError> {
        let deps = self.dir.join("deps");
        fs::create_dir_all(&deps).map_err(|error| at(&deps, &error))?;
        let deps = deps.canonicalize().map_err(|error| at(&deps, &error))?;
        let dir = deps.join(self.key_of(wanted));
        if let Some(entry) = Entry::open(&dir) {
            return Ok(Some(entry));
        }
        say(&format!("📦 Installing dependencies: {}", wanted.command));
        let making = tempfile::Builder::new()
            .prefix("making-")
            .tempdir_in(&deps)
            .map_err(|error| at(&deps, &error))?;
        let run = self.install(making.path(), &dir, wanted).await?;
        provided.blocked.clone_from(&run.blocked);
        if !run.passed() {
            provided.failed = Some((wanted.command.clone(), run));
            return Ok(None);
        }
        let entry = blocking(move || {
            let tree = making.path().join("tree");
            let entry = Entry::keep(making.path(), &tree, &dir)?;
            prune(&deps, &dir);
            Ok(entry)
        });
        entry.await.map(Some)
    }

    /// Runs it in a tree of its own, seen where later runs see theirs.
    async fn install(
        &self,
        making: &Path,
        dir: &Path,
        wanted: &Installation,
    ) -> Result<TestRun, TreeError> {
        let (clone, path) = (self.clone.to_path_buf(), making.join("tree"));
        let (commit, trust) = (self.commit.clone(), self.trust);
        let tree = blocking(move || Tree::open(&clone, &path, &commit, trust)).await?;
        let alias = self.alias().unwrap_or_else(|| dir.join("at"));
        let mut layers = Layers {
            alias: Some(alias.clone()),
            objects: self.objects(),
            ..Layers::default()
        };
        for name in ["caches", "downloads"] {
            let source = making.join(name);
            fs::create_dir(&source).map_err(|error| at(&source, &error))?;
            layers.layers.push(Layer {
                source,
                at: dir.join(name),
                writes: LayerWrites::Through,
            });
        }
        self.link_cargo_settings(&making.join("caches/cargo"));
        layers.variables = setup_variables(&dir.join("downloads"));
        let caches = cache_variables(&dir.join("caches"));
        layers
            .variables
            .extend(caches.into_iter().flat_map(|(_, variables)| variables));
        write(&layers, tree.path())?;
        let command = within(&alias, &wanted.command);
        let run = run(
            self.installer,
            making,
            tree.path(),
            &command,
            self.limit,
            self.cancel,
        )
        .await?;
        tree.keep();
        Ok(run)
    }

    /// Cargo keeps its settings beside its cache. Inside, the link leads to what commands see of
    /// the user's own.
    fn link_cargo_settings(&self, cargo: &Path) {
        let named = self
            .shell
            .child_env
            .iter()
            .find(|(name, _)| name == "CARGO_HOME");
        let home = self.shell.home.as_ref().map(|home| home.join(".cargo"));
        let Some(usual) = named.map(|(_, value)| PathBuf::from(value)).or(home) else {
            return;
        };
        let file = usual.join("config.toml");
        if file.is_file() && fs::create_dir_all(cargo).is_ok() {
            // Without it, cargo uses its own registry.
            let _ = std::os::unix::fs::symlink(file, cargo.join("config.toml"));
        }
    }

    /// Into the tree itself, where nothing can be shown from elsewhere.
    async fn install_in_place(
        &self,
        tree: &Path,
        wanted: &Installation,
        say: &(dyn Fn(&str) + Sync),
        provided: &mut Provided,
    ) -> Result<(), TreeError> {
        say(&format!("📦 Installing dependencies: {}", wanted.command));
        let variables: Vec<String> = setup_variables(Path::new("$TMPDIR"))
            .iter()
            .map(|(name, value)| format!("export {name}=\"{value}\"; "))
            .collect();
        let command = format!("{}{}", variables.concat(), wanted.command);
        let temp = tree.parent().unwrap_or(self.dir);
        let run = run(
            self.installer,
            temp,
            tree,
            &command,
            self.limit,
            self.cancel,
        )
        .await?;
        provided.blocked.clone_from(&run.blocked);
        provided.is_changed = run.passed();
        if !run.passed() {
            provided.failed = Some((wanted.command.clone(), run));
        }
        Ok(())
    }

    /// The name of what is kept: nothing of another repository, another command or other lock files
    /// is taken for it. Lock files are those of the commit. Without any lock file the commit is
    /// part of it, since nothing else says what an installation brings. The first part is the
    /// version of this scheme.
    fn key_of(&self, wanted: &Installation) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(b"1");
        add(self.key.as_bytes());
        add(wanted.command.as_bytes());
        let alias = self.alias().unwrap_or_default();
        add(alias.as_os_str().as_encoded_bytes());
        let mut locks = 0;
        let repository = Repository::find(self.clone, Trust::Untrusted);
        let git = repository.and_then(|repository| repository.git());
        for lock in &wanted.locks {
            let name = format!("{}:{}", self.commit.0, lock.display());
            let blob = git
                .as_ref()
                .ok()
                .and_then(|git| git.run(["cat-file", "blob", &name]).ok());
            if let Some(blob) = blob {
                add(name.split_once(':').unwrap_or_default().1.as_bytes());
                add(&blob.out);
                locks += 1;
            }
        }
        if locks == 0 {
            add(self.commit.0.as_bytes());
        }
        hash.finalize()
            .iter()
            .take(20)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// In place of earlier ones, with what was changed in those.
fn write(layers: &Layers, tree: &Path) -> Result<(), TreeError> {
    Layers::remove(tree);
    layers.write(tree).map_err(|error| at(tree, &error))
}

fn aside(tree: &Path, name: &str, otherwise: WithoutOverlay) -> LayerWrites {
    LayerWrites::Aside {
        private: Layers::dir(tree).join(name),
        otherwise,
    }
}

/// A command that runs at the second path of its tree, if the sandbox shows it there. The shell
/// compares the two paths by device and inode. Where the sandbox does not show the second one, the
/// command runs where it is.
fn within(alias: &Path, command: &str) -> String {
    let quoted = format!("'{}'", alias.display().to_string().replace('\'', "'\\''"));
    format!("if [ . -ef {quoted} ]; then cd {quoted}; fi\n{command}")
}

/// Git and files belong on the pool of blocking threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TreeError> + Send + 'static,
) -> Result<T, TreeError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| TreeError::Broken(error.to_string()))?
}

pub(super) fn at(path: &Path, error: &std::io::Error) -> TreeError {
    TreeError::Broken(format!("{}: {error}", path.display()))
}
