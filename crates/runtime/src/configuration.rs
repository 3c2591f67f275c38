//! Reads what agents are made from: rules, secrets, skills, definitions, directories, sandbox.
//!
//! Functions of settings, options and the directory alone: they open nothing and start nothing, so
//! that `codespar doctor` and others can use them without a runtime.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::{AgentDefinitions, DefinitionSource};
use codespar_policy::{Mode, Rule, RuleKind, RuleSet, RuleSource};
use codespar_tools::{
    SkillDir, SkillProblem, Skills,
    sandbox::{Network, ResourceLimits, Sandbox, SandboxChoice},
    standard_tools,
};

use crate::{
    Plugin, error::RuntimeError, installed_plugins::installed, network, options::ProjectOptions,
    project_dir::ProjectDir, settings::Settings, trust::TrustFilter,
};

/// Names every tool of this version, for checking agent definitions. Also used to tell a misspelt
/// rule from one about another product's tool.
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
        "MultiEdit",
        "NotebookEdit",
        "WebSearch",
    ];
    standard_tools()
        .names()
        .into_iter()
        .chain(own)
        .map(str::to_owned)
        .collect()
}

/// The permission rules and the mode that settings and options come to.
///
/// Options add rules and replace the mode. They cannot remove a rule of the settings.
pub fn rules(
    settings: &Settings,
    options: &ProjectOptions,
) -> Result<(RuleSet, Mode), RuntimeError> {
    let mut rules = settings.rules.clone();
    let flags = [
        ("--allowedTools", RuleKind::Allow, &options.allowed_tools),
        (
            "--disallowedTools",
            RuleKind::Deny,
            &options.disallowed_tools,
        ),
    ];
    for (flag, kind, values) in flags {
        for rule in parse_rules(flag, values)? {
            rules.add(kind, rule, &RuleSource::named(flag));
        }
    }
    let mode = options.permission_mode.or(settings.mode);
    let mode = mode.unwrap_or_default();
    Ok((rules, mode))
}

/// Tools of other agents that have no counterpart here. Programs that take them away do no harm.
const TOOLS_ELSEWHERE: [&str; 5] = [
    "AskUserQuestion",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
];

/// A rule for a tool that is not there protects nothing and permits nothing; scripts for other
/// agents name such tools, so it is a warning.
pub(crate) fn unknown_tools(options: &ProjectOptions) -> Result<Vec<String>, RuntimeError> {
    let known = tool_names();
    let mut warnings = Vec::new();
    for (flag, values) in [
        ("--allowedTools", &options.allowed_tools),
        ("--disallowedTools", &options.disallowed_tools),
    ] {
        for rule in parse_rules(flag, values)? {
            let text = rule.to_string();
            let tool = text.split('(').next().unwrap_or_default();
            let is_known = known.iter().any(|name| name == tool)
                || (flag == "--disallowedTools" && TOOLS_ELSEWHERE.contains(&tool));
            if !is_known && !tool.starts_with("mcp__") && !tool.contains('*') {
                warnings.push(format!("{flag}: there is no tool `{tool}`"));
            }
        }
    }
    Ok(warnings)
}

fn parse_rules(flag: &str, values: &[String]) -> Result<Vec<Rule>, RuntimeError> {
    let mut rules = Vec::new();
    for value in values {
        let parsed = RuleSet::parse_list(value)
            .map_err(|error| RuntimeError::Usage(format!("{flag}: {error}")))?;
        rules.extend(parsed);
    }
    Ok(rules)
}

/// Tools that `--disallowedTools` takes away by their bare name. The registry leaves them out; a
/// rule with a specifier only denies calls.
pub(crate) fn denied(options: &ProjectOptions) -> Result<Vec<String>, RuntimeError> {
    Ok(parse_rules("--disallowedTools", &options.disallowed_tools)?
        .iter()
        .map(ToString::to_string)
        .filter(|rule| !rule.contains('('))
        .collect())
}

