//! A command of a repository, in the sandbox of the agent.
//!
//! It is run like a command of the Bash tool, with the same policy. The event is a file that it
//! reads as its standard input. Its standard output is a named pipe in the directory for temporary
//! files, so that it comes apart from standard error and needs no room on the disk, however much it
//! is.

use std::{
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use codespar_policy::hooks::{HookFailure, HookOutput};
use tokio::{io::AsyncReadExt, net::unix::pipe};
use tokio_util::sync::CancellationToken;

use super::{Bounded, HookCommand};
use crate::{
    Context,
    process::{self, Capture, Ended, Ending, Launch, ProcessError},
    sandbox::{Approval, SandboxPolicy},
    shell_launch,
};

/// Runs `$1` by the shell `$0` with its input from `$2` and its output to `$3`.
const REDIRECTED: &str = r#"exec "$0" -c "$1" <"$2" >"$3""#;

/// Runs it with the rights of a command of the agent. `project` is the root of the project that the
/// hook belongs to, which it can read also where the agent works in another tree; what rules hide
/// stays hidden there.
///
/// A command that has ended is an `Ok` whatever its exit code; one that changed protected files has
/// failed.
pub async fn run_hook_confined(
    hook: &HookCommand,
    context: &Context,
    project: &Path,
    cancel: &CancellationToken,
) -> Result<HookOutput, HookFailure> {
    let failed = |error: io::Error| HookFailure::NotRun(error.to_string());
    let place = tempfile::Builder::new()
        .prefix("hook-")
        .tempdir_in(context.temp_dir())
        .map_err(failed)?;
    let (event, output) = (place.path().join("event"), place.path().join("output"));
    std::fs::write(&event, &hook.input).map_err(failed)?;
    let mut printing = named_pipe(&output).map_err(failed)?;
    let launch = launch(hook, context, project, [event, output])?;
    let mut said = Capture::new(place.path(), "hook", context.redactor());
    let mut printed = Bounded::default();
    let mut buffer = vec![0; 64 << 10];
    let ended = {
        let running = process::run(&launch, context.shared_sandbox(), &mut said, cancel);
        tokio::pin!(running);
        loop {
            tokio::select! {
                ended = &mut running => break ended,
                read = printing.read(&mut buffer) => match read {
                    Ok(count) => printed.add(&buffer[..count]),
                    Err(_) => break running.await,
                },
            }
        }
    };
    while let Ok(count @ 1..) = printing.try_read(&mut buffer) {
        printed.add(&buffer[..count]);
    }
    conclude(ended, hook, printed.text(), said.finish())
}

/// We hold both ends, so it opens at once and has no end of its own.
fn named_pipe(path: &Path) -> io::Result<pipe::Receiver> {
    make_pipe(path)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(flags);
    pipe::Receiver::from_file_unchecked(file.open(path)?)
}

#[cfg(target_os = "linux")]
fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(
        CWD,
        path,
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )?)
}

#[cfg(not(target_os = "linux"))]
fn make_pipe(_path: &Path) -> io::Result<()> {
    Err(io::Error::other(
        "hooks of repositories run on Linux only, where they can be confined",
    ))
}

fn launch(
    hook: &HookCommand,
    context: &Context,
    project: &Path,
    [event, output]: [PathBuf; 2],
) -> Result<Launch, HookFailure> {
    let plain = shell_launch(
        &hook.command,
        &hook.cwd,
        context,
        hook.timeout,
        Approval::Rules,
    );
    let mut launch = plain.map_err(|error| HookFailure::NotRun(error.to_string()))?;
    launch.arguments = vec![
        "-c".into(),
        REDIRECTED.into(),
        launch.program.clone().into(),
        hook.command.clone().into(),
        event.into(),
        output.into(),
    ];
    let added = |name: &std::ffi::OsString| hook.env.iter().any(|(own, _)| own == name);
    launch.env.retain(|(name, _)| !added(name));
    launch.env.extend(hook.env.iter().cloned());
    show_project(&mut launch.policy, context, project)?;
    Ok(launch)
}

/// The project's own scripts can be read where the agent works in a tree of its own.
fn show_project(
    policy: &mut SandboxPolicy,
    context: &Context,
    project: &Path,
) -> Result<(), HookFailure> {
    let is_there = context.workspace().any(|tree| project.starts_with(tree));
    if is_there || context.shared_sandbox().is_switched_off() {
        return Ok(());
    }
    let real = project
        .canonicalize()
        .map_err(|error| HookFailure::NotRun(error.to_string()))?;
    let Some(hidden) = context.hidden().in_layer(&real, &real) else {
        let why = "the project has too many files to look for those that rules hide";
        return Err(HookFailure::NotRun(why.to_owned()));
    };
    policy.secret.extend(hidden);
    policy.visible.push(real);
    Ok(())
}

fn conclude(
    ended: Result<Ended, ProcessError>,
    hook: &HookCommand,
    stdout: String,
    stderr: String,
) -> Result<HookOutput, HookFailure> {
    let ended = ended.map_err(|error| HookFailure::NotRun(error.to_string()))?;
    if let Some(restored) = ended.restored.first() {
        return Err(HookFailure::NotRun(restored.describe()));
    }
    match ended.ending {
        Ending::Exited(code) => Ok(HookOutput {
            code,
            stdout,
            stderr,
        }),
        Ending::Signalled(signal) => Err(HookFailure::NotRun(format!(
            "signal {signal} ended it: {}",
            stderr.trim()
        ))),
        Ending::TimedOut => Err(HookFailure::TimedOut(hook.timeout.as_secs())),
        Ending::Cancelled => Err(HookFailure::Interrupted),
    }
}
