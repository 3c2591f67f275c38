//! The body of a request, passed on with its length checked.
//!
//! The end of the body is the end of what the client may send, so it has to be found exactly where
//! the server finds it. A body that does not keep to its framing is an error of kind `InvalidData`,
//! and whatever was passed on until then is cut off with the connection.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::head::Framing;
use crate::egress::relay::Activity;

/// The longest line with the size of a chunk, or line of the trailer.
const LONGEST_LINE: usize = 4 << 10;

/// At most this much trailer is read. Lines; they are read to find the end and not passed on.
const MOST_TRAILERS: usize = 64;

/// Passes a body on; not a byte more than its framing says. What the client has sent behind it
/// stays in the reader and is never looked at.
pub(super) async fn pass_on(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    framing: Framing,
    activity: &Activity,
) -> io::Result<()> {
    match framing {
        Framing::None => Ok(()),
        Framing::Length(length) => exactly(from, to, length, activity).await,
        Framing::Chunked => chunks(from, to, activity).await,
    }
}

/// A client that closes too early is an `UnexpectedEof`.
async fn exactly(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut left: u64,
    activity: &Activity,
) -> io::Result<()> {
    while left > 0 {
        let piece = from.fill_buf().await?;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        to.write_all(&piece[..count]).await?;
        from.consume(count);
        left -= count as u64;
        activity.touch();
    }
    Ok(())
}

/// Sizes are written anew; extensions and trailers are left out. Chunks keep their sizes, so
/// nothing has to be held in memory.
async fn chunks(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
) -> io::Result<()> {
    loop {
        let line = read_line(from).await?;
        let size = chunk_size(&line).ok_or_else(|| malformed("the size of a chunk"))?;
        if size == 0 {
            break;
        }
        to.write_all(format!("{size:x}\r\n").as_bytes()).await?;
        exactly(from, to, size, activity).await?;
        let mut end = [0; 2];
        from.read_exact(&mut end).await?;
        if &end != b"\r\n" {
            return Err(malformed("the end of a chunk"));
        }
        to.write_all(b"\r\n").await?;
    }
    for _ in 0..MOST_TRAILERS {
        if read_line(from).await?.is_empty() {
            return to.write_all(b"0\r\n\r\n").await;
        }
    }
    Err(malformed("the trailer"))
}

/// A line without its CR LF.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LONGEST_LINE as u64)
        .read_until(b'\n', &mut line)
        .await?;
    match line.strip_suffix(b"\r\n") {
        Some(text) if !text.contains(&b'\r') => Ok(text.to_vec()),
        _ => Err(malformed("a line of the body")),
    }
}

/// Hexadecimal digits, and an extension that is ignored. At most 15 digits, so that the number
/// fits; signs and prefixes are refused.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?;
    let digits = std::str::from_utf8(digits)
        .ok()?
        .trim_end_matches([' ', '\t']);
    let is_size =
        (1..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_size
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is malformed"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    async fn passed(body: &[u8], framing: Framing) -> (io::Result<()>, String, usize) {
        let (mut from, mut to) = (body, Vec::new());
        let outcome = pass_on(&mut from, &mut to, framing, &Activity::new()).await;
        (
            outcome,
            String::from_utf8_lossy(&to).into_owned(),
            from.len(),
        )
    }

    #[tokio::test]
    async fn a_counted_body_ends_where_it_says() {
        let (outcome, sent, left) =
            passed(b"abcGET http://evil.example/ HTTP/1.1", Framing::Length(3)).await;
        outcome.unwrap();
        assert_eq!((sent.as_str(), left), ("abc", 33));
    }

    #[tokio::test]
    async fn chunks_are_written_anew() {
        let body = b"003;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: 1\r\n\r\nGET";
        let (outcome, sent, left) = passed(body, Framing::Chunked).await;
        outcome.unwrap();
        assert_eq!(
            (sent.as_str(), left),
            ("3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n", 3)
        );
    }

    #[rstest]
    #[case(b"3\nabc\r\n0\r\n\r\n")]
    #[case(b"3\r\nabcd\r\n0\r\n\r\n")]
    #[case(b"+3\r\nabc\r\n0\r\n\r\n")]
    #[case(b"0x3\r\nabc\r\n0\r\n\r\n")]
    #[case(b"\r\n\r\n")]
    #[case(b"10000000000000003\r\nabc\r\n0\r\n\r\n")]
    #[case(b"3\r\nab")]
    #[tokio::test]
    async fn malformed_chunks_are_refused(#[case] body: &[u8]) {
        let (outcome, ..) = passed(body, Framing::Chunked).await;
        assert!(outcome.is_err(), "{body:?}");
    }

    proptest! {
        #[test]
        fn a_size_that_is_read_is_the_size_that_was_written(line in "[0-9a-fA-F+x; _]{0,20}") {
            if let Some(size) = chunk_size(line.as_bytes()) {
                let digits = line.split(';').next().unwrap().trim_end();
                prop_assert_eq!(u64::from_str_radix(digits, 16).unwrap(), size);
                prop_assert!(!digits.contains(['+', '_', 'x']));
            }
        }
    }
}
