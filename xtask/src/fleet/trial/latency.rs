//! How long a stop and an answer take to reach an agent on another host.
//!
//! The agents run on the workers' hosts; whoever stops or answers sits at another one. Both are
//! measured from the start of the command or the request, and from the moment at which the database
//! had it.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use codespar_protocol::{Labels, SessionId, TaskId, TaskType};
use codespar_store::TaskStore;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde::Serialize;
use serde_json::json;

use super::{
    TrialArgs, TrialSurface,
    disturbances::now,
    evidence::LogEvent,
    numbers::Spread,
    served::ServedApi,
    workload::{self, PlannedTask},
    world::World,
};

/// So many agents wait at once.
const BATCH: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);
/// From the record that a command starts to its start, on a busy machine.
const STARTING: Duration = Duration::from_millis(300);
/// The beginning of the prompts.
const STOP: &str = "stop-me-";
const ASK: &str = "ask-me-";

/// Seconds, by what was done and from where they are counted.
#[derive(Debug, Serialize)]
struct LatencyReport {
    #[serde(skip)]
    through: TrialSurface,
    stop_from_act: Spread,
    stop_from_record: Spread,
    answer_from_act: Spread,
    answer_from_record: Spread,
}

/// One that was stopped or answered, in seconds.
struct Measured {
    from_act: f64,
    from_record: f64,
}

/// Where somebody stops and answers.
enum Desk<'a> {
    Commands(&'a World),
    Server(ServedApi),
}

impl<'a> Desk<'a> {
    fn open(surface: TrialSurface, world: &'a World) -> Result<Self> {
        Ok(match surface {
            TrialSurface::Commands => Self::Commands(world),
            TrialSurface::Server => Self::Server(ServedApi::start(world)?),
        })
    }

    fn stop(&self, task: &TaskId) -> Result<()> {
        match self {
            Self::Commands(world) => run(world, &["task", "stop", task.as_str()]),
            Self::Server(api) => api.post(&format!("/api/v1/tasks/{task}/stop"), &json!({})),
        }
    }

    fn allow(&self, question: &str) -> Result<()> {
        match self {
            Self::Commands(world) => run(world, &["task", "answer", question, "yes"]),
            Self::Server(api) => api.post(
                &format!("/api/v1/questions/{question}/answer"),
                &json!({ "answer": "yes" }),
            ),
        }
    }
}

fn run(world: &World, args: &[&str]) -> Result<()> {
    world.environment.run(&world.desk, args).map(drop)
}

pub(super) fn measure(args: &TrialArgs, root: &Path, dir: &Path, times: usize) -> Result<()> {
    let world = World::make(args, root, dir, |_| script())?;
    let workers = world.start_workers()?;
    let desk = Desk::open(args.through, &world)?;
    let (mut stops, mut answers) = (Vec::new(), Vec::new());
    let outcome = (0..times.div_ceil(BATCH)).try_for_each(|batch| {
        let count = BATCH.min(times - batch * BATCH);
        stops.extend(stop(&world, &desk, count)?);
        answers.extend(answer(&world, &desk, count)?);
        anyhow::Ok(())
    });
    if let Some(file) = &args.dump {
        world.database.dump(file)?;
    }
    let logs = || {
        workers
            .iter()
            .map(|worker| worker.logs())
            .collect::<String>()
    };
    outcome.with_context(|| format!("workers said:\n{}", logs()))?;
    let act = |all: &[Measured]| Spread::of(all.iter().map(|one| one.from_act).collect());
    let record = |all: &[Measured]| Spread::of(all.iter().map(|one| one.from_record).collect());
    let report = LatencyReport {
        through: args.through,
        stop_from_act: act(&stops),
        stop_from_record: record(&stops),
        answer_from_act: act(&answers),
        answer_from_record: record(&answers),
    };
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&report)?),
        false => report.print(),
    }
    Ok(())
}

impl LatencyReport {
    /// The bar is one second at the 99th percentile, from the act.
    fn print(&self) {
        println!(
            "\n| what | counted from | times | median (s) | p99 (s) | max (s) |\n|---|---|--:|--:|--:|--:|"
        );
        let (stop, answer) = (
            "stop, until the end is recorded",
            "answer, until the next model call",
        );
        let act = match self.through {
            TrialSurface::Commands => "the start of the command",
            TrialSurface::Server => "the request to the server",
        };
        for (what, from, spread) in [
            (stop, act, &self.stop_from_act),
            (stop, "its record", &self.stop_from_record),
            (answer, act, &self.answer_from_act),
            (answer, "its record", &self.answer_from_record),
        ] {
            println!(
                "| {what} | {from} | {} | {:.3} | {:.3} | {:.3} |",
                spread.count, spread.median, spread.p99, spread.max
            );
        }
    }
}

