//! Streamable HTTP: answers as JSON, notifications as an event stream; and the transport of 2024,
//! where both come by the stream.
//!
//! `POST` is a message and its answer, `GET` opens the stream of notifications, anything else (the
//! end of a session) is accepted. One request per connection, each on a thread of its own. There is
//! one session, and its id is not checked. With a token, requests without it get 401.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use parking_lot::Mutex;
use serde_json::Value;

use super::{host::Host, oauth};

struct Request {
    method: String,
    target: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

pub(super) fn serve(host: &Arc<Host>, port: u16, ready: impl FnOnce(String)) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let base = format!("http://{}", listener.local_addr()?);
    ready(format!("{base}/mcp"));
    for stream in listener.incoming() {
        let (host, stream, base) = (host.clone(), stream?, base.clone());
        // A client that goes away is no concern of the others.
        thread::spawn(move || handle_connection(&host, stream, &base));
    }
    Ok(())
}

fn handle_connection(host: &Host, stream: TcpStream, base: &str) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(request) = read(&mut reader)? else {
        return Ok(());
    };
    if let Some((status, more, body)) = oauth::page(host, base, &request.target, &request.body) {
        let fields = format!(
            "Content-Type: application/json\r\n{more}Content-Length: {}\r\n",
            body.len()
        );
        return send(stream, status, &fields, body.as_bytes());
    }
    if host.setup.oauth.is_some() && !host.issued.accepts(request.authorization.as_deref()) {
        let fields = format!(
            "WWW-Authenticate: Bearer scope=\"use\", resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"\r\nContent-Length: 0\r\n"
        );
        return send(stream, "401 Unauthorized", &fields, b"");
    }
    let wanted = host
        .setup
        .token
        .as_ref()
        .map(|token| format!("Bearer {token}"));
    if wanted.is_some() && wanted != request.authorization {
        let fields = "WWW-Authenticate: Bearer\r\nContent-Length: 0\r\n";
        return send(stream, "401 Unauthorized", fields, b"");
    }
    match request.method.as_str() {
        "GET" if request.target == "/sse" => {
            open_stream(host, stream, "event: endpoint\ndata: /messages\n\n")
        }
        "GET" => open_stream(host, stream, ""),
        "POST" if request.target == "/messages" => {
            let message: Value = serde_json::from_slice(&request.body)?;
            send(stream, "202 Accepted", "Content-Length: 0\r\n", b"")?;
            if let Some(answer) = host.answer(&message) {
                host.send(&answer);
            }
            Ok(())
        }
        "POST" => {
            let message: Value = serde_json::from_slice(&request.body)?;
            match host.answer(&message) {
                None => send(stream, "202 Accepted", "Content-Length: 0\r\n", b""),
                Some(answer) => {
                    let body = answer.to_string();
                    let fields = format!(
                        "Content-Type: application/json\r\nMcp-Session-Id: one\r\nContent-Length: {}\r\n",
                        body.len()
                    );
                    send(stream, "200 OK", &fields, body.as_bytes())
                }
            }
        }
        _ => send(stream, "200 OK", "Content-Length: 0\r\n", b""),
    }
}

/// Returns at once: the outlet keeps the connection until a write to it fails.
fn open_stream(host: &Host, mut stream: TcpStream, first: &str) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    stream.write_all(first.as_bytes())?;
    let stream = Mutex::new(stream);
    host.add_outlet(Box::new(move |message| {
        let event = format!("data: {message}\n\n");
        stream.lock().write_all(event.as_bytes()).is_ok()
    }));
    host.note("streaming");
    Ok(())
}

fn send(mut stream: TcpStream, status: &str, fields: &str, body: &[u8]) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// `None` for a connection that was closed without a request. Only bodies with a length are read.
fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let (mut authorization, mut length) = (None, 0);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request {
        method,
        target,
        authorization,
        body,
    }))
}
