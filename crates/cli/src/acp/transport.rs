//! Lines of JSON on standard input and output. A line has a limit, so that no client can fill the
//! memory with one message.

use std::io;

use agent_client_protocol::{Agent, ConnectTo, Lines};
use futures::{Sink, Stream, sink, stream};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio_util::sync::CancellationToken;

use crate::printer;

/// Room for a few pictures in base64.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// The client at the other end. `gone` is cancelled when it has closed its output.
pub(super) fn stdio(gone: CancellationToken) -> impl ConnectTo<Agent> {
    let input = BufReader::new(tokio::io::stdin());
    Lines::new(output(), lines(input, gone))
}

fn lines(
    input: impl AsyncBufRead + Unpin + Send + 'static,
    gone: CancellationToken,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    stream::unfold(Some((input, gone)), async |state| {
        let (mut input, gone) = state?;
        match next_line(&mut input).await {
            Ok(Some(line)) => Some((Ok(line), Some((input, gone)))),
            Ok(None) => {
                gone.cancel();
                None
            }
            Err(error) => {
                gone.cancel();
                Some((Err(error), None))
            }
        }
    })
}

/// Empty lines are passed over.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    loop {
        let mut line = Vec::new();
        let read = input.take(MAX_LINE).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == MAX_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a message is longer than {MAX_LINE} bytes"),
            ));
        }
        let line = String::from_utf8(line)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a message is not UTF-8"))?;
        let line = line.trim();
        if !line.is_empty() {
            return Ok(Some(line.to_owned()));
        }
    }
}

/// Written on a thread that may block: a client that reads slowly must not hold up others.
fn output() -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold((), async |(), line: String| {
        let written = tokio::task::spawn_blocking(move || printer::protocol_line(&line)).await;
        written.map_err(io::Error::other)?
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn lines_come_one_by_one_and_the_end_is_told() {
        let gone = CancellationToken::new();
        let input = BufReader::new(&b"{\"a\":1}\r\n\n  {\"b\":2}"[..]);
        let found: Vec<String> = lines(input, gone.clone())
            .map(|line| line.unwrap())
            .collect()
            .await;
        assert_eq!(found, ["{\"a\":1}", "{\"b\":2}"]);
        assert!(gone.is_cancelled());
    }

    #[tokio::test]
    async fn a_line_without_end_is_refused() {
        let gone = CancellationToken::new();
        let input = BufReader::new(tokio::io::repeat(b'x'));
        let mut found = Box::pin(lines(input, gone.clone()));
        let error = found.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("longer than"), "{error}");
        assert!(found.next().await.is_none());
        assert!(gone.is_cancelled());
    }
}
