//! The SOCKS5 side of the proxy: connections by the name of a host, without authentication.
//!
//! ```text
//! client   5, count, methods               offers 0, no authentication
//! proxy    5, 0
//! client   5, 1, 0, kind, host, port (2)   kind 1: IPv4, 3: length and name, 4: IPv6
//! proxy    5, reply, 0, 1, 0 (4), 0 (2)
//! ```
//!
//! Clients that resolve names themselves send addresses, which are refused. A malformed request
//! closes the connection without a reply.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr},
};

use tokio::{
    io::{AsyncBufRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use super::{
    gate::{Gate, Refusal},
    tunnel::{self, HEAD_TIME},
};

/// The first byte of a SOCKS5 connection.
pub(super) const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// What is answered to a request. As numbered by RFC 1928.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Succeeded = 0,
    NotAllowed = 2,
    Unreachable = 4,
    NoSuchCommand = 7,
}

/// Serves one connection. The client has [`HEAD_TIME`] for its request; after the reply the
/// connection is a tunnel.
pub(super) async fn serve(
    mut reader: impl AsyncBufRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    gate: &Gate,
) -> io::Result<()> {
    let asked = timeout(HEAD_TIME, request(&mut reader, &mut writer)).await??;
    let Some((host, port)) = asked else {
        return reply(&mut writer, Reply::NoSuchCommand).await;
    };
    match gate.connect(&host, port).await {
        Ok((server, to)) => {
            reply(&mut writer, Reply::Succeeded).await?;
            tunnel::run(reader, writer, server, &to, gate).await
        }
        Err(Refusal::Blocked(_)) => reply(&mut writer, Reply::NotAllowed).await,
        Err(Refusal::Unreachable(_)) => reply(&mut writer, Reply::Unreachable).await,
    }
}

/// The host and port asked for; `None` for another command than to connect. An address is given as
/// text: it is refused where all addresses are. The address is read in full even for a command that
/// is not supported, so the reply comes at the right time.
async fn request(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<Option<(String, u16)>> {
    let [version, methods] = bytes(reader).await?;
    let mut offered = vec![0; methods.into()];
    reader.read_exact(&mut offered).await?;
    if version != VERSION || !offered.contains(&NO_AUTHENTICATION) {
        writer.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(malformed("no authentication method in common"));
    }
    writer.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    writer.flush().await?;
    let [version, command, reserved, kind] = bytes(reader).await?;
    if version != VERSION || reserved != 0 {
        return Err(malformed("the request"));
    }
    let host = match kind {
        IPV4 => Ipv4Addr::from(bytes::<4>(reader).await?).to_string(),
        IPV6 => Ipv6Addr::from(bytes::<16>(reader).await?).to_string(),
        NAME => {
            let [length] = bytes(reader).await?;
            let mut name = vec![0; length.into()];
            reader.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| malformed("the name of the host"))?
        }
        _ => return Err(malformed("the kind of address")),
    };
    let port = u16::from_be_bytes(bytes(reader).await?);
    Ok((command == CONNECT).then_some((host, port)))
}

async fn bytes<const N: usize>(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// The address in a reply is of no use to a client; it is zero.
async fn reply(writer: &mut (impl AsyncWrite + Unpin), reply: Reply) -> io::Result<()> {
    let bytes = [VERSION, reply as u8, 0, IPV4, 0, 0, 0, 0, 0, 0];
    writer.write_all(&bytes).await?;
    writer.flush().await
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("SOCKS: {what}"))
}

/// What a client that sends these bytes asks for, and what it is answered meanwhile.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn read_request(sent: &[u8]) -> (io::Result<Option<(String, u16)>>, Vec<u8>) {
    let (mut from, mut to) = (sent, Vec::new());
    // Bytes in memory are there at once.
    let asked = futures::FutureExt::now_or_never(request(&mut from, &mut to));
    (asked.unwrap_or_else(|| Err(malformed("it waits"))), to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read_request as read;

    #[test]
    fn a_name_and_a_port_are_read() {
        let (asked, answered) = read(b"\x05\x02\x00\x02\x05\x01\x00\x03\x09a.example\x01\xbb");
        assert_eq!(asked.unwrap(), Some(("a.example".to_owned(), 443)));
        assert_eq!(answered, [5, 0]);
    }

    #[test]
    fn addresses_become_text_and_other_commands_are_none() {
        let (asked, _) = read(b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50");
        assert_eq!(asked.unwrap(), Some(("127.0.0.1".to_owned(), 80)));
        let (asked, _) = read(b"\x05\x01\x00\x05\x02\x00\x03\x01a\x00\x50");
        assert_eq!(asked.unwrap(), None);
    }

    #[test]
    fn a_client_that_insists_on_a_password_is_turned_away() {
        let (asked, answered) = read(b"\x05\x01\x02");
        assert!(asked.is_err());
        assert_eq!(answered, [5, 0xff]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(sent in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&[&[5], sent.as_slice()].concat());
        }
    }
}
