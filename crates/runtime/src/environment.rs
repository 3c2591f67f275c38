//! What the process was given: home, state directory, variables, its own program. Libraries read
//! none of it themselves.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_policy::Redactor;
use codespar_store::{
    Database, ObjectStore, PostgresStore, SqliteStore, StoreError, open_object_store,
};
use codespar_tasks::{SharedOutputs, TaskOutputs};

use crate::trust::UserDirs;

/// Values of the process, handed in by its binary.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The home directory of the user, if there is one.
    pub home: Option<PathBuf>,
    /// The state directory: sessions, tasks, outputs, the user's settings.
    pub state: PathBuf,
    /// The environment variables.
    pub vars: Vec<(OsString, OsString)>,
    /// The path of this binary, which runs its own guard processes.
    pub program: PathBuf,
}

impl Environment {
    /// A variable, if it is set to something.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars
            .iter()
            .find(|(key, _)| key == name)
            .and_then(|(_, value)| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// Whether a variable is there and empty, which [`Environment::var`] does not tell from absent.
    pub fn is_empty_var(&self, name: &str) -> bool {
        let mut vars = self.vars.iter();
        vars.any(|(known, value)| known == name && value.is_empty())
    }

    /// Whether a variable is set to something that means yes.
    pub fn is_enabled(&self, name: &str) -> bool {
        self.var(name).is_some_and(means_yes)
    }

    /// The account of the user on this machine.
    pub fn account(&self) -> Option<&str> {
        let names = ["USER", "LOGNAME", "USERNAME"];
        names.into_iter().find_map(|name| self.var(name))
    }

    /// Redacts the secrets among the variables, by name and value. A variable counts as a secret by
    /// its name; texts that look like a secret are redacted besides.
    pub fn redactor(&self) -> Redactor {
        self.redactor_with([])
    }

    /// The same, with secrets that are in no variable, by their names.
    pub(crate) fn redactor_with(
        &self,
        others: impl IntoIterator<Item = (String, String)>,
    ) -> Redactor {
        let secrets = self.vars.iter().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_str()?);
            codespar_policy::is_secret_name(name).then(|| (name.to_owned(), value.to_owned()))
        });
        Redactor::new(secrets.chain(others))
    }

    /// The database server that is used in place of a file in the state directory, if one is named.
    /// It may hold a password.
    pub fn database_url(&self) -> Option<&str> {
        self.var("CODESPAR_DATABASE_URL")
    }

    /// Opens the database: that of `CODESPAR_DATABASE_URL`, or the file in the state directory.
    pub async fn open_database(&self) -> Result<Arc<dyn Database>, StoreError> {
        Ok(match self.database_url() {
            Some(url) => Arc::new(PostgresStore::open(url).await?),
            None => Arc::new(SqliteStore::open(&self.state).await?),
        })
    }

    /// Where outputs go that are too large for the database, if one is named. Its provider is told
    /// who we are by the variables that its own tools read.
    pub fn object_store(&self) -> Result<Option<Arc<dyn ObjectStore>>, StoreError> {
        let Some(url) = self.var("CODESPAR_OBJECT_STORE") else {
            return Ok(None);
        };
        let texts = |(name, value): &(OsString, OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        let variables: Vec<_> = self.vars.iter().filter_map(texts).collect();
        Ok(Some(open_object_store(url, &variables)?))
    }

    /// What all hosts can read of outputs; `None` where the records are for this host alone.
    pub fn shared_outputs(
        &self,
        store: &Arc<dyn Database>,
    ) -> Result<Option<SharedOutputs>, StoreError> {
        if !store.is_shared_by_hosts() {
            return Ok(None);
        }
        let objects = self.object_store()?;
        Ok(Some(SharedOutputs::new(store.clone(), objects)))
    }

    /// The directory of the outputs of tasks.
    pub fn output_dir(&self) -> PathBuf {
        self.state.join("task-output")
    }

    /// Outputs of tasks, for a process that runs none.
    pub fn task_outputs(&self, store: &Arc<dyn Database>) -> Result<TaskOutputs, StoreError> {
        let outputs = TaskOutputs::new(self.output_dir());
        if let Some(shared) = self.shared_outputs(store)? {
            outputs.share(shared);
        }
        Ok(outputs)
    }

    /// The directories of the user, which are no project's.
    pub fn person(&self) -> UserDirs {
        UserDirs {
            state: self.state.clone(),
            home: self.home.clone(),
        }
    }

    /// Directories of the user that may hold `sub` (`agents`, `skills`), nearest first.
    pub(crate) fn config_dirs(&self, sub: &str) -> Vec<PathBuf> {
        let mut dirs = vec![self.state.join(sub)];
        if let Some(home) = &self.home {
            if self.state != home.join(".codespar") {
                dirs.push(home.join(".codespar").join(sub));
            }
            dirs.push(home.join(".claude").join(sub));
        }
        dirs
    }

    /// Whether the home directory lies in this directory.
    pub(crate) fn has_home_in(&self, root: &Path) -> bool {
        let home = self.home.as_deref();
        home.is_some_and(|home| home.starts_with(root))
    }
}

/// Whether the value of a switch turns it on. Anything but a plain no does.
pub(crate) fn means_yes(value: &str) -> bool {
    !matches!(value, "" | "0" | "false" | "no" | "off")
}
