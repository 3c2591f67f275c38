//! The first message of TLS, as far as the name of the host in it.
//!
//! A tunnel is opened to a host on the list, and what goes through it is not read. With TLS,
//! though, a server chooses by this name whom it answers for: behind an allowed address another
//! host could be asked for. So the name is compared with the one the tunnel was made for
//! (`tunnel`). A name that is encrypted, or given later inside of TLS, is not seen.
//!
//! ```text
//! record      22, 3, minor, length (2)       one or more, until the message is whole
//! message     1, length (3)
//! body        version, random, session, cipher suites, compression, extensions
//! extension   0, length: list of (0, length, name)
//! ```

/// The longest message that is waited for.
const LONGEST: usize = 32 << 10;

/// The longest record TLS has.
const LONGEST_RECORD: usize = 16 << 10;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;

/// What the first bytes of a connection are. Once it is anything but `Incomplete`, more bytes do
/// not change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hello {
    /// Some other protocol.
    NotTls,
    /// TLS, and the name of the host in it if there is one, as the client wrote it. Without one
    /// there is nothing to compare.
    Named(Option<String>),
    /// More bytes are needed.
    Incomplete,
    /// It begins like TLS and goes on like something else.
    Malformed,
}

/// Reads the first bytes of a connection.
pub(super) fn read(bytes: &[u8]) -> Hello {
    match bytes.first() {
        None => return Hello::Incomplete,
        Some(&HANDSHAKE) => {}
        Some(_) => return Hello::NotTls,
    }
    match message(bytes) {
        Ok(Some(body)) => server_name(&body).map_or(Hello::Malformed, Hello::Named),
        Ok(None) => Hello::Incomplete,
        Err(NoHello) => Hello::Malformed,
    }
}

/// The bytes are not a `ClientHello`.
struct NoHello;

/// The body of the message, put together from as many records as it is spread over; `None` when
/// some of it is still to come.
fn message(bytes: &[u8]) -> Result<Option<Vec<u8>>, NoHello> {
    let mut records = Fields(bytes);
    let mut message = Vec::new();
    loop {
        if let [kind, high, middle, low, ..] = message[..] {
            let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            if kind != CLIENT_HELLO || length > LONGEST {
                return Err(NoHello);
            }
            if let Some(body) = message.get(4..4 + length) {
                return Ok(Some(body.to_vec()));
            }
        }
        let Some(header) = records.take(5) else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != HANDSHAKE || header[1] != 3 || length == 0 || length > LONGEST_RECORD {
            return Err(NoHello);
        }
        let Some(piece) = records.take(length) else {
            return Ok(None);
        };
        message.extend(piece);
    }
}

/// `None` when the message is malformed.
fn server_name(body: &[u8]) -> Option<Option<String>> {
    let mut body = Fields(body);
    // Version and random bytes, session, cipher suites, compression.
    body.take(2 + 32)?;
    body.counted_by_one()?;
    body.counted_by_two()?;
    body.counted_by_one()?;
    if body.0.is_empty() {
        return Some(None);
    }
    let mut extensions = Fields(body.counted_by_two()?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.counted_by_two()?;
        if kind == SERVER_NAME {
            // A second one would leave it open which of them counts.
            if found.is_some() {
                return None;
            }
            found = Some(only_name(content)?);
        }
    }
    body.0.is_empty().then_some(found)
}

/// The list may have one entry, of the kind for names; more would be ambiguous.
fn only_name(content: &[u8]) -> Option<String> {
    let mut content = Fields(content);
    let mut names = Fields(content.counted_by_two()?);
    let kind = names.take(1)?;
    let name = names.counted_by_two()?;
    if kind != [0] || !names.0.is_empty() || !content.0.is_empty() {
        return None;
    }
    String::from_utf8(name.to_vec()).ok()
}

/// What is left to read. Every call returns `None` rather than read beyond the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn counted_by_one(&mut self) -> Option<&'a [u8]> {
        let count = self.take(1)?[0];
        self.take(count.into())
    }

    fn counted_by_two(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(count.into())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    /// What a real client sends first.
    pub(in crate::egress) fn hello(host: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = host.to_owned().try_into().unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// The same message in records of a few bytes each.
    fn in_records(bytes: &[u8], size: usize) -> Vec<u8> {
        let pieces = bytes[5..].chunks(size);
        pieces
            .flat_map(|piece| {
                let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
                [&[22, 3, 1], &length[..], piece].concat()
            })
            .collect()
    }

    #[test]
    fn the_name_in_a_real_clients_message_is_found() {
        assert_eq!(
            read(&hello("a.example")),
            Hello::Named(Some("a.example".to_owned()))
        );
        assert_eq!(read(&hello("127.0.0.1")), Hello::Named(None));
    }

    #[test]
    fn a_message_spread_over_records_is_put_together() {
        let bytes = in_records(&hello("a.example"), 3);
        assert_eq!(read(&bytes), Hello::Named(Some("a.example".to_owned())));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Hello::Incomplete, "{end}");
        }
    }

    #[test]
    fn other_protocols_and_broken_messages_are_told_apart() {
        assert_eq!(read(b"SSH-2.0-x\r\n"), Hello::NotTls);
        assert_eq!(read(&[22, 3, 1, 0, 0]), Hello::Malformed);
        assert_eq!(read(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), Hello::Malformed);
        assert_eq!(read(&[22, 3, 1, 0, 4, 1, 255, 0, 0]), Hello::Malformed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&[&[22, 3, 1], bytes.as_slice()].concat());
        }

        #[test]
        fn a_changed_byte_never_makes_another_name_pass_as_the_first(
            place in 0_usize..2000,
            byte in any::<u8>(),
        ) {
            let mut bytes = hello("a.example");
            let place = place % bytes.len();
            bytes[place] = byte;
            if let Hello::Named(Some(name)) = read(&bytes) {
                // Whatever name is read stands in the bytes that go on.
                prop_assert!(memchr::memmem::find(&bytes, name.as_bytes()).is_some());
            }
        }
    }
}
