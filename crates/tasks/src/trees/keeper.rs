//! Keeps the changes in a tree in the store, after each step that made some.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_agent::{WorkKeeper, WorkKept};
use codespar_store::{KeptTree, StoreError, TaskLease, TreeContent, TreeStore};
use codespar_tools::worktree::{Snapshot, SnapshotNames, SnapshotTaken};
use tokio::sync::Mutex;

use super::{OwnTree, TreeBrought, mark::TreeMark, names_of};
use crate::{Control, TaskLog};

/// The most that is kept of one tree.
const MOST_BYTES: usize = 32 << 20;

/// Keeps one tree for one attempt. Whoever lost the lease keeps nothing more.
pub struct TreeKeeper {
    store: Arc<dyn TreeStore>,
    tree: OwnTree,
    brought: TreeBrought,
    lease: TaskLease,
    control: Control,
    /// What is kept; held while it is looked at and replaced.
    last: Mutex<Option<SnapshotNames>>,
}

impl TreeKeeper {
    /// For the attempt of `control` in this tree, which is brought to what is kept. The error is
    /// for people.
    pub async fn begin(
        store: Arc<dyn TreeStore>,
        control: &Control,
        tree: OwnTree,
        kept: Option<KeptTree>,
    ) -> Result<Self, String> {
        let last = kept.as_ref().map(names_of);
        let brought = match kept {
            Some(kept) => tree.bring(kept).await?,
            None => TreeBrought::WasHere,
        };
        Ok(Self {
            store,
            tree,
            brought,
            lease: control.lease(),
            control: control.clone(),
            last: Mutex::new(last),
        })
    }

    /// Where the work has been.
    pub fn brought(&self) -> TreeBrought {
        self.brought
    }

    async fn look(&self, earlier: Option<SnapshotNames>) -> Result<SnapshotTaken, String> {
        let tree = self.tree.clone();
        let looking = move || tree.git.snapshot(&tree.base, earlier.as_ref(), MOST_BYTES);
        let taken = tokio::task::spawn_blocking(looking).await;
        let taken = taken.map_err(|error| error.to_string())?;
        taken.map_err(|error| error.to_string())
    }

    /// What the store is to have. Where the files could not be read, it is to say so: an earlier
    /// state must not pass for this one.
    async fn wanted(
        &self,
        earlier: Option<&SnapshotNames>,
    ) -> Option<(SnapshotNames, TreeContent)> {
        match self.look(earlier.cloned()).await {
            Ok(SnapshotTaken::Unchanged) => None,
            Ok(SnapshotTaken::Changed(Snapshot { names, pack })) => {
                Some((names, TreeContent::Pack(pack)))
            }
            Ok(SnapshotTaken::TooLarge { names, reason }) => {
                // Every step would say the same.
                let is_news = earlier.is_none_or(|earlier| *earlier != names);
                is_news.then_some((names, TreeContent::Missing(reason)))
            }
            Err(reason) => {
                let names = SnapshotNames {
                    base: self.tree.base.clone(),
                    head: self.tree.base.clone(),
                    tree: String::new(),
                };
                Some((names, TreeContent::Missing(reason)))
            }
        }
    }

    fn note(&self, text: &str) {
        // The lines are for people; the record is in the store.
        if let Ok(mut log) = TaskLog::open(&self.control.output, &self.control.redactor) {
            log.write(text);
        }
    }
}

#[async_trait]
impl WorkKeeper for TreeKeeper {
    async fn keep(&self) -> WorkKept {
        let mut last = self.last.lock().await;
        let Some((names, content)) = self.wanted(last.as_ref()).await else {
            return WorkKept::GoOn;
        };
        if let TreeContent::Missing(reason) = &content {
            self.note(&format!(
                "The changes of this step are not kept for other hosts: {reason}"
            ));
        }
        let kept = KeptTree {
            base: names.base.clone(),
            head: names.head.clone(),
            tree: names.tree.clone(),
            content,
        };
        match self.store.keep_tree(&self.lease, &kept).await {
            Ok(()) => {}
            Err(StoreError::LeaseLost(_)) => return WorkKept::HandedOver,
            Err(error) => {
                // The next step tries again.
                self.note(&format!(
                    "The changes of this step could not be kept: {error}"
                ));
                return WorkKept::GoOn;
            }
        }
        let mark = TreeMark {
            names: names.clone(),
            brought: self.brought,
        };
        // Without it, the tree is compared with what is kept when it is opened again.
        let _ = mark.write(&self.tree.path);
        *last = Some(names);
        WorkKept::GoOn
    }
}
