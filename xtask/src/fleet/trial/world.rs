//! What a trial consists of: hosts, a database, a model, maybe an engine, and the program.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use codespar_protocol::{Labels, SessionId};
use codespar_testkit::{CapturedRequest, Script, ScriptedModel, Setup};

use super::{
    TrialArgs, TrialEngine,
    centre::{CentreEvent, CentreEvents},
    checks::WorkerPlace,
    disturbances::now,
    evidence::TrialDatabase,
    hosts::{self, CENTRE, Host},
    storage::ServerFiles,
    temporal::TemporalServer,
    workers::{Environment, WorkerProcess, WorkerRole},
    workload::{LABELS, NEWS, PROMPT},
};
use crate::{fleet::postgres::PostgresServer, metadata::Metadata};

/// The hosts of workers, and what these offer. People sit at another one. The last one runs the other
/// build where there is one.
pub(super) const WORKERS: [(&str, &[&str]); 3] =
    [("one", &LABELS), ("two", &LABELS), ("three", &[])];
const FIRST_ADDRESS: u8 = 11;
/// Must not get out of our hands.
pub(super) const SECRETS: [&str; 2] = [PASSWORD, KEY];
const PASSWORD: &str = "password-of-the-trial";
const KEY: &str = "sk-key-of-the-trial";

/// Everything but the workers, which the disturbances have. Fields are dropped in this order: hosts,
/// and what runs on them, before the servers.
pub(super) struct World {
    pub(super) environment: Environment,
    pub(super) database: TrialDatabase,
    pub(super) model: ScriptedModel,
    /// When the model began to count its time, in microseconds since 1970.
    pub(super) model_began: i64,
    /// Where workers are.
    pub(super) hosts: Vec<Host>,
    /// Where people sit.
    pub(super) client: Host,
    /// Of the workers, in the order of their hosts.
    roles: Vec<WorkerRole>,
    servers: Servers,
}

/// What everybody needs. Fields are dropped in this order.
struct Servers {
    temporal: RefCell<Option<TemporalServer>>,
    postgres: RefCell<PostgresServer>,
    _files: ServerFiles,
}

/// A build that works beside the one that is tried.
pub(super) struct OtherBuild<'a> {
    pub(super) host: &'a Host,
    pub(super) version: String,
}

/// Of a debug build.
pub(super) fn default_program(root: &Path) -> Result<PathBuf> {
    Ok(Metadata::read(root)?
        .target_directory
        .join("debug/codespar"))
}

impl World {
    pub(super) fn make(
        args: &TrialArgs,
        root: &Path,
        dir: &Path,
        script: impl Fn(&Path) -> Script,
    ) -> Result<Self> {
        hosts::make_bridge()?;
        let project = hosts::make_project(dir)?;
        let program = match &args.program {
            Some(program) => install(program, dir, "codespar")?,
            None => install(&default_program(root)?, dir, "codespar")?,
        };
        let roles = roles(args, &program, dir)?;
        let servers = Servers::start(args, root, dir)?;
        let model_began = now()?;
        let setup = Setup {
            address: Some(CENTRE),
            ..Setup::default()
        };
        let model = ScriptedModel::start_blocking_with(script(&project), setup)?;
        let mut variables = servers.variables();
        variables.push(("ANTHROPIC_BASE_URL", model.url()));
        variables.push(("ANTHROPIC_API_KEY", KEY.to_owned()));
        let database = TrialDatabase::open(&servers.postgres.borrow().url())?;
        let host = |((name, _), number): (&(&str, _), u8)| Host::start(name, number, dir);
        let hosts: Result<Vec<Host>> = WORKERS.iter().zip(FIRST_ADDRESS..).map(host).collect();
        Ok(Self {
            environment: Environment {
                program,
                project,
                variables,
            },
            database,
            model,
            model_began,
            hosts: hosts?,
            client: Host::start("client", FIRST_ADDRESS - 1, dir)?,
            roles,
            servers,
        })
    }

