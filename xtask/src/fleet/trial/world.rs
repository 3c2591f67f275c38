//! What a trial consists of: hosts, a database, a model, maybe an engine, and the program.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use codespar_protocol::SessionId;
use codespar_testkit::{CapturedRequest, Script, ScriptedModel, Setup};

use super::{
    TrialArgs, TrialEngine,
    disturbances::now,
    evidence::TrialDatabase,
    hosts::{self, CENTRE, Host},
    temporal::TemporalServer,
    workers::{Environment, WorkerProcess},
    workload::{NEWS, PROMPT},
};
use crate::{fleet::postgres::PostgresServer, metadata::Metadata};

/// The hosts of workers. People sit at another one.
pub(super) const WORKERS: [&str; 3] = ["one", "two", "three"];
const FIRST_ADDRESS: u8 = 11;

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
    pub(super) desk: Host,
    temporal: RefCell<Option<TemporalServer>>,
    postgres: RefCell<PostgresServer>,
}

/// What happens to the servers, when.
pub(super) struct CentreEvents(Vec<(Duration, CentreEvent)>);

/// Workers must live through both: the database is waited for, the engine only hands out work.
#[derive(Debug, Clone, Copy)]
enum CentreEvent {
    RestartDatabase,
    StopEngine,
    StartEngine,
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
        let program = install(args, root, dir)?;
        let postgres = PostgresServer::start_at(CENTRE)?;
        let model_began = now()?;
        let setup = Setup {
            address: Some(CENTRE),
            ..Setup::default()
        };
        let model = ScriptedModel::start_blocking_with(script(&project), setup)?;
        let mut variables = vec![
            ("CODESPAR_DATABASE_URL", postgres.url()),
            ("ANTHROPIC_BASE_URL", model.url()),
            ("ANTHROPIC_API_KEY", "sk-key-of-the-trial".to_owned()),
        ];
        let mut temporal = None;
        if args.engine == TrialEngine::Temporal {
            let server = TemporalServer::start(root, dir, CENTRE)?;
            variables.push(("TEMPORAL_ADDRESS", server.address()));
            temporal = Some(server);
        }
        let database = TrialDatabase::open(&postgres.url())?;
        let host = |(name, number): (&&str, u8)| Host::start(name, number, dir);
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
            desk: Host::start("desk", FIRST_ADDRESS - 1, dir)?,
            temporal: RefCell::new(temporal),
            postgres: RefCell::new(postgres),
        })
    }

    pub(super) fn start_workers(&self) -> Result<Vec<WorkerProcess<'_>>> {
        let start = |host| WorkerProcess::start(host, &self.environment);
        self.hosts.iter().map(start).collect()
    }

    pub(super) fn set_limit(&self, limit: usize) -> Result<()> {
        let limit = limit.to_string();
        let args = ["fleet", "limit", "all", &limit];
        self.environment.run(&self.desk, &args).map(drop)
    }

    /// Each continues its session, and so gets its notifications.
    pub(super) fn tell_people(&self, people: &[SessionId]) -> Result<()> {
        for person in people {
            let args = ["-p", NEWS, "--resume", &person.to_string()];
            self.environment.run(&self.desk, &args)?;
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

    pub(super) fn centre_events(&self, args: &TrialArgs) -> CentreEvents {
        let all = Duration::from_secs(args.seconds);
        let restarts = (1..=args.database_restarts)
            .map(|number| all * number / (args.database_restarts + 1))
            .map(|at| (at, CentreEvent::RestartDatabase));
        let mut events: Vec<(Duration, CentreEvent)> = restarts.collect();
        if args.engine_down > 0 {
            let (down, time) = (all / 4, Duration::from_secs(args.engine_down));
            events.push((down, CentreEvent::StopEngine));
            events.push((down + time, CentreEvent::StartEngine));
        }
        CentreEvents(events)
    }

    /// Lets happen what is due.
    pub(super) fn step(&self, events: &mut CentreEvents, elapsed: Duration) -> Result<()> {
        let due = |(at, _): &mut (Duration, CentreEvent)| *at <= elapsed;
        let due: Vec<(Duration, CentreEvent)> = events.0.extract_if(.., due).collect();
        for (_, event) in due {
            let mut temporal = self.temporal.borrow_mut();
            match (event, temporal.as_mut()) {
                (CentreEvent::RestartDatabase, _) => self.postgres.borrow_mut().restart()?,
                (CentreEvent::StopEngine, Some(server)) => server.stop(),
                (CentreEvent::StartEngine, Some(server)) => server.start_again()?,
                (_, None) => {}
            }
        }
        Ok(())
    }
}

/// A copy: a build meanwhile does not concern the trial.
fn install(args: &TrialArgs, root: &Path, dir: &Path) -> Result<PathBuf> {
    let source = match &args.program {
        Some(program) => program.clone(),
        None => default_program(root)?,
    };
    let program = dir.join("codespar");
    fs::copy(&source, &program)
        .with_context(|| format!("{} cannot be copied", source.display()))?;
    Ok(program)
}
