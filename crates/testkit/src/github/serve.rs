//! Takes connections and sends answers.
//!
//! Requests are answered on the blocking pool, since git is waited for. A fault that cuts shows to
//! the client as a reset connection, and a handler that panics does as well.

use std::sync::Arc;

use jiff::{Timestamp, fmt::rfc2822};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{JoinSet, spawn_blocking},
};

use super::{answer::Answer, room::Room};
use crate::http::Connection;

/// Serves until `stop` is dropped; then every connection is closed.
pub(super) async fn accept(listener: TcpListener, room: Arc<Room>, stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let accepting = async {
        loop {
            // An accept fails for want of descriptors or by a client gone at once: go on.
            if let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, Arc::clone(&room)));
            }
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = stop => {}
    }
}

/// One connection, until either side closes it.
async fn converse(stream: TcpStream, room: Arc<Room>) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    while let Ok(Some(request)) = connection.read_request().await {
        let room = Arc::clone(&room);
        let close = request.wants_close();
        // Git runs as a process, and is waited for.
        let answer = spawn_blocking(move || room.receive(&request)).await;
        let Ok(Some(answer)) = answer else {
            return connection.reset();
        };
        if connection.send(&on_the_wire(&answer)).await.is_err() || close {
            return;
        }
    }
}

/// 204 and 304 have no body and no length.
fn on_the_wire(answer: &Answer) -> Vec<u8> {
    let date = rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&Timestamp::now())
        .unwrap_or_default();
    let mut head = format!(
        "HTTP/1.1 {} {}\r\nDate: {date}\r\n",
        answer.status,
        reason(answer.status)
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !matches!(answer.status, 204 | 304) {
        head.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&answer.body);
    bytes
}

fn reason(status: u16) -> &'static str {
    match status {
        200..=299 => "OK",
        304 => "Not Modified",
        404 => "Not Found",
        _ => "Other",
    }
}