    pub(super) fn start_workers(&self) -> Result<Vec<WorkerProcess<'_>>> {
        let start = |(host, role): (_, &WorkerRole)| {
            WorkerProcess::start(host, &self.environment, role.clone())
        };
        self.hosts.iter().zip(&self.roles).map(start).collect()
    }

    /// Where workers are, with what they offer.
    pub(super) fn places(&self) -> Vec<WorkerPlace<'_>> {
        let workers = self.hosts.iter().zip(&self.roles);
        let places = workers.map(|(host, role)| WorkerPlace {
            host,
            labels: &role.labels,
        });
        places.collect()
    }

    pub(super) fn other_build(&self) -> Result<Option<OtherBuild<'_>>> {
        let mut workers = self.hosts.iter().zip(&self.roles);
        let is_other = |role: &WorkerRole| role.program != self.environment.program;
        let Some((host, role)) = workers.find(|(_, role)| is_other(role)) else {
            return Ok(None);
        };
        let version = self.environment.version_of(&role.program, host)?;
        Ok(Some(OtherBuild { host, version }))
    }

    /// What the engine has on record, if there is one.
    pub(super) fn engine_records(&self) -> Result<Option<Vec<u8>>> {
        let temporal = self.servers.temporal.borrow();
        temporal.as_ref().map(TemporalServer::records).transpose()
    }

    pub(super) fn set_limit(&self, limit: usize) -> Result<()> {
        let limit = limit.to_string();
        let args = ["fleet", "limit", "all", &limit];
        self.environment.run(&self.client, &args).map(drop)
    }

    /// Each continues its session, and so gets its notifications.
    pub(super) fn tell_people(&self, people: &[SessionId]) -> Result<()> {
        for person in people {
            let args = ["-p", NEWS, "--resume", &person.to_string()];
            self.environment.run(&self.client, &args)?;
        }
        Ok(())
    }

    /// Calls of agents in all, and how many of them were repetitions.
    pub(super) fn model_calls(&self) -> (usize, usize) {
        let turn = |request: &CapturedRequest| {
            let first = request.messages().first()?["content"].to_string();
            let is_agent = first.contains(PROMPT) && !first.contains("task-notification");
            is_agent.then(|| (first, request.assistant_messages()))
        };
        super::repetitions(self.model.requests().iter().filter_map(turn))
    }

    /// Lets happen what is due.
    pub(super) fn step(&self, events: &mut CentreEvents, elapsed: Duration) -> Result<()> {
        while let Some(event) = events.take_due(elapsed) {
            let mut temporal = self.servers.temporal.borrow_mut();
            match (event, temporal.as_mut()) {
                (CentreEvent::RestartDatabase, _) => {
                    self.servers.postgres.borrow_mut().restart()?;
                }
                (CentreEvent::StopEngine, Some(server)) => server.stop(),
                (CentreEvent::StartEngine, Some(server)) => server.start_again()?,
                (CentreEvent::StopEngine | CentreEvent::StartEngine, None) => {}
            }
        }
        Ok(())
    }
}

impl Servers {
    fn start(args: &TrialArgs, root: &Path, dir: &Path) -> Result<Self> {
        let files = ServerFiles::make(args.storage, dir)?;
        let durability = args.storage.durability();
        let postgres = PostgresServer::start_at(files.dir(), CENTRE, durability)?;
        let temporal = match args.engine {
            TrialEngine::Leases => None,
            TrialEngine::Temporal => Some(TemporalServer::start(root, files.dir(), CENTRE)?),
        };
        Ok(Self {
            temporal: RefCell::new(temporal),
            postgres: RefCell::new(postgres),
            _files: files,
        })
    }

    /// Where they are.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let database = self.postgres.borrow().url_with(PASSWORD);
        let temporal = self.temporal.borrow();
        let engine = temporal
            .as_ref()
            .map(|server| ("TEMPORAL_ADDRESS", server.address()));
        std::iter::once(("CODESPAR_DATABASE_URL", database))
            .chain(engine)
            .collect()
    }
}

/// One for each host of `WORKERS`.
fn roles(args: &TrialArgs, program: &Path, dir: &Path) -> Result<Vec<WorkerRole>> {
    let role = |(_, labels): &(&str, &[&str])| {
        Ok(WorkerRole {
            program: program.to_owned(),
            labels: Labels::new(labels.iter().copied())?,
        })
    };
    let mut roles: Vec<WorkerRole> = WORKERS.iter().map(role).collect::<Result<_>>()?;
    if let (Some(other), Some(last)) = (&args.other, roles.last_mut()) {
        last.program = install(other, dir, "codespar-other")?;
    }
    Ok(roles)
}

/// A copy: a build meanwhile does not concern the trial.
fn install(source: &Path, dir: &Path, name: &str) -> Result<PathBuf> {
    let program = dir.join(name);
    fs::copy(source, &program).with_context(|| format!("{} cannot be copied", source.display()))?;
    Ok(program)
}
