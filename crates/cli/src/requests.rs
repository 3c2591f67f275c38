//! `@codespar …` as a command of this program.
//!
//! The grammar is that of the channels (`codespar_channels`). A request becomes the command line
//! that does the same, so there is one implementation of each command.
//!
//! Commands of the grammar and of clap meet here: what a person may say to the agent in a chat
//! works in the same words on the command line. A first word that is a verb is turned into the
//! command it stands for before the arguments are read, so that its options and its help are those
//! of that command.

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;
use codespar_channels::{
    ChatCommand, ChatRequest, NotACommand, ProjectNames, PullRef, StateFilter, Verb, mentioned,
    parse,
};
use codespar_protocol::TaskRecord;

use crate::{
    args::{Cli, Command, OutputFormat},
    commands::{pr, task},
    error::CommandError,
    headless,
};
use codespar_runtime::{ProjectDir, github_server, requester};

/// Verbs that begin an instruction; they stay a part of it.
const INSTRUCTIONS: [Verb; 4] = [Verb::Fix, Verb::Implement, Verb::Refactor, Verb::Add];

/// `codespar fix the timeout` is `codespar dev fix the timeout`.
///
/// Only as the first word: after `-p` and other options it is a part of a prompt.
pub(crate) fn expand_verbs(args: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, String> {
    let mut args: Vec<OsString> = args.collect();
    let first = match args.get(1) {
        Some(word) if word == "--trust" => 2,
        _ => 1,
    };
    let word = args.get(first).and_then(|word| word.to_str());
    let Some(verb) = word.and_then(|word| Verb::ALL.into_iter().find(|verb| verb.as_str() == word))
    else {
        return Ok(args);
    };
    let is_instruction = INSTRUCTIONS.contains(&verb);
    if !is_instruction && verb != Verb::Instruct {
        return Ok(args);
    }
    if args.len() == first + 1 {
        return Err(format!(
            "the text after `{verb}` is missing; usage: codespar {}",
            verb.usage()
        ));
    }
    if is_instruction {
        args.insert(first, "dev".into());
    } else {
        args[first] = "dev".into();
    }
    Ok(args)
}

/// A prompt of `-p` that is a command becomes that command; what can be answered at once is printed.
pub(crate) async fn take_from_prompt(
    cli: &mut Cli,
    project_dir: &ProjectDir,
) -> Result<Option<ExitCode>, CommandError> {
    let prompt = cli.is_headless().then(|| headless::prompt_argument(cli));
    let prompt = prompt.flatten().unwrap_or_default();
    let Some(text) = mentioned(&prompt) else {
        return Ok(None);
    };
    let format = cli.output_format.unwrap_or(OutputFormat::Text);
    let understood = understand(text, project_dir, format)?;
    if matches!(understood, Understood::Prompt(_)) {
        return Ok(None);
    }
    let session = &cli.session;
    let has_limits = session.max_turns.is_some() || session.max_budget_usd.is_some();
    let is_resuming = session.resume.is_some() || session.continue_last;
    if has_limits || is_resuming || format == OutputFormat::StreamJson {
        return Err(CommandError::Usage(
            "`@codespar` with a command is not a prompt: --resume, --continue, --max-turns, \
             --max-budget-usd and stream-json do not apply to it"
                .to_owned(),
        ));
    }
    let message = match understood {
        Understood::Command(command) => {
            cli.command = Some(*command);
            return Ok(None);
        }
        Understood::Cost { id } => {
            let store = project_dir.environment.open_database().await?;
            let record = store.task(&task::find(&*store, &id).await?).await?;
            store.close().await?;
            cost_line(&record)
        }
        Understood::SessionCost => {
            return Err(CommandError::Usage(
                "the cost of what? There is no session here; name a task".to_owned(),
            ));
        }
        Understood::Whoami => whoami(project_dir).await?,
        Understood::Message(text) | Understood::Prompt(text) => text,
    };
    crate::printer::out(format_args!("{message}\n"))?;
    Ok(Some(ExitCode::SUCCESS))
}

pub(crate) fn cost_line(record: &TaskRecord) -> String {
    format!(
        "{}  {} tokens  {}  {}",
        record.task_id,
        record.usage.total_tokens(),
        record.cost_usd,
        record.subject
    )
}

/// The name that the forge knows the user by.
pub(crate) async fn whoami(project_dir: &ProjectDir) -> Result<String, CommandError> {
    let at = pr::At {
        repo: None,
        json: false,
    };
    let reached = pr::reach(&at, project_dir).await?;
    let name = requester(project_dir, reached.forge()).await;
    let place = reached.forge().describe();
    reached.close().await?;
    Ok(format!("{name} in {place}"))
}

/// What a text with a mention asks for.
pub(crate) enum Understood {
    Command(Box<Command>),
    /// What a task cost.
    Cost {
        id: String,
    },
    /// What this session cost.
    SessionCost,
    Whoami,
    /// Text to show.
    Message(String),
    /// Not a command, but for the agent.
    Prompt(String),
}

/// Reads the text after a mention.
pub(crate) fn understand(
    text: &str,
    project_dir: &ProjectDir,
    output: OutputFormat,
) -> Result<Understood, CommandError> {
    if text.is_empty() {
        return Ok(Understood::Message(help(None)));
    }
    let names = ProjectNames { project_dir };
    let request = match parse(text, &names) {
        Ok(request) => request,
        Err(NotACommand::Malformed(message)) => return Err(CommandError::Usage(message)),
        Err(NotACommand::Prose { .. }) => return Ok(Understood::Prompt(text.to_owned())),
    };
    Ok(match request.command {
        ChatCommand::Help { about } => Understood::Message(help(about)),
        ChatCommand::Whoami => Understood::Whoami,
        ChatCommand::Cost { id: Some(id) } => Understood::Cost { id },
        ChatCommand::Cost { id: None } => Understood::SessionCost,
        _ => match arguments(&request, project_dir) {
            Ok(arguments) => Understood::Command(Box::new(command(arguments, output)?)),
            Err(why) => return Err(CommandError::Usage(why.to_owned())),
        },
    })
}

fn command(arguments: Vec<String>, output: OutputFormat) -> Result<Command, CommandError> {
    let mut all = vec!["codespar".to_owned()];
    all.extend(arguments);
    if output == OutputFormat::Json {
        // Before `--`, after which everything is text.
        let end = all.iter().position(|word| word == "--");
        all.insert(end.unwrap_or(all.len()), "--json".to_owned());
    }
    let cli = Cli::try_parse_from(all).map_err(|error| CommandError::Usage(error.to_string()))?;
    cli.command
        .ok_or_else(|| CommandError::Usage("this is not a command".to_owned()))
}

/// The command line of a request, or why there is none.
fn arguments(request: &ChatRequest, project_dir: &ProjectDir) -> Result<Vec<String>, &'static str> {
    let options = &request.options;
    let mut line: Vec<String> = Vec::new();
    let mut say = |words: &[&str]| line.extend(words.iter().map(|word| (*word).to_owned()));
    let url = options.repository.as_ref();
    let url = url.map(|name| format!("{}/{name}", github_server(project_dir)));
    let named = |pull: &PullRef| match (&pull.server, &pull.repository) {
        (Some(server), Some(name)) => format!("{server}/{name}/pull/{}", pull.number),
        (None, Some(name)) => format!("{name}#{}", pull.number),
        _ => pull.number.to_string(),
    };
    match &request.command {
        ChatCommand::Dev { .. } => say(&["dev"]),
        ChatCommand::Ask { .. } => say(&["ask"]),
        ChatCommand::Review { pull } => say(&["review", &named(pull)]),
        ChatCommand::Merge { pull, strategy } => {
            say(&["merge", &named(pull)]);
            say(strategy.map(|strategy| strategy.as_str()).as_slice());
        }
        ChatCommand::PullRequests { state } => {
            let state = match state {
                Some(StateFilter::All) => "all",
                Some(StateFilter::Closed) => "closed",
                Some(StateFilter::Open) | None => "open",
            };
            say(&["pr", "list", "--state", state]);
        }
        ChatCommand::Status { id: None } => say(&["task", "list"]),
        ChatCommand::Status { id: Some(id) } => say(&["task", "get", id]),
        ChatCommand::Logs { id } => say(&["task", "output", id]),
        ChatCommand::Stop { id: None } => {
            return Err("name the task to stop: `stop <id>`");
        }
        ChatCommand::Stop { id: Some(id) } => say(&["task", "stop", id]),
        ChatCommand::Retry { id } => say(&["dev", "--resume", id]),
        ChatCommand::Plan { .. } | ChatCommand::Approve { .. } => {
            return Err(
                "`plan` and `approve` are for shared channels; here, ask for a plan in plain words",
            );
        }
        ChatCommand::Watch { .. } | ChatCommand::Unwatch { .. } | ChatCommand::Resolve { .. } => {
            return Err(
                "`watch` and `resolve` are for shared channels; here, use `codespar dev --pr N \
                 \"…\"` to add commits to a pull request",
            );
        }
        ChatCommand::Schedule { .. } | ChatCommand::Schedules | ChatCommand::Unschedule { .. } => {
            return Err("schedules are for shared channels; a session ends with its terminal");
        }
        ChatCommand::Link { .. } | ChatCommand::Unlink => {
            return Err(
                "a session works in the repository of its directory; name another with `in \
                 owner/repo` at the end of a command",
            );
        }
        ChatCommand::Help { .. } | ChatCommand::Whoami | ChatCommand::Cost { .. } => {
            return Err("this is not a command line");
        }
    }
    for (option, value) in [
        ("--repo", url.as_ref()),
        ("--base", options.branch.as_ref()),
        ("--model", options.model.as_ref()),
    ] {
        if let Some(value) = value {
            say(&[option, value]);
        }
    }
    // Text may begin with a dash.
    match &request.command {
        ChatCommand::Dev { instruction: text } | ChatCommand::Ask { question: text } => {
            say(&["--", text]);
        }
        _ => {}
    }
    Ok(line)
}

