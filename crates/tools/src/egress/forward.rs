//! What runs inside a command's network namespace just before the command: it opens the proxy's
//! port there, hands it out, and becomes the command.

use std::{
    ffi::{OsStr, OsString},
    io,
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

use super::handover;

/// The hidden subcommand under which the binary calls [`forward_main`].
pub const FORWARD_COMMAND: &str = "__egress-forward";

/// Where the proxy is reached inside. The namespace is the command's own, so that any port is
/// free; this one is neither well known nor given out by the system.
pub(super) const PORT: u16 = 61080;

/// Exit code when the command could not be started.
const FAILED: i32 = 125;

/// Runs as the hidden subcommand: `args` are what follows it, `<socket> -- program args…`. Must be
/// called before any thread is started. Returns only when it fails, with the exit code. Used under
/// bubblewrap alone, which sets up the namespace without code of ours in it. Other kinds of sandbox
/// call `hand_out_port` themselves.
pub fn forward_main(args: impl Iterator<Item = OsString>) -> i32 {
    let Err(error) = forward(args);
    // The command's output is what is read.
    eprintln!("the network proxy could not be reached: {error}");
    FAILED
}

fn forward(mut args: impl Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidInput);
    let socket = args.next().ok_or_else(malformed)?;
    if args.next().as_deref() != Some(OsStr::new("--")) {
        return Err(malformed());
    }
    let program = args.next().ok_or_else(malformed)?;
    hand_out_port(Path::new(&socket))?;
    let error = Command::new(&program).args(args).exec();
    Err(io::Error::new(
        error.kind(),
        format!("{}: {error}", program.display()),
    ))
}

/// Opens the proxy's port in this network namespace and hands it to the proxy at `socket`. Returns
/// when the proxy has accepted it; from then on it is open there and closed here.
pub(crate) fn hand_out_port(socket: &Path) -> io::Result<()> {
    bring_loopback_up()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    handover::send(socket, &listener)
}

/// A new network namespace has its loopback device switched off, unless its maker saw to it.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(crate) fn bring_loopback_up() -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: all bytes zero is a valid value of this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    // SAFETY: the call reads the name and writes the flags of the structure it is given, which
    // outlives it.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let up = libc::c_short::try_from(libc::IFF_UP).map_err(io::Error::other)?;
    // SAFETY: the flags are what the call before has written.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    if flags & up != 0 {
        return Ok(());
    }
    request.ifr_ifru.ifru_flags = flags | up;
    // SAFETY: the call only reads the structure it is given, which outlives it.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn bring_loopback_up() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
