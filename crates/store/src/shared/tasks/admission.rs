//! Which of the ready tasks are taken, when there are more than there is room for.
//!
//! Repositories take turns: the next task is one of the repository that has least, counting what
//! runs and what this claim has taken, and the oldest of those. So one repository's thousand tasks
//! do not keep another's single task waiting. Limits close queues as they are reached.
//!
//! Only the head of each queue is known at first; rows of a queue are read when its turn comes.

use std::collections::{HashMap, HashSet, VecDeque};

use codespar_protocol::{TaskId, TaskType};

use super::{
    super::{
        failure::Failure,
        rows::{count, field},
    },
    claim::Candidate,
    limits::{self, Limits, Running},
    queue::Queue,
    read,
    row::{damaged, task_id},
};
use crate::engine::{self, Connection};
use crate::{Capacity, task_sql as sql};

/// What a runner has room for, as it fills.
pub(super) struct Room {
    by_type: HashMap<TaskType, u32>,
    total: u32,
}

impl Room {
    /// A type that is named twice has the room of both.
    pub(super) fn of(capacity: &Capacity) -> Self {
        let mut by_type: HashMap<TaskType, u32> = HashMap::new();
        for &(task_type, room) in &capacity.by_type {
            let left = by_type.entry(task_type).or_default();
            *left = left.saturating_add(room);
        }
        Self {
            by_type,
            total: capacity.total,
        }
    }

    /// How many of this type still fit; 0 for a type that the runner does not take.
    fn left(&self, task_type: TaskType) -> u32 {
        let left = self.by_type.get(&task_type).copied().unwrap_or_default();
        left.min(self.total)
    }

    /// Whether there was room for one.
    pub(super) fn take(&mut self, task_type: TaskType) -> bool {
        if self.left(task_type) == 0 {
            return false;
        }
        self.total -= 1;
        if let Some(left) = self.by_type.get_mut(&task_type) {
            *left -= 1;
        }
        true
    }
}

/// The queues that have something ready, and whether there are limits.
#[derive(Clone, Default)]
pub(super) struct ReadyQueues {
    heads: Vec<(String, u64)>,
    pub(super) is_limited: bool,
}

impl ReadyQueues {
    pub(super) async fn read(connection: &mut Connection) -> Result<Self, Failure> {
        let rows = engine::query(sql::READY_QUEUES)
            .fetch_all(connection)
            .await?;
        let mut ready = Self::default();
        for row in &rows {
            let name = field(row, "queue").map_err(damaged)?;
            // Nothing where its last task was taken within the statement.
            if let Some(head) = field::<Option<i64>>(row, "head").map_err(damaged)? {
                let head = u64::try_from(head).unwrap_or_default();
                ready.heads.push((name, head));
            }
            ready.is_limited = field(row, "is_limited").map_err(damaged)?;
        }
        Ok(ready)
    }

    /// Those that runners take from, by what their names say.
    pub(super) fn queues(&self) -> impl Iterator<Item = Queue> {
        self.heads.iter().filter_map(|(name, _)| Queue::parse(name))
    }
}

/// A queue that this runner may take from.
struct Line {
    name: String,
    queue: Queue,
    /// The order of its first task.
    head: u64,
    /// Once they were read.
    tasks: Option<VecDeque<Candidate>>,
}

impl Line {
    fn has_more(&self) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| !tasks.is_empty())
    }

    fn set(&mut self, tasks: VecDeque<Candidate>) {
        if let Some(first) = tasks.front() {
            self.head = first.seq;
        }
        self.tasks = Some(tasks);
    }
}

