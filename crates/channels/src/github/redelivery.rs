//! What was delivered while nobody listened. GitHub does not deliver again by itself, so the app
//! asks for it when it starts.

use std::time::Duration;

use codespar_runtime::GitHubAccess;
use jiff::Timestamp;

use super::{GitHubChannel, check::KEPT};

/// The server must be listening before GitHub comes back.
const PAUSE: Duration = Duration::from_millis(500);
/// More than that is left to the next start.
const MOST: usize = 300;

/// Asks once for each event of the last three days that has not arrived. With a token there is no
/// list of deliveries. What was on record before stays one message, by its identity.
pub(super) async fn ask_again(channel: &GitHubChannel) {
    // Also for the name of the app, by which it is mentioned.
    if let Err(error) = channel.account().await {
        tracing::warn!("GitHub does not say who we are: {error}");
    }
    let GitHubAccess::App(app) = &channel.api.access else {
        return;
    };
    tokio::time::sleep(PAUSE).await;
    let lost = match app.undelivered(Timestamp::now() - KEPT).await {
        Ok(lost) => lost,
        Err(error) => {
            tracing::warn!("failed deliveries of GitHub are not known: {error}");
            return;
        }
    };
    for delivery in lost.iter().take(MOST) {
        match app.deliver_again(delivery).await {
            Ok(()) => tracing::info!("delivery {} of GitHub is asked for again", delivery.id),
            Err(error) => tracing::warn!("a delivery of GitHub is lost: {error}"),
        }
    }
}
