//! What a sandbox tells about the end of its command.
//!
//! Where a sandbox has a process of its own between the watcher and the command, the end of that
//! process says little: the exit code of the command comes over a pipe. Without such a sandbox
//! (`landlock`, or none) the command is a child of the watcher and there is no [`Status`].

use std::{
    fs::File,
    io::{self, Read},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
};

use super::{
    namespaces::{self, Told},
    order::Report,
    watch::Family,
};

/// The name of bubblewrap's own processes.
const BUBBLEWRAP: &str = "bwrap";

/// The reading end of the pipe over which the sandbox tells how the command ended.
pub(super) enum Status {
    /// By the first process inside. It stays until the last process of the sandbox is gone, so only
    /// this pipe tells of the command's end. The command's copy of the writing end is closed when
    /// it is executed: it cannot forge an exit code.
    Init(File),
    /// By bubblewrap, which ends with the command.
    Bubblewrap(File),
}

/// The command's exit code, or the signal that ended it.
pub(super) struct HowEnded {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl Status {
    /// The name of the sandbox's own processes. They are left out of the names of processes that a
    /// command has left running.
    pub(super) fn own_name(&self) -> &'static str {
        match self {
            Self::Init(_) => namespaces::INIT,
            Self::Bubblewrap(_) => BUBBLEWRAP,
        }
    }

    /// What becomes readable when the command ends, where its sandbox stays on.
    pub(super) fn told(&self) -> Option<&File> {
        match self {
            Self::Init(told) => Some(told),
            Self::Bubblewrap(_) => None,
        }
    }

    /// How the command ended, or why it did not run. Waits for the end of the pipe, so everything
    /// in the sandbox must have ended.
    ///
    /// Where nothing was told, the sandbox itself was killed: by us ([`Family::asked`]), then the
    /// command counts as killed too, or by somebody else, which is an error. A bubblewrap that
    /// exited by itself without telling of an exit code never came to run the command; its message
    /// is in the output.
    pub(super) fn how_ended(self, family: &Family) -> Result<HowEnded, Report> {
        let exited = |code| HowEnded {
            code: Some(code),
            signal: None,
        };
        let signalled = |signal| HowEnded {
            code: None,
            signal: Some(signal),
        };
        let killed = || signalled(Signal::KILL.as_raw());
        match self {
            Self::Init(told) => match Told::read(told) {
                Some(Told::Exited(code)) => Ok(exited(code)),
                Some(Told::Signalled(signal)) => Ok(signalled(signal)),
                Some(Told::Failed(reason)) => Err(Report::Failed { reason }),
                None if family.asked => Ok(killed()),
                None => Err(Report::broken("the sandbox was killed")),
            },
            Self::Bubblewrap(told) => match exit_code_in(told) {
                Ok(Some(code)) => Ok(exited(code)),
                _ if family.asked => Ok(killed()),
                _ if family.ended.is_some_and(|end| end.exit_status().is_some()) => {
                    Err(Report::NotSetUp)
                }
                _ => Err(Report::broken("bubblewrap was killed")),
            },
        }
    }
}

/// Whether there is something to read, or the other end is closed.
pub(super) fn is_readable(file: &File) -> bool {
    is_ready([PollFd::new(file, PollFlags::IN)])
}

/// Whether one of these is ready now; does not wait. An error counts as not ready.
pub(super) fn is_ready<const N: usize>(mut fds: [PollFd<'_>; N]) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// The last exit code among the JSON documents that bubblewrap wrote; `None` if the command was not
/// run.
fn exit_code_in(status: File) -> io::Result<Option<i32>> {
    #[derive(serde::Deserialize)]
    struct Document {
        #[serde(rename = "exit-code")]
        exit_code: Option<i32>,
    }
    let mut text = Vec::new();
    status.take(64 << 10).read_to_end(&mut text)?;
    let documents = serde_json::Deserializer::from_slice(&text).into_iter::<Document>();
    Ok(documents.flatten().filter_map(|one| one.exit_code).last())
}
