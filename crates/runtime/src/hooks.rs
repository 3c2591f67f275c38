//! Runs the hooks of a project for one agent: all that an event concerns at once, each with the
//! rights of whoever wrote it.
//!
//! ```text
//!                  of the user            of a trusted repository
//! command          outside the sandbox    in the sandbox of the agent, unless the user says otherwise
//! http             any address            what commands in the sandbox may reach
//! prompt           a small model          a small model
//! ```
//!
//! A hook that gives no answer is told with its name and file. Where somebody relies on hooks to
//! refuse things, that is a refusal.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use codespar_agent::{
    AgentDefinition, AgentHooks, AgentHooksParts, HookCall, HookRole, HookRunner, SessionSource,
    SideCalls, SideModel,
};
use codespar_policy::{
    Redactor,
    hooks::{
        Hook, HookAction, HookAnswer, HookConfigError, HookEventKind, HookFailure, HookMatcher,
        HookOrigin, HookOutput, HookSet, HookSource, read_hooks,
    },
};
use codespar_protocol::EntryId;
use codespar_tools::{
    Context, HookCommand, HookPost, HookReach, child_environment, egress::AllowedDomains,
    post_hook, run_hook_confined, run_hook_outside,
};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::{
    Environment, Project, Session,
    agent_setup::AgentSetup,
    hook_events::{HookEnd, HookObserver, HookSaid, RunningHook},
    settings::{ProjectHookPlace, Settings},
};

/// How long a command may take that says nothing about it.
const COMMAND_TIME: Duration = Duration::from_secs(600);
/// The same for addresses and models, and before a prompt is sent: somebody waits.
const SHORT_TIME: Duration = Duration::from_secs(30);
/// The same when a session is left.
const LEAVING_TIME: Duration = Duration::from_secs(10);

/// The hooks of a project as one agent runs them.
struct ProjectHooks {
    set: HookSet,
    place: ProjectHookPlace,
    /// Of the project.
    root: PathBuf,
    environment: Arc<Environment>,
    /// Of commands outside of the sandbox.
    user_env: Vec<(OsString, OsString)>,
    context: Arc<Context>,
    /// Where requests of the repository's hooks may go.
    reach: HookReach,
    /// None where no model is called.
    judge: Option<SideModel>,
    /// The ids of models that hooks name, by alias.
    models: BTreeMap<String, String>,
    session: String,
    /// None where nobody is told which hooks run.
    observer: Option<Arc<dyn HookObserver>>,
    redactor: Arc<Redactor>,
}

impl Project {
    /// The hooks of an agent; none if there are none.
    pub(crate) fn hooks_of(
        &self,
        setup: &AgentSetup,
        session: &Session,
        context: &Arc<Context>,
        side_calls: &Arc<SideCalls>,
    ) -> Option<Arc<AgentHooks>> {
        let mut set = self.settings.hooks.in_force();
        set.add(setup.hooks.iter().cloned());
        if set.is_empty() && self.client_hooks.is_none() {
            return None;
        }
        let role = match (&setup.task, session.is_resumed) {
            (Some(task), _) => HookRole::Subagent {
                id: task.task.to_string(),
                kind: setup.kind.clone().unwrap_or_default(),
            },
            (None, true) => HookRole::Session {
                source: SessionSource::Resume,
            },
            (None, false) => HookRole::Session {
                source: SessionSource::Startup,
            },
        };
        let runner = self.hook_runner(set, setup, context, side_calls);
        let runner: Arc<dyn HookRunner> = match &self.client_hooks {
            Some(client) => Arc::new(WithClient {
                project: runner,
                client: client.clone(),
            }),
            None => Arc::new(runner),
        };
        Some(Arc::new(AgentHooks::new(AgentHooksParts {
            runner,
            session: setup.tree,
            role,
            transcript: context.output_dir().join("transcript.jsonl"),
            mode: setup.mode.clone(),
            context: context.clone(),
            redactor: self.redactor.clone(),
            sink: setup.surface.sink.clone(),
        })))
    }

    fn hook_runner(
        &self,
        set: HookSet,
        setup: &AgentSetup,
        context: &Arc<Context>,
        side_calls: &Arc<SideCalls>,
    ) -> ProjectHooks {
        let environment = self.dir.environment.clone();
        let pass = &self.settings.sandbox.pass_env;
        let judge = (!self.provider.is_simulated()).then(|| self.side_model(side_calls));
        let named = set.iter().filter_map(|hook| match &hook.action {
            HookAction::Prompt { model, .. } => model.clone(),
            _ => None,
        });
        let models = named.map(|alias| {
            let choice = self.provider.choice_for(Some(&alias), &self.settings);
            (alias, choice.id)
        });
        ProjectHooks {
            models: models.collect(),
            set,
            place: self.settings.hooks.place(),
            root: self.dir.root.clone(),
            // Variables of the settings may be a repository's; these commands are not.
            user_env: child_environment(environment.vars.iter().cloned(), [], pass),
            environment,
            context: context.clone(),
            reach: reach(&self.settings),
            judge,
            session: setup.tree.to_string(),
            observer: self.hook_observer.clone(),
            redactor: self.redactor.clone(),
        }
    }
}

