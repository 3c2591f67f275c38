//! Lists that change while a server is connected.
//!
//! A server that says so is asked for the list anew, and agents have the new tools from their next
//! prompt on. What a rule denies is denied whatever the list says: rules are applied to names, and
//! the names of new tools are made like those of the others. A server that tells of changes without
//! end is asked once a second at most. In the newer protocol a server tells only those who ask for it,
//! which a monitor does (`subscription`).

use std::{collections::BTreeSet, time::Duration};

use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{sleep, timeout},
};

use crate::{
    event::McpEvent,
    offer::{self, OfferError},
    server::McpServer,
};

/// Between two requests for lists.
const PAUSE: Duration = Duration::from_secs(1);

impl McpServer {
    /// Follows the changes of one connection, in the background, until there is another.
    pub(super) fn follow_lists(&self, generation: u64) {
        let (this, closing, events) = (self.this.clone(), self.closing.clone(), self.events());
        tokio::spawn(async move {
            let mut events = events;
            loop {
                let changed = tokio::select! {
                    changed = changed(&mut events) => changed,
                    () = closing.cancelled() => return,
                };
                let (Some(lists), Some(server)) = (changed, this.upgrade()) else {
                    return;
                };
                if server.generation() != generation {
                    return;
                }
                // What fails stays as it was; the next change, or the next connection, asks again.
                let _ = server.refresh(generation, &lists).await;
                drop(server);
                sleep(PAUSE).await;
            }
        });
    }

    async fn refresh(
        &self,
        generation: u64,
        lists: &BTreeSet<&'static str>,
    ) -> Result<(), OfferError> {
        let Ok(line) = self.line() else {
            return Ok(());
        };
        let time = self.setup.connect_timeout;
        if lists.contains("tools") {
            let asked = timeout(time, offer::tools(&line.peer)).await;
            let tools = asked.unwrap_or(Err(OfferError::Slow))?;
            self.update_offer(generation, |offer| offer.tools = tools);
        }
        if lists.contains("prompts") {
            let asked = timeout(time, offer::prompts(&line.peer)).await;
            let prompts = asked.unwrap_or(Err(OfferError::Slow))?;
            self.update_offer(generation, |offer| offer.prompts = prompts);
        }
        Ok(())
    }
}

/// Waits for a change, and takes those that have come with it. A server that is far ahead of us has
/// changed everything.
async fn changed(events: &mut broadcast::Receiver<McpEvent>) -> Option<BTreeSet<&'static str>> {
    let mut lists = BTreeSet::new();
    loop {
        match events.recv().await {
            Ok(McpEvent::ListChanged { list }) => {
                lists.insert(list);
            }
            Ok(_) => continue,
            Err(RecvError::Lagged(_)) => lists.extend(["tools", "prompts"]),
            Err(RecvError::Closed) => return None,
        }
        while let Ok(event) = events.try_recv() {
            if let McpEvent::ListChanged { list } = event {
                lists.insert(list);
            }
        }
        return Some(lists);
    }
}
