//! A clean home, a small repository and a scripted model, for runs of the real binary.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use codespar_testkit::{CapturedRequest, Script, ScriptedModel, Turn, process::CleanRoom};

use super::{Bench, cost::Cost};

/// Where runs take place. The state directory is kept from run to run.
pub(super) struct Stage {
    room: CleanRoom,
    work: PathBuf,
}

/// One run of the binary.
pub(super) struct Run {
    pub(super) cost: Cost,
    pub(super) requests: Vec<CapturedRequest>,
    /// When each request had arrived, counted from the start of the process.
    pub(super) arrivals: Vec<Duration>,
    /// Bytes that the state directory grew by.
    pub(super) state_growth: u64,
}

impl Stage {
    /// A repository of one file, in which nothing has been run yet. `.git` has only what makes it
    /// look like a repository, so that no git command is measured with the start.
    pub(super) fn new() -> Result<Self> {
        let room = CleanRoom::new()?;
        let work = room.work();
        fs::create_dir(work.join(".git"))?;
        fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        let lines = (1..=20).map(|line| format!("Line {line} of a short file.\n"));
        fs::write(work.join("README.md"), lines.collect::<String>())?;
        Ok(Self { room, work })
    }

    /// Works in this directory instead.
    pub(super) fn below(mut self, work: &Path) -> Self {
        self.work = work.to_owned();
        self
    }

    /// As it is for somebody who has used it before: with a state directory.
    pub(super) fn used(self, bench: &Bench) -> Result<Self> {
        self.run(bench, &Script::of([Turn::text("Hello.")]), &[])?;
        Ok(self)
    }

    /// Writes the settings of the user.
    pub(super) fn settings(&self, json: &str) -> io::Result<()> {
        fs::write(self.room.codespar_home().join("settings.json"), json)
    }

    pub(super) fn room(&self) -> &CleanRoom {
        &self.room
    }

    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// Runs `codespar -p` on the script to its end. A tool call that fails is an error: it would
    /// measure something else. Arrivals are corrected by the time between the start of the server
    /// and that of the process.
    pub(super) fn run(&self, bench: &Bench, script: &Script, args: &[&str]) -> Result<Run> {
        let state = self.room.codespar_home();
        let size_before = size_below(&state)?;
        // The server counts from its start, which is here to within some microseconds.
        let server_start = SystemTime::now();
        let server = ScriptedModel::start_blocking(script.clone())?;
        let mut command = bench.meter.command(&self.room, &bench.codespar);
        command
            .current_dir(&self.work)
            .args(["-p", "hi", "--output-format", "stream-json"])
            .args(args)
            .env("ANTHROPIC_BASE_URL", server.url())
            .env("ANTHROPIC_API_KEY", "a-key-for-benchmarks-0001");
        let measured = bench.meter.run(&mut command)?;
        let requests = server.requests();
        let last = requests.last().context("no request came")?;
        if let Some(failed) = last.tool_results().iter().find(|result| result.is_error) {
            bail!("a tool call failed: {}", failed.text);
        }
        let head_start = measured.cost.started.duration_since(server_start)?;
        let arrivals = requests
            .iter()
            .map(|request| request.at().saturating_sub(head_start))
            .collect();
        Ok(Run {
            cost: measured.cost,
            requests,
            arrivals,
            state_growth: size_below(&state)?.saturating_sub(size_before),
        })
    }
}

fn size_below(directory: &Path) -> io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        size += match metadata.is_dir() {
            true => size_below(&entry.path())?,
            false => metadata.len(),
        };
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_directory_is_that_of_all_files_below_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(folder.path().join("deep/a"), [0; 30]).unwrap();
        fs::write(folder.path().join("b"), [0; 12]).unwrap();
        assert_eq!(size_below(folder.path()).unwrap(), 42);
    }
}
