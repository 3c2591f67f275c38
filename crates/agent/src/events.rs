//! What agents do, to any number of listeners in this process.
//!
//! Delivery is a plain call on the thread of the agent: there is no queue, so nothing is lost and
//! nothing piles up. The list of listeners is copied before they are called, so a listener may
//! subscribe, leave or publish itself. After it was dropped, a listener may still get an event that
//! was being delivered at that moment.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use codespar_protocol::{Event, SessionId, TaskId};
use parking_lot::RwLock;

use crate::Sink;

/// An event, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct AgentEvent<'a> {
    /// The conversation; none for tasks that have none.
    pub session: Option<SessionId>,
    /// None for the agent that the user talks to.
    pub task: Option<&'a TaskId>,
    pub event: &'a Event,
}

/// Called where the event happens, in the order of an agent's events. One that is slow holds the
/// agent up; it hands the event on instead.
pub type EventListener = Arc<dyn Fn(&AgentEvent<'_>) + Send + Sync>;

/// Everything that happens in the agents and tasks of a process.
#[derive(Clone, Default)]
pub struct EventBus(Arc<RwLock<Listeners>>);

#[derive(Default)]
struct Listeners {
    next: u64,
    to_all: Vec<(u64, EventListener)>,
    /// By task; each follower is known by its session.
    to_tasks: HashMap<TaskId, Vec<(SessionId, Sink)>>,
}

/// A listener is heard until this is dropped.
pub struct Subscription {
    id: u64,
    bus: Weak<RwLock<Listeners>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(bus) = self.bus.upgrade() {
            bus.write().to_all.retain(|(id, _)| *id != self.id);
        }
    }
}

impl EventBus {
    /// Hears everything from now on.
    #[must_use = "the listener hears nothing once this is dropped"]
    pub fn subscribe(&self, listener: EventListener) -> Subscription {
        let mut listeners = self.0.write();
        listeners.next += 1;
        let id = listeners.next;
        listeners.to_all.push((id, listener));
        Subscription {
            id,
            bus: Arc::downgrade(&self.0),
        }
    }

    /// Hears one task until it is over. A second time for the same session replaces the first. Kept
    /// until `forget_task`, which the scheduler calls at its end.
    pub fn follow_task(&self, id: &TaskId, session: SessionId, sink: Sink) {
        let mut listeners = self.0.write();
        let of_task = listeners.to_tasks.entry(id.clone()).or_default();
        of_task.retain(|(known, _)| *known != session);
        of_task.push((session, sink));
    }

    /// Nobody hears the task any more.
    pub fn forget_task(&self, id: &TaskId) {
        self.0.write().to_tasks.remove(id);
    }

    /// The tasks that somebody hears.
    pub fn followed_tasks(&self) -> Vec<TaskId> {
        self.0.read().to_tasks.keys().cloned().collect()
    }

    /// Tells everyone who listens. The event of a subagent is published by itself as well, so
    /// those who hear everything do not get it a second time as one of its parent.
    pub fn publish(&self, session: Option<SessionId>, task: Option<&TaskId>, event: Event) {
        let listeners = self.0.read();
        let to_all: Vec<EventListener> = match event {
            Event::Subagent { .. } => Vec::new(),
            _ => listeners.to_all.iter().map(|(_, l)| l.clone()).collect(),
        };
        let of_task = task.and_then(|id| listeners.to_tasks.get(id));
        let sinks: Vec<Sink> = of_task
            .into_iter()
            .flatten()
            .map(|(_, sink)| sink.clone())
            .collect();
        // A listener may subscribe or leave.
        drop(listeners);
        let heard = AgentEvent {
            session,
            task,
            event: &event,
        };
        for listener in to_all {
            listener(&heard);
        }
        if let Some((last, others)) = sinks.split_last() {
            for sink in others {
                sink(event.clone());
            }
            last(event);
        }
    }

    /// Where an agent of a session sends its events: to everyone, and to its own surface.
    pub fn sink_of(&self, session: SessionId, own: Sink) -> Sink {
        let bus = self.clone();
        Arc::new(move |event: Event| {
            bus.publish(Some(session), None, event.clone());
            own(event);
        })
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    fn notice(text: &str) -> Event {
        Event::Notice {
            level: codespar_protocol::NoticeLevel::Info,
            text: text.to_owned(),
        }
    }

    fn text(event: &Event) -> String {
        match event {
            Event::Notice { text, .. } => text.clone(),
            other => format!("{other:?}"),
        }
    }

    type Heard = Arc<Mutex<Vec<String>>>;

    fn all(bus: &EventBus, heard: &Heard) -> Subscription {
        let heard = heard.clone();
        bus.subscribe(Arc::new(move |event| heard.lock().push(text(event.event))))
    }

    fn follow(bus: &EventBus, id: &TaskId, session: SessionId, heard: &Heard, mark: &'static str) {
        let heard = heard.clone();
        let sink: Sink = Arc::new(move |event| heard.lock().push(mark.to_owned() + &text(&event)));
        bus.follow_task(id, session, sink);
    }

    #[test]
    fn any_number_hear_a_task_and_each_until_it_leaves() {
        let (bus, heard) = (EventBus::default(), Heard::default());
        let id = TaskId::new(codespar_protocol::TaskType::LocalAgent);
        let (one, two) = (SessionId::new(), SessionId::new());
        follow(&bus, &id, one, &heard, "old ");
        follow(&bus, &id, one, &heard, "one ");
        follow(&bus, &id, two, &heard, "two ");
        let subscription = all(&bus, &heard);
        let second = all(&bus, &heard);
        bus.publish(None, Some(&id), notice("a"));
        drop(second);
        bus.publish(Some(one), None, notice("b"));
        bus.forget_task(&id);
        bus.publish(None, Some(&id), notice("c"));
        drop(subscription);
        bus.publish(None, Some(&id), notice("d"));
        assert_eq!(*heard.lock(), ["a", "a", "one a", "two a", "b", "c"]);
        assert!(bus.followed_tasks().is_empty());
    }

    #[test]
    fn what_a_subagent_does_is_heard_once_by_those_who_hear_everything() {
        let (bus, heard) = (EventBus::default(), Heard::default());
        let (parent, child) = (
            TaskId::new(codespar_protocol::TaskType::LocalAgent),
            TaskId::new(codespar_protocol::TaskType::LocalAgent),
        );
        let _all = all(&bus, &heard);
        let (up, above, below) = (bus.clone(), parent, child.clone());
        let wrapped: Sink = Arc::new(move |event| {
            let event = Event::Subagent {
                parent_tool_use_id: "t".into(),
                task_id: below.clone(),
                event: Box::new(event),
            };
            up.publish(None, Some(&above), event);
        });
        bus.follow_task(&child, SessionId::new(), wrapped);
        bus.publish(None, Some(&child), notice("a"));
        assert_eq!(*heard.lock(), ["a"]);
    }
}
