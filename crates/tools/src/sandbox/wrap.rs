//! From a command to what is really started: sandbox program, guard, command.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::egress::FORWARD_COMMAND;

use super::{
    CHILD_COMMAND, Network, Sandbox, SandboxError, SandboxKind, SandboxPolicy,
    order::{Order, Sockets},
};

/// How the started process is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leash {
    /// By the guard's lifeline.
    Guard,
    /// By signals to its process group.
    Group,
}

/// What to start.
#[derive(Debug)]
pub(crate) struct Wrapped {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) leash: Leash,
}

impl Sandbox {
    /// Wraps a command for the kind in force.
    pub(crate) fn wrap(
        &self,
        policy: &SandboxPolicy,
        program: &Path,
        arguments: &[OsString],
        cwd: &Path,
    ) -> Result<Wrapped, SandboxError> {
        let inner = Wrapped {
            program: program.to_path_buf(),
            arguments: arguments.to_vec(),
            leash: Leash::Group,
        };
        let Some(guard) = &self.guard else {
            return Ok(inner);
        };
        self.enclose(guard, self.kind(), policy, inner, cwd)
    }

    #[cfg(target_os = "linux")]
    fn enclose(
        &self,
        guard: &Path,
        kind: SandboxKind,
        policy: &SandboxPolicy,
        inner: Wrapped,
        cwd: &Path,
    ) -> Result<Wrapped, SandboxError> {
        match (kind, self.probes.bubblewrap()) {
            (SandboxKind::Bubblewrap, Some(bubblewrap)) => {
                in_bubblewrap(bubblewrap, guard, policy, inner, cwd)
            }
            (SandboxKind::Landlock, _) => under_guard(guard, &landlock_order(policy), inner),
            _ => under_guard(guard, &free_order(policy), inner),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn enclose(
        &self,
        _guard: &Path,
        kind: SandboxKind,
        policy: &SandboxPolicy,
        inner: Wrapped,
        _cwd: &Path,
    ) -> Result<Wrapped, SandboxError> {
        #[cfg(target_os = "macos")]
        if kind == SandboxKind::Seatbelt {
            let mut arguments = super::seatbelt::arguments(policy);
            arguments.push(inner.program.into());
            arguments.extend(inner.arguments);
            return Ok(Wrapped {
                program: super::seatbelt::PROGRAM.into(),
                arguments,
                leash: Leash::Group,
            });
        }
        let _ = (kind, policy);
        Ok(inner)
    }
}

/// `bwrap … -- guard … -- command`.
#[cfg(target_os = "linux")]
pub(super) fn in_bubblewrap(
    bubblewrap: &super::bubblewrap::Bubblewrap,
    guard: &Path,
    policy: &SandboxPolicy,
    inner: Wrapped,
    cwd: &Path,
) -> Result<Wrapped, SandboxError> {
    let plan = bubblewrap.plan(policy, cwd);
    let order = Order {
        confine: None,
        sockets: match policy.network {
            Network::Denied | Network::Proxy(_) => Sockets::NotToHost,
            Network::Allowed => Sockets::Any,
        },
        keep: plan.uncovered,
        aside: policy.aside.clone(),
    };
    let inner = match &policy.network {
        Network::Proxy(socket) => behind_forwarder(guard, socket, inner),
        Network::Denied | Network::Allowed => inner,
    };
    let guarded = under_guard(guard, &order, inner)?;
    let mut arguments = plan.arguments;
    arguments.push(guarded.program.into());
    arguments.extend(guarded.arguments);
    Ok(Wrapped {
        program: bubblewrap.program.clone(),
        arguments,
        leash: Leash::Guard,
    })
}

/// `guard __egress-forward <socket> -- command`.
#[cfg(target_os = "linux")]
fn behind_forwarder(guard: &Path, socket: &Path, inner: Wrapped) -> Wrapped {
    let mut words: Vec<OsString> = vec![
        FORWARD_COMMAND.into(),
        socket.into(),
        "--".into(),
        inner.program.into(),
    ];
    words.extend(inner.arguments);
    Wrapped {
        program: guard.to_path_buf(),
        arguments: words,
        leash: inner.leash,
    }
}

/// `guard __sandbox-child <order> -- command`.
pub(super) fn under_guard(
    guard: &Path,
    order: &Order,
    inner: Wrapped,
) -> Result<Wrapped, SandboxError> {
    let mut words = vec![
        CHILD_COMMAND.into(),
        serde_json::to_string(order)?.into(),
        "--".into(),
        inner.program.into(),
    ];
    words.extend(inner.arguments);
    Ok(Wrapped {
        program: guard.to_path_buf(),
        arguments: words,
        leash: Leash::Guard,
    })
}

pub(super) fn landlock_order(policy: &SandboxPolicy) -> Order {
    Order {
        confine: Some(policy.writable.clone()),
        sockets: match policy.network {
            Network::Denied | Network::Proxy(_) => Sockets::Local,
            Network::Allowed => Sockets::Any,
        },
        keep: policy.read_only.clone(),
        aside: policy.aside.clone(),
    }
}

/// No restriction: the guard only sees to the end of all that was started.
fn free_order(policy: &SandboxPolicy) -> Order {
    Order {
        confine: None,
        sockets: Sockets::Any,
        keep: Vec::new(),
        aside: policy.aside.clone(),
    }
}
