//! Subagents: ten with shell commands, and a thousand alive at once.
//!
//! Memory for each agent is a difference of two runs divided by the number of agents, so that what
//! the process takes anyway is left out. It is measured once, whatever the number of runs.

use std::time::Duration;

use anyhow::Result;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

use super::{
    Bench,
    report::{Bar, Row, Section},
    samples::Samples,
    stage::{Run, Stage},
    turns::ALLOWED,
};

const TURNS: usize = 5;
const FEW: usize = 10;
const MANY: usize = 1_000;
/// Kilobytes a live agent may take. A bar.
const PER_AGENT: f64 = 100.0;
/// Long enough for all agents to be started before the first goes on. The scripted model holds back
/// the first answer to each agent for so long.
const GATHER: Duration = Duration::from_secs(15);

/// The ten agents run `bench.runs` times; the single agent and the thousand once each. `one` has
/// the same script with one child, so that the difference is that of 999 agents.
pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let shell = |turn: usize| Turn::tool("Bash", &json!({"command": format!("echo step {turn}")}));
    let read = |turn: usize| {
        let call = Turn::tool("Read", &json!({"file_path": "README.md"}));
        if turn == 1 {
            call.latency(GATHER)
        } else {
            call
        }
    };
    let few = script(FEW, shell);
    let mut ten = Vec::new();
    for _ in 0..bench.runs {
        ten.push(Stage::new()?.used(bench)?.run(bench, &few, &ALLOWED)?);
    }
    let one = stage(bench)?.run(bench, &script(1, read), &ALLOWED)?;
    let thousand = stage(bench)?.run(bench, &script(MANY, read), &ALLOWED)?;
    let spread = thousand.cost.peak.saturating_sub(one.cost.peak) as f64 / (MANY - 1) as f64;
    let per_agent = Samples::kilobytes([spread]);
    Ok(Section {
        title: "Subagents",
        reading: format!(
            "One message starts them all with the Task tool, and the run ends when all have \
             answered. Ten agents make {TURNS} calls of Bash each; a thousand make {TURNS} of \
             Read, with room for all at once, and wait for each other before the second. Memory \
             for each is the peak of that run less that of one with a single agent."
        ),
        columns: vec![
            "wall",
            "CPU",
            "CPU of commands",
            "peak memory",
            "memory for each",
        ],
        bars: vec![Bar::at_most(
            PER_AGENT,
            "memory of a live agent",
            &per_agent,
        )],
        rows: vec![
            row("10 agents, Bash", &ten, None),
            row("1 agent, Read", &[one], None),
            row("1,000 agents, Read", &[thousand], Some(per_agent)),
        ],
    })
}

/// A person whose settings have room for all.
fn stage(bench: &Bench) -> Result<Stage> {
    let stage = Stage::new()?.used(bench)?;
    stage.settings(&json!({ "maxAgents": MANY }).to_string())?;
    Ok(stage)
}

/// Children are told apart from the parent by the text of their prompt; each has the same turns.
fn script(agents: usize, step: impl Fn(usize) -> Turn) -> Script {
    let call = |agent: usize| -> Value {
        json!({"description": format!("agent {agent}"), "prompt": format!("You are child {agent}.")})
    };
    let first = (1..=agents).fold(Turn::new(), |turn, agent| {
        turn.and_tool("Task", &call(agent))
    });
    let child = Conversation::new("child", Matcher::first_user_contains("You are child"))
        .turns((1..=TURNS).map(step))
        .turn(Turn::text("Done."));
    Script::of([first, Turn::text("All are done.")]).conversation(child)
}

fn row(what: &str, runs: &[Run], per_agent: Option<Samples>) -> Row {
    let costs = || runs.iter().map(|run| &run.cost);
    Row::new(
        what,
        [
            Some(Samples::times(costs().map(|cost| cost.wall))),
            Some(Samples::times(costs().map(|cost| cost.cpu))),
            Some(Samples::times(costs().map(|cost| cost.children_cpu))),
            Some(Samples::megabytes(costs().map(|cost| cost.peak))),
            per_agent,
        ],
    )
}
