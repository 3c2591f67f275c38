//! Offers to an engine: what is admitted, what is open, and who begins it.
//!
//! Beginning an offer is a claim of one task: the same lock of its row, the same lease, the same
//! fencing number. Only the judgement differs. The engine says that the last runner is lost; here it
//! must be lost by the database, too, because a process that the engine cannot reach may well be at
//! work.
//!
//! Admission takes from ready queues as a claim does, in turns and within the limits, but leaves the
//! tasks pending: the status says what people see, and a task that waits in an engine waits. What tells
//! it from other pending ones is its offer, which is why claims leave out whatever has one.
//!
//! The number of an offer is the fencing number at its admission. It grows with every attempt that was
//! begun, so an offer of an earlier attempt that an engine brings late begins nothing; and it stays the
//! same for one that was withdrawn and is made again, so that the engine knows it.

use std::collections::{BTreeSet, HashMap, HashSet};

use async_trait::async_trait;
use codespar_protocol::{Labels, TaskId, TaskStatus, TaskType};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        now,
        rows::{count, field, message_of},
    },
    admission::{self, ReadyQueues, Room},
    claim, fleet,
    places::Places,
    queue::Queue,
    read,
    row::{damaged, task_id},
    runners,
};
use crate::engine::{self, Access, Backend, Connection, Row};
use crate::{
    Begun, Capacity, Claimed, DispatchStore, EngineState, FleetRunner, MAX_TAKE_OVERS, RunnerAbout,
    RunnerId, RunnerSeen, StoreError, TaskClass, TaskOffer, dispatch_sql as sql,
};

#[async_trait]
impl<B: Backend> DispatchStore for B {
    async fn admit_tasks(
        &self,
        types: &[TaskType],
        window: u32,
    ) -> Result<Vec<TaskOffer>, StoreError> {
        let mut work = self.begin(Access::Claim).await?;
        let outcome = admit(work.connection(), types, window).await;
        work.settle(outcome).await
    }

    async fn open_offers(&self) -> Result<Vec<TaskOffer>, StoreError> {
        let mut work = self.look().await?;
        let outcome = open(work.connection()).await;
        work.settle(outcome).await
    }

    async fn label_sets(&self) -> Result<Vec<Labels>, StoreError> {
        let mut work = self.look().await?;
        let outcome = label_sets(work.connection()).await;
        work.settle(outcome).await
    }

    async fn begin_task(
        &self,
        runner: &RunnerId,
        task: &TaskId,
        number: u64,
    ) -> Result<Begun, StoreError> {
        for access in [Access::Claim, Access::Change] {
            let mut work = self.begin(access).await?;
            let outcome = begin(work.connection(), runner, task, number, now()).await;
            if let Some(begun) = work.settle(outcome).await? {
                return Ok(begun);
            }
        }
        Ok(Begun::Nothing)
    }

    async fn dispatchers(&self, engine: &str) -> Result<Vec<RunnerId>, StoreError> {
        let mut work = self.look().await?;
        let outcome = dispatchers(work.connection(), engine).await;
        work.settle(outcome).await
    }

    async fn withdraw_offers(&self) -> Result<u64, StoreError> {
        let mut work = self.look().await?;
        let outcome = is_abandoned(work.connection()).await;
        if !work.settle(outcome).await? {
            return Ok(0);
        }
        let mut work = self.change().await?;
        let withdrawn = engine::query(sql::WITHDRAW_OFFERS)
            .execute(work.connection())
            .await;
        work.settle(withdrawn.map_err(Failure::from))
            .await
            .map(|done| done.rows_affected())
    }
}

async fn dispatchers(connection: &mut Connection, engine: &str) -> Result<Vec<RunnerId>, Failure> {
    let mut there = fleet::runners_about(connection).await?;
    there.retain(|runner| {
        let about = runner.about.as_ref();
        let reaches = |about: &RunnerAbout| {
            about.engine == engine && about.engine_state == EngineState::Connected
        };
        runner.takes_offers() && about.is_some_and(reaches)
    });
    Ok(there
        .into_iter()
        .map(|runner| RunnerId(runner.id))
        .collect())
}

/// Whether there are offers, and nobody who would offer or begin them.
async fn is_abandoned(connection: &mut Connection) -> Result<bool, Failure> {
    if waiting(connection).await?.is_empty() {
        return Ok(false);
    }
    let runners = fleet::runners_about(connection).await?;
    Ok(!runners.iter().any(FleetRunner::takes_offers))
}

/// What may wait in the hands of an engine together: a queue of the engine.
pub(super) type Window = (Labels, TaskClass);