/// Those that the caller named and those that the user has installed; their hooks join the others.
/// One that is both is used once. A broken one that was named is an error, an installed one a warning.
pub fn plugins(
    project_dir: &ProjectDir,
    options: &ProjectOptions,
    settings: &mut Settings,
) -> Result<Vec<Plugin>, RuntimeError> {
    let mut plugins = options.plugins()?;
    let (installed, warnings) = installed(project_dir, &settings.enabled_plugins);
    settings.warnings.extend(warnings);
    let known: Vec<PathBuf> = plugins.iter().map(|plugin| plugin.root.clone()).collect();
    plugins.extend(
        installed
            .into_iter()
            .filter(|plugin| !known.contains(&plugin.root)),
    );
    for plugin in &plugins {
        settings.warnings.extend(plugin.warnings.iter().cloned());
        plugin.add_hooks(&mut settings.hooks, &mut settings.warnings)?;
    }
    Ok(plugins)
}

/// Skills and agents of the project and the user, with what is wrong in their files as warnings.
/// Skills are used without trust, as instruction files are.
pub(crate) fn extras(
    project_dir: &ProjectDir,
    plugins: &[Plugin],
    options: &ProjectOptions,
) -> (Arc<Skills>, AgentDefinitions, Vec<String>) {
    let (mut skills, problems) = skills(project_dir, plugins, options);
    if let Some(wanted) = &options.skills {
        skills.keep(|name| wanted.iter().any(|it| it == name));
    }
    let mut agents = wanted_definitions(project_dir, TrustFilter::Needed, options);
    add_plugin_agents(&mut agents, plugins);
    let mut warnings: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let told = agents.problems.iter().chain(&agents.warnings);
    warnings.extend(told.map(ToString::to_string));
    (Arc::new(skills), agents, warnings)
}

/// Names the agents there are.
pub(crate) fn unknown_agent(name: &str, agents: &AgentDefinitions) -> RuntimeError {
    let known: Vec<&str> = agents.agents.keys().map(String::as_str).collect();
    let known = match known.is_empty() {
        true => "none is defined".to_owned(),
        false => format!("there are: {}", known.join(", ")),
    };
    RuntimeError::Usage(format!("--agent: there is no agent `{name}`; {known}"))
}

/// Skills of the project and the user, and what is wrong with others.
pub(crate) fn skills(
    project_dir: &ProjectDir,
    plugins: &[Plugin],
    options: &ProjectOptions,
) -> (Skills, Vec<SkillProblem>) {
    let dirs: Vec<SkillDir> = options
        .wanted_dirs(project_dir, "skills")
        .map(|(path, origin)| SkillDir { path, origin })
        .collect();
    let (mut skills, mut problems) = Skills::load(&dirs);
    for plugin in plugins {
        let (others, wrong) = Skills::of_places(&plugin.skill_places(), "user");
        skills.add_plugin(&plugin.name, others);
        problems.extend(wrong);
    }
    (skills, problems)
}

/// The same without plugins.
pub fn project_skills(project_dir: &ProjectDir) -> (Skills, Vec<SkillProblem>) {
    skills(project_dir, &[], &ProjectOptions::default())
}

/// Custom agents of the project, as far as it is trusted, and the user. A file of the project is
/// passed on as the text that was trusted, so it is not read a second time.
pub fn definitions(project_dir: &ProjectDir, trust: TrustFilter) -> AgentDefinitions {
    wanted_definitions(project_dir, trust, &ProjectOptions::default())
}

/// The same with the agents of plugins that the user has installed and enabled. What is wrong with
/// a plugin is a warning of `settings`.
pub fn definitions_with_plugins(
    project_dir: &ProjectDir,
    trust: TrustFilter,
    settings: &mut Settings,
) -> AgentDefinitions {
    let mut agents = definitions(project_dir, trust);
    let (plugins, warnings) = installed(project_dir, &settings.enabled_plugins);
    settings.warnings.extend(warnings);
    let of_plugins = plugins.iter().flat_map(|plugin| plugin.warnings.clone());
    settings.warnings.extend(of_plugins);
    add_plugin_agents(&mut agents, &plugins);
    agents
}

