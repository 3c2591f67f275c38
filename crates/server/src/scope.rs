//! What belongs to the projects of this server. Everything else in the database does not exist for
//! its clients: the state directory may hold the work of other projects.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_protocol::{Question, QuestionId, SessionId, TaskId, TaskRecord};
use codespar_runtime::{Project, Runtime, shared_repository};
use codespar_store::{Database, SessionRecord, StoreError};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};

use crate::error::ApiError;

/// How many answers are remembered; beyond that all are forgotten and asked for again.
const REMEMBERED: usize = 4096;

/// The name of a project in the API: it stays the same for as long as the directory does, and is
/// not a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProjectKey(String);

impl ProjectKey {
    pub fn of(root: &Path) -> Self {
        let hash = digest(&SHA256, root.as_os_str().as_encoded_bytes());
        let digits = hash.as_ref().iter().take(6);
        Self(digits.map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a conversation belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) root: PathBuf,
    /// The task of the agent whose conversation it is.
    pub(crate) task: Option<TaskId>,
}

pub(crate) struct Scope {
    runtime: Arc<Runtime>,
    roots: Vec<PathBuf>,
    /// What tasks of these projects have as their repository (the name of its remote, or the root of
    /// the project), with the name for clients, which is never a path.
    repositories: HashMap<String, String>,
    /// Neither changes once it is known.
    sessions: Mutex<HashMap<SessionId, Option<Placed>>>,
    tasks: Mutex<HashMap<TaskId, bool>>,
}

impl Scope {
    pub(crate) fn new(runtime: Arc<Runtime>, roots: Vec<PathBuf>) -> Self {
        Self {
            repositories: repositories(&runtime, &roots),
            runtime,
            roots,
            sessions: Mutex::default(),
            tasks: Mutex::default(),
        }
    }

    fn store(&self) -> &Arc<dyn Database> {
        self.runtime.store()
    }

    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The name for clients of a repository as tasks have it; none if it is not of this server.
    pub(crate) fn repository_name(&self, repository: &str) -> Option<&str> {
        self.repositories.get(repository).map(String::as_str)
    }

    /// The root of the served project that a directory is in.
    pub(crate) fn root_of(&self, directory: &Path) -> Option<&Path> {
        let roots = self.roots.iter().map(PathBuf::as_path);
        roots
            .filter(|root| directory.starts_with(root))
            .max_by_key(|root| root.components().count())
    }

    /// A project by its key, with its configuration of now.
    pub(crate) fn project(&self, key: &str) -> Result<Arc<Project>, ApiError> {
        let root = self.root_by_key(key)?;
        Ok(self.runtime.project_at(root)?)
    }

    pub(crate) fn root_by_key(&self, key: &str) -> Result<&Path, ApiError> {
        let mut roots = self.roots.iter();
        let found = roots.find(|root| ProjectKey::of(root).as_str() == key);
        found
            .map(PathBuf::as_path)
            .ok_or_else(|| ApiError::not_found("there is no such project on this server"))
    }

    /// The only project, for requests that name none.
    pub(crate) fn only_project(&self) -> Result<Arc<Project>, ApiError> {
        match self.roots.as_slice() {
            [root] => Ok(self.runtime.project_at(root)?),
            _ => Err(ApiError::unprocessable(
                "this server has several projects: say which one with `project`",
            )),
        }
    }

    pub(crate) fn has_task(&self, task: &TaskRecord) -> bool {
        let authority = task.authority.as_ref();
        authority.is_some_and(|authority| self.roots.contains(&authority.project_root))
    }

    /// A task by its whole id. Texts that are no ids name nothing.
    pub(crate) async fn task(&self, text: &str) -> Result<TaskRecord, ApiError> {
        let missing = || ApiError::not_found("there is no such task on this server");
        let id: TaskId = text.parse().map_err(|_| missing())?;
        let task = self.store().task(&id).await?;
        match self.has_task(&task) {
            true => Ok(task),
            false => Err(missing()),
        }
    }

    /// A conversation by its whole id.
    pub(crate) async fn session(&self, text: &str) -> Result<(SessionRecord, Placed), ApiError> {
        let missing = || ApiError::not_found("there is no such session on this server");
        let id: SessionId = text.parse().map_err(|_| missing())?;
        let placed = self.place(id).await?.ok_or_else(missing)?;
        Ok((self.store().session(id).await?, placed))
    }

    /// A question by its whole id.
    pub(crate) async fn question(&self, text: &str) -> Result<Question, ApiError> {
        let missing = || ApiError::not_found("there is no such question on this server");
        let id: QuestionId = text.parse().map_err(|_| missing())?;
        let question = self.store().question(&id).await?;
        match self.roots.contains(&question.project_root) {
            true => Ok(question),
            false => Err(missing()),
        }
    }

    /// Where a conversation belongs; nowhere if it is not of a project of this server. An agent may
    /// work in a tree of its own outside of the project: then its task tells.
    pub(crate) async fn place(&self, id: SessionId) -> Result<Option<Placed>, StoreError> {
        if let Some(known) = self.sessions.lock().get(&id) {
            return Ok(known.clone());
        }
        let session = match self.store().session(id).await {
            Ok(session) => session,
            Err(StoreError::NoSuchSession(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let task = self.store().task_of_session(id).await?;
        let mut root = self.root_of(&session.cwd).map(Path::to_path_buf);
        if let Some(task) = &task {
            let record = self.store().task(task).await?;
            root = record
                .authority
                .map(|authority| authority.project_root)
                .filter(|root| self.roots.contains(root));
        }
        let placed = root.map(|root| Placed { root, task });
        remember(&self.sessions, id, placed.clone());
        Ok(placed)
    }

    /// Whether a task is of a project of this server.
    pub(crate) async fn includes_task(&self, id: &TaskId) -> Result<bool, StoreError> {
        if let Some(known) = self.tasks.lock().get(id) {
            return Ok(*known);
        }
        let is_here = match self.store().task(id).await {
            Ok(task) => self.has_task(&task),
            Err(StoreError::NoSuchTask(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        remember(&self.tasks, id.clone(), is_here);
        Ok(is_here)
    }
}

fn repositories(runtime: &Arc<Runtime>, roots: &[PathBuf]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for root in roots {
        let name = root.file_name().unwrap_or(root.as_os_str());
        let mut name = name.to_string_lossy().into_owned();
        if names.values().any(|taken| *taken == name) {
            name = format!("{name} {}", ProjectKey::of(root).as_str());
        }
        names.insert(root.to_string_lossy().into_owned(), name);
        let project = runtime.project_at(root).ok();
        if let Some(address) = project.and_then(|project| shared_repository(&project.dir)) {
            names.insert(address.name().to_owned(), address.name().to_owned());
        }
    }
    names
}

fn remember<K: std::hash::Hash + Eq, V>(known: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut known = known.lock();
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(key, value);
}
