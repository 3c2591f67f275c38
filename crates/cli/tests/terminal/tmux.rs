//! A session within tmux, which reflows rows on a resize and tells of it late.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use codespar_testkit::{Script, Turn};

use crate::{
    common::{Bench, PATIENCE},
    harness::PROGRAM,
    resize,
};

/// A server of its own with one window.
struct Tmux<'a> {
    bench: &'a Bench,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    fn start(bench: &'a Bench) -> Self {
        let home = bench.room.home();
        let config = home.join("tmux.conf");
        fs::write(&config, "set -g history-limit 100000\nset -g status off\n").unwrap();
        let tmux = Self {
            bench,
            socket: home.join("tmux.socket"),
        };
        let config = config.display().to_string();
        let program = format!("exec {PROGRAM}");
        let args = ["new-session", "-d", "-x", "90", "-y", "30", &program];
        tmux.ask(&[&["-f", &config], &args[..]].concat());
        tmux.shows("/help shows the commands");
        tmux.shows("Ctrl-D leaves");
        tmux
    }

    fn ask(&self, args: &[&str]) -> String {
        let mut command = self.bench.room.command("tmux");
        let output = command
            .current_dir(self.bench.work())
            .arg("-u")
            .arg("-S")
            .arg(&self.socket)
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", self.bench.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tmux {args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// All lines, without the breaks that tmux made.
    fn lines(&self) -> Vec<String> {
        let text = self.ask(&["capture-pane", "-p", "-J", "-S", "-", "-E", "-"]);
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    fn shows(&self, text: &str) {
        let began = Instant::now();
        while !self.lines().iter().any(|line| line.contains(text)) {
            let lines = self.lines().join("\n");
            assert!(began.elapsed() < PATIENCE, "no {text:?}:\n{lines}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn submits(&self, text: &str) {
        self.ask(&["send-keys", "-l", text]);
        self.shows(&format!("› {text}"));
        self.ask(&["send-keys", "Enter"]);
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

#[test]
#[ignore = "needs tmux"]
fn a_session_in_tmux_has_no_debris_after_resizes() {
    let bench = resize::bench();
    let tmux = Tmux::start(&bench);
    tmux.submits("count");
    tmux.shows("row 00010");
    for columns in resize::WIDTHS {
        tmux.ask(&["resize-window", "-x", &columns.to_string(), "-y", "30"]);
        std::thread::sleep(Duration::from_millis(100));
    }
    tmux.shows("1 turn");
    resize::has_no_debris(&resize::at_rest(|| tmux.lines()));
}

#[test]
#[ignore = "needs tmux"]
fn a_session_in_tmux_writes_at_most_twice_the_bytes_of_an_answer() {
    let part = "## A part\n\nThe session expires because the clock is read in seconds while the \
                limit is in *milliseconds*: `expires_at` is compared with a number that is a \
                thousand times too small. The fix belongs in `auth/session.rs`, where both are \
                known.\n\n- read the clock once\n- compare **durations**, not numbers\n- keep the \
                limit in one place\n\n| file | lines | what |\n|---|---|---|\n| auth/session.rs | \
                12 | compares |\n| auth/limits.rs | 3 | names the limit |\n\n```rust\npub fn \
                is_expired(&self, now: Instant) -> bool {\n    // Durations carry their unit.\n    \
                now.duration_since(self.started) >= SESSION_LIMIT\n}\n```\n\n";
    let answer = part.repeat(24);
    let turn = Turn::text(answer.clone())
        .chunk(20)
        .delay(Duration::from_millis(10));
    let bench = Bench::new(Script::new().turn(turn));
    let tmux = Tmux::start(&bench);
    let written = bench.room.home().join("written");
    tmux.ask(&["pipe-pane", &format!("cat > {}", written.display())]);
    tmux.submits("go");
    tmux.shows("1 turn");
    let bytes = fs::metadata(written).unwrap().len();
    let ratio = bytes as f64 / answer.len() as f64;
    println!("{ratio:.2} bytes for each of the answer");
    assert!(ratio <= 2.0, "{bytes} bytes for {}", answer.len());
}
