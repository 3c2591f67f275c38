//! Terminals that have to be installed: tmux, and xterm.js with node.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use codespar_terminal::{Size, painter::Reflow};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Value, json};

use crate::{
    check::check_except,
    emulators::{Emulator, Row, Screen},
    script::{Event, Recording, Step, record, steps},
};

/// The same each time.
fn cases(count: usize, most: usize) -> Vec<(Size, Vec<Step>)> {
    let mut runner = TestRunner::deterministic();
    let strategy = steps(most);
    let mut cases = Vec::new();
    for _ in 0..count {
        cases.push(strategy.new_tree(&mut runner).unwrap().current());
    }
    cases
}

/// What a terminal showed when it was asked, one after another.
struct Replayed(VecDeque<Screen>);

impl Emulator for Replayed {
    fn write(&mut self, _: &[u8]) {}

    fn resize(&mut self, _: Size) {}

    fn screen(&mut self) -> Screen {
        self.0.pop_front().unwrap()
    }
}

fn as_json(size: Size, recording: &Recording) -> Value {
    let events = recording.events.iter().map(|event| match event {
        Event::Write(bytes) => json!({"write": String::from_utf8_lossy(bytes)}),
        Event::Resize(resized) => {
            json!({"resize": [resized.size.width, resized.size.height]})
        }
    });
    let events: Vec<Value> = events.collect();
    json!({"columns": size.width, "rows": size.height, "events": events})
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn from_json(screen: &Value) -> Screen {
    let rows = screen["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| Row {
        text: row["text"].as_str().unwrap().to_owned(),
        is_wrapped: row["wrapped"].as_bool().unwrap(),
    });
    Screen {
        rows: rows.collect(),
        history: number(&screen["history"]),
        cursor: (number(&screen["cursor"][0]), number(&screen["cursor"][1])),
    }
}

/// Its cursor can be followed over one resize only.
fn with_draws(step: Step) -> Vec<Step> {
    match step {
        Step::Resize(_) => vec![step, Step::Draw(vec!["A".to_owned()], None)],
        _ => vec![step],
    }
}

#[test]
#[ignore = "needs node and xterm.js"]
fn xterm_js_has_every_line_once() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = crate_folder.join("../../target/xterm-headless/node_modules/@xterm/headless");
    let mut cases = cases(400, 8);
    for (_, steps) in &mut cases {
        *steps = steps.drain(..).flat_map(with_draws).collect();
    }
    let recordings: Vec<Recording> = cases
        .iter()
        .map(|(size, steps)| record(*size, Reflow::XtermJs, steps))
        .collect();
    let input: Vec<Value> = cases
        .iter()
        .zip(&recordings)
        .map(|((size, _), recording)| as_json(*size, recording))
        .collect();
    let mut node = Command::new("node")
        .arg(crate_folder.join("tests/painter/xterm.js"))
        .arg(package)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = Value::from(input).to_string();
    node.stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let mut output = String::new();
    node.stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    assert!(node.wait().unwrap().success());
    let results: Vec<Value> = serde_json::from_str(&output).unwrap();
    // When it wraps rows anew it may show one cell of several code points as another.
    let lost = ['e', '\u{301}', '👩', '\u{200d}', '💻'];
    let mut failures = Vec::new();
    for ((case, recording), result) in cases.iter().zip(&recordings).zip(results) {
        let screens = result.as_array().unwrap().iter().map(from_json);
        let result = check_except(
            recording,
            &mut Replayed(screens.collect()),
            Reflow::XtermJs,
            &lost,
        );
        failures.extend(result.err().map(|error| format!("{error}\n{case:#?}")));
    }
    report(failures);
}

/// A server of its own for one window, in which `cat` writes what is written to a pipe.
struct Tmux {
    folder: tempfile::TempDir,
    pipe: File,
    step: usize,
}

impl Tmux {
    fn new(size: Size) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = "set -g history-limit 100000\nset -g status off\n";
        std::fs::write(folder.path().join("config"), config).unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let (width, height) = (size.width.to_string(), size.height.to_string());
        let program = format!("stty raw -echo; exec cat {}", pipe.display());
        let arguments = ["new-session", "-d", "-x", &width, "-y", &height, &program];
        tmux(folder.path(), &arguments);
        let pipe = OpenOptions::new().write(true).open(pipe).unwrap();
        let mut tmux = Self {
            folder,
            pipe,
            step: 0,
        };
        // Until the program is there.
        tmux.write(b"");
        tmux
    }

    fn ask(&self, arguments: &[&str]) -> String {
        tmux(self.folder.path(), arguments)
    }

    fn format(&self, format: &str) -> String {
        let answer = self.ask(&["display-message", "-p", format]);
        answer.trim_end().to_owned()
    }

    fn lines(&self, last: &str) -> Vec<String> {
        let text = self.ask(&["capture-pane", "-p", "-J", "-S", "-", "-E", last]);
        text.lines().map(str::to_owned).collect()
    }
}

fn tmux(folder: &Path, arguments: &[&str]) -> String {
    let config: PathBuf = folder.join("config");
    let output = Command::new("tmux")
        .arg("-u")
        .arg("-S")
        .arg(folder.join("socket"))
        .arg("-f")
        .arg(config)
        .args(arguments)
        .env_remove("TMUX")
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "tmux {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

impl Emulator for Tmux {
    fn write(&mut self, bytes: &[u8]) {
        self.step += 1;
        let mark = format!("step-{}", self.step);
        self.pipe.write_all(bytes).unwrap();
        let title = format!("\x1b]2;{mark}\x1b\\");
        self.pipe.write_all(title.as_bytes()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.format("#{pane_title}") != mark {
            assert!(Instant::now() < deadline, "tmux does not get to {mark}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn resize(&mut self, size: Size) {
        let (width, height) = (size.width.to_string(), size.height.to_string());
        self.ask(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// The rows are logical lines already.
    fn screen(&mut self) -> Screen {
        let state = self.format("#{cursor_x} #{cursor_y} #{history_size}");
        let state: Vec<&str> = state.split(' ').collect();
        let rows = self.lines("-").into_iter().map(|text| Row {
            text,
            is_wrapped: false,
        });
        let history = match state[2] {
            "0" => 0,
            _ => self.lines("-1").len(),
        };
        Screen {
            rows: rows.collect(),
            history,
            cursor: (self.lines(state[1]).len() - 1, state[0].parse().unwrap()),
        }
    }
}

#[test]
#[ignore = "needs tmux"]
fn tmux_has_every_line_once() {
    let mut failures = Vec::new();
    for (size, steps) in cases(40, 8) {
        let recording = record(size, Reflow::Yes, &steps);
        // It moves a mark in the last column to the character before where it must not wrap.
        let result = check_except(&recording, &mut Tmux::new(size), Reflow::Yes, &['\u{301}']);
        failures.extend(
            result
                .err()
                .map(|error| format!("{error}\n{size}{steps:#?}")),
        );
    }
    report(failures);
}

/// The smallest says most.
fn report(mut failures: Vec<String>) {
    failures.sort_by_key(String::len);
    let count = failures.len();
    assert!(failures.is_empty(), "{count} failures: {}", failures[0]);
}
