//! `cargo xtask fleet-trial`: workers on several hosts, of which one is always in trouble.
//!
//! Hosts are namespaces of the kernel (`isolation`, `hosts`). What holds afterwards is read from the
//! database, from a log that the database server writes (`evidence`) and from the requests that the
//! scripted model got.

mod centre;
mod checks;
mod disturbances;
mod evidence;
mod hosts;
mod isolation;
mod latency;
mod numbers;
mod report;
mod served;
mod storage;
mod take_overs;
mod temporal;
mod workers;
mod workload;
mod world;

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use codespar_protocol::SessionId;

use crate::steps;
use centre::CentreEvents;
use checks::TrialCheck;
use disturbances::Disturber;
use evidence::{LogEvent, LogLine};
use report::TrialReport;
use storage::TrialStorage;
use workload::PlannedWork;
use world::World;

/// A trial that is not over by then has failed.
const DEADLINE: Duration = Duration::from_secs(600);
const TICK: Duration = Duration::from_millis(100);
/// So many seconds without any progress are worth telling.
const STANDSTILL: f64 = 3.0;
/// Sessions that are notified.
const PEOPLE: usize = 3;
/// The trial that is part of the tests: about 20 s of work, with one disturbance of each kind and a
/// restart of the database.
const SHORT: &str = "fleet-trial --tasks 60 --seconds 25 --seed 7 --limit 6 --thinking 600 --every 3 \
                     --database-restarts 1 --storage memory";
/// With Temporal besides.
const SHORT_OUTAGE: &str = "--engine temporal --engine-down 4";
/// Some stops and answers from another host, of which none may be lost. No time is asked for: that
/// is for machines that do nothing else.
const SHORT_LATENCY: &str = "fleet-trial --latency 6 --within 0 --through server --storage memory";
const UNFINISHED: &str = "SELECT count(*) FROM tasks WHERE status IN ('pending', 'running')";

/// Run agents on workers of several hosts (network namespaces), disturb the workers, and check that
/// nothing was lost, done twice or written by a worker that had lost its task. Needs root.
#[derive(clap::Args)]
pub(crate) struct TrialArgs {
    /// How many agents; each depends on up to two earlier ones.
    #[arg(long, default_value_t = 1_000)]
    tasks: usize,
    /// Chooses the dependencies.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For how long workers are disturbed; the trial ends when all tasks are over.
    #[arg(long, default_value_t = 180)]
    seconds: u64,
    /// Seconds between two disturbances. With few, all workers are in trouble at once; a worker that
    /// is left alone takes over sooner.
    #[arg(long, default_value_t = 5)]
    every: u64,
    /// Milliseconds that each of the three answers of the model to an agent takes.
    #[arg(long, value_name = "MS", default_value_t = 150)]
    thinking: u64,
    /// The most tasks that may run at once; 0 for no limit.
    #[arg(long, default_value_t = 45)]
    limit: usize,
    /// The program; by default the one of a debug build, which is built first.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Another build of the program, older or newer, which one of the three workers runs.
    #[arg(long, value_name = "PATH")]
    other: Option<PathBuf>,
    /// Who hands out the work. For `temporal` a server is started and named to the workers.
    #[arg(long, value_enum, default_value_t = TrialEngine::Leases)]
    engine: TrialEngine,
    /// Restart the database so often.
    #[arg(long, default_value_t = 0)]
    database_restarts: u32,
    /// Stop the Temporal server for so many seconds (with `--engine temporal`).
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    engine_down: u64,
    /// Instead: measure so often how long a stop and an answer take to arrive.
    #[arg(long, value_name = "TIMES")]
    latency: Option<usize>,
    /// With `--latency`: by what people stop and answer.
    #[arg(long, value_enum, default_value_t = TrialSurface::Commands, requires = "latency")]
    through: TrialSurface,
    /// With `--latency`: fail if the 99th percentile is more than so many seconds; 0 to fail only if
    /// something does not arrive.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1.0,
        requires = "latency"
    )]
    within: f64,
    /// Where PostgreSQL and Temporal keep their files.
    #[arg(long, value_enum, default_value_t = TrialStorage::Disk)]
    storage: TrialStorage,
    /// Write tasks, conversations and what the database server saw to this file, a JSON object a line.
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TrialEngine {
    Leases,
    Temporal,
}

