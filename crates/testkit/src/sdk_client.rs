//! A client of the session protocol (`--input-format stream-json`): starts a program, sends it
//! lines, and answers what it asks. Every wait has a deadline.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};

/// What does not come hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program and what it has said. Dropping it kills the program.
pub struct SdkClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    /// Lines that came while an answer was waited for.
    earlier: VecDeque<Value>,
    stderr: Arc<Mutex<String>>,
    requests: u32,
}

impl SdkClient {
    /// Starts a program with pipes on all sides.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (send, lines) = mpsc::channel();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let said = Arc::<Mutex<String>>::default();
        if let Some(stdout) = stdout {
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        if let Some(mut stderr) = stderr {
            let said = said.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                    said.lock()
                        .push_str(&String::from_utf8_lossy(&buffer[..count]));
                }
            });
        }
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            lines,
            earlier: VecDeque::new(),
            stderr: said,
            requests: 0,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line as it is written.
    pub fn send_text(&mut self, line: &str) -> io::Result<()> {
        let stdin = self.stdin.as_mut();
        let stdin = stdin.ok_or_else(|| io::Error::other("the input is closed"))?;
        stdin.write_all(line.as_bytes())?;
        stdin.write_all(b"\n")?;
        stdin.flush()
    }

    pub fn send(&mut self, line: &Value) -> io::Result<()> {
        self.send_text(&line.to_string())
    }

    /// Sends a prompt.
    pub fn prompt(&mut self, text: &str) -> io::Result<()> {
        let message = json!({ "role": "user", "content": text });
        self.send(&json!({ "type": "user", "message": message, "parent_tool_use_id": null }))
    }

    /// The next line; none when the program says nothing more.
    pub fn next_line(&mut self) -> io::Result<Option<Value>> {
        if let Some(line) = self.earlier.pop_front() {
            return Ok(Some(line));
        }
        self.fresh_line()
    }

    fn fresh_line(&mut self) -> io::Result<Option<Value>> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => serde_json::from_str(&line)
                .map(Some)
                .map_err(|error| io::Error::other(format!("{error}: {line}"))),
            Err(mpsc::RecvTimeoutError::Disconnected) => Ok(None),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(io::Error::other(format!(
                "nothing came within {PATIENCE:?}; stderr: {}",
                self.stderr.lock()
            ))),
        }
    }

    /// All lines up to and with the first for which this is so.
    pub fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> io::Result<Vec<Value>> {
        let mut lines = Vec::new();
        while let Some(line) = self.next_line()? {
            let found = is_it(&line);
            lines.push(line);
            if found {
                return Ok(lines);
            }
        }
        Err(io::Error::other(format!(
            "the program ended before; it said {lines:#?}; stderr: {}",
            self.stderr.lock()
        )))
    }

    /// All lines of a turn, the last of which is its result.
    pub fn turn(&mut self) -> io::Result<Vec<Value>> {
        self.until(|line| line["type"] == "result")
    }

    /// The next request of this kind; what comes before is dropped.
    pub fn asked(&mut self, subtype: &str) -> io::Result<Value> {
        let is_it = |line: &Value| {
            line["type"] == "control_request" && line["request"]["subtype"] == subtype
        };
        let mut lines = self.until(is_it)?;
        Ok(lines.pop().unwrap_or_default())
    }

    /// Answers a request of the program.
    pub fn answer(&mut self, request: &Value, response: &Value) -> io::Result<()> {
        let id = &request["request_id"];
        let body = json!({ "subtype": "success", "request_id": id, "response": response });
        self.send(&json!({ "type": "control_response", "response": body }))
    }

    /// Makes a request and gives the answer, `Err` where it is one. Lines that come before stay.
    pub fn request(&mut self, request: &Value) -> io::Result<Result<Value, String>> {
        self.requests += 1;
        let id = format!("client-{}", self.requests);
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }))?;
        loop {
            let Some(mut line) = self.fresh_line()? else {
                return Err(io::Error::other(format!(
                    "the program ended; stderr: {}",
                    self.stderr.lock()
                )));
            };
            if line["type"] == "control_response" && line["response"]["request_id"] == id.as_str() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let response = &mut line["response"];
                return Ok(match response["subtype"] == "success" {
                    true => Ok(response["response"].take()),
                    false => Err(text(&response["error"])),
                });
            }
            self.earlier.push_back(line);
        }
    }

    /// The client says nothing more.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// What it has written to standard error by now.
    pub fn stderr(&self) -> String {
        self.stderr.lock().clone()
    }

    /// Closes the input and waits for the end; gives the lines that were left.
    pub fn finish(&mut self) -> io::Result<(ExitStatus, Vec<Value>)> {
        self.close_input();
        let mut lines = Vec::new();
        while let Some(line) = self.next_line()? {
            lines.push(line);
        }
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((status, lines));
            }
            if began.elapsed() > PATIENCE {
                return Err(io::Error::other("the program does not end"));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for SdkClient {
    fn drop(&mut self) {
        // It may have ended long ago; there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