/// The hooks that the definition of an agent brings. Its `Stop` hooks are asked when it ends as the
/// agent of a task. They are left out where the user wants no hooks, or none of repositories.
pub(crate) fn agent_hooks(
    definition: &AgentDefinition,
    project: &Project,
) -> Result<Vec<Hook>, String> {
    let Some(written) = &definition.hooks else {
        return Ok(Vec::new());
    };
    let source = HookSource {
        file: project.dir.shown(&definition.path),
        origin: match definition.origin {
            "user" | "plugin" | "caller" => HookOrigin::User,
            _ => HookOrigin::Project,
        },
        plugin: None,
    };
    let wrong = |error: HookConfigError| format!("{}: {error}", source.file);
    let (mut hooks, _) = read_hooks(written, &source).map_err(wrong)?;
    for hook in &mut hooks {
        if hook.event == HookEventKind::Stop {
            hook.event = HookEventKind::SubagentStop;
            hook.matcher = HookMatcher::default();
        }
    }
    hooks.retain(|hook| project.settings.hooks.runs(hook.source.origin));
    Ok(hooks)
}

/// By the same settings as for commands.
fn reach(settings: &Settings) -> HookReach {
    match settings.sandbox.network {
        Some(true) => HookReach::Public,
        _ => HookReach::Listed(AllowedDomains::new(
            settings.sandbox.allowed_domains.clone(),
        )),
    }
}

#[async_trait]
impl HookRunner for ProjectHooks {
    fn listens(&self, event: HookEventKind) -> bool {
        self.set.listens(event)
    }

    async fn run(&self, call: HookCall, cancel: &CancellationToken) -> HookAnswer {
        let hooks = self.set.matching(call.event, &call.subjects);
        let mut input = call.input.to_string().into_bytes();
        input.push(b'\n');
        let runs = hooks.into_iter().map(|hook| {
            let (call, input) = (&call, &input);
            async move { told(hook, self.run_one(hook, call, input, cancel).await) }
        });
        HookAnswer::merge(join_all(runs).await)
    }
}

/// Hooks of the project and of a client, run at the same time.
struct WithClient {
    project: ProjectHooks,
    client: Arc<dyn HookRunner>,
}

#[async_trait]
impl HookRunner for WithClient {
    fn listens(&self, event: HookEventKind) -> bool {
        self.project.listens(event) || self.client.listens(event)
    }

    async fn run(&self, call: HookCall, cancel: &CancellationToken) -> HookAnswer {
        let (ours, theirs) = futures::join!(
            self.project.run(call.clone(), cancel),
            self.client.run(call, cancel)
        );
        HookAnswer::merge([ours, theirs])
    }
}

/// The answer with the name of the hook where something is said about it.
fn told(hook: &Hook, answer: Result<HookAnswer, HookFailure>) -> HookAnswer {
    match answer {
        Ok(mut answer) => {
            for warning in &mut answer.warnings {
                *warning = format!("{hook}: {warning}");
            }
            for message in &mut answer.messages {
                *message = format!("{} hook: {message}", hook.event);
            }
            answer
        }
        Err(failure) => {
            let text = format!("{hook}: {failure}");
            let mut answer = match hook.event.fails_closed() {
                true => HookAnswer::deny(&*text),
                false => HookAnswer::default(),
            };
            if failure != HookFailure::Interrupted {
                answer.warnings.push(text);
            }
            answer
        }
    }
}

impl ProjectHooks {
    /// Whoever shows hooks is told of it.
    async fn run_one(
        &self,
        hook: &Hook,
        call: &HookCall,
        input: &[u8],
        cancel: &CancellationToken,
    ) -> Result<HookAnswer, HookFailure> {
        let observer = self.observer.as_ref().filter(|it| it.wants(hook.event));
        let Some(observer) = observer else {
            return self
                .ask(hook, call, input, cancel)
                .await?
                .answer(hook.event);
        };
        let run = RunningHook {
            id: EntryId::new(),
            event: hook.event,
            name: match call.subjects.first() {
                Some(subject) => format!("{}:{subject}", hook.event),
                None => hook.event.to_string(),
            },
            session: self.session.clone(),
        };
        observer.started(&run);
        let said = self.ask(hook, call, input, cancel).await;
        let (said, answer) = match said {
            Ok(said) => {
                let answer = said.answer(hook.event);
                (Some(said), answer)
            }
            Err(failure) => (None, Err(failure)),
        };
        let end = HookEnd::of(said.as_ref(), &answer, &self.redactor);
        observer.ended(&run, &end);
        answer
    }

