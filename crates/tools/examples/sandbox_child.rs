//! The guard for tests, a parent to be killed while it runs a command, and small probes.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use codespar_tools::{
    egress::{FORWARD_COMMAND, forward_main},
    process::{Capture, Launch, run},
    sandbox::{
        CHILD_COMMAND, Network, Sandbox, SandboxChoice, SandboxPolicy, child_main, harden_self,
    },
};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let mode = args.next().unwrap_or_default();
    if mode == CHILD_COMMAND {
        std::process::exit(child_main(args));
    }
    if mode == FORWARD_COMMAND {
        std::process::exit(forward_main(args));
    }
    if mode == "connect" {
        let path = args.next().unwrap_or_default();
        std::os::unix::net::UnixStream::connect(path)?;
        return Ok(());
    }
    if mode == "show-environment" || mode == "hide-environment" {
        if mode == "hide-environment" {
            harden_self()?;
        }
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", "cat /proc/$PPID/environ"])
            .status()?;
        std::process::exit(status.code().unwrap_or(1));
    }
    parent(&mode, args)
}

/// `<kind> <workspace> <temp> <command>`
fn parent(kind: &OsString, args: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let words: Vec<OsString> = args.collect();
    let [workspace, temp, command] = words.as_slice() else {
        return Err("usage: sandbox_child <kind> <workspace> <temp> <command>".into());
    };
    let choice = match kind.to_str() {
        Some("bubblewrap") => SandboxChoice::Bubblewrap,
        Some("landlock") => SandboxChoice::Landlock,
        _ => SandboxChoice::Off,
    };
    let (workspace, temp) = (PathBuf::from(workspace), PathBuf::from(temp));
    let launch = Launch {
        program: "/bin/bash".into(),
        arguments: vec!["-c".into(), command.clone()],
        cwd: workspace.clone(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        policy: SandboxPolicy::for_workspace([workspace.as_path()], &temp, Network::Denied)?,
        timeout: Duration::from_secs(600),
    };
    let sandbox = Arc::new(Sandbox::probe(choice, std::env::current_exe()?));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut capture = Capture::new(&temp, "test");
    let cancel = CancellationToken::new();
    runtime.block_on(run(&launch, &sandbox, &mut capture, &cancel))?;
    println!("{}", capture.finish());
    Ok(())
}
