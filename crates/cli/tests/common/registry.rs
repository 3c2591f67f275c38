//! An npm registry with one package, on this machine.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
};

use serde_json::json;

pub(crate) struct Registry {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (package, noted) = (tarball(), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (package, noted) = (package.clone(), Arc::clone(&noted));
                std::thread::spawn(move || serve(&stream, &package, &noted));
            }
        });
        Self { port, requests }
    }

    /// As settings name it.
    pub(crate) fn name(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.name())
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, package: &[u8], noted: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(request) = lines.next() else {
        return;
    };
    lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .for_each(drop);
    let request = request.trim_end_matches(" HTTP/1.1").to_owned();
    let (status, body) = match request.ends_with(".tgz") {
        true => ("200 OK", package),
        false => ("404 Not Found", &b"{}"[..]),
    };
    noted.lock().unwrap().push(request);
    let mut stream = stream;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

/// `tiny@1.0.0`, which is 42.
fn tarball() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let package = dir.path().join("package");
    std::fs::create_dir(&package).unwrap();
    let about = json!({"name": "tiny", "version": "1.0.0", "main": "tiny.js"});
    std::fs::write(package.join("package.json"), about.to_string()).unwrap();
    std::fs::write(package.join("tiny.js"), "module.exports = 42;\n").unwrap();
    let output = Command::new("tar")
        .args(["-cz", "-C"])
        .arg(dir.path())
        .arg("package")
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}

/// The files of a project that depends on it, with the lock naming where it comes from.
pub(crate) fn project(from: &str) -> [(&'static str, String); 2] {
    let package = json!({"name": "p", "version": "1.0.0", "dependencies": {"tiny": "1.0.0"}});
    let lock = json!({
        "name": "p",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "requires": true,
        "packages": {
            "": package,
            "node_modules/tiny": {
                "version": "1.0.0",
                "resolved": format!("{from}/tiny/-/tiny-1.0.0.tgz"),
            },
        },
    });
    [
        ("package.json", package.to_string()),
        ("package-lock.json", lock.to_string()),
    ]
}
