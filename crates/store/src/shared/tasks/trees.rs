//! Working trees of agents.

use async_trait::async_trait;
use codespar_protocol::TaskId;

use super::{
    super::{failure::Failure, rows::field},
    read,
    row::damaged,
};
use crate::engine::{self, Access, Backend, Connection, Row};
use crate::{KeptTree, StoreError, TaskLease, TreeContent, TreeStore, tree_sql as sql};

#[async_trait]
impl<B: Backend> TreeStore for B {
    /// As a claim does: the row of the task is locked, and other changes go on.
    async fn keep_tree(&self, lease: &TaskLease, tree: &KeptTree) -> Result<(), StoreError> {
        let mut work = self.begin(Access::Claim).await?;
        let outcome = keep(work.connection(), lease, tree).await;
        work.settle(outcome).await
    }

    async fn kept_tree(&self, task: &TaskId) -> Result<Option<KeptTree>, StoreError> {
        let mut work = self.single().await?;
        let outcome = kept(work.connection(), task).await;
        work.settle(outcome).await
    }

    async fn forget_tree(&self, task: &TaskId) -> Result<(), StoreError> {
        let mut work = self.single().await?;
        let query = engine::query(sql::FORGET_TREE).bind(task.as_str());
        let outcome = query.execute(work.connection()).await;
        work.settle(outcome.map(drop).map_err(Failure::from)).await
    }
}

async fn keep(
    connection: &mut Connection,
    lease: &TaskLease,
    tree: &KeptTree,
) -> Result<(), Failure> {
    read::check_attempt(connection, lease).await?;
    let (pack, missing) = match &tree.content {
        TreeContent::Pack(pack) => (Some(pack.as_slice()), None),
        TreeContent::Missing(reason) => (None, Some(reason.as_str())),
    };
    engine::query(sql::KEEP_TREE)
        .bind(lease.task.as_str())
        .bind(&tree.base)
        .bind(&tree.head)
        .bind(&tree.tree)
        .bind(pack)
        .bind(missing)
        .execute(connection)
        .await?;
    Ok(())
}

async fn kept(connection: &mut Connection, task: &TaskId) -> Result<Option<KeptTree>, Failure> {
    let row = engine::query(sql::KEPT_TREE)
        .bind(task.as_str())
        .fetch_optional(connection)
        .await?;
    let tree = row.as_ref().map(tree_of).transpose();
    Ok(tree.map_err(damaged)?)
}

fn tree_of(row: &Row) -> Result<KeptTree, String> {
    let missing: Option<String> = field(row, "missing")?;
    Ok(KeptTree {
        base: field(row, "base")?,
        head: field(row, "head")?,
        tree: field(row, "tree")?,
        content: match missing {
            Some(reason) => TreeContent::Missing(reason),
            None => TreeContent::Pack(field(row, "pack")?),
        },
    })
}
