//! `codespar channels people`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use codespar_protocol::AccessRole;
use codespar_runtime::ProjectDir;
use codespar_store::{ChannelPerson, Database};
use serde_json::{Value, json};

use crate::{error::CommandError, printer::plain};

/// Give people of chat channels roles and accounts of the forge.
///
/// A person is known by the id that the platform gives them, such as U012AB3CD in Slack; `whoami` in
/// the channel shows it. What is set here counts besides the settings (`channels.access`), from the
/// next message on: the strongest role wins. A linked account of the forge gives the role that the
/// account has in the repository: read, or merge for those who may write.
///
/// Example: codespar channels people set slack U012AB3CD --role write --forge-login ada
#[derive(Args)]
pub(crate) struct PeopleCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the people of whom something is set.
    List {
        /// Print JSON: `people`, each with `channel`, `user`, `role`, `forge_login` and `set_by`.
        #[arg(long)]
        json: bool,
    },
    /// Set the role of a person, their account of the forge, or both. What is not given stays.
    Set {
        /// slack, github, discord, telegram, whatsapp or terminal.
        channel: String,
        /// The platform's id of the person.
        user: String,
        /// read, write, merge or admin.
        #[arg(long)]
        role: Option<AccessRole>,
        /// The login of their account. Only link an account that you know to be theirs.
        #[arg(long, value_name = "LOGIN")]
        forge_login: Option<String>,
        /// Print the person as JSON, with the fields of `people list`.
        #[arg(long)]
        json: bool,
    },
    /// Take back what was set of a person. Roles of the settings stay.
    Remove {
        /// slack, github, discord, telegram, whatsapp or terminal.
        channel: String,
        /// The platform's id of the person.
        user: String,
    },
}

pub(crate) async fn run(
    command: PeopleCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let store = project_dir.environment.open_database().await?;
    let outcome = carry_out(command, project_dir, &*store).await;
    store.close().await?;
    outcome.map(|()| ExitCode::SUCCESS)
}

async fn carry_out(
    command: PeopleCommand,
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<(), CommandError> {
    match command.verb {
        Verb::List { json } => list(&store.people().await?, json),
        Verb::Set {
            channel,
            user,
            role,
            forge_login,
            json,
        } => {
            check(&channel, &user)?;
            if role.is_none() && forge_login.is_none() {
                let text = "give --role, --forge-login or both".to_owned();
                return Err(CommandError::Usage(text));
            }
            let known = store.person(&channel, &user).await?;
            let person = ChannelPerson {
                role: role.or(known.as_ref().and_then(|one| one.role)),
                forge_login: forge_login.or(known.and_then(|one| one.forge_login)),
                set_by: project_dir.var("USER").unwrap_or("owner").to_owned(),
                channel,
                user_id: user,
            };
            store.set_person(person.clone()).await?;
            match json {
                true => super::print_json(&fields(&person)),
                false => super::print(format_args!("{}\n", line(&person))),
            }
        }
        Verb::Remove { channel, user } => {
            check(&channel, &user)?;
            match store.remove_person(&channel, &user).await? {
                true => super::print(format_args!(
                    "removed {} {}\n",
                    plain(&channel),
                    plain(&user)
                )),
                false => Err(CommandError::Usage(format!(
                    "nothing is set of `{user}` in `{channel}`; `codespar channels people list` \
                     shows those there are"
                ))),
            }
        }
    }
}

fn check(channel: &str, user: &str) -> Result<(), CommandError> {
    let is_name = |text: &str| !text.trim().is_empty() && !text.contains(char::is_whitespace);
    match is_name(channel) && is_name(user) {
        true => Ok(()),
        false => Err(CommandError::Usage(
            "the channel and the id of the person are words without spaces".to_owned(),
        )),
    }
}

fn list(people: &[ChannelPerson], json: bool) -> Result<(), CommandError> {
    if json {
        let people: Vec<Value> = people.iter().map(fields).collect();
        return super::print_json(&json!({ "people": people }));
    }
    if people.is_empty() {
        return super::print(format_args!("no people\n"));
    }
    for person in people {
        super::print(format_args!("{}\n", line(person)))?;
    }
    Ok(())
}

fn fields(person: &ChannelPerson) -> Value {
    json!({
        "channel": person.channel,
        "user": person.user_id,
        "role": person.role,
        "forge_login": person.forge_login,
        "set_by": person.set_by,
    })
}

fn line(person: &ChannelPerson) -> String {
    let role = person.role.map_or("-", |role| role.as_str());
    let mut line = format!(
        "{:<9} {:<20} {role:<5}",
        plain(&person.channel).to_string(),
        plain(&person.user_id).to_string()
    );
    if let Some(login) = &person.forge_login {
        line.push_str(&format!("  {} at the forge", plain(login)));
    }
    line
}
