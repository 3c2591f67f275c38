//! Runs named steps one after the other, with headings and times.
//!
//! The first failure ends the run: later steps would often fail for the same reason. Output of a
//! command goes to the terminal as it is.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// What is tested is what is shipped: a build with everything that is off by default. The same for all
/// commands, because another choice compiles most of it again.
pub(crate) const SHIPPED: [&str; 2] = [
    "--features",
    "codespar/temporal,codespar/object-store,codespar/otlp",
];

/// The steps done so far. Only those that passed; there is no list of failures.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<(String, Duration)>,
    /// Those that are wanted; all if it is empty.
    only: Vec<String>,
    skipped: Vec<String>,
}

impl Steps {
    pub(crate) fn only(names: &[String]) -> Self {
        Self {
            only: names.to_vec(),
            ..Self::default()
        }
    }

    /// Runs a step that others need, whatever is wanted.
    pub(crate) fn always(&mut self, name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
        let only = std::mem::take(&mut self.only);
        let done = self.step(name, run);
        self.only = only;
        done
    }

    /// Fails if a step was asked for that there is not.
    pub(crate) fn check_names(&self) -> Result<()> {
        let known: Vec<&String> = self.done.iter().map(|(name, _)| name).collect();
        match self.only.iter().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => bail!(
                "there is no step `{name}`; besides those that ran there are: {}",
                self.skipped.join(", ")
            ),
        }
    }

    /// Runs a step if it is wanted; its failure is the failure of the whole, by its name.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.only.is_empty() && !self.only.iter().any(|wanted| wanted == name) {
            self.skipped.push(name.to_owned());
            return Ok(());
        }
        println!("\n=== {name}");
        let begin = Instant::now();
        let outcome = run();
        let time = begin.elapsed();
        match outcome {
            Ok(()) => {
                println!("--- {name}: ok ({})", seconds(time));
                self.done.push((name.to_owned(), time));
                Ok(())
            }
            Err(error) => {
                println!("--- {name}: FAILED ({})", seconds(time));
                Err(error.context(format!("step `{name}` failed")))
            }
        }
    }

    /// One line for all.
    pub(crate) fn summary(&self) -> String {
        let total = self.done.iter().map(|(_, time)| *time).sum();
        let steps: Vec<String> = self
            .done
            .iter()
            .map(|(name, time)| format!("{name} {}", seconds(*time)))
            .collect();
        format!(
            "All {} steps passed in {}: {}",
            self.done.len(),
            seconds(total),
            steps.join(", ")
        )
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The cargo that runs us. The same version as the caller's, also when a toolchain was chosen on
/// the command line.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs a command to its end; anything but success is an error that shows the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", show(command));
    run_quietly(command)
}

/// The same without showing the command first.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// The file name of the program without its directory, so that messages are the same on all
/// machines.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let parts = std::iter::once(program).chain(command.get_args());
    let parts: Vec<_> = parts.map(|word| word.to_string_lossy()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wanted_runs_and_a_wrong_name_is_told_with_the_others() {
        let mut steps = Steps::only(&["docs".to_owned(), "dcos".to_owned()]);
        steps.always("tools", || Ok(())).unwrap();
        steps.step("tests", || bail!("not wanted")).unwrap();
        steps.step("docs", || Ok(())).unwrap();
        let ran: Vec<&str> = steps.done.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(ran, ["tools", "docs"]);
        let error = steps.check_names().unwrap_err().to_string();
        assert!(
            error.contains("`dcos`") && error.contains("tests"),
            "{error}"
        );
    }

    #[test]
    fn the_first_failure_names_its_step_and_the_command() {
        let mut steps = Steps::default();
        steps
            .step("good", || run(&mut Command::new("true")))
            .unwrap();
        let error = steps
            .step(
                "bad",
                || run(Command::new("/bin/sh").args(["-c", "exit 3"])),
            )
            .unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "step `bad` failed: `sh -c exit 3` ended with exit status: 3"
        );
        assert!(steps.summary().starts_with("All 1 steps passed in "));
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let error = run(&mut Command::new("no-such-command")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `no-such-command`");
    }
}
