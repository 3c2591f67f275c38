//! A plain client that sends captured requests again: what remains is the server's share.
//!
//! The time of a turn has three parts: the client's, the network's and the server's. A client that
//! only sends the same bytes and reads the answer measures the last two, and the difference is
//! ours.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use codespar_testkit::{CapturedRequest, RequestCapture, Script, ScriptedModel, Setup};

/// The end of a chunked body.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// How long each request took from its first byte to the last byte of the answer. One connection
/// for all, as the client keeps it.
pub(super) fn replay(script: &Script, requests: &[CapturedRequest]) -> Result<Vec<Duration>> {
    let setup = Setup {
        capture: RequestCapture::Off,
        ..Setup::default()
    };
    let server = ScriptedModel::start_blocking_with(script.clone(), setup)?;
    let mut stream = TcpStream::connect(server.address())?;
    stream.set_nodelay(true)?;
    let mut times = Vec::with_capacity(requests.len());
    for request in requests {
        let bytes = bytes_of(request);
        let begin = Instant::now();
        stream.write_all(&bytes)?;
        read_answer(&mut stream)?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

fn bytes_of(request: &CapturedRequest) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method(), request.path());
    for (name, value) in request.headers() {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    [head.as_bytes(), request.body()].concat()
}

/// The end of a chunked body is looked for in the bytes; nothing is decoded, as that would be the
/// client's work.
fn read_answer(stream: &mut TcpStream) -> Result<()> {
    let mut answer = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while !answer.ends_with(LAST_CHUNK) {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            bail!("the server closed: {}", String::from_utf8_lossy(&answer));
        }
        answer.extend_from_slice(&buffer[..count]);
        if !answer.starts_with(b"HTTP/1.1 200") && answer.len() > 12 {
            bail!("the server refused: {}", String::from_utf8_lossy(&answer));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use codespar_testkit::Turn;
    use serde_json::json;

    #[test]
    fn captured_requests_can_be_sent_again_on_one_connection() {
        let script = Script::of([Turn::text("one")]);
        let server = ScriptedModel::start_blocking(script.clone()).unwrap();
        let body = json!({
            "model": "claude-haiku-4-5", "max_tokens": 10, "stream": true,
            "messages": [{"role": "user", "content": "hi"}]
        })
        .to_string();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: here\r\nx-api-key: k\r\nanthropic-version: \
             2023-06-01\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        read_answer(&mut stream).unwrap();
        let request = server.last_request().unwrap();
        let times = replay(&script, &[request.clone(), request]).unwrap();
        assert_eq!(times.len(), 2);
    }
}
