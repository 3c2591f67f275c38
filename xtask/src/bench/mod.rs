//! `cargo xtask bench`: what start-up, turns, commands and searches cost, held against the bars.

mod against;
mod agents;
mod build;
mod cold_build;
mod commands;
pub(crate) mod cost;
mod document;
mod growth;
mod locate;
mod machine;
mod meter;
mod replay;
mod report;
mod samples;
mod search;
mod server;
mod stage;
mod start;
mod tasks;
mod terminal;
mod tree;
mod turns;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;

use machine::Machine;
use meter::Meter;
use report::{Report, Section};

/// Measure start-up, turns, commands and searches of a built `codespar`, as a table.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these; all by default
    #[arg(long, value_name = "NAME")]
    only: Vec<Subject>,
    /// How often each thing is measured
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Also put the figures into docs/benchmarks.md
    #[arg(long, conflicts_with_all = ["only", "profile"])]
    write: bool,
    /// Measure start and turns of this `codespar`, too, in turns with the one that is built
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// How the programs are built
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
    /// Programs that are built already; this very program is one of them
    #[arg(long, hide = true)]
    programs: Option<PathBuf>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// `--version`, the first request, a run of one turn
    Start,
    /// A loop of 50 turns
    Loop,
    /// Loops of 50, 200 and 400 turns
    Growth,
    /// Shell commands in each sandbox
    Commands,
    /// The Grep tool beside `rg`
    Search,
    /// `codespar locate` on 5,000 files
    Locate,
    /// Ten subagents, and a thousand at once
    Agents,
    /// A thousand background commands
    Tasks,
    /// The session at a terminal
    Terminal,
    /// A thousand deliveries to a server, and two hundred clients
    Server,
    /// A build of the binary from nothing; minutes long, only when named
    Build,
}

/// A profile of the workspace that is optimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Profile {
    /// What is shipped
    #[default]
    Dist,
    /// What people build from source
    Release,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Dist => "dist",
            Self::Release => "release",
        }
    }
}

/// What every subject is given. Made once, in the optimised program.
struct Bench {
    codespar: PathBuf,
    meter: Meter,
    runs: usize,
}

/// Called twice: in the debug build it builds the programs and starts the optimised one with
/// `--programs`, which measures. The machine is looked at before the first measurement, since that
/// adds load itself.
pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    let Some(programs) = &args.programs else {
        // The scripted model and the clock live in this program too, and a debug build of them
        // would show in the figures.
        let programs = build::programs(args.profile, root)?;
        return build::run_again(args, &programs, root);
    };
    let machine = Machine::look();
    let bench = Bench {
        codespar: programs.join("codespar"),
        meter: Meter::new()?,
        runs: args.runs.into(),
    };
    let mut sections = Vec::new();
    for subject in Subject::value_variants() {
        let is_usual = args.only.is_empty() && *subject != Subject::Build;
        if is_usual || args.only.contains(subject) {
            sections.push(measure(*subject, &bench, root)?);
        }
    }
    if let Some(other) = &args.against {
        eprintln!("measuring: against {}", other.display());
        sections.push(against::measure(&bench, other)?);
    }
    let report = Report {
        machine,
        profile: args.profile.name(),
        sections,
    };
    if args.write {
        document::write(&root.join("docs/benchmarks.md"), &report.markdown())?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.markdown());
    }
    Ok(())
}

/// An error ends the whole run: a table with a missing part would be mistaken for a complete one.
fn measure(subject: Subject, bench: &Bench, root: &Path) -> Result<Section> {
    eprintln!("measuring: {subject:?}");
    let section = match subject {
        Subject::Start => start::measure(bench),
        Subject::Loop => turns::measure(bench),
        Subject::Growth => growth::measure(bench),
        Subject::Commands => commands::measure(bench),
        Subject::Search => search::measure(bench),
        Subject::Locate => locate::measure(bench),
        Subject::Agents => agents::measure(bench),
        Subject::Tasks => tasks::measure(bench),
        Subject::Terminal => terminal::measure(bench),
        Subject::Server => server::measure(bench),
        Subject::Build => cold_build::measure(bench, root),
    };
    section.with_context(|| format!("cannot measure {subject:?}"))
}
