//! Discord, by variables of the environment.

use std::sync::Arc;

use codespar_channels::{
    ConfiguredChannel, MakeWebhook,
    discord::{DiscordApi, DiscordChannel, DiscordHook, DiscordKey, DiscordSetup, gateway},
};
use codespar_runtime::ProjectDir;

use super::{api_url, missing, proxy, secret};
use crate::error::CommandError;

const BOT_TOKEN: &str = "DISCORD_BOT_TOKEN";
const PUBLIC_KEY: &str = "DISCORD_PUBLIC_KEY";
const API_URL: &str = "DISCORD_API_URL";
const USUAL_API: &str = "https://discord.com/api/v10/";
/// In the state directory.
const SESSION_FILE: &str = "discord-session.json";

/// Messages come over the gateway; with the public key, buttons may come over the endpoint for
/// interactions.
pub(super) fn find(project_dir: &ProjectDir) -> Result<Option<ConfiguredChannel>, CommandError> {
    let public_key = project_dir.var(PUBLIC_KEY).filter(|key| !key.is_empty());
    let Some(bot_token) = secret(project_dir, BOT_TOKEN) else {
        return match public_key {
            None => Ok(None),
            Some(_) => Err(missing("Discord", BOT_TOKEN, PUBLIC_KEY, "discord")),
        };
    };
    let url = api_url(project_dir, API_URL, USUAL_API)?;
    let setup = DiscordSetup {
        proxy: proxy(project_dir, &url)?,
        bot_token,
        api: url,
        session_file: project_dir.state().join(SESSION_FILE),
    };
    let api = DiscordApi::new(&setup).map_err(|error| CommandError::Failed(error.to_string()))?;
    let api = Arc::new(api);
    Ok(Some(ConfiguredChannel {
        adapter: Arc::new(DiscordChannel::new(api.clone())),
        webhook: public_key.map(|key| endpoint(&api, key)).transpose()?,
        source: Some(Box::new(move |core, cancel| {
            Box::pin(gateway(api, core, cancel))
        })),
    }))
}

fn endpoint(api: &Arc<DiscordApi>, key: &str) -> Result<MakeWebhook, CommandError> {
    let Some(key) = DiscordKey::from_hex(key) else {
        return Err(CommandError::Usage(format!(
            "{PUBLIC_KEY}: 64 hexadecimal digits are expected, as the Developer Portal shows them \
             under General Information"
        )));
    };
    let api = api.clone();
    Ok(Box::new(move |core| {
        Arc::new(DiscordHook::new(core, api, key))
    }))
}
