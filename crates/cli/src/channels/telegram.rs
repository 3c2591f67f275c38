//! Telegram, by variables of the environment.

use std::sync::Arc;

use codespar_channels::{
    ConfiguredChannel,
    telegram::{
        TelegramApi, TelegramChannel, TelegramDelivery, TelegramHook, TelegramSetup, updates,
    },
};
use codespar_runtime::ProjectDir;

use super::{api_url, missing, proxy, secret};
use crate::error::CommandError;

const BOT_TOKEN: &str = "TELEGRAM_BOT_TOKEN";
const WEBHOOK_SECRET: &str = "TELEGRAM_WEBHOOK_SECRET";
const API_URL: &str = "TELEGRAM_API_URL";
const USUAL_API: &str = "https://api.telegram.org/";

/// With the secret of a webhook, updates come over it; without, they are asked for.
pub(super) fn find(project_dir: &ProjectDir) -> Result<Option<ConfiguredChannel>, CommandError> {
    let webhook_secret = secret(project_dir, WEBHOOK_SECRET);
    let Some(bot_token) = secret(project_dir, BOT_TOKEN) else {
        return match webhook_secret {
            None => Ok(None),
            Some(_) => Err(missing("Telegram", BOT_TOKEN, WEBHOOK_SECRET, "telegram")),
        };
    };
    let url = api_url(project_dir, API_URL, USUAL_API)?;
    let setup = TelegramSetup {
        proxy: proxy(project_dir, &url)?,
        bot_token,
        api: url,
        delivery: match webhook_secret {
            Some(secret) => TelegramDelivery::Webhook { secret },
            None => TelegramDelivery::Polling,
        },
    };
    let api = TelegramApi::new(&setup).map_err(|error| CommandError::Failed(error.to_string()))?;
    let api = Arc::new(api);
    let adapter = Arc::new(TelegramChannel::new(api.clone(), setup.delivery.clone()));
    Ok(Some(match setup.delivery {
        TelegramDelivery::Webhook { secret } => ConfiguredChannel {
            adapter,
            webhook: Some(Box::new(move |core| {
                Arc::new(TelegramHook::new(core, api, secret))
            })),
            source: None,
        },
        TelegramDelivery::Polling => ConfiguredChannel {
            adapter,
            webhook: None,
            source: Some(Box::new(move |core, cancel| {
                Box::pin(updates(api, core, cancel))
            })),
        },
    }))
}
