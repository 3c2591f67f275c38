//! The proof: the project's tests before and after the change, in a throw-away tree, in the
//! sandbox.
//!
//! ```text
//! tree                  a checkout of our own that borrows the objects of the clone
//! detect                which command tests it
//! provide, setup, kept  its dependencies, from the checkout or installed
//! run                   the command, in the sandbox, with a limit on time
//! failures, counts      what it printed, read
//! compare, new_tests    what two runs say together
//! hooks                 the repository's pre-commit hooks, on the change
//! ```
//!
//! A test suite is code of the repository, and after a change code of a model: it runs confined,
//! with the network of the settings, and its output is foreign text that is read in bounded memory.
//! Of it only names made of plain words, counts, exit codes and refused hosts are published.

pub mod before;
mod collect;
mod compare;
mod counts;
mod dependencies;
mod detect;
mod failing;
mod failures;
mod hooks;
mod join;
mod kept;
mod missing;
mod new_tests;
mod provide;
mod setup;
mod tree;
mod variables;

pub use collect::collect;
pub use counts::Counts;
pub use detect::detect;
pub use failures::{FailureKind, REPORT_LIMIT, TestFailure, report};
pub use hooks::{HookRun, RepositoryHook};
pub use join::{JoinedCommits, has_marks, join, text_of};
pub use missing::Missing;
pub use new_tests::{NewTests, NewTestsVerdict};
pub use provide::{Dependencies, Need, Provided};
pub use tree::{Tree, has_commit, lfs_note, submodules};
#[cfg(feature = "fuzzing")]
pub(crate) use {counts::counts, failing::failing, failures::read_output};

use std::{ffi::OsString, fs::File, io::BufReader, path::Path, sync::Arc, time::Duration};

use codespar_tasks::ShellSetup;
use codespar_tools::{
    Context, ContextParts, Skills,
    process::{self, Capture, Ending},
    sandbox::{Approval, Restored},
    shell_launch,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::TreeError;

/// One run of the test command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    /// The exit code, if it came to one.
    pub exit_code: Option<i32>,
    /// How it ended otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Tests passed and failed, where the output tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// The names of tests that failed, as they are published, where the output tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// What failed and what was said about it; it is not published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<TestFailure>,
    /// How long it took.
    pub duration_ms: u64,
    /// The beginning of its output, if it is not part of the end; it is not published.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// The end of its output; it is not published.
    pub tail: String,
    /// Hosts that the network proxy refused it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Programs and modules that it says are not there. Empty if it passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Known from an earlier run at the same commit.
    #[serde(default)]
    pub from_cache: bool,
}

impl TestRun {
    /// Whether the tests pass.
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }

    /// The command itself could not be found or started, or nothing of it could run for want of
    /// something that is not installed. Of a run without the change: this says nothing of it. 126
    /// and 127 are the shell's codes for a command that is not executable or not found.
    pub fn was_not_run(&self) -> bool {
        let has_no_script = |line: &str| line.ends_with("Missing script: \"test\"");
        match self.exit_code {
            Some(126 | 127) => true,
            Some(0) | None => false,
            Some(_) => {
                let none_passed = self.counts.is_none_or(|counts| counts.passed == 0);
                let is_unknown = self.counts.is_none() && self.tail.lines().any(has_no_script);
                is_unknown || (none_passed && !self.missing.is_empty())
            }
        }
    }

    /// Takes submodules that are not there for the reason of a failure that speaks of them.
    pub fn note_submodules(&mut self, missing: &[String]) {
        if self.passed() || missing.is_empty() {
            return;
        }
        let messages = self.failures.iter().map(|failure| failure.message.as_str());
        let texts: Vec<&str> = [self.head.as_str(), &self.tail]
            .into_iter()
            .chain(messages)
            .collect();
        let named = missing::submodules_in(missing, &texts);
        self.missing.extend(named);
    }

    /// Whether an installation could bring what is missing.
    pub fn misses_dependencies(&self) -> bool {
        let mut missing = self.missing.iter();
        missing.any(|one| !matches!(one, Missing::Submodule(_)))
    }

    /// What is missing, in words: `the program `jest``.
    pub fn describe_missing(&self) -> Option<String> {
        let all: Vec<String> = self.missing.iter().map(Missing::describe).collect();
        match all.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            [first @ .., last] => Some(format!("{} and {last}", first.join(", "))),
        }
    }

    /// In a few words: `214 passed`, `2 of 14 failed`, `exit code 1`. It is published, so it has no
    /// output in it.
    pub fn summary(&self) -> String {
        match (self.counts, self.exit_code) {
            (Some(counts), Some(0)) => format!("{} passed", counts.passed),
            (Some(counts), _) if counts.failed > 0 => {
                format!(
                    "{} of {} failed",
                    counts.failed,
                    counts.failed.saturating_add(counts.passed)
                )
            }
            (_, Some(0)) => "passed".to_owned(),
            (_, Some(127)) => "the command was not found".to_owned(),
            (_, Some(code)) => format!("failed with exit code {code}"),
            (_, None) => self
                .problem
                .clone()
                .unwrap_or_else(|| "did not end".to_owned()),
        }
    }
}

