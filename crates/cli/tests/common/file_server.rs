//! Files over HTTP, on this machine: a package index of the simplest kind.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

pub(crate) struct FileServer {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    files: Mutex<HashMap<String, Vec<u8>>>,
    requests: Mutex<Vec<String>>,
}

impl FileServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { port, shared }
    }

    /// As settings name it.
    pub(crate) fn name(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.name())
    }

    pub(crate) fn file(&self, path: &str, content: impl Into<Vec<u8>>) {
        let mut files = self.shared.files.lock().unwrap();
        files.insert(path.to_owned(), content.into());
    }

    /// The paths that were asked for.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(request) = lines.next() else {
        return;
    };
    lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .for_each(drop);
    let path = request.split(' ').nth(1).unwrap_or_default();
    // A proxy is asked for a whole address.
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("/", |(_, path)| path),
        None => path.trim_start_matches('/'),
    };
    let path = format!("/{path}");
    let found = shared.files.lock().unwrap().get(&path).cloned();
    let (status, body) = match found {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    let kind = match path.ends_with('/') {
        true => "text/html",
        false => "application/octet-stream",
    };
    shared.requests.lock().unwrap().push(path);
    let mut stream = stream;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&body);
}