async fn admit(
    connection: &mut Connection,
    types: &[TaskType],
    window: u32,
) -> Result<Vec<TaskOffer>, Failure> {
    let ready = ReadyQueues::read(connection).await?;
    if ready.is_limited {
        // What runs is counted, and added to, by one admission at a time.
        engine::lock_admission(connection).await?;
    }
    let there = runners::seen(connection).await?;
    let alive: HashSet<&str> = there
        .iter()
        .filter(|other| !other.is_silent)
        .map(|other| other.id.0.as_str())
        .collect();
    let is_free = |queue: &Queue| {
        let reserved = queue.reserved_for.as_deref();
        !reserved.is_some_and(|only| alive.contains(only))
    };
    let mut offers = lost(connection, types, &there, is_free).await?;
    let windows: BTreeSet<Window> = ready
        .queues()
        .filter(|queue| is_free(queue) && types.contains(&queue.task_type))
        .map(|queue| window_of(&queue))
        .collect();
    let waiting = waiting(connection).await?;
    let mut places = match ready.is_limited {
        true => Some(Places::read(connection, &waiting).await?),
        false => None,
    };
    // Those with most labels first: few workers can take them.
    for place in windows.into_iter().rev() {
        let waits = waiting.get(&place).copied().unwrap_or_default();
        let free = places
            .as_ref()
            .map_or(u32::MAX, |places| places.left(&place));
        let left = window.saturating_sub(waits).min(free);
        if left == 0 {
            continue;
        }
        let room = room_of(types, place.1, left);
        let is_open = |queue: &Queue| is_free(queue) && window_of(queue) == place;
        let admitted = admission::admit(connection, ready.clone(), room, &[], is_open).await?;
        if let Some(places) = &mut places {
            places.take(&place, u32::try_from(admitted.len()).unwrap_or(u32::MAX));
        }
        for task in admitted {
            offers.push(offer(connection, task.id, task.task_type, &place.0).await?);
        }
    }
    Ok(offers)
}

/// Tasks that a runner was lost with. They were admitted once; another runner goes on with them. Each
/// gets an offer with a new number, which the engine brings at once: it may take long to notice that the
/// offer before is not worked on any more, and what it brings of that then begins nothing.
async fn lost(
    connection: &mut Connection,
    types: &[TaskType],
    there: &[RunnerSeen],
    is_free: impl Fn(&Queue) -> bool,
) -> Result<Vec<TaskOffer>, Failure> {
    let mut offers = Vec::new();
    for owner in claim::holders(connection).await? {
        let is_gone = |kind: &TaskType| holder(there, &owner, *kind).is_none();
        if !types.iter().any(is_gone) {
            continue;
        }
        let rows = engine::query(sql::HELD_WITHOUT_OFFER)
            .skip_locked()
            .bind(owner.as_str())
            .fetch_all(&mut *connection)
            .await?;
        for row in &rows {
            let queue = Queue::parse(field(row, "queue").map_err(damaged)?);
            let is_ours = |queue: &Queue| {
                let kind = queue.task_type;
                is_free(queue) && types.contains(&kind) && is_gone(&kind)
            };
            if let Some(queue) = queue.filter(is_ours) {
                let id = task_id(row, "id").map_err(damaged)?;
                offers.push(offer(connection, id, queue.task_type, &queue.labels).await?);
            }
        }
    }
    Ok(offers)
}

fn window_of(queue: &Queue) -> Window {
    (queue.labels.clone(), TaskClass::of(queue.task_type))
}

fn room_of(types: &[TaskType], class: TaskClass, left: u32) -> Room {
    let of_class = types.iter().filter(|kind| TaskClass::of(**kind) == class);
    Room::of(&Capacity {
        by_type: of_class.map(|kind| (*kind, left)).collect(),
        total: left,
        ..Capacity::default()
    })
}

/// How many are offered and not begun.
async fn waiting(connection: &mut Connection) -> Result<HashMap<Window, u32>, Failure> {
    let rows = engine::query(sql::OFFERED_BY_QUEUE)
        .fetch_all(connection)
        .await?;
    let mut waiting: HashMap<Window, u32> = HashMap::new();
    for row in &rows {
        if let Some(queue) = Queue::parse(field(row, "queue").map_err(damaged)?) {
            let offered = count(row, "tasks").map_err(damaged)?;
            let known = waiting.entry(window_of(&queue)).or_default();
            *known = known.saturating_add(u32::try_from(offered).unwrap_or(u32::MAX));
        }
    }
    Ok(waiting)
}

async fn offer(
    connection: &mut Connection,
    task: TaskId,
    task_type: TaskType,
    labels: &Labels,
) -> Result<TaskOffer, Failure> {
    let row = engine::query(sql::OFFER)
        .bind(task.as_str())
        .fetch_one(connection)
        .await?;
    Ok(TaskOffer {
        task,
        number: count(&row, "offer").map_err(damaged)?,
        task_type,
        labels: labels.clone(),
    })
}

