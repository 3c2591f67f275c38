//! `codespar token`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use codespar_protocol::{AccessRole, TokenId};
use codespar_runtime::ProjectDir;
use codespar_server::create_token;
use codespar_store::{AccessToken, Database};
use serde_json::json;

use crate::{
    error::CommandError,
    printer::{self, plain},
    style,
};

/// Create, list and revoke tokens of the HTTP API (`codespar serve`).
///
/// A token has a role, and each role may do what the ones before it may: read (see tasks,
/// transcripts and pull requests), write (start, stop and answer work), merge (merge pull requests),
/// admin (create tokens, save permission rules).
///
/// Example: codespar token create --role write --name ci
#[derive(Args)]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Create a token and print it. It cannot be shown again.
    Create {
        /// read, write, merge or admin.
        #[arg(long)]
        role: AccessRole,
        /// Shown by `token list` and in the record of what was done with it.
        #[arg(long)]
        name: String,
        /// Print JSON: `token` with the fields of `token list`, and `secret`.
        #[arg(long)]
        json: bool,
    },
    /// List tokens, without their secrets.
    List {
        /// Print JSON: `tokens`, each with `id`, `name`, `role`, `created_at`, `last_used_at` and
        /// `revoked_at`.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token. It works no more, and browsers that signed in with it are signed out.
    Revoke {
        /// The id of the token, or its name if no other token in use has it.
        token: String,
        /// Print the token as JSON, with the fields of `token list`.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(
    command: TokenCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let store = project_dir.environment.open_database().await?;
    match command.verb {
        Verb::Create { role, name, json } => create(&*store, role, &name, json).await?,
        Verb::List { json } => list(&store.tokens().await?, json)?,
        Verb::Revoke { token, json } => {
            let id = find(&*store, &token).await?;
            let revoked = store.revoke_token(&id).await?;
            match json {
                true => super::print_json(&revoked)?,
                false => super::print(format_args!("{}\n", line(&revoked)))?,
            }
        }
    }
    store.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn create(
    store: &dyn Database,
    role: AccessRole,
    name: &str,
    json: bool,
) -> Result<(), CommandError> {
    if name.trim().is_empty() {
        return Err(CommandError::Usage("--name is empty".to_owned()));
    }
    let (token, secret) = create_token(store, name.trim(), role).await?;
    if json {
        return super::print_json(&json!({"token": token, "secret": secret.reveal()}));
    }
    printer::secret(secret.reveal())?;
    printer::err(format_args!(
        "{}",
        style::faint(format!(
            "{} has the role {role}; keep the token now, it cannot be shown again",
            token.id
        ))
    ));
    Ok(())
}

fn list(tokens: &[AccessToken], json: bool) -> Result<(), CommandError> {
    if json {
        return super::print_json(&json!({ "tokens": tokens }));
    }
    if tokens.is_empty() {
        return super::print(format_args!("no tokens\n"));
    }
    for token in tokens {
        super::print(format_args!("{}\n", line(token)))?;
    }
    Ok(())
}

fn line(token: &AccessToken) -> String {
    let used = match (token.revoked_at, token.last_used_at) {
        (Some(at), _) => style::error(format!("revoked {}", day(at))),
        (None, Some(at)) => style::faint(format!("last used {}", day(at))),
        (None, None) => style::faint("never used"),
    };
    format!(
        "{}  {:<5}  {}  {}  {used}",
        token.id,
        token.role.as_str(),
        plain(&token.name),
        style::faint(format!("created {}", day(token.created_at)))
    )
}

fn day(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

/// By id, or by a name that one token in use has.
async fn find(store: &dyn Database, text: &str) -> Result<TokenId, CommandError> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let tokens = store.tokens().await?;
    let named: Vec<&AccessToken> = tokens
        .iter()
        .filter(|token| token.revoked_at.is_none() && token.name == text)
        .collect();
    match named.as_slice() {
        [token] => Ok(token.id.clone()),
        [] => Err(CommandError::Usage(format!(
            "no token in use has the id or the name `{text}`; `codespar token list` shows those \
             there are"
        ))),
        many => Err(CommandError::Usage(format!(
            "{} tokens have the name `{text}`; give the id of one",
            many.len()
        ))),
    }
}