/// What people have in front of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TrialSurface {
    /// `codespar task stop` and `task answer`
    Commands,
    /// The HTTP API of `codespar serve`
    Server,
}

impl TrialEngine {
    fn name(self) -> &'static str {
        match self {
            Self::Leases => "leases",
            Self::Temporal => "temporal",
        }
    }
}

/// Where it cannot be run, the reason is printed.
pub(crate) fn run(args: &TrialArgs, root: &Path) -> Result<()> {
    if args.engine_down > 0 && args.engine == TrialEngine::Leases {
        bail!("--engine-down needs --engine temporal: with leases there is no engine to stop");
    }
    if let Some(dir) = isolation::directory() {
        return match args.latency {
            Some(times) => latency::measure(args, root, &dir, times),
            None => conduct(args, root, &dir),
        };
    }
    if let Some(why) = isolation::obstacle() {
        println!("skipped: {why}");
        return Ok(());
    }
    if args.engine == TrialEngine::Temporal {
        temporal::ensure(root)?;
    }
    if args.program.is_none() {
        let mut build = steps::cargo(root);
        build
            .args(["build", "--workspace", "--bins"])
            .args(steps::SHIPPED);
        steps::run(&mut build)?;
    }
    isolation::run_apart(std::env::args_os().skip(1))
}

/// The trials that are part of the tests, on the program that they have built; what was skipped.
pub(super) fn run_short(root: &Path) -> Result<Vec<String>> {
    if let Some(why) = isolation::obstacle() {
        return Ok(vec![format!("trial of workers on several hosts ({why})")]);
    }
    let program = world::default_program(root)?;
    let run = |options: &[&str]| {
        let words = options.iter().flat_map(|options| options.split(' '));
        let mut args: Vec<OsString> = words.map(OsString::from).collect();
        args.extend(["--program".into(), program.clone().into()]);
        isolation::run_apart(args)
    };
    run(&[SHORT])?;
    run(&[SHORT_LATENCY])?;
    if let Err(why) = temporal::ensure(root) {
        return Ok(vec![format!("the same with Temporal ({why:#})")]);
    }
    run(&[SHORT, SHORT_OUTAGE])?;
    run(&[SHORT_LATENCY, "--engine temporal"])?;
    Ok(Vec::new())
}

fn conduct(args: &TrialArgs, root: &Path, dir: &Path) -> Result<()> {
    let thinking = Duration::from_millis(args.thinking);
    let world = World::make(args, root, dir, |project| {
        workload::script(project, thinking)
    })?;
    let people = (0..PEOPLE).map(|_| SessionId::new()).collect();
    let work = workload::plan(args.tasks, args.seed, people)?;
    if args.limit > 0 {
        world.set_limit(args.limit)?;
    }
    let workers = world.start_workers()?;
    let mut disturber = Disturber::new(workers, Duration::from_secs(args.every));
    let mut centre = CentreEvents::plan(
        Duration::from_secs(args.seconds),
        args.database_restarts,
        Duration::from_secs(args.engine_down),
    );
    let recording = async {
        for person in &work.people {
            let project = &world.environment.project;
            workload::make_session(&world.database.store, *person, project).await?;
        }
        workload::record(
            &world.database.store,
            &work.tasks,
            &world.environment.project,
        )
        .await
    };
    world.database.wait(recording)?;
    let outcome = disturb_until_over(args, &world, &mut disturber, &mut centre)
        .and_then(|()| disturber.settle())
        .and_then(|()| examine(args, &world, &work, &disturber, &centre));
    if let Some(file) = &args.dump {
        world.database.dump(file)?;
    }
    let report = outcome.with_context(|| format!("workers said:\n{}", disturber.logs()))?;
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&report)?),
        false => report.print(),
    }
    report.verdict()
}

