//! What is said between the agent and the guard about one command.
//!
//! The agent sends the guard two file descriptors: a control socket and the end of the pipe that
//! takes the command's output. The order follows over the control socket. From then on the socket
//! is a lifeline: a byte asks for the command's end, its closing (also by our own death) kills
//! everything at once. The report comes back over it. The command never gets hold of it.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{SandboxError, SandboxPolicy};

/// The hidden subcommand under which the binary calls `guard_main`.
pub const GUARD_COMMAND: &str = "__sandbox-guard";

/// The hidden subcommand under which the binary calls `server_main`.
pub const SERVER_COMMAND: &str = "__server-child";

/// Exit code of a guard that could not do its work.
pub(super) const FAILED: i32 = 125;

/// An order longer than this is not one of ours. It is checked before memory is allocated for it.
const LONGEST: usize = 64 << 20;

/// How the guard runs a command. Made by `wrap` for commands, by `probe` to try a kind, and by
/// `server_guard` for a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(super) means: Means,
    /// What the command may touch, for the means that restrict.
    pub(super) policy: SandboxPolicy,
    pub(super) cwd: PathBuf,
}

/// What a command is confined by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Means {
    #[cfg(target_os = "linux")]
    Namespaces(super::namespaces::Namespaces),
    #[cfg(target_os = "linux")]
    Bubblewrap(super::bubblewrap::Bubblewrap),
    /// Mounts stay as they are; protected paths are checked afterwards.
    Landlock,
    /// Nothing: the guard only sees to the end of all that was started.
    Nothing,
}

/// A program with its arguments and its whole environment. Words need not be UTF-8, which is why
/// they are not part of the JSON of an order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CommandLine {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// The frame of an order:
///
/// ```text
/// 4 × u32, little endian   bytes of JSON, bytes of words, arguments, variables
/// JSON                     the order
/// words, each with a NUL   program, arguments, name and value of each variable
/// ```
///
/// Fails on a path in the order that is not UTF-8 and on a word with a NUL byte.
pub(super) fn encode(order: &impl Serialize, line: &CommandLine) -> Result<Vec<u8>, SandboxError> {
    let json = serde_json::to_vec(order)?;
    let mut strings = Vec::new();
    let mut push = |word: &OsStr| -> Result<(), SandboxError> {
        if word.as_bytes().contains(&0) {
            return Err(SandboxError::NulByte {
                word: word.to_string_lossy().into_owned(),
            });
        }
        strings.extend_from_slice(word.as_bytes());
        strings.push(0);
        Ok(())
    };
    push(&line.program)?;
    for word in &line.arguments {
        push(word)?;
    }
    for (name, value) in &line.env {
        push(name)?;
        push(value)?;
    }
    let lengths = [
        json.len(),
        strings.len(),
        line.arguments.len(),
        line.env.len(),
    ];
    let mut frame = Vec::with_capacity(16 + json.len() + strings.len());
    for length in lengths {
        let length = u32::try_from(length).map_err(|_| SandboxError::TooLong)?;
        frame.extend_from_slice(&length.to_le_bytes());
    }
    frame.extend_from_slice(&json);
    frame.extend_from_slice(&strings);
    Ok(frame)
}

/// Reads what [`encode`] wrote, and not a byte more. On a stream that goes on (a server's input)
/// the next byte read is the first one after the frame.
pub(super) fn decode<T: DeserializeOwned>(mut source: impl Read) -> io::Result<(T, CommandLine)> {
    let malformed = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut header = [0; 16];
    source.read_exact(&mut header)?;
    let mut lengths = header.chunks_exact(4).map(|bytes| {
        let mut length = [0; 4];
        length.copy_from_slice(bytes);
        usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX)
    });
    let mut next = || lengths.next().unwrap_or(usize::MAX);
    let (json, strings, arguments, env) = (next(), next(), next(), next());
    if json.saturating_add(strings) > LONGEST {
        return Err(malformed("the order is too long"));
    }
    let mut text = vec![0; json];
    source.read_exact(&mut text)?;
    let order = serde_json::from_slice(&text)?;
    let mut bytes = vec![0; strings];
    source.read_exact(&mut bytes)?;
    let mut strings = bytes
        .split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()));
    let mut word = || {
        strings
            .next()
            .ok_or_else(|| malformed("the order is cut off"))
    };
    let program = word()?;
    let arguments = (0..arguments).map(|_| word()).collect::<io::Result<_>>()?;
    let env = (0..env)
        .map(|_| Ok((word()?, word()?)))
        .collect::<io::Result<_>>()?;
    let line = CommandLine {
        program,
        arguments,
        env,
    };
    Ok((order, line))
}

/// What the guard says at the end. It is one JSON document; the end of the stream ends it. No
/// report at all means that the watcher was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The command ran.
    Ended(GuardedEnd),
    /// It could not be started.
    Failed { reason: String },
    /// The sandbox program failed before the command ran; what it said is in the output. Only
    /// bubblewrap does this; nothing of the command has run.
    NotSetUp,
    /// It was started, and something went wrong then. Also when a protected path could not be put
    /// back.
    Broken { reason: String },
}

impl Report {
    pub(super) fn broken(reason: &str) -> Self {
        Self::Broken {
            reason: reason.to_owned(),
        }
    }
}

/// How a guarded command ended. `code` and `signal` are both `None` only if the end of the process
/// could not be collected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardedEnd {
    /// Its exit code, if it exited.
    pub(crate) code: Option<i32>,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    /// Names of processes it had left running.
    pub(crate) leftovers: Vec<String>,
    /// Protected paths it had changed, and where the changed versions are.
    pub(crate) restored: Vec<Restored>,
}

/// A protected path that a command changed, put back as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The protected path.
    pub path: PathBuf,
    /// Where the changed version is, if there was one. `None` where it had been removed, and for a
    /// directory of which only the mode had been changed.
    pub quarantined: Option<PathBuf>,
}

impl Restored {
    /// For the model and for people.
    pub fn describe(&self) -> String {
        let path = self.path.display();
        match &self.quarantined {
            Some(place) => format!(
                "{path} is protected: the change was undone, what was found there is now {}",
                place.display()
            ),
            None => format!("{path} is protected: the change was undone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let order = Order {
            means: Means::Nothing,
            policy: SandboxPolicy::default(),
            cwd: "/w".into(),
        };
        let line = CommandLine {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), "".into(), OsString::from_vec(vec![0xff, b'x'])],
            env: vec![
                ("LD_PRELOAD".into(), "/x.so".into()),
                ("EMPTY".into(), "".into()),
            ],
        };
        let mut frame = encode(&order, &line).unwrap();
        frame.extend_from_slice(b"the rest is not part of it");
        assert_eq!(decode(frame.as_slice()).unwrap(), (order.clone(), line));
        let cut = &frame[..40];
        assert!(decode::<Order>(cut).is_err());
        let bad = CommandLine {
            program: "a\0b".into(),
            ..CommandLine::default()
        };
        assert!(matches!(
            encode(&order, &bad),
            Err(SandboxError::NulByte { .. })
        ));
    }
}