fn help(about: Option<Verb>) -> String {
    let line = |verb: &Verb| format!("{:<34}  {}", verb.usage(), verb.description());
    match about {
        Some(verb) => line(&verb),
        None => {
            let mut lines: Vec<String> = Verb::ALL.iter().map(line).collect();
            lines.push(
                "At the end of a command: in owner/repo, on <branch>, with <model>. Anything else \
                 is for the agent."
                    .to_owned(),
            );
            lines.join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &str) -> Result<String, String> {
        let words = line.split(' ').map(OsString::from);
        let words = expand_verbs(words)?;
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn only_a_verb_at_the_beginning_is_an_instruction() {
        for (typed, meant) in [
            ("codespar fix the bug", "codespar dev fix the bug"),
            (
                "codespar --trust add a test",
                "codespar --trust dev add a test",
            ),
            (
                "codespar instruct use tabs --draft",
                "codespar dev use tabs --draft",
            ),
            ("codespar -p fix the bug", "codespar -p fix the bug"),
            ("codespar fix\u{a0}it", "codespar fix\u{a0}it"),
            ("codespar merge 1", "codespar merge 1"),
            ("codespar", "codespar"),
        ] {
            assert_eq!(expanded(typed).unwrap(), meant, "{typed}");
        }
        assert!(
            expanded("codespar fix")
                .unwrap_err()
                .contains("usage: codespar fix <text>")
        );
    }

    #[test]
    fn help_names_every_command_once() {
        let help = help(None);
        for verb in Verb::ALL {
            let begins = |line: &&str| line.split(' ').next() == Some(verb.as_str());
            assert_eq!(help.lines().filter(begins).count(), 1, "{verb}");
        }
    }
}
