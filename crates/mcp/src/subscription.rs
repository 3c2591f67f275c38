//! Asking a server to tell of changes, in the way of its era.
//!
//! The older protocol has a request for each resource, and notifications come over the connection
//! as they please. The newer one has a single request that stays open and names everything that is
//! wanted. Either way what comes is sent to the listeners of the server.
//!
//! A subscription does not survive its connection: whoever watches compares `McpServer::generation`
//! and subscribes again.

// The older way is on its way out of the protocol; servers of today use it.
#![allow(deprecated)]

use futures::future::BoxFuture;
use rmcp::model::{
    LoggingLevel, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
};
use tokio::task::JoinHandle;

use crate::{event::McpEvent, server::McpServer};

/// Without a choice, at most this many resources are watched.
const MAX_RESOURCES: usize = 100;

/// What is watched. Dropped, a subscription of the newer kind ends.
pub struct McpSubscription {
    /// Empty where the server does not tell of changes of resources.
    pub resources: Vec<String>,
    passing_on: Option<JoinHandle<()>>,
}

impl Drop for McpSubscription {
    fn drop(&mut self) {
        if let Some(task) = &self.passing_on {
            task.abort();
        }
    }
}

impl McpServer {
    /// Asks to be told of changes of these resources (of all it lists, if none are named) and of
    /// its lists, and of its log.
    ///
    /// An error if resources are named and the server cannot watch them, or refuses one. Without
    /// names it watches what it can.
    pub fn subscribe<'a>(
        &'a self,
        wanted: &'a [String],
    ) -> BoxFuture<'a, Result<McpSubscription, String>> {
        Box::pin(async move {
            let peer = self.line()?.peer;
            let info = peer.peer_info();
            let can = info.as_deref().map(|info| &info.capabilities);
            let offers = can.and_then(|can| can.resources.as_ref());
            let subscribes = offers.is_some_and(|offers| offers.subscribe == Some(true));
            let is_newer = info
                .as_deref()
                .is_some_and(|info| !info.protocol_version.has_initialize());
            if !wanted.is_empty() && !subscribes && !is_newer {
                return Err("it does not tell of changes of resources".to_owned());
            }
            let resources = match wanted {
                [] if offers.is_some() => {
                    let all = peer.list_all_resources().await;
                    let all =
                        all.map_err(|error| format!("it does not list resources: {error}"))?;
                    all.into_iter()
                        .map(|found| found.uri)
                        .take(MAX_RESOURCES)
                        .collect()
                }
                wanted => wanted.to_vec(),
            };
            if is_newer {
                return self.listen(resources).await;
            }
            if can.is_some_and(|can| can.logging.is_some()) {
                // One that keeps its own level still tells something.
                let _ = peer
                    .set_level(SetLevelRequestParams::new(LoggingLevel::Info))
                    .await;
            }
            if subscribes {
                for uri in &resources {
                    let asked = peer.subscribe(SubscribeRequestParams::new(uri)).await;
                    asked.map_err(|error| format!("`{uri}` cannot be watched: {error}"))?;
                }
            }
            Ok(McpSubscription {
                resources: if subscribes { resources } else { Vec::new() },
                passing_on: None,
            })
        })
    }

    /// The newer way. The stream is read by a task that ends with the subscription.
    async fn listen(&self, resources: Vec<String>) -> Result<McpSubscription, String> {
        let filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .prompts_list_changed()
            .resources_list_changed()
            .resource_subscriptions(resources.clone())
            .build();
        let peer = self.line()?.peer;
        let mut stream = peer
            .listen(filter)
            .await
            .map_err(|error| format!("it does not take subscriptions: {error}"))?;
        let teller = self.teller();
        let passing_on = tokio::spawn(async move {
            while let Ok(Some(said)) = stream.next().await {
                if let Some(event) = McpEvent::of(&said) {
                    let _ = teller.send(event);
                }
            }
        });
        Ok(McpSubscription {
            resources,
            passing_on: Some(passing_on),
        })
    }
}
