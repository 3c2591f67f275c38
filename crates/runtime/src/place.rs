//! Where an agent of a task works: the tree of its parent, a worktree of its own, or the tree of a
//! dev run.
//!
//! The last two are on one host alone. Where the records are shared between hosts their changes are
//! kept after each step, and a host that does not have the tree, or has an older one, makes it from
//! what is kept before the agent goes on.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::WorkKeeper as _;
use codespar_dev::{AgentTree, OpenedTree, RepositoryRef, recorded_base};
use codespar_protocol::{AgentSpec, CommitId, Isolation, TaskId, TaskSpec};
use codespar_store::{KeptTree, TaskStore, TreeStore};
use codespar_tasks::{Control, DEV_ENGINE, OwnTree, TreeBrought, TreeKeeper};
use codespar_tools::worktree::Worktree;

use crate::{
    Project,
    dev::{self, RepositoryLinker},
};

/// Where an agent works.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Of an agent that has one of its own.
    pub(crate) worktree: Option<Worktree>,
    /// Keeps what the agent changes, where another host may have to go on.
    pub(crate) keeper: Option<Arc<TreeKeeper>>,
}

impl Place {
    /// If the tree cannot be had the agent is not started: it must not write to the user's tree
    /// instead, nor begin anew where there was work.
    pub(crate) async fn find(
        project: &Arc<Project>,
        spec: &AgentSpec,
        control: &Control,
    ) -> Result<Self, String> {
        let finding = Finding {
            project,
            spec,
            control,
        };
        if let Some(Isolation::Worktree) = spec.isolation {
            return finding.worktree().await;
        }
        let of_run = (spec.subagent_type == DEV_ENGINE).then(|| {
            let trees = project.trees()?;
            Some((trees, dev::tree_here(&project.dir, &spec.root)?))
        });
        match of_run.flatten() {
            Some((trees, path)) => finding.tree_of_run(trees, path).await,
            None => Ok(Self {
                root: spec.root.clone(),
                cwd: spec.cwd.clone(),
                worktree: None,
                keeper: None,
            }),
        }
    }

    /// What an agent is told whose conversation names directories of another host.
    pub(crate) fn note_of_move(&self) -> Option<String> {
        let keeper = self.keeper.as_ref()?;
        (keeper.brought() == TreeBrought::FromElsewhere).then(|| {
            format!(
                "Your work was begun on another machine and goes on here, with the files as you \
                 left them. They are now below {}: use that in place of the directory that \
                 earlier calls name.",
                self.root.display()
            )
        })
    }
}

struct Finding<'a> {
    project: &'a Arc<Project>,
    spec: &'a AgentSpec,
    control: &'a Control,
}

impl Finding<'_> {
    fn task(&self) -> &TaskId {
        &self.control.record.task_id
    }

    /// Path and branch are named after the task, so a resumed agent finds its worktree again.
    async fn worktree(&self) -> Result<Place, String> {
        let (spec, task) = (self.spec, self.task());
        let path = self.project.dir.state().join("worktrees");
        let path = path.join(task.as_str());
        let branch = format!("codespar/{task}");
        let trust = self.project.dir.trust_of(&spec.root).git();
        let trees = self.project.trees();
        let kept = kept(trees.as_ref(), task).await?;
        let opened = match &kept {
            Some(kept) => Worktree::open_at(&spec.root, &path, &branch, trust, &kept.base).await,
            None => Worktree::open(&spec.root, &path, &branch, trust).await,
        };
        let worktree = opened.map_err(|error| format!("no worktree could be made: {error}"))?;
        let keeper = match trees {
            Some(trees) => {
                let tree = own_tree(&worktree)?;
                Some(self.keeper(trees, tree, kept).await?)
            }
            None => None,
        };
        Ok(Place {
            root: worktree.path().to_path_buf(),
            cwd: worktree.matching(&spec.root, &spec.cwd),
            worktree: Some(worktree),
            keeper: keeper.map(Arc::new),
        })
    }

    /// The tree of a dev run, whose agent this is. The run makes it on the host where it starts the
    /// agent; elsewhere it is made here.
    async fn tree_of_run(&self, trees: Arc<dyn TreeStore>, path: PathBuf) -> Result<Place, String> {
        let (repository, recorded) = self.run().await?;
        let kept = kept(Some(&trees), self.task()).await?;
        let base = kept.as_ref().map(|kept| CommitId(kept.base.clone()));
        let base = base.unwrap_or(recorded);
        let linker = RepositoryLinker::of(self.project);
        let tree = AgentTree {
            linker: &linker,
            repository: &repository,
            path: &path,
        };
        let OpenedTree { tree, .. } = &tree.open(&base).await?;
        let keeper = self.keeper(trees, tree.clone(), kept).await?;
        let below = self.spec.cwd.strip_prefix(&self.spec.root);
        let cwd = below.map_or_else(|_| path.clone(), |below| path.join(below));
        Ok(Place {
            root: path,
            cwd,
            worktree: None,
            keeper: Some(Arc::new(keeper)),
        })
    }

    /// Kept from the beginning: where the work starts is not the same commit on every host, and a
    /// run may have put changes there that its agent is to mend.
    async fn keeper(
        &self,
        trees: Arc<dyn TreeStore>,
        tree: OwnTree,
        kept: Option<KeptTree>,
    ) -> Result<TreeKeeper, String> {
        let is_first = kept.is_none();
        let keeper = TreeKeeper::begin(trees, self.control, tree, kept).await?;
        if is_first {
            keeper.keep().await;
        }
        Ok(keeper)
    }

    /// The repository of the run and the commit that it reads, from its record.
    async fn run(&self) -> Result<(RepositoryRef, CommitId), String> {
        let unknown = || "the dev run that it works for is not on record".to_owned();
        let parent = self.control.record.parent_task_id.as_ref();
        let store: &dyn TaskStore = &*self.control.store;
        let run = store.task(parent.ok_or_else(unknown)?).await;
        let run = run.map_err(|error| error.to_string())?;
        let base = recorded_base(store, &run).await;
        let base = base.map_err(|error| error.to_string())?;
        match (run.spec, base) {
            (Some(TaskSpec::Dev(order)), Some(base)) => Ok((order.repository, base.commit)),
            _ => Err(unknown()),
        }
    }
}

async fn kept(
    trees: Option<&Arc<dyn TreeStore>>,
    task: &TaskId,
) -> Result<Option<KeptTree>, String> {
    match trees {
        Some(trees) => {
            let kept = trees.kept_tree(task).await;
            kept.map_err(|error| error.to_string())
        }
        None => Ok(None),
    }
}

fn own_tree(worktree: &Worktree) -> Result<OwnTree, String> {
    Ok(OwnTree {
        git: worktree.git().map_err(|error| error.to_string())?,
        path: Path::to_path_buf(worktree.path()),
        base: worktree.base().to_owned(),
        branch: Some(worktree.branch().to_owned()),
    })
}
