//! A tunnel to a host: bytes both ways, with one look at how TLS begins.
//!
//! What follows the first message is not looked at. A protocol other than TLS passes as it is: the
//! host was allowed, and there is no second name in it to check.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncBufRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{
    client_hello::{self, Hello},
    gate::Gate,
    host::Destination,
    relay::{Activity, copy},
};

/// How long a client may take to say what it wants.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(30);

/// Runs a tunnel to its end. TLS is not opened, but its first message names a host: when that is
/// another one than the client asked us for, the tunnel is closed. Each direction ends on its own
/// and passes its end on; an error in one ends both. A tunnel on which nothing moves is closed, see
/// `relay`.
pub(super) async fn run(
    mut reader: impl AsyncBufRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    server: TcpStream,
    to: &Destination,
    gate: &Gate,
) -> io::Result<()> {
    let activity = Activity::new();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        screen(&mut reader, &mut to_server, to, gate).await?;
        copy(&mut reader, &mut to_server, &activity).await
    };
    // The server may be the first to speak.
    let down = copy(&mut from_server, &mut writer, &activity);
    tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.map(|_| ()),
        () = activity.expired() => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Passes the first bytes on once they are seen to be for the right host: until the first message
/// of TLS is whole, nothing of it reaches the server. A client that closes before it has sent
/// anything is no error.
async fn screen(
    reader: &mut (impl AsyncBufRead + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
    to: &Destination,
    gate: &Gate,
) -> io::Result<()> {
    let mut begin = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = reader.read(&mut piece);
        // Who is silent at first waits for the server; who began to speak has to go on.
        let count = if begin.is_empty() {
            read.await?
        } else {
            timeout(HEAD_TIME, read).await??
        };
        begin.extend(&piece[..count]);
        match client_hello::read(&begin) {
            Hello::NotTls | Hello::Named(None) => break,
            Hello::Named(Some(name)) if gate.is_same_host(&name, to) => break,
            Hello::Incomplete if count > 0 => {}
            // The client left without a word.
            Hello::Incomplete if begin.is_empty() => break,
            Hello::Named(Some(_)) | Hello::Incomplete | Hello::Malformed => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "TLS does not begin as it should",
                ));
            }
        }
    }
    server.write_all(&begin).await
}
