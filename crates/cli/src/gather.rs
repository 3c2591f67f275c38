//! Reads what agents are made from: rules, secrets, skills, definitions, directories, sandbox.

use std::{path::PathBuf, sync::Arc};

use codespar_agent::{AgentDefinitions, DefinitionSource};
use codespar_policy::{Mode, Redactor, Rule, RuleKind, RuleSet, RuleSource};
use codespar_tools::{
    SkillDir, Skills,
    sandbox::{Limits, Network, Sandbox, SandboxChoice},
    standard_tools,
};

use crate::{
    args::SessionArgs, error::CommandError, network, place::Place, settings::Settings, trust::Trust,
};

/// Names every tool of this version, for checking agent definitions.
pub(crate) fn tool_names() -> Vec<String> {
    let own = [
        "Task",
        "Agent",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "TaskStop",
        "TaskOutput",
        "SendMessage",
        "TeamCreate",
        "TeamDelete",
        "BashOutput",
        "KillShell",
    ];
    standard_tools()
        .names()
        .into_iter()
        .chain(own)
        .map(str::to_owned)
        .collect()
}

/// Knows the secrets of the environment by name and value.
pub(crate) fn redactor(place: &Place) -> Redactor {
    let secrets = place.vars.iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        codespar_policy::is_secret_name(name).then(|| (name.to_owned(), value.to_owned()))
    });
    Redactor::new(secrets)
}

pub(crate) fn rules(
    settings: &Settings,
    args: &SessionArgs,
) -> Result<(RuleSet, Mode), CommandError> {
    let mut rules = settings.rules.clone();
    let flags = [
        ("--allowedTools", RuleKind::Allow, &args.allowed_tools),
        ("--disallowedTools", RuleKind::Deny, &args.disallowed_tools),
    ];
    for (flag, kind, values) in flags {
        for rule in parse_rules(flag, values)? {
            rules.add(kind, rule, &RuleSource::named(flag));
        }
    }
    let mode = if args.dangerously_skip_permissions {
        Mode::BypassPermissions
    } else {
        args.permission_mode.or(settings.mode).unwrap_or_default()
    };
    Ok((rules, mode))
}

/// A rule for a tool that is not there protects nothing and permits nothing; scripts for other
/// agents name such tools, so it is a warning.
pub(crate) fn unknown_tools(args: &SessionArgs) -> Result<Vec<String>, CommandError> {
    let known = tool_names();
    let mut warnings = Vec::new();
    for (flag, values) in [
        ("--allowedTools", &args.allowed_tools),
        ("--disallowedTools", &args.disallowed_tools),
    ] {
        for rule in parse_rules(flag, values)? {
            let text = rule.to_string();
            let tool = text.split('(').next().unwrap_or_default();
            let is_known = known.iter().any(|name| name == tool);
            if !is_known && !tool.starts_with("mcp__") && !tool.contains('*') {
                warnings.push(format!("{flag}: there is no tool `{tool}`"));
            }
        }
    }
    Ok(warnings)
}

fn parse_rules(flag: &str, values: &[String]) -> Result<Vec<Rule>, CommandError> {
    let mut rules = Vec::new();
    for value in values {
        let parsed = RuleSet::parse_list(value)
            .map_err(|error| CommandError::Usage(format!("{flag}: {error}")))?;
        rules.extend(parsed);
    }
    Ok(rules)
}

/// Tools that `--disallowedTools` takes away by their bare name.
pub(crate) fn denied(args: &SessionArgs) -> Result<Vec<String>, CommandError> {
    Ok(parse_rules("--disallowedTools", &args.disallowed_tools)?
        .iter()
        .map(ToString::to_string)
        .filter(|rule| !rule.contains('('))
        .collect())
}

pub(crate) fn extras(place: &Place) -> (Arc<Skills>, AgentDefinitions, Vec<String>) {
    let dirs: Vec<SkillDir> = place
        .config_dirs("skills")
        .into_iter()
        .map(|(path, origin)| SkillDir { path, origin })
        .collect();
    let (skills, problems) = Skills::load(&dirs);
    let agents = definitions(place, Trust::Needed);
    let mut warnings: Vec<String> = problems.iter().map(ToString::to_string).collect();
    warnings.extend(agents.problems.iter().map(ToString::to_string));
    (Arc::new(skills), agents, warnings)
}

/// Custom agents of the project, as far as it is trusted, and the person.
pub(crate) fn definitions(place: &Place, trust: Trust) -> AgentDefinitions {
    let sources: Vec<DefinitionSource> = place
        .config_dirs("agents")
        .into_iter()
        .map(|(dir, origin)| DefinitionSource {
            files: (origin == "project").then(|| place.project.agents(&dir, trust)),
            dir,
            origin,
        })
        .collect();
    let names = tool_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    AgentDefinitions::load(&sources, &names)
}

pub(crate) fn extra_dirs(
    settings: &Settings,
    args: &SessionArgs,
) -> Result<Vec<PathBuf>, CommandError> {
    let mut dirs = Vec::new();
    for dir in &args.add_dir {
        let dir = dir.canonicalize().map_err(|error| {
            CommandError::Usage(format!("--add-dir {}: {error}", dir.display()))
        })?;
        dirs.push(dir);
    }
    // A directory of the settings that is not there (any more) is no reason to stop.
    dirs.extend(
        settings
            .extra_dirs
            .iter()
            .filter_map(|dir| dir.canonicalize().ok()),
    );
    Ok(dirs)
}

/// How commands are confined; nothing is tried yet.
pub(crate) fn sandbox(place: &Place, settings: &Settings) -> Result<Sandbox, CommandError> {
    let choice = settings
        .sandbox
        .mode
        .map_or(SandboxChoice::Auto, SandboxChoice::from);
    let network = match settings.sandbox.network {
        Some(true) => Network::Allowed,
        _ => Network::Denied,
    };
    let self_exe = std::env::current_exe()?;
    let mut sandbox = Sandbox::probe(choice, self_exe)
        .with_network(network)
        .with_home(place.home.clone(), place.state.clone())
        .with_limits(Limits::from(&settings.sandbox.limits));
    for path in &settings.sandbox.allow_read {
        sandbox = sandbox.with_readable(path.clone());
    }
    for dir in &settings.sandbox.allow_write {
        sandbox = sandbox
            .with_extra_writable(dir, place.home.as_deref())
            .map_err(|error| CommandError::Usage(format!("sandbox.allowWrite: {error}")))?;
    }
    Ok(match network::egress(place, settings)? {
        Some(egress) => sandbox.with_egress(egress),
        None => sandbox,
    })
}