/// Returns when all tasks are over.
fn disturb_until_over(
    args: &TrialArgs,
    world: &World,
    disturber: &mut Disturber<'_>,
    centre: &mut CentreEvents,
) -> Result<()> {
    let began = Instant::now();
    let mut looked = Instant::now();
    loop {
        let elapsed = began.elapsed();
        if elapsed.as_secs() < args.seconds {
            disturber.step()?;
        } else {
            disturber.end_those_due()?;
        }
        world.step(centre, elapsed)?;
        if looked.elapsed() > Duration::from_secs(1) {
            looked = Instant::now();
            let left = world.database.count(UNFINISHED)?;
            if left == 0 {
                return Ok(());
            }
            if !args.json && elapsed.as_secs().is_multiple_of(10) {
                println!("{:>4} s: {left} tasks left", elapsed.as_secs());
            }
        }
        if elapsed > DEADLINE {
            bail!("{} tasks are not over", world.database.count(UNFINISHED)?);
        }
        std::thread::sleep(TICK);
    }
}

/// Reads what there is to know.
fn examine(
    args: &TrialArgs,
    world: &World,
    work: &PlannedWork,
    disturber: &Disturber<'_>,
    centre: &CentreEvents,
) -> Result<TrialReport> {
    world.tell_people(&work.people)?;
    let log = world.database.log()?;
    let (model_calls, repeated_model_calls) = world.model_calls();
    let mut checks = check_history(args, world, work, &log)?;
    checks.push(checks::check_outages(centre));
    if let Some(records) = world.engine_records()? {
        let secrets = &world::SECRETS;
        checks.push(checks::check_engine_records(&work.tasks, secrets, &records));
    }
    if let Some(other) = world.other_build()? {
        checks.push(checks::check_builds(other.host, &other.version, &log));
    }
    Ok(TrialReport {
        engine: args.engine.name(),
        storage: args.storage.name(),
        tasks: work.tasks.len(),
        seed: args.seed,
        workers: world::WORKERS.len(),
        outages: centre.done(),
        took_seconds: duration(&log),
        standstills: standstills(&log),
        model_calls,
        repeated_model_calls,
        checks,
        take_overs: take_overs::take_overs(disturber.made(), &log),
    })
}

/// What became of the tasks.
fn check_history(
    args: &TrialArgs,
    world: &World,
    work: &PlannedWork,
    log: &[LogLine],
) -> Result<Vec<TrialCheck>> {
    let (database, PlannedWork { tasks, people }) = (&world.database, work);
    Ok(vec![
        checks::check_ends(tasks, log),
        checks::check_notifications(tasks, log),
        checks::check_deliveries(tasks, people, database)?,
        checks::check_conversations(tasks, database)?,
        checks::check_marks(tasks, &world.hosts),
        checks::check_writers(tasks, log),
        checks::check_dependencies(tasks, log),
        checks::check_limit(args.limit, log),
        checks::check_labels(tasks, &world.places(), log),
    ])
}

/// From the first task that was taken to the last that ended.
fn duration(log: &[LogLine]) -> f64 {
    let is_task = |line: &&LogLine| matches!(line.event, LogEvent::Task { .. });
    let mut tasks = log.iter().filter(is_task);
    let first = tasks.next().map_or(0, |line| line.at);
    let last = tasks.next_back().map_or(first, |line| line.at);
    (last - first) as f64 / 1e6
}

/// The longest times in which no task was taken or ended anywhere, in seconds, longest first.
fn standstills(log: &[LogLine]) -> Vec<f64> {
    let is_task = |line: &&LogLine| matches!(line.event, LogEvent::Task { .. });
    let times: Vec<i64> = log.iter().filter(is_task).map(|line| line.at).collect();
    let gaps = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64 / 1e6);
    let mut gaps: Vec<f64> = gaps.filter(|gap| *gap > STANDSTILL).collect();
    gaps.sort_by(|left, right| right.total_cmp(left));
    gaps
}

/// How often each turn of each conversation was asked for; the calls in all, and those too many.
fn repetitions(turns: impl IntoIterator<Item = (String, usize)>) -> (usize, usize) {
    let mut counts: HashMap<(String, usize), usize> = HashMap::new();
    for turn in turns {
        *counts.entry(turn).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    (all, all - counts.len())
}
