//! The guard for tests, a parent to be killed while it runs a command, and small probes.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use codespar_tools::{
    egress::{FORWARD_COMMAND, forward_main},
    process::{Capture, Launch, run},
    sandbox::{
        Approval, GUARD_COMMAND, SERVER_COMMAND, Sandbox, SandboxChoice, SandboxPolicy, guard_main,
        harden_self, server_main,
    },
};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let mode = args.next().unwrap_or_default();
    if mode == GUARD_COMMAND {
        std::process::exit(guard_main(args));
    }
    if mode == SERVER_COMMAND {
        std::process::exit(server_main(args));
    }
    if mode == FORWARD_COMMAND {
        std::process::exit(forward_main(args));
    }
    if mode == "connect" {
        let path = args.next().unwrap_or_default();
        std::os::unix::net::UnixStream::connect(path)?;
        return Ok(());
    }
    if mode == "connect-abstract" {
        use std::os::linux::net::SocketAddrExt;
        let name = args.next().unwrap_or_default();
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_encoded_bytes())?;
        std::os::unix::net::UnixStream::connect_addr(&address)?;
        return Ok(());
    }
    if mode == "local-sockets" {
        let path = args.next().unwrap_or_default();
        let _listener = std::os::unix::net::UnixListener::bind(&path)?;
        std::os::unix::net::UnixStream::connect(&path)?;
        return Ok(());
    }
    if mode == "socket-pair" {
        std::os::unix::net::UnixStream::pair()?;
        return Ok(());
    }
    if mode == "calls" {
        calls();
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

/// Prints the names of system calls that were not refused.
#[allow(unsafe_code)]
fn calls() {
    let attempts: [(&str, i64, [u64; 4]); 22] = [
        ("ptrace", libc::SYS_ptrace, [0; 4]),
        ("process_vm_readv", libc::SYS_process_vm_readv, [1, 0, 0, 0]),
        (
            "process_vm_writev",
            libc::SYS_process_vm_writev,
            [1, 0, 0, 0],
        ),
        ("io_uring_setup", libc::SYS_io_uring_setup, [1, 0, 0, 0]),
        ("add_key", libc::SYS_add_key, [0; 4]),
        ("request_key", libc::SYS_request_key, [0; 4]),
        ("keyctl", libc::SYS_keyctl, [0, 0, 0, 0]),
        ("mount", libc::SYS_mount, [0; 4]),
        ("umount2", libc::SYS_umount2, [0; 4]),
        ("pivot_root", libc::SYS_pivot_root, [0; 4]),
        ("fsopen", libc::SYS_fsopen, [0; 4]),
        ("open_tree", libc::SYS_open_tree, [0; 4]),
        ("unshare user", libc::SYS_unshare, [0x1000_0000, 0, 0, 0]),
        ("setns", libc::SYS_setns, [0; 4]),
        ("clone user", libc::SYS_clone, [0x1000_0011, 0, 0, 0]),
        ("clone3", libc::SYS_clone3, [0; 4]),
        ("bpf", libc::SYS_bpf, [0; 4]),
        ("perf_event_open", libc::SYS_perf_event_open, [0; 4]),
        ("userfaultfd", libc::SYS_userfaultfd, [1, 0, 0, 0]),
        ("kexec_load", libc::SYS_kexec_load, [0; 4]),
        ("init_module", libc::SYS_init_module, [0; 4]),
        ("TIOCSTI", libc::SYS_ioctl, [0, 0x5412, 0, 0]),
    ];
    for (name, call, [a, b, c, d]) in attempts {
        // SAFETY: every pointer among the arguments is null; a call that is let through fails on
        // that or only reads.
        let result = unsafe { libc::syscall(call, a, b, c, d, 0_u64) };
        let error = std::io::Error::last_os_error().raw_os_error();
        let refused = result == -1 && matches!(error, Some(libc::EPERM | libc::ENOSYS));
        if !refused {
            println!("{name}");
        }
    }
}

/// `<kind> <workspace> <temp> <command> [state]`
fn parent(kind: &OsString, args: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let arguments: Vec<OsString> = args.collect();
    let (workspace, temp, command, state) = match arguments.as_slice() {
        [workspace, temp, command] => (workspace, temp, command, None),
        [workspace, temp, command, state] => (workspace, temp, command, Some(state)),
        _ => return Err("usage: sandbox_child <kind> <workspace> <temp> <command> [state]".into()),
    };
    let choice = match kind.to_str() {
        Some("namespaces") => SandboxChoice::Namespaces,
        Some("bubblewrap") => SandboxChoice::Bubblewrap,
        Some("landlock") => SandboxChoice::Landlock,
        _ => SandboxChoice::Off,
    };
    let (workspace, temp) = (PathBuf::from(workspace), PathBuf::from(temp));
    let mut policy = SandboxPolicy::for_workspace([workspace.as_path()], &temp, None)?;
    let mut sandbox = Sandbox::probe(choice, std::env::current_exe()?);
    if let Some(state) = state.map(PathBuf::from) {
        policy.registry = Some(state.join("sandbox"));
        sandbox = sandbox.with_home(None, state);
    }
    let launch = Launch {
        program: "/bin/bash".into(),
        arguments: vec!["-c".into(), command.clone()],
        cwd: workspace,
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        policy,
        approval: Approval::Rules,
        timeout: Duration::from_secs(600),
    };
    let sandbox = Arc::new(sandbox);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut capture = Capture::new(
        &temp,
        "test",
        &Arc::new(codespar_policy::Redactor::by_shape()),
    );
    let cancel = CancellationToken::new();
    runtime.block_on(run(&launch, &sandbox, &mut capture, &cancel))?;
    println!("{}", capture.finish());
    Ok(())
}
