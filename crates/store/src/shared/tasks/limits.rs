//! Limits, and what runs under them.

use std::collections::HashMap;

use async_trait::async_trait;
use codespar_protocol::Labels;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, message_of},
    },
    queue::Queue,
    row::damaged,
};
use crate::engine::{self, Backend, Connection, Row};
use crate::{Limit, LimitScope, LimitStore, StoreError, fleet_sql as sql};

#[async_trait]
impl<B: Backend> LimitStore for B {
    async fn limits(&self) -> Result<Vec<Limit>, StoreError> {
        let mut work = self.single().await?;
        let outcome = read(work.connection()).await;
        work.settle(outcome).await
    }

    async fn set_limit(
        &self,
        scope: LimitScope,
        name: &str,
        limit: Option<u32>,
    ) -> Result<(), StoreError> {
        let name = checked(scope, name)?;
        let mut work = self.change().await?;
        let outcome = set(work.connection(), scope, &name, limit).await;
        work.settle(outcome).await
    }
}

/// The name as it is kept: that of labels is sorted.
fn checked(scope: LimitScope, name: &str) -> Result<String, StoreError> {
    let bad = |message: String| StoreError::BadLimit { scope, message };
    match scope {
        LimitScope::All if !name.is_empty() => Err(bad("it takes no name".to_owned())),
        LimitScope::Labels if name.is_empty() => {
            Err(bad("name the labels, such as gpu,linux".to_owned()))
        }
        LimitScope::Labels => match name.parse::<Labels>() {
            Ok(labels) => Ok(labels.to_string()),
            Err(error) => Err(bad(error.to_string())),
        },
        _ => Ok(name.to_owned()),
    }
}

async fn set(
    connection: &mut Connection,
    scope: LimitScope,
    name: &str,
    limit: Option<u32>,
) -> Result<(), Failure> {
    let query = match limit {
        Some(limit) => engine::query(sql::SET_LIMIT)
            .bind(scope.as_str())
            .bind(name)
            .bind(i64::from(limit)),
        None => engine::query(sql::REMOVE_LIMIT)
            .bind(scope.as_str())
            .bind(name),
    };
    query.execute(connection).await?;
    Ok(())
}

pub(super) async fn read(connection: &mut Connection) -> Result<Vec<Limit>, Failure> {
    let rows = engine::query(sql::LIMITS).fetch_all(connection).await?;
    let limit = |row: &Row| -> Result<Limit, String> {
        Ok(Limit {
            scope: field::<&str>(row, "scope")?.parse().map_err(message_of)?,
            name: field(row, "name")?,
            limit: u32::try_from(count(row, "max_running")?).map_err(message_of)?,
        })
    };
    let limits: Result<_, String> = rows.iter().map(limit).collect();
    Ok(limits.map_err(damaged)?)
}

/// What limits count, and what repositories have.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// All that runners have, by repository.
    by_repository: HashMap<String, u64>,
    /// What somebody asked for, by all that a limit may be of.
    counted: HashMap<(LimitScope, String), u64>,
}

impl Running {
    /// Costs what was admitted: both parts are read off an index.
    pub(super) async fn read(connection: &mut Connection) -> Result<Self, Failure> {
        let mut running = Self::default();
        let rows = engine::query(sql::ADMITTED_BY_QUEUE)
            .fetch_all(connection)
            .await?;
        for row in &rows {
            if let Some(queue) = Queue::parse(field(row, "queue").map_err(damaged)?) {
                running.add(&queue, count(row, "tasks").map_err(damaged)?);
            }
        }
        Ok(running)
    }

    pub(super) fn add(&mut self, queue: &Queue, more: u64) {
        let repository = queue.repository.clone();
        *self.by_repository.entry(repository).or_default() += more;
        if queue.is_counted {
            for key in keys_of(queue) {
                *self.counted.entry(key).or_default() += more;
            }
        }
    }

    pub(super) fn of_repository(&self, repository: &str) -> u64 {
        self.by_repository
            .get(repository)
            .copied()
            .unwrap_or_default()
    }

    fn counted(&self, key: &(LimitScope, String)) -> u64 {
        self.counted.get(key).copied().unwrap_or_default()
    }

    /// How many run under a limit. Under one that is for each name without its own, the most that
    /// one of those names has.
    pub(super) fn under(&self, limit: &Limit, limits: &Limits) -> u64 {
        let own = (limit.scope, limit.name.clone());
        if !is_default(&own) {
            return self.counted(&own);
        }
        let under = self.counted.iter();
        under
            .filter(|((scope, _), _)| *scope == limit.scope)
            .filter(|(key, _)| !limits.0.contains_key(*key))
            .map(|(_, running)| *running)
            .max()
            .unwrap_or_default()
    }
}

/// Limits to look up.
#[derive(Debug, Default)]
pub(super) struct Limits(HashMap<(LimitScope, String), u32>);

impl Limits {
    pub(super) fn of(limits: &[Limit]) -> Self {
        let entry = |limit: &Limit| ((limit.scope, limit.name.clone()), limit.limit);
        Self(limits.iter().map(entry).collect())
    }

    /// How many more tasks of this queue may begin.
    pub(super) fn left(&self, queue: &Queue, running: &Running) -> u32 {
        if self.0.is_empty() || !queue.is_counted {
            return u32::MAX;
        }
        let left = keys_of(queue).into_iter().filter_map(|key| {
            let limit = self.limit_of(&key)?;
            let running = u32::try_from(running.counted(&key)).unwrap_or(u32::MAX);
            Some(limit.saturating_sub(running))
        });
        left.min().unwrap_or(u32::MAX)
    }

    fn limit_of(&self, key: &(LimitScope, String)) -> Option<u32> {
        let of_each = (key.0, String::new());
        let limit = self.0.get(key);
        limit
            .or_else(|| self.0.get(&of_each).filter(|_| is_default(&of_each)))
            .copied()
    }
}

/// Whether a limit is for each name that has none of its own.
fn is_default((scope, name): &(LimitScope, String)) -> bool {
    matches!(scope, LimitScope::Repository | LimitScope::User) && name.is_empty()
}

/// All that a limit of this queue may be under.
fn keys_of(queue: &Queue) -> Vec<(LimitScope, String)> {
    let mut keys = vec![
        (LimitScope::All, String::new()),
        (LimitScope::Repository, queue.repository.clone()),
    ];
    if let Some(user) = &queue.user {
        keys.push((LimitScope::User, user.clone()));
    }
    if !queue.labels.is_empty() {
        keys.push((LimitScope::Labels, queue.labels.to_string()));
    }
    keys
}