/// Takes from ready queues until the room, the limits or the tasks are used up.
pub(super) async fn admit(
    connection: &mut Connection,
    ready: ReadyQueues,
    room: Room,
    skip: &[TaskId],
    open: impl Fn(&Queue) -> bool,
) -> Result<Vec<Candidate>, Failure> {
    let lines = ready.heads.into_iter().filter_map(|(name, head)| {
        let queue = Queue::parse(&name)?;
        let is_wanted = open(&queue) && room.left(queue.task_type) > 0;
        is_wanted.then_some(Line {
            queue,
            name,
            head,
            tasks: None,
        })
    });
    let lines: Vec<Line> = lines.collect();
    let (limits, running) = counts(connection, &lines, ready.is_limited).await?;
    let mut admission = Admission {
        lines,
        room,
        limits,
        running,
    };
    let mut taken = Vec::new();
    while let Some(place) = admission.next_turn() {
        match admission.lines[place].tasks.is_some() {
            true => taken.extend(admission.take(place)),
            false => admission.look(connection, place, skip).await?,
        }
    }
    Ok(taken)
}

/// The queues that may still be taken from, and what stands against it.
struct Admission {
    lines: Vec<Line>,
    room: Room,
    limits: Limits,
    running: Running,
}

impl Admission {
    fn left(&self, queue: &Queue) -> u32 {
        let by_limits = self.limits.left(queue, &self.running);
        by_limits.min(self.room.left(queue.task_type))
    }

    /// The place of the queue whose turn it is.
    fn next_turn(&mut self) -> Option<usize> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.retain(|line| line.has_more() && self.left(&line.queue) > 0);
        self.lines = lines;
        let turn = |(_, line): &(usize, &Line)| {
            let has = self.running.of_repository(&line.queue.repository);
            (has, line.head)
        };
        let next = self.lines.iter().enumerate().min_by_key(turn);
        next.map(|(place, _)| place)
    }

    /// Reads as many tasks of a queue as there is room for. Another claim may be taking the head that
    /// was seen before: the turn of the queue is that of what is left.
    async fn look(
        &mut self,
        connection: &mut Connection,
        place: usize,
        skip: &[TaskId],
    ) -> Result<(), Failure> {
        let most = self.left(&self.lines[place].queue);
        let line = &mut self.lines[place];
        let tasks = first_of(connection, line, most, skip).await?;
        line.set(tasks);
        Ok(())
    }

    fn take(&mut self, place: usize) -> Option<Candidate> {
        let line = &mut self.lines[place];
        let mut tasks = line.tasks.take()?;
        let task = tasks.pop_front();
        line.set(tasks);
        self.room.take(line.queue.task_type);
        self.running.add(&line.queue, 1);
        task
    }
}

/// Nothing is asked where nothing is limited and only one repository has anything ready.
async fn counts(
    connection: &mut Connection,
    lines: &[Line],
    is_limited: bool,
) -> Result<(Limits, Running), Failure> {
    let repositories = lines.iter().map(|line| line.queue.repository.as_str());
    let repositories: HashSet<&str> = repositories.collect();
    let running = match is_limited && !lines.is_empty() || repositories.len() > 1 {
        true => Running::read(connection).await?,
        false => Running::default(),
    };
    let limits = match is_limited {
        true => Limits::of(&limits::read(connection).await?),
        false => Limits::default(),
    };
    Ok((limits, running))
}

async fn first_of(
    connection: &mut Connection,
    line: &Line,
    most: u32,
    skip: &[TaskId],
) -> Result<VecDeque<Candidate>, Failure> {
    let rows = engine::query(sql::READY_IN_QUEUE)
        .skip_locked()
        .bind(line.name.as_str())
        .bind(i64::from(most))
        .bind(read::json(skip.iter()))
        .fetch_all(connection)
        .await?;
    let candidate = |row| -> Result<Candidate, String> {
        Ok(Candidate {
            seq: count(row, "seq")?,
            id: task_id(row, "id")?,
            task_type: line.queue.task_type,
            taken_from: None,
        })
    };
    let first: Result<_, String> = rows.iter().map(candidate).collect();
    Ok(first.map_err(damaged)?)
}
