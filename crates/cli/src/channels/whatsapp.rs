//! WhatsApp, by variables of the environment.

use std::sync::Arc;

use codespar_channels::{
    ConfiguredChannel,
    whatsapp::{WhatsAppApi, WhatsAppChannel, WhatsAppHook, WhatsAppSecrets, WhatsAppSetup},
};
use codespar_runtime::ProjectDir;

use super::{api_url, missing, proxy, secret};
use crate::error::CommandError;

const ACCESS_TOKEN: &str = "WHATSAPP_ACCESS_TOKEN";
const PHONE_NUMBER_ID: &str = "WHATSAPP_PHONE_NUMBER_ID";
const APP_SECRET: &str = "WHATSAPP_APP_SECRET";
const VERIFY_TOKEN: &str = "WHATSAPP_VERIFY_TOKEN";
const API_URL: &str = "WHATSAPP_API_URL";
const USUAL_API: &str = "https://graph.facebook.com/v25.0/";

/// Off unless all four are given.
pub(super) fn find(project_dir: &ProjectDir) -> Result<Option<ConfiguredChannel>, CommandError> {
    let names = [ACCESS_TOKEN, PHONE_NUMBER_ID, APP_SECRET, VERIFY_TOKEN];
    let is_given = |name: &&&str| project_dir.var(name).is_some_and(|value| !value.is_empty());
    let Some(given) = names.iter().find(is_given) else {
        return Ok(None);
    };
    let needed = |name: &str| {
        let found = secret(project_dir, name);
        found.ok_or_else(|| missing("WhatsApp", name, given, "whatsapp"))
    };
    let (access_token, app_secret) = (needed(ACCESS_TOKEN)?, needed(APP_SECRET)?);
    let verify_token = needed(VERIFY_TOKEN)?;
    needed(PHONE_NUMBER_ID)?;
    let api = api_url(project_dir, API_URL, USUAL_API)?;
    let setup = WhatsAppSetup {
        proxy: proxy(project_dir, &api)?,
        access_token,
        phone_number_id: project_dir
            .var(PHONE_NUMBER_ID)
            .unwrap_or_default()
            .to_owned(),
        api,
    };
    let secrets = WhatsAppSecrets {
        app_secret,
        verify_token,
    };
    let api = WhatsAppApi::new(&setup).map_err(|error| CommandError::Failed(error.to_string()))?;
    Ok(Some(ConfiguredChannel {
        adapter: Arc::new(WhatsAppChannel::new(Arc::new(api))),
        webhook: Some(Box::new(move |core| {
            Arc::new(WhatsAppHook::new(core, secrets, setup.phone_number_id))
        })),
        source: None,
    }))
}