/// An agent that is to be stopped does not come to its second turn.
fn script() -> Script {
    let agents = |prompt: &str, call: Turn| {
        Conversation::new(prompt, Matcher::first_user_contains(prompt))
            .turn(call)
            .turn(Turn::text("done"))
    };
    let write = json!({ "file_path": "asked.txt", "content": "x" });
    Script::new()
        .conversation(agents(
            STOP,
            Turn::tool("Bash", &json!({ "command": "sleep 600" })),
        ))
        .conversation(agents(ASK, Turn::tool("Write", &write)))
}

/// Agents that wait in a long command are stopped, one after the other.
fn stop(world: &World, desk: &Desk<'_>, count: usize) -> Result<Vec<Measured>> {
    let tasks = make(world, count, STOP, &["Bash"])?;
    for task in &tasks {
        let query = format!(
            "SELECT count(*) FROM entries WHERE session_id = '{}' AND body LIKE '%tool_started%'",
            task.session
        );
        wait_for(world, "a command to start", &query)?;
    }
    std::thread::sleep(STARTING);
    let stopped = tasks.iter().map(|task| {
        let (id, began) = (&task.id, now()?);
        desk.stop(id)?;
        let ended = format!("SELECT count(*) FROM tasks WHERE id = '{id}' AND status = 'killed'");
        wait_for(world, "the end of a task that was stopped", &ended)?;
        let (mut asked, mut ended) = (None, None);
        for line in world.database.log()? {
            match &line.event {
                LogEvent::Stop { id } if *id == *task.id.as_str() => asked = Some(line.at),
                LogEvent::Task { id, status, .. }
                    if *id == *task.id.as_str() && status == "killed" =>
                {
                    ended = Some(line.at);
                }
                _ => {}
            }
        }
        let ended = ended.with_context(|| format!("{id} was stopped and did not end"))?;
        Ok(Measured {
            from_act: seconds(began, ended),
            from_record: seconds(asked.unwrap_or(began), ended),
        })
    });
    stopped.collect()
}

/// Agents that wait for a permission get it, one after the other.
fn answer(world: &World, desk: &Desk<'_>, count: usize) -> Result<Vec<Measured>> {
    let tasks = make(world, count, ASK, &[])?;
    for task in &tasks {
        let open = format!(
            "SELECT count(*) FROM questions WHERE task_id = '{}' AND status = 'open'",
            task.id
        );
        wait_for(world, "a question", &open)?;
    }
    let answered = tasks.iter().map(|task| {
        let of_task = format!("FROM questions WHERE task_id = '{}'", task.id);
        let question = world.database.texts(&format!("SELECT id {of_task}"))?;
        let question = question.first().context("the question is gone")?;
        let began = now()?;
        desk.allow(question)?;
        let recorded = world
            .database
            .count(&format!("SELECT answered_at {of_task}"))?;
        let asked = next_call(world, task)?;
        Ok(Measured {
            from_act: seconds(began, asked),
            from_record: seconds(recorded, asked),
        })
    });
    answered.collect()
}

/// When the model was asked for the turn after the question.
fn next_call(world: &World, task: &PlannedTask) -> Result<i64> {
    let prompt = format!("{ASK}{}", task.id);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let requests = world.model.requests();
        let found = requests.iter().find(|request| {
            let first = request.messages().first();
            let is_its = first.is_some_and(|message| message.to_string().contains(&prompt));
            is_its && request.assistant_messages() == 1
        });
        if let Some(request) = found {
            let at = i64::try_from(request.at().as_micros())?;
            return Ok(world.model_began + at);
        }
        if Instant::now() > deadline {
            bail!("{} was answered and does not go on", task.id);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Agents that wait for nothing and tell nobody, with rules that allow these tools.
fn make(world: &World, count: usize, prompt: &str, allowed: &[&str]) -> Result<Vec<PlannedTask>> {
    let project = &world.environment.project;
    let store = &world.database.store;
    let plan = || PlannedTask {
        id: TaskId::new(TaskType::RemoteAgent),
        session: SessionId::new(),
        blocked_by: Vec::new(),
        notifies: None,
        labels: Labels::default(),
    };
    let tasks: Vec<PlannedTask> = (0..count).map(|_| plan()).collect();
    let recording = async {
        for task in &tasks {
            workload::make_session(store, task.session, project).await?;
        }
        let new = tasks.iter().map(|task| {
            let prompt = format!("{prompt}{}", task.id);
            workload::new_task(task, &prompt, allowed, project)
        });
        store.create_tasks(new.collect()).await?;
        anyhow::Ok(())
    };
    world.database.wait(recording)?;
    Ok(tasks)
}

/// Until the query counts one.
fn wait_for(world: &World, what: &str, query: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while world.database.count(query)? == 0 {
        if Instant::now() > deadline {
            bail!("waited too long for {what}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn seconds(from: i64, to: i64) -> f64 {
    (to - from) as f64 / 1e6
}