fn add_plugin_agents(agents: &mut AgentDefinitions, plugins: &[Plugin]) {
    let sources: Vec<DefinitionSource> = plugins.iter().flat_map(Plugin::agents).collect();
    agents.extend(load_definitions(&sources));
}

fn wanted_definitions(
    project_dir: &ProjectDir,
    trust: TrustFilter,
    options: &ProjectOptions,
) -> AgentDefinitions {
    let sources: Vec<DefinitionSource> = options
        .wanted_dirs(project_dir, "agents")
        .map(|(dir, origin)| DefinitionSource {
            files: (origin == "project").then(|| project_dir.trust.agents(&dir, trust)),
            dir,
            origin,
            plugin: None,
        })
        .collect();
    load_definitions(&sources)
}

/// The definitions in a directory and those below it, which no project uses: to look for mistakes.
pub fn definitions_in(dir: &Path) -> AgentDefinitions {
    load_definitions(&[DefinitionSource {
        dir: dir.to_path_buf(),
        origin: "checked",
        files: None,
        plugin: None,
    }])
}

fn load_definitions(sources: &[DefinitionSource]) -> AgentDefinitions {
    let names = tool_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    AgentDefinitions::load(sources, &names)
}

/// Directories of the workspace besides the root. One that an option names must exist; links are
/// resolved.
pub fn extra_dirs(
    settings: &Settings,
    options: &ProjectOptions,
) -> Result<Vec<PathBuf>, RuntimeError> {
    let mut dirs = Vec::new();
    for dir in &options.add_dirs {
        let dir = dir.canonicalize().map_err(|error| {
            RuntimeError::Usage(format!("--add-dir {}: {error}", dir.display()))
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

/// How commands are confined; nothing is tried yet. The probe runs with the first command, or in
/// `Sandbox::warm_up`. A project can switch the network off and nothing else: see
/// `settings/project.rs`.
pub fn sandbox(project_dir: &ProjectDir, settings: &Settings) -> Result<Sandbox, RuntimeError> {
    let sandbox = without_egress(project_dir, settings)?;
    Ok(match network::egress(project_dir, settings)? {
        Some(egress) => sandbox.with_egress(egress),
        None => sandbox,
    })
}

/// The same for the installation of dependencies: commands reach the hosts that package managers are
/// configured to use as well.
pub(crate) fn installer_sandbox(
    project_dir: &ProjectDir,
    settings: &Settings,
) -> Result<Sandbox, RuntimeError> {
    let egress = network::installer_egress(project_dir, settings);
    Ok(without_egress(project_dir, settings)?.with_egress(egress))
}

fn without_egress(project_dir: &ProjectDir, settings: &Settings) -> Result<Sandbox, RuntimeError> {
    let choice = settings
        .sandbox
        .mode
        .map_or(SandboxChoice::Auto, SandboxChoice::from);
    let network = match settings.sandbox.network {
        Some(true) => Network::Allowed,
        _ => Network::Denied,
    };
    let self_exe = project_dir.environment.program.clone();
    let mut sandbox = Sandbox::probe(choice, self_exe)
        .with_network(network)
        .with_home(
            project_dir.home().map(Path::to_path_buf),
            project_dir.state().to_path_buf(),
        )
        .with_limits(ResourceLimits::from(&settings.sandbox.limits));
    for path in &settings.sandbox.allow_read {
        sandbox = sandbox.with_readable(path.clone());
    }
    for dir in &settings.sandbox.allow_write {
        sandbox = sandbox
            .with_extra_writable(dir, project_dir.home())
            .map_err(|error| RuntimeError::Usage(format!("sandbox.allowWrite: {error}")))?;
    }
    Ok(sandbox)
}
