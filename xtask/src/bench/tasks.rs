//! Background commands: how fast ready ones are started.
//!
//! A thousand commands that do nothing: what is measured is the scheduler, the store and the start
//! of a process. The bar is 200 a second, with and without a sandbox. Each mode is run once.

use anyhow::Result;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::json;

use super::{
    Bench,
    report::{Bar, Row, Section},
    samples::{Samples, Unit, milliseconds},
    stage::{Run, Stage},
    turns::ALLOWED,
};

const TASKS: usize = 1_000;
/// Words of the request for a summary of older turns. The scripted model recognises that request by
/// them.
const SUMMARY: &str = "keep the memory of a coding agent";
/// Two hundred a second.
const PER_TASK: f64 = 5.0;

pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let run = |mode: &str| -> Result<Run> {
        let stage = Stage::new()?.used(bench)?;
        stage.settings(&json!({"sandbox": {"mode": mode}}).to_string())?;
        stage.run(bench, &script(), &ALLOWED)
    };
    let (sandboxed, free) = (run("namespaces")?, run("off")?);
    let each = |run: &Run| Samples::new(Unit::Milliseconds, [per_task(run.cost.wall)]);
    Ok(Section {
        title: "Background commands",
        reading: format!(
            "One message makes {TASKS} shell tasks of `true`; the run ends when all have ended and \
             the session was told. Eight run at a time. What a command costs besides our own CPU \
             is its sandbox, its guard and its shell: that is what bounds the rate."
        ),
        columns: vec!["wall for each", "CPU for each", "CPU of commands for each"],
        bars: vec![
            Bar::at_most(PER_TASK, "time for each background command", &each(&free)),
            Bar::at_most(
                PER_TASK,
                "time for each sandboxed background command",
                &each(&sandboxed),
            ),
        ],
        rows: vec![row("namespaces", &sandboxed), row("no sandbox", &free)],
    })
}

/// The model makes all tasks in one message and then ends its turn; the run goes on until the last
/// notification.
fn script() -> Script {
    let create = json!({"task_type": "local_bash", "subject": "s", "command": "true"});
    // So many results may fill the context; without this the summary would be the thousand calls.
    let summary = Conversation::new("summary", Matcher::system_contains(SUMMARY))
        .turn(Turn::text("A thousand commands were started."))
        .after_last(codespar_testkit::AfterLast::Repeat);
    let all = (0..TASKS).fold(Turn::new(), |turn, _| turn.and_tool("TaskCreate", &create));
    Script::of([
        all,
        Turn::text("All are made."),
        Turn::text("All are done."),
    ])
    .after_last(codespar_testkit::AfterLast::Repeat)
    .conversation(summary)
}

fn per_task(time: std::time::Duration) -> f64 {
    milliseconds(time) / TASKS as f64
}

fn row(what: &str, run: &Run) -> Row {
    let cell = |time| Some(Samples::new(Unit::Milliseconds, [per_task(time)]));
    let cost = &run.cost;
    Row::new(
        what,
        [cell(cost.wall), cell(cost.cpu), cell(cost.children_cpu)],
    )
}
