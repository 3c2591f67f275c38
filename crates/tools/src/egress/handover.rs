//! The listening socket of a command's network namespace, handed out to us before it starts.
//!
//! ```text
//! inside   connects, sends one byte with the socket
//! here     checks it, removes the unix socket, answers with a 1
//! inside   goes on to the command
//! ```
//!
//! The socket keeps belonging to the namespace it was made in, so accepting here yields connections
//! from inside.

use std::{
    io::{self, IoSlice, IoSliceMut, Read},
    net::TcpListener,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::Duration,
};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketType, recvmsg, sendmsg, sockopt,
};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::{UnixListener, UnixStream},
    time::timeout,
};

use super::socket_dir::connect;

/// How long the other side may take once it has connected. Both sides use it, so neither waits for
/// ever for one that was killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is sent back when the socket was accepted.
const ACCEPTED: u8 = 1;

/// Sends a listening socket to whoever listens at `path`, and waits until it is accepted. On an
/// error the command is not started.
pub(super) fn send(path: &Path, listener: &TcpListener) -> io::Result<()> {
    let mut stream = connect(path)?;
    let sockets = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("a socket does not fit into a message"));
    }
    sendmsg(
        &stream,
        &[IoSlice::new(&[0])],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer == [ACCEPTED] {
        Ok(())
    } else {
        Err(io::Error::other("the proxy did not accept the socket"))
    }
}

/// A socket that arrived; its sender waits to hear that it was accepted. Dropped instead of
/// accepted, the sender fails.
pub(super) struct Handed {
    listener: tokio::net::TcpListener,
    sender: UnixStream,
}

impl Handed {
    /// Lets the sender go on.
    pub(super) async fn accept(mut self) -> io::Result<tokio::net::TcpListener> {
        self.sender.write_all(&[ACCEPTED]).await?;
        Ok(self.listener)
    }
}

/// Waits for one. Whatever else arrives is dropped. Senders are served one by one.
pub(super) async fn receive(at: &UnixListener) -> io::Result<Handed> {
    loop {
        let (sender, _) = at.accept().await?;
        let receiving = sender.async_io(Interest::READABLE, || receive_fd(&sender));
        let Ok(Ok(Some(fd))) = timeout(PATIENCE, receiving).await else {
            continue;
        };
        if let Ok(listener) = checked(fd) {
            return Ok(Handed { listener, sender });
        }
    }
}

/// `None` for a message without a descriptor. Descriptors beyond the first are closed.
fn receive_fd(stream: &impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    let mut received = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    Ok(received.next())
}

/// Only a listening TCP socket on a loopback device will do. Anything else that is sent, such as a
/// socket that is connected to a service on this machine, must not be served as if it were the
/// command's.
fn checked(fd: OwnedFd) -> io::Result<tokio::net::TcpListener> {
    let is_listening = sockopt::socket_domain(&fd)? == AddressFamily::INET
        && sockopt::socket_type(&fd)? == SocketType::STREAM
        && sockopt::socket_acceptconn(&fd)?;
    let listener = TcpListener::from(fd);
    if !is_listening || !listener.local_addr()?.ip().is_loopback() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}
