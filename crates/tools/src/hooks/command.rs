//! A command of the user, with the user's rights.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use codespar_policy::hooks::{HookFailure, HookOutput};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::ChildStdout,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::Bounded;
use crate::{
    bash::shell_program,
    process::{Served, ServerLaunch, serve},
};

/// How long output of a command that ended may still be on its way.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// What the guard exits with for a command that it could not start or that a signal ended.
const NO_EXIT_CODE: i32 = 125;

/// A command to run for an event.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// For the shell.
    pub command: String,
    /// The event, for its standard input.
    pub input: Vec<u8>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Outside of the sandbox its whole environment, in it what is added to that of commands.
    pub env: Vec<(OsString, OsString)>,
    pub timeout: Duration,
}

/// Runs it outside of the sandbox. `guard` is this binary, which ends everything that the command
/// started, also what has left its process group; without one the group is killed.
///
/// A command that has ended is an `Ok` whatever its exit code. Its standard error is as it came: the
/// last few kilobytes, secrets and all.
pub async fn run_hook_outside(
    hook: &HookCommand,
    guard: Option<&Path>,
    cancel: &CancellationToken,
) -> Result<HookOutput, HookFailure> {
    let launch = ServerLaunch {
        program: shell_program(&hook.env).into(),
        arguments: vec!["-c".into(), hook.command.clone().into()],
        cwd: hook.cwd.clone(),
        env: hook.env.clone(),
    };
    let not_run = |error: std::io::Error| HookFailure::NotRun(error.to_string());
    let Served {
        mut input,
        mut output,
        mut hold,
    } = serve(&launch, guard).map_err(not_run)?;
    let mut printed = Bounded::default();
    let run = async {
        let talk = async {
            // A command that does not want to know closes its input.
            let _ = input.write_all(&hook.input).await;
            drop(input);
            read_all(&mut output, &mut printed).await;
        };
        tokio::pin!(talk);
        // A process that it left in the background may hold on to the output for ever, so its end
        // counts and not that of the output.
        tokio::select! {
            code = hold.wait() => {
                let _ = timeout(OUTPUT_GRACE, talk).await;
                code
            }
            () = &mut talk => hold.wait().await,
        }
    };
    // Dropped, the hold kills everything.
    let code = tokio::select! {
        code = timeout(hook.timeout, run) => match code {
            Ok(code) => code,
            Err(_) => return Err(HookFailure::TimedOut(hook.timeout.as_secs())),
        },
        () = cancel.cancelled() => return Err(HookFailure::Interrupted),
    };
    hold.end().await;
    let stderr = hold.stderr_tail();
    match code {
        Some(code) if code != NO_EXIT_CODE => Ok(HookOutput {
            code,
            stdout: printed.text(),
            stderr,
        }),
        _ => Err(HookFailure::NotRun(match stderr.is_empty() {
            true => "a signal ended it".to_owned(),
            false => stderr,
        })),
    }
}

/// Until its end.
async fn read_all(output: &mut ChildStdout, printed: &mut Bounded) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        printed.add(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn hook(command: &str, cwd: &Path) -> HookCommand {
        HookCommand {
            command: command.to_owned(),
            input: b"{\"tool_name\":\"Bash\"}".to_vec(),
            cwd: cwd.to_path_buf(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            timeout: PATIENCE,
        }
    }

    async fn run(command: &str) -> Result<HookOutput, HookFailure> {
        let dir = tempfile::tempdir().unwrap();
        let never = CancellationToken::new();
        run_hook_outside(&hook(command, dir.path()), None, &never).await
    }

    #[tokio::test]
    async fn the_event_is_read_on_standard_input_and_both_outputs_come_apart() {
        let ran = run("cat; echo oops >&2; exit 2").await.unwrap();
        assert_eq!(
            ran,
            HookOutput {
                code: 2,
                stdout: "{\"tool_name\":\"Bash\"}".to_owned(),
                stderr: "oops".to_owned(),
            }
        );
        let deaf = run("exec 0<&-; echo fine").await.unwrap();
        assert_eq!((deaf.code, deaf.stdout.as_str()), (0, "fine\n"));
    }

    #[tokio::test]
    async fn a_missing_or_unexecutable_script_has_its_own_exit_code() {
        assert_eq!(run("./missing.sh").await.unwrap().code, 127);
        assert_eq!(run("touch x; ./x").await.unwrap().code, 126);
    }

    #[tokio::test]
    async fn endless_output_is_read_to_its_end_and_mostly_dropped() {
        let ran = run("head -c 300000000 /dev/zero | tr '\\0' x; echo end >&2").await;
        let ran = ran.unwrap();
        assert_eq!((ran.code, ran.stdout.len()), (0, super::super::MOST_OUTPUT));
        assert_eq!(ran.stderr, "end");
    }

    #[tokio::test]
    async fn a_hook_that_never_ends_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let slow = HookCommand {
            timeout: Duration::from_secs(2),
            ..hook(
                "sleep 1000 & echo $! > child; mv child pid; wait",
                dir.path(),
            )
        };
        let never = CancellationToken::new();
        let failed = run_hook_outside(&slow, None, &never).await;
        assert_eq!(failed, Err(HookFailure::TimedOut(2)));
        let pid = fs::read_to_string(dir.path().join("pid")).unwrap();
        let status = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
        // A zombie has been killed; whoever is its parent now collects it.
        let lives = || fs::read_to_string(&status).is_ok_and(|text| !text.contains(") Z "));
        let ended = async {
            while lives() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, ended).await.unwrap();
    }

    #[tokio::test]
    async fn a_process_left_behind_that_holds_the_output_is_not_waited_for() {
        let ran = timeout(PATIENCE, run("sleep 1000 & echo $!")).await;
        let ran = ran.unwrap().unwrap();
        // A guard would have ended it; there is none here.
        let pid = ran.stdout.trim().parse().ok();
        let left = pid.and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    }
}
