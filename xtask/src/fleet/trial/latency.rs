//! How long a stop and an answer take to reach an agent on another host.
//!
//! The agents run on the workers' hosts; whoever stops or answers sits at another one. Both are
//! measured from the start of the command or the request, and from the moment at which the database
//! had it. Besides, each must have its effect: what was stopped does not go on, what was allowed is
//! done.

mod report;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use codespar_protocol::{Labels, SessionId, TaskId, TaskType};
use codespar_store::TaskStore;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
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
use report::LatencyReport;

/// So many agents wait at once.
const BATCH: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks; no part of what is measured.
const PAUSE: Duration = Duration::from_millis(10);
/// What agents wait in until they are stopped. Nobody else waits for so long.
const WAITING: [&str; 2] = ["sleep", "86399"];
/// The beginning of the prompts.
const STOP: &str = "stop-me-";
const ASK: &str = "ask-me-";

/// One that was stopped or answered, in seconds.
struct Measured {
    from_act: f64,
    from_record: f64,
}

/// Where somebody stops and answers.
enum Controls<'a> {
    Commands(&'a World),
    Server(ServedApi),
}

impl<'a> Controls<'a> {
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
    world.environment.run(&world.client, args).map(drop)
}

pub(super) fn measure(args: &TrialArgs, root: &Path, dir: &Path, times: usize) -> Result<()> {
    let world = World::make(args, root, dir, |_| script())?;
    let workers = world.start_workers()?;
    let controls = Controls::open(args.through, &world)?;
    let (mut stops, mut answers) = (Vec::new(), Vec::new());
    let outcome = (0..times.div_ceil(BATCH)).try_for_each(|batch| {
        let count = BATCH.min(times - batch * BATCH);
        stops.extend(stop(&world, &controls, count)?);
        answers.extend(answer(&world, &controls, count)?);
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
        engine: args.engine.name(),
        storage: args.storage.name(),
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
    report.verdict(args.within)
}

/// An agent that is to be stopped does not come to its second turn.
fn script() -> Script {
    let agents = |prompt: &str, call: Turn| {
        Conversation::new(prompt, Matcher::first_user_contains(prompt))
            .turn(call)
            .turn(Turn::text("done"))
    };
    let wait = json!({ "command": WAITING.join(" ") });
    let write = json!({ "file_path": "{{last_user_text}}.txt", "content": "x" });
    Script::new()
        .conversation(agents(STOP, Turn::tool("Bash", &wait)))
        .conversation(agents(ASK, Turn::tool("Write", &write)))
}

/// Agents that wait in a long command are stopped, one after the other.
fn stop(world: &World, controls: &Controls<'_>, count: usize) -> Result<Vec<Measured>> {
    let tasks = make(world, count, STOP, &["Bash"])?;
    wait_for("the commands to start", || Ok(commands()? == count))?;
    let stopped = tasks.iter().map(|task| {
        let (id, began) = (&task.id, now()?);
        controls.stop(id)?;
        wait_for_status(world, id, "killed")?;
        let (mut asked, mut ends) = (None, Vec::new());
        for line in world.database.log()? {
            match line.event {
                LogEvent::Stop { id } if id == task.id.as_str() => asked = Some(line.at),
                LogEvent::Task { id, status, .. }
                    if id == task.id.as_str() && status != "pending" && status != "running" =>
                {
                    ends.push(line.at);
                }
                _ => {}
            }
        }
        let [ended] = ends[..] else {
            bail!("{id} was stopped and ended {} times", ends.len());
        };
        Ok(Measured {
            from_act: seconds(began, ended),
            from_record: seconds(asked.unwrap_or(began), ended),
        })
    });
    let stopped: Result<Vec<Measured>> = stopped.collect();
    let stopped = stopped?;
    wait_for("the commands to end", || Ok(commands()? == 0))?;
    match tasks
        .iter()
        .find(|task| call_after(world, STOP, task).is_some())
    {
        Some(task) => bail!("{} was stopped and has called the model", task.id),
        None => Ok(stopped),
    }
}

/// Agents that wait for a permission get it, one after the other.
fn answer(world: &World, controls: &Controls<'_>, count: usize) -> Result<Vec<Measured>> {
    let tasks = make(world, count, ASK, &[])?;
    for task in &tasks {
        let open = format!(
            "SELECT count(*) FROM questions WHERE task_id = '{}' AND status = 'open'",
            task.id
        );
        wait_for("a question", || Ok(world.database.count(&open)? > 0))?;
    }
    let answered = tasks.iter().map(|task| {
        let of_task = format!("FROM questions WHERE task_id = '{}'", task.id);
        let question = world.database.texts(&format!("SELECT id {of_task}"))?;
        let question = question.first().context("the question is gone")?;
        let began = now()?;
        controls.allow(question)?;
        let recorded = world
            .database
            .count(&format!("SELECT answered_at {of_task}"))?;
        let next = || call_after(world, ASK, task);
        wait_for("the call after an answer", || Ok(next().is_some()))?;
        let asked = next().context("a request is gone")?;
        Ok(Measured {
            from_act: seconds(began, asked),
            from_record: seconds(recorded, asked),
        })
    });
    let answered: Result<Vec<Measured>> = answered.collect();
    let answered = answered?;
    for task in &tasks {
        wait_for_status(world, &task.id, "completed")?;
        let name = format!("{ASK}{}.txt", task.id);
        let written = world.hosts.iter().map(|host| host.project().join(&name));
        if written.filter(|file| file.exists()).count() != 1 {
            bail!(
                "{} was allowed to write {name} and did not do it once",
                task.id
            );
        }
    }
    Ok(answered)
}

/// When the model was asked for the turn after the first, which ends in the call.
fn call_after(world: &World, prompt: &str, task: &PlannedTask) -> Option<i64> {
    let prompt = format!("{prompt}{}", task.id);
    let requests = world.model.requests();
    let request = requests.iter().find(|request| {
        let first = request.messages().first();
        let is_its = first.is_some_and(|message| message.to_string().contains(&prompt));
        is_its && request.assistant_messages() == 1
    })?;
    let at = i64::try_from(request.at().as_micros()).ok()?;
    Some(world.model_began + at)
}

/// How many of the commands in which agents wait there are on all hosts.
fn commands() -> Result<usize> {
    let wanted = WAITING.map(|word| format!("{word}\0")).concat();
    let mut count = 0;
    for process in fs::read_dir("/proc")?.flatten() {
        // One that ends meanwhile cannot be read.
        let command = fs::read(process.path().join("cmdline"));
        count += usize::from(command.is_ok_and(|command| command == wanted.as_bytes()));
    }
    Ok(count)
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

fn wait_for_status(world: &World, id: &TaskId, status: &str) -> Result<()> {
    let query = format!("SELECT count(*) FROM tasks WHERE id = '{id}' AND status = '{status}'");
    let what = format!("{id} to be {status}");
    wait_for(&what, || Ok(world.database.count(&query)? > 0))
}

/// Looks again and again until it is so.
fn wait_for(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > deadline {
            bail!("waited too long for {what}");
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn seconds(from: i64, to: i64) -> f64 {
    (to - from) as f64 / 1e6
}
