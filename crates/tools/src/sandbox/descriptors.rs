//! File descriptors sent from one process to another over a local socket.
//!
//! A message is one byte with its descriptors: a message without data would look like the end of
//! the connection. Received descriptors are closed on execution, so no command inherits them.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// At most this many in one message. Control socket and output pipe of a command.
const MOST: usize = 2;

/// Sends descriptors, with one byte to carry them. All arrive with the one byte, or none. A closed
/// socket is an error, not a signal.
pub(super) fn send(socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let flags = SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(b"c")], &mut ancillary, flags)?;
    Ok(())
}

/// The next `N` descriptors; `None` when nobody is left to send any. A message with another number
/// of descriptors is an error; those that came with it are closed.
pub(super) fn receive<const N: usize>(socket: impl AsFd) -> io::Result<Option<[OwnedFd; N]>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut data = [IoSliceMut::new(&mut byte)];
    let received = loop {
        match recvmsg(&socket, &mut data, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let descriptors: Vec<OwnedFd> = ancillary
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
            _ => Vec::new(),
        })
        .collect();
    let descriptors = <[OwnedFd; N]>::try_from(descriptors);
    match descriptors {
        Ok(descriptors) => Ok(Some(descriptors)),
        Err(_) => Err(io::Error::other("a message without its descriptors")),
    }
}
