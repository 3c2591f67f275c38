//! Finding out which sandbox works, by running something in it.

use std::{path::Path, sync::OnceLock};

use super::SandboxKind;

/// Kinds this system could have, best first.
#[cfg(target_os = "linux")]
pub(super) const KINDS: &[SandboxKind] = &[SandboxKind::Bubblewrap, SandboxKind::Landlock];
/// Kinds this system could have, best first.
#[cfg(target_os = "macos")]
pub(super) const KINDS: &[SandboxKind] = &[SandboxKind::Seatbelt];
/// Kinds this system could have, best first.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) const KINDS: &[SandboxKind] = &[];

/// What was found out so far; each kind is tried once.
#[derive(Default)]
pub(super) struct Probes {
    #[cfg(target_os = "linux")]
    bubblewrap: OnceLock<Result<super::bubblewrap::Bubblewrap, String>>,
    #[cfg(target_os = "linux")]
    landlock: OnceLock<Result<(), String>>,
    #[cfg(not(target_os = "linux"))]
    seatbelt: OnceLock<Result<(), String>>,
}

#[cfg(target_os = "linux")]
impl Probes {
    pub(super) fn works(&self, kind: SandboxKind, guard: Option<&Path>) -> Result<(), String> {
        let Some(guard) = guard else {
            return Err("there is no guard program to run commands under".to_owned());
        };
        match kind {
            SandboxKind::Bubblewrap => self
                .bubblewrap
                .get_or_init(|| linux::try_bubblewrap(guard))
                .as_ref()
                .map(|_| ())
                .map_err(Clone::clone),
            SandboxKind::Landlock => self
                .landlock
                .get_or_init(|| linux::try_landlock(guard))
                .clone(),
            SandboxKind::Seatbelt | SandboxKind::None => Err("not on Linux".to_owned()),
        }
    }

    pub(super) fn bubblewrap(&self) -> Option<&super::bubblewrap::Bubblewrap> {
        self.bubblewrap.get().and_then(|found| found.as_ref().ok())
    }

    pub(super) fn bubblewrap_words(&self) -> String {
        use super::bubblewrap::ProcView;
        match self.bubblewrap() {
            Some(found) if found.proc_view == ProcView::Shared => format!(
                "bubblewrap ({}), with the machine's /proc: another cannot be mounted here",
                found.program.display()
            ),
            Some(found) => format!("bubblewrap ({})", found.program.display()),
            None => "bubblewrap".to_owned(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Probes {
    pub(super) fn works(&self, kind: SandboxKind, _guard: Option<&Path>) -> Result<(), String> {
        match kind {
            #[cfg(target_os = "macos")]
            SandboxKind::Seatbelt => self
                .seatbelt
                .get_or_init(|| {
                    let program = super::seatbelt::PROGRAM;
                    let found = Path::new(program).is_file();
                    found.then_some(()).ok_or(format!("{program} is not there"))
                })
                .clone(),
            _ => Err("not on this system".to_owned()),
        }
    }

    pub(super) fn bubblewrap_words(&self) -> String {
        "bubblewrap".to_owned()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        io::Read,
        os::unix::process::CommandExt,
        path::{Path, PathBuf},
        process::{Command, Stdio},
        thread,
        time::{Duration, Instant},
    };

    use super::super::{
        Network, Report, SandboxPolicy,
        bubblewrap::{self, Bubblewrap},
        confine,
        wrap::{Leash, Wrapped, in_bubblewrap, landlock_order, under_guard},
    };

    /// A sandbox that has not run `true` by then does not work.
    const PATIENCE: Duration = Duration::from_secs(5);

    pub(super) fn try_bubblewrap(guard: &Path) -> Result<Bubblewrap, String> {
        let program = bubblewrap::find().ok_or("bwrap is not installed")?;
        let mut reason = String::new();
        for variant in bubblewrap::variants(&program) {
            let wrapped = in_bubblewrap(&variant, guard, &strictest(), nothing(), Path::new("/"));
            let wrapped = wrapped.map_err(|error| error.to_string());
            match wrapped.and_then(|wrapped| attempt(&wrapped)) {
                Ok(()) => return Ok(variant),
                // The first is the best way; why it failed is what helps.
                Err(why) if reason.is_empty() => reason = why,
                Err(_) => {}
            }
        }
        Err(reason)
    }

    pub(super) fn try_landlock(guard: &Path) -> Result<(), String> {
        if confine::abi() < 1 {
            return Err("the kernel has no Landlock, or has it switched off".to_owned());
        }
        under_guard(guard, &landlock_order(&strictest()), nothing())
            .map_err(|error| error.to_string())
            .and_then(|wrapped| attempt(&wrapped))
    }

    fn strictest() -> SandboxPolicy {
        SandboxPolicy {
            writable: Vec::new(),
            read_only: Vec::new(),
            network: Network::Denied,
            aside: PathBuf::from("/"),
        }
    }

    fn nothing() -> Wrapped {
        Wrapped {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), ":".into()],
            leash: Leash::Group,
        }
    }

    fn attempt(wrapped: &Wrapped) -> Result<(), String> {
        let mut child = Command::new(&wrapped.program)
            .args(&wrapped.arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{}: {error}", wrapped.program.display()))?;
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if child.try_wait().is_ok_and(|status| status.is_some()) {
                let mut text = String::new();
                if let Some(errors) = child.stderr.take() {
                    let _ = errors.take(16 << 10).read_to_string(&mut text);
                }
                return verdict(&text);
            }
            thread::sleep(Duration::from_micros(500));
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(format!("nothing happened in {} s", PATIENCE.as_secs()))
    }

    fn verdict(text: &str) -> Result<(), String> {
        match text.lines().last().map(serde_json::from_str::<Report>) {
            Some(Ok(Report::Ended(end))) if end.code == Some(0) => Ok(()),
            Some(Ok(Report::Ended(end))) => Err(format!("a shell failed in it: {end:?}")),
            Some(Ok(Report::Failed { reason } | Report::Broken { reason })) => Err(reason),
            Some(Err(_)) => Err(text.trim().to_owned()),
            None => Err("it ended without a word".to_owned()),
        }
    }
}
