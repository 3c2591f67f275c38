//! Serves a channel: looks at what is open whenever something has changed.
//!
//! The loop decides nothing by itself. It reads what is open, asks what each message comes to, and
//! starts what takes long beside itself. What it knows is on record: ending it at any point and
//! beginning anew gives the same messages, which is also how a crash is handled.

use std::{collections::HashMap, sync::Arc, time::Duration};

use codespar_protocol::TaskId;
use codespar_store::{
    ChangeKind, ChannelMessage, MessageState, StoreChange, StoreError, ThreadRef,
};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    ChannelCore,
    decide::Decision,
    hold::hold,
    news::{FollowedTasks, News, TaskPresence},
    work::Order,
};
use crate::ChannelAdapter;

/// Between an error of the store and the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

impl ChannelCore {
    /// Handles the messages of a channel and sends what is for its people, until `cancel`. Waits
    /// while another process does.
    pub async fn serve(
        self: &Arc<Self>,
        adapter: Arc<dyn ChannelAdapter>,
        cancel: CancellationToken,
    ) -> std::io::Result<()> {
        let state = self.setup.home.dir.state().to_owned();
        let _hold = tokio::select! {
            held = hold(&state, adapter.name()) => held?,
            () = cancel.cancelled() => return Ok(()),
        };
        let name = adapter.name().to_owned();
        self.adapters.lock().insert(name, adapter.clone());
        if let Err(error) = self.sweep_pictures(adapter.name()).await {
            tracing::warn!("pictures of earlier messages stay: {error}");
        }
        let sending = async {
            loop {
                if let Err(error) = self.send_all(&*adapter).await {
                    tracing::warn!("messages are not sent: {error}");
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let handling = async {
            loop {
                if let Err(error) = self.handle_all(adapter.name()).await {
                    tracing::warn!("messages are not handled: {error}");
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let timing = async {
            loop {
                if let Err(error) = self.run_timers(adapter.name()).await {
                    tracing::warn!("schedules and watches are not looked at: {error}");
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = sending => {}
            () = handling => {}
            () = timing => {}
            () = cancel.cancelled() => {}
        }
        Ok(())
    }

    /// Looks whenever something has changed, at what has changed: with a thousand open messages a
    /// step of one task must not cost a look at the others.
    async fn handle_all(self: &Arc<Self>, channel: &str) -> Result<(), StoreError> {
        let mut wakes = self.wakes.subscribe();
        let mut changes = self.setup.runtime.changes().follow().await?;
        let mut news = News::Everything;
        let mut followed = FollowedTasks::default();
        loop {
            // A wake that came together with a change of a task is not to be lost.
            if wakes.has_changed().unwrap_or_default() {
                wakes.mark_unchanged();
                news.include_messages();
            }
            self.look(channel, &news, &mut followed).await?;
            news = tokio::select! {
                news = News::next(&mut changes, channel) => news,
                _ = wakes.changed() => News::of_messages(),
            };
            self.find_askers(&mut news).await?;
        }
    }

    /// Adds the runs whose agents ask something.
    async fn find_askers(&self, news: &mut News) -> Result<(), StoreError> {
        let News::Of { tasks, asking, .. } = news else {
            return Ok(());
        };
        for task in asking.drain() {
            match self.with_those_above(task).await {
                Ok(above) => tasks.extend(above),
                // It was removed since.
                Err(StoreError::NoSuchTask(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Looks at what the news are about.
    async fn look(
        self: &Arc<Self>,
        channel: &str,
        news: &News,
        followed: &mut FollowedTasks,
    ) -> Result<(), StoreError> {
        match news {
            News::Of {
                messages: false,
                tasks,
                ..
            } if followed.is_complete() => {
                for task in tasks.iter().filter(|task| followed.contains(task)) {
                    self.look_at_task(task).await?;
                }
                Ok(())
            }
            _ => self.look_at_open(channel, news, followed).await,
        }
    }

    /// Looks at the message that a task is for. One that is settled is looked at no more.
    async fn look_at_task(self: &Arc<Self>, task: &TaskId) -> Result<(), StoreError> {
        let message = self.store().message_of_task(task).await?;
        match message {
            Some(message) if message.state == MessageState::Working => {
                self.look_at_work(&message).await.map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Looks at the open messages, in the order of arrival, and at their tasks as far as there are
    /// news of them. A thread has one work at a time; commands without work are carried out beside
    /// it.
    async fn look_at_open(
        self: &Arc<Self>,
        channel: &str,
        news: &News,
        followed: &mut FollowedTasks,
    ) -> Result<(), StoreError> {
        // Before the record is read: what is settled beside the loop after that would be handled
        // again as it was before.
        let in_flight = self.in_flight.lock().clone();
        let open = self.store().open_messages(channel).await?;
        let mut working: HashMap<ThreadRef, TaskId> = HashMap::new();
        let mut seen = FollowedTasks::default();
        for message in &open {
            if let (MessageState::Working, Some(task)) = (message.state, &message.task_id) {
                working.insert(message.at.clone(), task.clone());
                let presence = match followed.contains(task) && !news.is_of(task) {
                    true => TaskPresence::There,
                    false => self.look_at_work(message).await?,
                };
                seen.note(task, presence);
            }
        }
        *followed = seen;
        let mut queued: Vec<ChannelMessage> = Vec::new();
        for message in open {
            if in_flight.contains(&message.at) || self.is_in_flight(&message.at) {
                continue;
            }
            match message.state {
                MessageState::Received => {
                    let task = working.get(&message.at).cloned();
                    self.look_at_message(message, task).await?;
                }
                MessageState::Queued if !working.contains_key(&message.at) => queued.push(message),
                _ => {}
            }
        }
        self.look_at_queues(queued).await
    }

    /// Follows the task of a message, or has it started.
    async fn look_at_work(
        self: &Arc<Self>,
        message: &ChannelMessage,
    ) -> Result<TaskPresence, StoreError> {
        let Some(task) = &message.task_id else {
            return Ok(TaskPresence::There);
        };
        match self.store().task(task).await {
            Ok(record) => {
                self.follow(message, &record).await?;
                Ok(TaskPresence::There)
            }
            Err(StoreError::NoSuchTask(_)) => {
                let (core, message) = (self.clone(), message.clone());
                let at = message.at.clone();
                self.beside(&at, async move { core.start(&message).await });
                Ok(TaskPresence::Missing)
            }
            Err(error) => Err(error),
        }
    }

    /// What takes long is done beside the loop; its thread waits for it.
    async fn look_at_message(
        self: &Arc<Self>,
        message: ChannelMessage,
        working: Option<TaskId>,
    ) -> Result<(), StoreError> {
        let at = message.at.clone();
        let core = self.clone();
        let (turn, request) = match self.decide(message).await? {
            Decision::Settled => return Ok(()),
            Decision::Talk(turn) => {
                self.beside(&at, async move { core.talk(*turn).await });
                return Ok(());
            }
            Decision::Command(turn, request) => (turn, request),
        };
        match (Order::of(turn, request), working) {
            (Ok(order), Some(task)) => self.queue(&order, &task).await,
            (Ok(order), None) => {
                self.beside(&at, async move { core.begin(&[order]).await });
                Ok(())
            }
            (Err((turn, request)), _) => {
                self.beside(&at, async move { core.carry_out(&turn, &request).await });
                Ok(())
            }
        }
    }

    /// Delivers what was queued in threads that have no work any more, together. Rights are looked
    /// at again. What names another repository than the first waits for its own turn.
    async fn look_at_queues(
        self: &Arc<Self>,
        queued: Vec<ChannelMessage>,
    ) -> Result<(), StoreError> {
        let mut threads: Vec<(ThreadRef, Vec<Order>)> = Vec::new();
        for message in queued {
            let at = message.at.clone();
            let (turn, request) = match self.decide(message).await? {
                Decision::Settled => continue,
                Decision::Talk(turn) => {
                    let core = self.clone();
                    self.beside(&at, async move { core.talk(*turn).await });
                    continue;
                }
                Decision::Command(turn, request) => (turn, request),
            };
            let Ok(order) = Order::of(turn, request) else {
                continue;
            };
            match threads.iter_mut().find(|(known, _)| *known == at) {
                Some((_, orders)) if goes_with(orders, &order) => orders.push(order),
                Some(_) => {}
                None => threads.push((at, vec![order])),
            }
        }
        for (at, orders) in threads {
            let core = self.clone();
            self.beside(&at, async move { core.begin(&orders).await });
        }
        Ok(())
    }

    fn is_in_flight(&self, at: &ThreadRef) -> bool {
        self.in_flight.lock().contains(at)
    }

    /// Does something for a thread beside the loop, which looks again when it is done.
    fn beside(
        self: &Arc<Self>,
        at: &ThreadRef,
        work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) {
        if !self.in_flight.lock().insert(at.clone()) {
            return;
        }
        let (core, at) = (self.clone(), at.clone());
        tokio::spawn(async move {
            if let Err(error) = work.await {
                tracing::warn!("a message is not handled: {error}");
                tokio::time::sleep(PAUSE).await;
            }
            core.in_flight.lock().remove(&at);
            core.wake();
        });
    }

    /// Waits until nothing is left to be done for a channel but what waits for a person.
    pub async fn idle(&self, channel: &str) -> Result<(), StoreError> {
        let matters = |change: &StoreChange| !matches!(change.kind, ChangeKind::Entry { .. });
        let mut wakes = self.wakes.subscribe();
        let mut changes = self.setup.runtime.changes().follow().await?;
        loop {
            wakes.mark_unchanged();
            if self.is_idle(channel).await? {
                return Ok(());
            }
            tokio::select! {
                () = changes.until(matters) => {}
                _ = wakes.changed() => {}
            }
        }
    }

    /// Whether nothing is left to be done for a channel but what waits for an answer of a person.
    async fn is_idle(&self, channel: &str) -> Result<bool, StoreError> {
        // The messages once more after the timers: a timer that came due in between has put its
        // message on record in the same step that moved it on. What is to be sent comes last, since
        // it is put on record by what settles a message.
        if self.has_work(channel).await?
            || self.has_due_timer(channel).await?
            || self.has_work(channel).await?
        {
            return Ok(false);
        }
        let is_sent = self.store().unsent(channel).await?.is_empty();
        Ok(is_sent && self.in_flight.lock().is_empty())
    }

    async fn has_due_timer(&self, channel: &str) -> Result<bool, StoreError> {
        let due = self.store().due_timers(channel, Timestamp::now()).await?;
        Ok(!due.is_empty())
    }

    /// Whether a message is open in a thread that does not wait for an answer of a person.
    async fn has_work(&self, channel: &str) -> Result<bool, StoreError> {
        let open = self.store().open_messages(channel).await?;
        let mut waiting: Vec<&ThreadRef> = Vec::new();
        for message in &open {
            if let (MessageState::Working, Some(task)) = (message.state, &message.task_id)
                && !self.open_questions(task).await?.is_empty()
            {
                waiting.push(&message.at);
            }
        }
        Ok(!open.iter().all(|message| waiting.contains(&&message.at)))
    }
}

fn goes_with(orders: &[Order], order: &Order) -> bool {
    use super::work::WorkCommand;
    // What we put on record ourselves is about a pull request of its own.
    let is_dev = |order: &Order| {
        matches!(order.command, WorkCommand::Dev { .. }) && order.turn.kept.origin.is_none()
    };
    let first = orders.first();
    let is_same = first.is_some_and(|first| {
        is_dev(first)
            && (order.options.repository.is_none()
                || order.options.repository == first.options.repository)
    });
    is_same && is_dev(order)
}