    async fn ask(
        &self,
        hook: &Hook,
        call: &HookCall,
        input: &[u8],
        cancel: &CancellationToken,
    ) -> Result<HookSaid, HookFailure> {
        let timeout = hook.timeout.unwrap_or_else(|| usual_time(hook));
        match &hook.action {
            HookAction::Broken { reason } => Err(HookFailure::NotRun(reason.clone())),
            HookAction::Command { command } => {
                let cwd = match call.cwd.is_dir() {
                    true => &call.cwd,
                    false => &self.root,
                };
                let command = HookCommand {
                    command: command.clone(),
                    input: input.to_vec(),
                    cwd: cwd.clone(),
                    env: self.variables(hook),
                    timeout,
                };
                let output = self.run_command(hook, command, cancel).await?;
                Ok(HookSaid::Exited(output))
            }
            HookAction::Http {
                url,
                headers,
                variables,
            } => {
                let headers = headers.iter().map(|(name, value)| {
                    let value = self.filled_in(hook, value, variables)?;
                    Ok((name.clone(), value))
                });
                let request = HookPost {
                    url: url.clone(),
                    headers: headers.collect::<Result<_, HookFailure>>()?,
                    body: input.to_vec(),
                    timeout,
                    reach: match hook.source.origin {
                        HookOrigin::User => HookReach::Anywhere,
                        HookOrigin::Project => self.reach.clone(),
                    },
                };
                let answered = post_hook(&request, cancel).await?;
                Ok(HookSaid::Text(answered))
            }
            HookAction::Prompt { prompt, model } => {
                let asked = self.judged(prompt, model.as_deref(), call, cancel);
                let text = tokio::time::timeout(timeout, asked).await;
                let text = text.map_err(|_| HookFailure::TimedOut(timeout.as_secs()))??;
                Ok(HookSaid::Text(text))
            }
        }
    }

    async fn run_command(
        &self,
        hook: &Hook,
        mut command: HookCommand,
        cancel: &CancellationToken,
    ) -> Result<HookOutput, HookFailure> {
        let is_confined =
            hook.source.origin == HookOrigin::Project && self.place == ProjectHookPlace::Sandbox;
        if is_confined {
            return run_hook_confined(&command, &self.context, &self.root, cancel).await;
        }
        let own = std::mem::take(&mut command.env);
        command.env = self.user_env.clone();
        command
            .env
            .retain(|(name, _)| own.iter().all(|(known, _)| known != name));
        command.env.extend(own);
        let guard = Some(self.environment.program.as_path());
        run_hook_outside(&command, guard, cancel).await
    }

    /// What hooks find in their environment, under the names that scripts for Claude Code know and
    /// ours.
    fn variables(&self, hook: &Hook) -> Vec<(OsString, OsString)> {
        let path = |path: &Path| OsString::from(path);
        let mut variables = vec![
            ("CLAUDE_PROJECT_DIR", path(&self.root)),
            ("CODESPAR_PROJECT_DIR", path(&self.root)),
            ("CODESPAR_SESSION_ID", OsString::from(&self.session)),
            ("CODESPAR_HOOK_EVENT", OsString::from(hook.event.as_str())),
        ];
        if let Some(plugin) = &hook.source.plugin {
            variables.push(("CLAUDE_PLUGIN_ROOT", path(plugin)));
            variables.push(("CODESPAR_PLUGIN_ROOT", path(plugin)));
        }
        let named = variables.into_iter();
        named.map(|(name, value)| (name.into(), value)).collect()
    }

    /// The value of a header with its variables. Those that the hook does not name are empty; a
    /// repository gets none, since it could send them anywhere.
    fn filled_in(
        &self,
        hook: &Hook,
        value: &str,
        variables: &[String],
    ) -> Result<String, HookFailure> {
        if !value.contains('$') {
            return Ok(value.to_owned());
        }
        if hook.source.origin == HookOrigin::Project {
            return Err(HookFailure::NotRun(
                "a hook of a repository cannot put variables into headers".to_owned(),
            ));
        }
        let mut filled = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, left) = match after.strip_prefix('{').and_then(|it| it.split_once('}')) {
                Some(braced) => braced,
                None => after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len())),
            };
            if variables.iter().any(|known| known == name) {
                filled.push_str(self.environment.var(name).unwrap_or_default());
            }
            rest = left;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    async fn judged(
        &self,
        prompt: &str,
        model: Option<&str>,
        call: &HookCall,
        cancel: &CancellationToken,
    ) -> Result<String, HookFailure> {
        let Some(judge) = &self.judge else {
            return Err(HookFailure::NotRun("no model is called here".to_owned()));
        };
        let model = model.and_then(|alias| self.models.get(alias));
        let event = call.input.to_string();
        let asked = judge.judge(prompt, &event, model.map(String::as_str), cancel);
        asked.await.map_err(|error| match cancel.is_cancelled() {
            true => HookFailure::Interrupted,
            false => HookFailure::NotRun(error.to_string()),
        })
    }
}

fn usual_time(hook: &Hook) -> Duration {
    match (hook.event, &hook.action) {
        (HookEventKind::SessionEnd, _) => LEAVING_TIME,
        (HookEventKind::UserPromptSubmit, _) => SHORT_TIME,
        (_, HookAction::Http { .. } | HookAction::Prompt { .. }) => SHORT_TIME,
        _ => COMMAND_TIME,
    }
}
