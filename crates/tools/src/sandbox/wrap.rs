//! From a command to what is really started.
//!
//! Where there is a guard, [`Sandbox::wrap`] starts the command itself; where there is none (tests,
//! systems other than Linux), it returns the command line to start and `process` holds it by its
//! process group. Both go through the same check: without a sandbox nothing runs that only rules
//! have allowed.

use std::{ffi::OsString, path::Path};

use super::{Approval, Sandbox, SandboxError, SandboxKind, SandboxPolicy, order::CommandLine};

/// A command that has been started, or that the caller has to start.
pub(crate) enum Wrapped {
    /// It is under way, in a guard. Whether it could be started is in its report.
    #[cfg(target_os = "linux")]
    Guarded(super::client::Guarded),
    /// This, to be held by signals to its process group.
    Plain(CommandLine),
}

impl Sandbox {
    /// Starts a command in the sandbox, or says what to start where there is no guard. Blocks: the
    /// first call tries the kinds of sandbox and starts the guard, and any call may look for
    /// repositories in the workspace.
    pub(crate) fn wrap(
        &self,
        policy: &SandboxPolicy,
        line: CommandLine,
        cwd: &Path,
        approval: Approval,
    ) -> Result<Wrapped, SandboxError> {
        let kind = self.kind();
        self.check_attended(kind, approval)?;
        self.enclose(kind, policy, line, cwd)
    }

    /// Whether a command can be started without a look at the disk or another process first.
    pub(crate) fn starts_at_once(&self) -> bool {
        #[cfg(target_os = "linux")]
        let is_running = self.guard.as_ref().is_some_and(super::Guard::is_running);
        #[cfg(not(target_os = "linux"))]
        let is_running = true;
        self.is_switched_off() && is_running
    }

    /// Without a sandbox nothing runs that nobody has looked at. The sandbox being switched off by
    /// the user's own settings is an agreement to that; no kind working is not. The error names the
    /// problem of each kind that was a candidate.
    fn check_attended(&self, kind: SandboxKind, approval: Approval) -> Result<(), SandboxError> {
        let is_free = self.is_switched_off() || approval == Approval::Person;
        if kind != SandboxKind::None || is_free {
            return Ok(());
        }
        let reasons = self.report().into_iter().filter_map(|(kind, found)| {
            let reason = found.err()?;
            self.is_candidate(kind)
                .then(|| format!("{}: {reason}", kind.name()))
        });
        Err(SandboxError::NoSandbox {
            reasons: reasons.collect::<Vec<_>>().join("; "),
        })
    }

    /// Completes the policy and the command line for the kind, and hands both to the guard.
    ///
    /// Nested repositories are looked for here, and not when the policy is computed, as only a
    /// sandbox that confines has a use for them. Under bubblewrap a command with a proxy is started
    /// through our binary, because nothing else of ours runs inside of its namespaces.
    #[cfg(target_os = "linux")]
    fn enclose(
        &self,
        kind: SandboxKind,
        policy: &SandboxPolicy,
        line: CommandLine,
        cwd: &Path,
    ) -> Result<Wrapped, SandboxError> {
        use super::order::{Means, Order};

        let Some(guard) = &self.guard else {
            return Ok(Wrapped::Plain(line));
        };
        let means = match kind {
            SandboxKind::Namespaces => self.probes.namespaces().map(Means::Namespaces),
            SandboxKind::Bubblewrap => self.probes.bubblewrap().cloned().map(Means::Bubblewrap),
            SandboxKind::Landlock => Some(Means::Landlock),
            SandboxKind::Seatbelt | SandboxKind::None => None,
        };
        let means = means.unwrap_or(Means::Nothing);
        let mut policy = policy.clone();
        if means != Means::Nothing {
            for tree in policy.workspace.clone() {
                policy.protect_nested(&self.nested_in(&tree), self.reads.home.as_deref());
            }
        }
        let line = match (&means, &policy.network) {
            (Means::Bubblewrap(_), super::Network::Proxy(socket)) => {
                let line = forwarded(socket, line, guard.program());
                let needed = [socket.clone(), guard.program().to_path_buf()];
                policy.visible.extend(needed);
                line
            }
            // The guard opens the proxy's port itself.
            _ => line,
        };
        let order = Order {
            means,
            policy,
            cwd: cwd.to_path_buf(),
        };
        guard
            .start(&self.setup(), &order, &line)
            .map(Wrapped::Guarded)
    }

    #[cfg(not(target_os = "linux"))]
    fn enclose(
        &self,
        kind: SandboxKind,
        policy: &SandboxPolicy,
        line: CommandLine,
        _cwd: &Path,
    ) -> Result<Wrapped, SandboxError> {
        #[cfg(target_os = "macos")]
        if kind == SandboxKind::Seatbelt {
            let mut arguments = super::seatbelt::arguments(policy);
            arguments.push(line.program);
            arguments.extend(line.arguments);
            return Ok(Wrapped::Plain(CommandLine {
                program: super::seatbelt::PROGRAM.into(),
                arguments,
                env: line.env,
            }));
        }
        let _ = (kind, policy);
        Ok(Wrapped::Plain(line))
    }
}

/// With a proxy: `binary __egress-forward <socket> -- command`. The subcommand opens the proxy's
/// port inside and then executes the command, so exit code and signals are the command's own.
#[cfg(target_os = "linux")]
fn forwarded(socket: &Path, line: CommandLine, binary: &Path) -> CommandLine {
    let mut arguments: Vec<OsString> = vec![
        crate::egress::FORWARD_COMMAND.into(),
        socket.into(),
        "--".into(),
        line.program,
    ];
    arguments.extend(line.arguments);
    CommandLine {
        program: binary.into(),
        arguments,
        env: line.env,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::SandboxChoice, *};

    fn wrap(choice: SandboxChoice, approval: Approval) -> Result<Wrapped, SandboxError> {
        let sandbox = Sandbox::new(choice, None);
        let line = CommandLine::default();
        sandbox.wrap(&SandboxPolicy::default(), line, Path::new("/"), approval)
    }

    #[test]
    fn without_a_sandbox_only_what_a_person_approved_is_run() {
        let refused = wrap(SandboxChoice::Auto, Approval::Rules).err().unwrap();
        let message = refused.to_string();
        assert!(message.starts_with("no sandbox works here"), "{message}");
        assert!(
            message.contains("Install the package `bubblewrap`"),
            "{message}"
        );
        assert!(wrap(SandboxChoice::Bubblewrap, Approval::Rules).is_err());
        assert!(wrap(SandboxChoice::Auto, Approval::Person).is_ok());
        assert!(wrap(SandboxChoice::Off, Approval::Rules).is_ok());
    }
}
