//! `cargo xtask redteam`: attacks on the program, each of which must fail.
//!
//! Every case runs under each sandbox (namespaces, bubblewrap, Landlock), as an ordinary user and
//! as root. Cases that attack the sandbox from a command also run with the sandbox off, where they
//! must succeed: an attack that does nothing proves nothing.

mod case;
mod numbers;
mod profile;
mod stage;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};

use crate::{metadata::Metadata, steps};
use case::Case;
use profile::Profile;
use stage::{Outcome, Stage};

/// Attack the program with the cases in redteam/; fail if one escapes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only cases whose name contains one of these, that are in the list of this name, or that come
    /// from the known break of this number
    filter: Vec<String>,
    /// Attack this binary instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only under this profile (may be repeated): namespaces, bubblewrap, landlock,
    /// namespaces-root, bubblewrap-root,
    /// landlock-root, unconfined
    #[arg(long = "profile", value_name = "PROFILE")]
    profiles: Vec<String>,
    /// Count cases and escapes for each of the known breaks
    #[arg(long)]
    by_number: bool,
    /// Print each case with its outcome
    #[arg(long)]
    verbose: bool,
    /// How many attacks run at once
    #[arg(long, default_value_t = 3)]
    jobs: usize,
}

impl Args {
    /// As the test command runs it: on the program that the tests before it have built. A release
    /// build has the same code and would take a third of the time of all checks.
    pub(crate) fn for_tests(root: &Path) -> Result<Self> {
        let binary = Metadata::read(root)?
            .target_directory
            .join("debug/codespar");
        Ok(Self {
            filter: Vec::new(),
            binary: Some(binary),
            profiles: Vec::new(),
            by_number: false,
            verbose: false,
            jobs: 3,
        })
    }
}

/// One case under one profile; each is a run of its own in a directory of its own.
struct Attempt<'a> {
    case: &'a Case,
    profile: Profile,
}

/// The binary is copied to a directory that an ordinary user can read, since the target directory
/// may be private.
pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    let mut cases = case::load(&root.join("redteam"))?;
    if !args.filter.is_empty() {
        cases.retain(|case| args.filter.iter().any(|word| case.is_meant_by(word)));
    }
    let directory = tempfile::Builder::new()
        .prefix("redteam-programs-")
        .tempdir()?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    let programs = install(args, root, directory.path())?;
    let template = stage::template(directory.path())?;
    let mut attempts = attempts(&cases);
    if !args.profiles.is_empty() {
        attempts.retain(|attempt| {
            args.profiles
                .iter()
                .any(|name| name == attempt.profile.name())
        });
    }
    let failures = attack_all(&attempts, args, &programs, &template)?;
    if args.by_number {
        numbers::print(&cases, &failures);
    }
    report(&cases, &attempts, &failures)
}

/// The binary in a directory that every user can read.
fn install(args: &Args, root: &Path, directory: &Path) -> Result<PathBuf> {
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => {
            steps::run(steps::cargo(root).args(["build", "--release", "--bin", "codespar"]))?;
            Metadata::read(root)?
                .target_directory
                .join("release/codespar")
        }
    };
    let programs = directory.join("bin");
    fs::create_dir(&programs)?;
    fs::copy(&binary, programs.join("codespar"))
        .with_context(|| format!("cannot copy {}", binary.display()))?;
    Ok(programs)
}

/// Without root the profiles of root are left out and reported as skipped.
fn attempts(cases: &[Case]) -> Vec<Attempt<'_>> {
    let is_root = rustix::process::geteuid().is_root();
    let profiles = Profile::CONFINED
        .into_iter()
        .chain([Profile::Unconfined])
        .filter(|profile| is_root || !profile.is_root());
    let mut attempts = Vec::new();
    for profile in profiles {
        let fitting = cases.iter().filter(|case| case.runs_under(profile));
        attempts.extend(fitting.map(|case| Attempt { case, profile }));
    }
    attempts
}

/// Name of the case, profile, and what was seen.
type Failure = (String, Profile, String);

/// A shared counter hands out the attempts, so a slow attack holds up one thread only.
fn attack_all(
    attempts: &[Attempt<'_>],
    args: &Args,
    programs: &Path,
    template: &Path,
) -> Result<Vec<Failure>> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some(attempt) = attempts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = attack(attempt, programs, template);
            if args.verbose {
                let word = if outcome.is_none() { "held" } else { "ESCAPED" };
                println!("{word:8}{:18}{}", attempt.profile.name(), attempt.case.name);
            }
            if let Some(reason) = outcome {
                let failure = (attempt.case.name.clone(), attempt.profile, reason);
                if let Ok(mut failures) = failures.lock() {
                    failures.push(failure);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort();
    Ok(failures)
}

/// What is wrong, if something is. An attack that cannot be tried counts as a failure: a case that
/// is broken protects nothing.
fn attack(attempt: &Attempt<'_>, programs: &Path, template: &Path) -> Option<String> {
    let outcome = Stage::new(attempt.profile, template)
        .and_then(|stage| stage.attack(attempt.case, programs));
    match (attempt.profile, outcome) {
        (_, Err(error)) => Some(format!("cannot be tried: {error:#}")),
        (Profile::Unconfined, Ok(Outcome::Held)) => {
            Some("has no effect without a sandbox, so it proves nothing".to_owned())
        }
        (Profile::Unconfined, Ok(Outcome::Escaped(_))) => None,
        (_, Ok(Outcome::Held)) => None,
        (_, Ok(Outcome::Escaped(reason))) => Some(reason),
    }
}

/// Every failure first, then counts for each profile. The exit is an error if one attack escaped.
fn report(cases: &[Case], attempts: &[Attempt<'_>], failures: &[Failure]) -> Result<()> {
    for (name, profile, reason) in failures {
        println!("\nESCAPED {name} ({}): {}", profile.name(), reason.trim());
    }
    println!();
    for profile in Profile::CONFINED {
        let tried = attempts.iter().filter(|a| a.profile == profile).count();
        let escaped = failures.iter().filter(|f| f.1 == profile).count();
        match tried {
            0 if profile.is_root() && !rustix::process::geteuid().is_root() => {
                println!("{:18}skipped: needs root", profile.name());
            }
            _ => println!("{:18}{tried} attacks, {escaped} escaped", profile.name()),
        }
    }
    let mut breaks: Vec<u32> = cases.iter().flat_map(|case| case.breaks.clone()).collect();
    breaks.sort_unstable();
    breaks.dedup();
    let controls = attempts.iter().filter(|a| a.profile == Profile::Unconfined);
    println!(
        "{} cases for {} of the known breaks, {} attacks shown to work without a sandbox",
        cases.len(),
        breaks.len(),
        controls.count()
    );
    if !failures.is_empty() {
        bail!("{} of {} attacks escaped", failures.len(), attempts.len());
    }
    println!("{} passed, 0 failed", attempts.len());
    Ok(())
}
