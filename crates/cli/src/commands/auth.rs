//! `codespar auth`.
//!
//! Says where the key of the model comes from and never shows it. Nothing goes over the network: a
//! wrong key shows with the first call, or with `codespar doctor --online`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use codespar_runtime::{ProjectDir, Settings, key_variable, provider_in_use};
use serde::Serialize;

use crate::{args::SessionArgs, error::CommandError, headless::init::api_provider};

/// Show whether there is a key for a model, and which variable it comes from.
///
/// Example: codespar auth status --json
#[derive(Args)]
pub(crate) struct AuthCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the provider and where its key comes from; exit 1 if there is none. The key itself is
    /// never shown.
    Status {
        /// Print JSON: `loggedIn`, `authMethod` (api_key, oauth_token or none), `apiProvider`, and
        /// `apiKeySource` where there is a key.
        #[arg(long)]
        json: bool,
    },
}

/// As other programs read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    logged_in: bool,
    auth_method: &'static str,
    api_provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key_source: Option<&'static str>,
}

pub(crate) fn run(
    args: &AuthCommand,
    session: &SessionArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let Verb::Status { json } = args.verb;
    let settings = Settings::load(project_dir)?;
    let provider = provider_in_use(project_dir, &settings, session.model.as_deref())?;
    let key = key_variable(project_dir, provider);
    // A server of one's own may want no key.
    let needs_none = provider == "openai" && project_dir.var("OPENAI_BASE_URL").is_some();
    let status = Status {
        logged_in: key.is_some() || needs_none,
        auth_method: match key {
            Some("ANTHROPIC_AUTH_TOKEN") => "oauth_token",
            Some(_) => "api_key",
            None => "none",
        },
        api_provider: api_provider(provider),
        api_key_source: key,
    };
    match (json, key) {
        (true, _) => super::print_json(&status)?,
        (false, Some(variable)) => {
            super::print(format_args!("{provider}: the key of {variable}\n"))?;
        }
        (false, None) if needs_none => {
            super::print(format_args!(
                "{provider}: no key, for the server of OPENAI_BASE_URL\n"
            ))?;
        }
        (false, None) => super::print(format_args!(
            "no key is set; set ANTHROPIC_API_KEY, or OPENAI_API_KEY / OPENAI_BASE_URL\n"
        ))?,
    }
    Ok(match status.logged_in {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
