//! Asks for updates, and acknowledges them once they are on record.
//!
//! The offset moves on only after a message is on record: what a killed process had not recorded is
//! delivered again, and what it had recorded is known by its identity.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{TELEGRAM, TelegramApi, update};
use crate::{ChannelCore, client::CallError, websocket::RECONNECT};

/// Telegram holds a request so long if there is nothing.
const HELD_SECONDS: u64 = 25;
/// How long we wait for it.
const LIMIT: Duration = Duration::from_secs(HELD_SECONDS + 15);

/// Why there are no updates at the moment.
#[derive(Debug, thiserror::Error)]
pub(super) enum PollError {
    #[error("{0}")]
    Call(#[from] CallError),
    #[error("a message is not on record: {0}")]
    Store(#[from] codespar_store::StoreError),
}

/// Hands messages to the core until it is cancelled.
///
/// The offset is not kept: what was not acknowledged comes again after a restart, and what is on
/// record already is known by its identity.
pub async fn updates(api: Arc<TelegramApi>, core: Arc<ChannelCore>, cancel: CancellationToken) {
    let mut offset = None;
    let mut failures = 0;
    loop {
        let polled = tokio::select! {
            polled = poll(&api, &core, &mut offset) => polled,
            () = cancel.cancelled() => return,
        };
        let Err(error) = polled else {
            failures = 0;
            continue;
        };
        tracing::warn!("no updates of {TELEGRAM}: {error}");
        let pause = match error {
            PollError::Call(CallError::Wait(wait)) => wait,
            PollError::Call(_) | PollError::Store(_) => {
                failures += 1;
                RECONNECT.jittered_delay(failures)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = cancel.cancelled() => return,
        }
    }
}

/// One request, which acknowledges what came before `offset`.
async fn poll(
    api: &TelegramApi,
    core: &ChannelCore,
    offset: &mut Option<i64>,
) -> Result<(), PollError> {
    let account = api.account().await?;
    let mut asked = json!({
        "timeout": HELD_SECONDS,
        "allowed_updates": ["message", "callback_query", "message_reaction"],
    });
    if let Some(offset) = offset {
        asked["offset"] = json!(offset);
    }
    let updates: Vec<Value> = api.call_within("getUpdates", &asked, Some(LIMIT)).await?;
    for one in updates {
        match update::read(&one, account) {
            Ok(delivered) => {
                if let Some(message) = delivered.message {
                    core.reach("arrived");
                    core.receive_chained(message).await?;
                }
                if let Some(reaction) = delivered.reaction {
                    api.take_reaction(core, reaction).await?;
                }
                if let Some(id) = delivered.pressed {
                    acknowledge(api, &id).await;
                }
            }
            // Without its text, which is somebody's. It is acknowledged: it would come for ever.
            Err(error) => tracing::warn!("an update of {TELEGRAM} cannot be read: {error}"),
        }
        if let Some(id) = one["update_id"].as_i64() {
            *offset = Some(id + 1);
        }
        core.reach("noted");
    }
    Ok(())
}

/// Ends the waiting of the client in which a button was pressed. It does not matter if it fails.
async fn acknowledge(api: &TelegramApi, id: &str) {
    let body = json!({"callback_query_id": id});
    if let Err(error) = api.call::<Value>("answerCallbackQuery", &body).await {
        tracing::debug!("a button of {TELEGRAM} is not acknowledged: {error}");
    }
}