async fn open(connection: &mut Connection) -> Result<Vec<TaskOffer>, Failure> {
    let rows = engine::query(sql::OFFERS)
        .fetch_all(&mut *connection)
        .await?;
    let there = runners::seen(connection).await?;
    let mut open = Vec::new();
    for row in &rows {
        let (offer, owner) = read_offer(row).map_err(damaged)?;
        let is_held = |owner: String| holder(&there, &owner, offer.task_type).is_some();
        if !owner.is_some_and(is_held) {
            open.push(offer);
        }
    }
    Ok(open)
}

fn read_offer(row: &Row) -> Result<(TaskOffer, Option<String>), String> {
    let offer = TaskOffer {
        task: task_id(row, "id")?,
        number: count(row, "offer")?,
        task_type: field::<&str>(row, "task_type")?
            .parse()
            .map_err(message_of)?,
        labels: field::<&str>(row, "labels")?.parse().map_err(message_of)?,
    };
    Ok((offer, field(row, "lease_owner")?))
}

/// The runner that has a task, unless another may take it: one that is gone, or silent with a task
/// that another can continue. A command cannot be continued, only be called lost.
fn holder<'a>(there: &'a [RunnerSeen], owner: &str, task_type: TaskType) -> Option<&'a RunnerSeen> {
    let holder = there.iter().find(|runner| runner.id.0 == owner);
    holder.filter(|runner| !runner.is_silent || task_type == TaskType::LocalBash)
}

async fn label_sets(connection: &mut Connection) -> Result<Vec<Labels>, Failure> {
    let ready = ReadyQueues::read(connection).await?;
    let mut sets: BTreeSet<Labels> = ready.queues().map(|queue| queue.labels).collect();
    let waiting = waiting(connection).await?;
    sets.extend(waiting.into_keys().map(|(labels, _)| labels));
    // What a lost runner had waits for another, and is neither ready nor pending.
    sets.extend(
        open(connection)
            .await?
            .into_iter()
            .map(|offer| offer.labels),
    );
    Ok(sets.into_iter().collect())
}

/// `None` where the task must be given up first. That ends others with it, which takes a change.
async fn begin(
    connection: &mut Connection,
    runner: &RunnerId,
    task: &TaskId,
    number: u64,
    at: Timestamp,
) -> Result<Option<Begun>, Failure> {
    // Before its row is locked: nothing is waited for after that.
    runners::seen_with(connection, runner).await?;
    let row = engine::query(sql::OFFERED_TASK)
        .for_update()
        .bind(task.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else {
        return Ok(Some(Begun::Nothing));
    };
    let offered = OfferedTask::read(&row).map_err(damaged)?;
    if offered.number != Some(number) || offered.status.is_final() {
        return Ok(Some(Begun::Nothing));
    }
    let owner = offered
        .owner
        .filter(|_| offered.status == TaskStatus::Running);
    if let Some(owner) = &owner {
        // After: whoever has begun it was there before.
        let there = runners::seen(connection).await?;
        if let Some(holder) = holder(&there, owner, offered.task_type) {
            return Ok(Some(Begun::Held(holder.id.clone())));
        }
        if offered.take_overs >= u64::from(MAX_TAKE_OVERS) {
            if connection.access == Access::Claim {
                return Ok(None);
            }
            claim::give_up(connection, task, at).await?;
            return Ok(Some(Begun::Nothing));
        }
    }
    let ids = [task.clone()];
    let epochs = claim::take(connection, runner, &ids, at).await?;
    let records = read::records(connection, &ids).await?;
    let claimed = records.into_iter().zip(epochs).next();
    Ok(Some(claimed.map_or(Begun::Nothing, |(record, epoch)| {
        Begun::Claimed(Box::new(Claimed {
            record,
            epoch,
            taken_from: owner.map(RunnerId),
        }))
    })))
}

/// What decides about beginning it.
struct OfferedTask {
    task_type: TaskType,
    status: TaskStatus,
    number: Option<u64>,
    owner: Option<String>,
    take_overs: u64,
}

impl OfferedTask {
    fn read(row: &Row) -> Result<Self, String> {
        let number: Option<i64> = field(row, "offer")?;
        Ok(Self {
            task_type: field::<&str>(row, "task_type")?
                .parse()
                .map_err(message_of)?,
            status: field::<&str>(row, "status")?.parse().map_err(message_of)?,
            number: number.map(u64::try_from).transpose().map_err(message_of)?,
            owner: field(row, "lease_owner")?,
            take_overs: count(row, "take_overs")?,
        })
    }
}
