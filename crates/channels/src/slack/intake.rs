//! What was delivered goes on record, in time for Slack: it waits three seconds.

use std::time::Duration;

use codespar_store::StoreError;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::event::Delivered;
use crate::{ChannelCore, Inbound};

/// Of the three seconds, a part is for the way.
const IN_TIME: Duration = Duration::from_millis(2_400);
/// A command is answered within that, in words.
const COMMAND_IN_TIME: Duration = Duration::from_millis(2_000);

/// Why a delivery must not be acknowledged: Slack then delivers it again.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRecorded {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the database takes too long")]
    TooSlow,
}

/// Puts a delivery on record. Gives what the speaker of a slash command is shown at once.
pub(super) async fn take(
    core: &ChannelCore,
    delivered: Delivered,
) -> Result<Option<Value>, NotRecorded> {
    let recording = async {
        match delivered {
            Delivered::Message(inbound) => core.receive(*inbound).await.map(|_| None),
            Delivered::Stop(reaction) => core.receive_stop(*reaction).await.map(|()| None),
            Delivered::StopThread(stop) => core.receive_thread_stop(*stop).await.map(|()| None),
            Delivered::Command(inbound) => Ok(Some(command(core, *inbound).await)),
            Delivered::Challenge(_) | Delivered::Nothing => Ok(None),
        }
    };
    let recorded = timeout(IN_TIME, recording).await;
    Ok(recorded.map_err(|_| NotRecorded::TooSlow)??)
}

/// Slack does not deliver a command again, so the person is told to. What a stranger is told, nobody
/// else sees; the command of anybody else is shown to the channel, which sees our answer too.
async fn command(core: &ChannelCore, inbound: Inbound) -> Value {
    let only_you = |text: &str| json!({"response_type": "ephemeral", "text": text});
    match timeout(COMMAND_IN_TIME, core.receive_command(inbound)).await {
        Ok(Ok(None)) => json!({"response_type": "in_channel"}),
        Ok(Ok(Some(refusal))) => only_you(&refusal),
        Ok(Err(_)) | Err(_) => only_you("that could not be recorded; please try again"),
    }
}