/// What the proof came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub command: String,
    /// Without the change.
    pub before: TestRun,
    /// With it.
    pub after: TestRun,
    /// What the tests of the change say without the rest of it; none where it has no code, and in
    /// older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_tests: Option<NewTests>,
    /// The pre-commit hooks of the repository that were run on the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
}

impl Evidence {
    /// Whether all tests pass with the change and some do not without it.
    pub fn is_proof(&self) -> bool {
        let proved = self.new_tests.as_ref().map(|tests| tests.verdict);
        self.after.passed() && proved == Some(NewTestsVerdict::Proved)
    }

    /// Whether all tests pass and the change adds some that cannot be run without it.
    pub fn adds_tests(&self) -> bool {
        let verdict = self.new_tests.as_ref().map(|tests| tests.verdict);
        self.after.passed() && verdict == Some(NewTestsVerdict::InSource)
    }

    /// Without what tests printed, but for the end of the output.
    #[must_use]
    pub fn without_messages(mut self) -> Self {
        for run in [&mut self.before, &mut self.after] {
            run.failures = Vec::new();
            run.head = String::new();
        }
        self
    }

    /// Hosts that either run was refused, each once.
    pub fn blocked(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = Vec::new();
        for host in self.after.blocked.iter().chain(&self.before.blocked) {
            if !hosts.contains(&host.as_str()) {
                hosts.push(host);
            }
        }
        hosts
    }
}

/// Runs a command in a tree. `temp_dir` gets a directory for the temporary files of the run, which
/// goes afterwards. A run that ends by a signal, at the limit or with protected paths restored has
/// no exit code and counts as not passed. `Stopped` if `cancel` was cancelled; everything the
/// command started has ended by then.
pub async fn run(
    shell: &ShellSetup,
    temp_dir: &Path,
    tree: &Path,
    command: &str,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<TestRun, TreeError> {
    let broken = |error: &dyn std::fmt::Display| TreeError::Broken(format!("`{command}`: {error}"));
    let temp = tempfile::Builder::new()
        .prefix("verify-")
        .tempdir_in(made(temp_dir)?)
        .map_err(|error| broken(&error))?;
    let context = Context::new(ContextParts {
        root: tree.to_path_buf(),
        cwd: tree.to_path_buf(),
        extra_dirs: Vec::new(),
        temp_dir: temp.path().to_path_buf(),
        output_dir: temp.path().to_path_buf(),
        child_env: without_bytecode(&shell.child_env),
        sandbox: shell.sandbox.clone(),
        skills: Arc::new(Skills::default()),
        page_reader: None,
        hidden: shell.hidden(&shell.rules.read(), tree),
        redactor: shell.redactor.clone(),
    });
    let launch = shell_launch(command, tree, &context, limit, Approval::Rules)
        .map_err(|error| broken(&error))?;
    let output = temp.path().join("output.txt");
    let mut capture = Capture::to_file(&output, &shell.redactor).map_err(|error| broken(&error))?;
    let ended = process::run(&launch, &shell.sandbox, &mut capture, cancel)
        .await
        .map_err(|error| broken(&error))?;
    capture.finish();
    let undone: Vec<String> = ended.restored.iter().map(Restored::describe).collect();
    let (exit_code, problem) = match ended.ending {
        _ if !undone.is_empty() => (None, Some(undone.join("; "))),
        Ending::Exited(code) => (Some(code), None),
        Ending::Signalled(signal) => (None, Some(format!("ended by signal {signal}"))),
        Ending::TimedOut => (
            None,
            Some(format!(
                "did not end within {} s and was stopped",
                limit.as_secs()
            )),
        ),
        Ending::Cancelled => return Err(TreeError::Stopped),
    };
    // Where the run was is different each time, and tells a reader nothing.
    let hidden = [tree, temp.path()].map(|path| path.display().to_string());
    let read = tokio::task::spawn_blocking(move || {
        failures::read_output(BufReader::new(File::open(&output)?), &hidden)
    });
    let read = read.await.map_err(|error| broken(&error))?;
    // Output that cannot be read says nothing; how the command ended is known without it.
    let read = read.unwrap_or_default();
    let is_passed = exit_code == Some(0);
    Ok(TestRun {
        exit_code,
        problem,
        counts: read.counts,
        failing: failing::failing(&read.failures),
        failures: if is_passed { Vec::new() } else { read.failures },
        duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
        head: read.head,
        tail: read.tail,
        blocked: ended.blocked,
        missing: match ended.ending {
            Ending::Exited(0) => Vec::new(),
            _ => read.missing,
        },
        from_cache: false,
    })
}

/// Python takes its bytecode for that of a file of the same size that was written in the same
/// second: a run after a small change would test the code from before it.
fn without_bytecode(variables: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let own = ("PYTHONDONTWRITEBYTECODE".into(), "1".into());
    variables.iter().cloned().chain([own]).collect()
}

fn made(dir: &Path) -> Result<&Path, TreeError> {
    std::fs::create_dir_all(dir)
        .map_err(|error| TreeError::Broken(format!("{}: {error}", dir.display())))?;
    Ok(dir)
}
