//! Finding out which sandbox works, by running something in it.
//!
//! Whether a kind works cannot be read off the system: kernel versions, security modules and
//! container engines forbid parts of it in their own ways. So a shell is run that does nothing,
//! through the same guard and watcher as any command. The answer is kept for the life of the
//! process, as is the reason why a kind does not work; `codespar doctor` shows it.

use std::sync::OnceLock;

use super::SandboxKind;
#[cfg(target_os = "linux")]
use super::namespaces::{Namespaces, ProcView};

/// Kinds this system could have, best first.
#[cfg(target_os = "linux")]
pub(super) const KINDS: &[SandboxKind] = &[
    SandboxKind::Namespaces,
    SandboxKind::Bubblewrap,
    SandboxKind::Landlock,
];
/// Kinds this system could have, best first.
#[cfg(target_os = "macos")]
pub(super) const KINDS: &[SandboxKind] = &[SandboxKind::Seatbelt];
/// Kinds this system could have, best first.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) const KINDS: &[SandboxKind] = &[];

/// What was found out so far; each kind is tried once, when it is first asked about. Two threads
/// that ask at the same time wait for one attempt.
#[derive(Default)]
pub(super) struct Probes {
    #[cfg(target_os = "linux")]
    namespaces: OnceLock<Result<Namespaces, String>>,
    #[cfg(target_os = "linux")]
    bubblewrap: OnceLock<Result<super::bubblewrap::Bubblewrap, String>>,
    #[cfg(target_os = "linux")]
    landlock: OnceLock<Result<(), String>>,
    #[cfg(not(target_os = "linux"))]
    seatbelt: OnceLock<Result<(), String>>,
}

#[cfg(target_os = "linux")]
impl Probes {
    /// The error is for the user. Without a guard, as in tests, nothing works.
    pub(super) fn works(
        &self,
        kind: SandboxKind,
        guard: Option<&super::client::GuardClient>,
        setup: &super::guard::Setup,
    ) -> Result<(), String> {
        let Some(guard) = guard else {
            return Err("there is no guard program to run commands under".to_owned());
        };
        match kind {
            SandboxKind::Namespaces => self
                .namespaces
                .get_or_init(|| linux::try_namespaces(guard, setup))
                .as_ref()
                .map(|_| ())
                .map_err(Clone::clone),
            SandboxKind::Bubblewrap => self
                .bubblewrap
                .get_or_init(|| linux::try_bubblewrap(guard, setup))
                .as_ref()
                .map(|_| ())
                .map_err(Clone::clone),
            SandboxKind::Landlock => self
                .landlock
                .get_or_init(|| linux::try_landlock(guard, setup))
                .clone(),
            SandboxKind::Seatbelt | SandboxKind::None => Err("not on Linux".to_owned()),
        }
    }

    /// How namespaces are made; `None` if they were not tried or do not work.
    pub(super) fn namespaces(&self) -> Option<Namespaces> {
        let found = self.namespaces.get()?.as_ref();
        found.ok().copied()
    }

    pub(super) fn describe_namespaces(&self) -> String {
        let proc_view = self.namespaces().map(|found| found.proc_view);
        format!("namespaces{}", describe_proc(proc_view))
    }

    /// How bubblewrap is called; `None` if it was not tried or does not work.
    pub(super) fn bubblewrap(&self) -> Option<&super::bubblewrap::Bubblewrap> {
        self.bubblewrap.get().and_then(|found| found.as_ref().ok())
    }

    pub(super) fn describe_bubblewrap(&self) -> String {
        let Some(found) = self.bubblewrap() else {
            return "bubblewrap".to_owned();
        };
        let program = found.program.display();
        format!(
            "bubblewrap ({program}){}",
            describe_proc(Some(found.proc_view))
        )
    }
}

/// What the user should know about `/proc`: shared, it shows the machine's processes to commands.
#[cfg(target_os = "linux")]
fn describe_proc(proc_view: Option<ProcView>) -> &'static str {
    match proc_view {
        Some(ProcView::Shared) => ", with the machine's /proc: another cannot be mounted here",
        Some(ProcView::Own) | None => "",
    }
}

#[cfg(not(target_os = "linux"))]
impl Probes {
    /// Seatbelt is part of macOS: that its program exists is taken as proof.
    pub(super) fn works(&self, kind: SandboxKind) -> Result<(), String> {
        match kind {
            #[cfg(target_os = "macos")]
            SandboxKind::Seatbelt => self
                .seatbelt
                .get_or_init(|| {
                    let program = super::seatbelt::PROGRAM;
                    let found = std::path::Path::new(program).is_file();
                    found.then_some(()).ok_or(format!("{program} is not there"))
                })
                .clone(),
            _ => Err("not on this system".to_owned()),
        }
    }

    pub(super) fn describe_namespaces(&self) -> String {
        "namespaces".to_owned()
    }

    pub(super) fn describe_bubblewrap(&self) -> String {
        "bubblewrap".to_owned()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use super::super::{
        Report, SandboxPolicy,
        bubblewrap::{self, Bubblewrap},
        client::GuardClient,
        guard::Setup,
        landlock,
        namespaces::{Namespaces, VARIANTS},
        order::{CommandLine, Means, Order},
    };

    /// A sandbox that has not run a shell by then does not work.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Tries the ways of `namespaces`, the one with a `/proc` of its own first.
    pub(super) fn try_namespaces(guard: &GuardClient, setup: &Setup) -> Result<Namespaces, String> {
        first_that_works(VARIANTS, |variant| {
            attempt(guard, setup, Means::Namespaces(*variant))
        })
    }

    pub(super) fn try_bubblewrap(guard: &GuardClient, setup: &Setup) -> Result<Bubblewrap, String> {
        let program =
            bubblewrap::find().ok_or("bwrap is not installed; install the package `bubblewrap`")?;
        first_that_works(bubblewrap::variants(&program), |variant| {
            attempt(guard, setup, Means::Bubblewrap(variant.clone()))
        })
    }

    /// Tries ways in order; the error is that of the first.
    fn first_that_works<T>(
        variants: impl IntoIterator<Item = T>,
        attempt: impl Fn(&T) -> Result<(), String>,
    ) -> Result<T, String> {
        let mut reason = String::new();
        for variant in variants {
            match attempt(&variant) {
                Ok(()) => return Ok(variant),
                // The first is the best way; why it failed is what helps.
                Err(why) if reason.is_empty() => reason = why,
                Err(_) => {}
            }
        }
        Err(reason)
    }

    /// A kernel without Landlock is told by its version, which gives a plainer reason than a failed
    /// attempt.
    pub(super) fn try_landlock(guard: &GuardClient, setup: &Setup) -> Result<(), String> {
        if landlock::abi() < 1 {
            return Err("the kernel has no Landlock, or has it switched off".to_owned());
        }
        attempt(guard, setup, Means::Landlock)
    }

    /// Runs a shell with the strictest policy there is: nothing writable, no network.
    fn attempt(guard: &GuardClient, setup: &Setup, means: Means) -> Result<(), String> {
        let order = Order {
            means,
            policy: SandboxPolicy::default(),
            cwd: "/".into(),
        };
        let line = CommandLine {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), ":".into()],
            env: Vec::new(),
        };
        let (report, said) = guard.attempt(setup, &order, &line, PATIENCE)?;
        match report {
            Report::Ended(end) if end.code == Some(0) => Ok(()),
            Report::Ended(end) => Err(format!("a shell failed in it: {end:?}")),
            Report::Failed { reason } | Report::Broken { reason } => Err(reason),
            Report::NotSetUp => Err(said.trim().to_owned()),
        }
    }
}
