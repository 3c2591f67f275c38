//! How a run ends when something outside ends it: signals, a closed output, lost state, missing
//! resources.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use codespar_testkit::{Conversation, Fault, Matcher, Script, Turn};
use serde_json::json;

use crate::common::{Bench, PATIENCE, parsed};

const PROGRAM: &str = env!("CARGO_BIN_EXE_codespar");

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn exit_code(child: &mut Child) -> Option<i32> {
    let mut status: Option<ExitStatus> = None;
    until("the end of the process", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// A session at a terminal.
struct Terminal {
    child: Child,
    input: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(bench: &Bench) -> Self {
        let mut child = bench
            .room
            .command("script")
            .args(["-qec", PROGRAM, "/dev/null"])
            .env("ANTHROPIC_BASE_URL", bench.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let seen = shown.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]);
                seen.lock().unwrap().push_str(&text);
            }
        });
        let input = child.stdin.take().unwrap();
        Self {
            child,
            input,
            shown,
        }
    }

    fn shows(&self, cue: &str) {
        until(cue, || self.shown.lock().unwrap().contains(cue));
    }

    fn types(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }
}

/// The process of ours, of all that were started.
fn pid_of_session(bench: &Bench) -> u32 {
    let program = fs::canonicalize(PROGRAM).unwrap();
    let is_ours =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    let alive = bench.room.alive().unwrap();
    alive.into_iter().find(is_ours).unwrap()
}

fn asks_to_write(bench: &Bench) -> Turn {
    let file = bench.work().join("new.txt");
    Turn::tool("Write", &json!({"file_path": file, "content": "x"}))
}

#[test]
fn a_signal_during_a_question_ends_the_session_and_no_model_call_follows() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let room = Bench::new(Script::new());
        let write = asks_to_write(&room);
        let bench = Bench {
            server: codespar_testkit::ScriptedModel::start_blocking(Script::of([
                write,
                Turn::text("done"),
                Turn::text("done again"),
            ]))
            .unwrap(),
            ..room
        };
        let mut terminal = Terminal::start(&bench);
        terminal.shows("›");
        terminal.types("write it\n");
        terminal.shows("wants:");
        terminal.shows("once");
        signal(pid_of_session(&bench), name);
        assert_eq!(
            exit_code(&mut terminal.child),
            Some(code),
            "{}",
            terminal.shown()
        );
        terminal.shows("Resume with: codespar --resume ");
        assert_eq!(bench.server.request_count(), 1, "SIG{name}");
        assert!(!bench.work().join("new.txt").exists());
        assert_eq!(
            bench.room.wait_until_empty(PATIENCE).unwrap(),
            Vec::<u32>::new()
        );
    }
}

#[test]
fn a_hangup_at_the_prompt_ends_the_children_and_keeps_the_transcript() {
    let command = json!({"command": "sleep 300", "run_in_background": true});
    let bench = Bench::new(Script::of([
        Turn::tool("Bash", &command),
        Turn::text("it is under way"),
    ]));
    let mut terminal = Terminal::start(&bench);
    terminal.shows("›");
    terminal.types("wait\n");
    let answer = || {
        if terminal_asks(&terminal) {
            return true;
        }
        terminal.shown().contains("it is under way")
    };
    until("the answer or a question", answer);
    if terminal_asks(&terminal) {
        terminal.types("y\n");
        terminal.shows("it is under way");
    }
    signal(pid_of_session(&bench), "HUP");
    assert_eq!(exit_code(&mut terminal.child), Some(129));
    // A process that the signal itself ends has the same code, and prints nothing.
    terminal.shows("Resume with: codespar --resume ");
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
    let sessions = bench.run(&["session", "list", "--json"]).stdout;
    assert!(sessions.contains("wait"), "{sessions}");
}

#[test]
fn a_question_at_the_terminal_can_be_answered_from_elsewhere() {
    let room = Bench::new(Script::new());
    let write = asks_to_write(&room);
    let script = Script::of([write, Turn::text("it is written")]);
    let server = codespar_testkit::ScriptedModel::start_blocking(script).unwrap();
    let bench = Bench { server, ..room };
    let mut terminal = Terminal::start(&bench);
    terminal.shows("›");
    terminal.types("write it\n");
    terminal.shows("wants:");
    terminal.shows("once");
    let asked = crate::common::question(&bench);
    assert_eq!(asked["task_id"], serde_json::Value::Null, "{asked:#}");
    let answered = bench.run(&["task", "answer", asked["id"].as_str().unwrap(), "yes"]);
    assert!(answered.status.success(), "{}", answered.stderr);
    terminal.shows("settled without an answer here");
    terminal.shows("it is written");
    assert!(bench.work().join("new.txt").exists());
    // The prompt is back, and what is typed is no answer to anything.
    terminal.types("/quit\n");
    assert_eq!(exit_code(&mut terminal.child), Some(0));
}

fn terminal_asks(terminal: &Terminal) -> bool {
    terminal.shown().contains("wants:")
}

#[test]
fn ctrl_c_stops_a_summary_and_the_session_goes_on() {
    let hangs = Conversation::new(
        "summary",
        Matcher::system_contains("memory of a coding agent"),
    )
    .turn(Turn::text("a summary").fault(Fault::HangBeforeHeaders));
    let script = Script::of([
        Turn::text("first answer"),
        Turn::text("second answer"),
        Turn::text("third answer"),
    ]);
    let bench = Bench::new(script.conversation(hangs));
    let mut terminal = Terminal::start(&bench);
    terminal.shows("›");
    terminal.types("one\n");
    terminal.shows("first answer");
    terminal.types("two\n");
    terminal.shows("second answer");
    terminal.types("/compact\n");
    bench.server.wait_for_requests_blocking(3).unwrap();
    terminal.types("\u{3}");
    terminal.shows("interrupted; the conversation is as it was");
    terminal.types("three\n");
    terminal.shows("third answer");
    terminal.types("/quit\n");
    // The shell of `script` had the signal too, and ends by it.
    exit_code(&mut terminal.child);
}

/// A call that ends only when the run is stopped, and calls after it that must not be made.
fn blocked() -> Script {
    Script::of([
        Turn::tool("Bash", &json!({"command": "sleep 100"})),
        Turn::text("one more"),
        Turn::text("and one more"),
    ])
}

#[test]
fn a_closed_output_stops_a_headless_run_in_every_format() {
    for format in ["text", "json", "stream-json"] {
        let bench = Bench::new(blocked());
        let args = [
            "-p",
            "go",
            "--allowedTools",
            "Bash",
            "--output-format",
            format,
        ];
        let mut child = bench
            .command(&args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        if format == "stream-json" {
            output.read_line(&mut String::new()).unwrap();
        }
        bench.server.wait_for_requests_blocking(1).unwrap();
        drop(output);
        assert_eq!(exit_code(&mut child), Some(141), "{format}");
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(
            said.contains("Resume with: codespar -p --resume "),
            "{said}"
        );
        assert_eq!(bench.server.request_count(), 1, "{format}");
    }
}

fn state_file(bench: &Bench) -> std::path::PathBuf {
    bench.room.codespar_home().join("codespar.db")
}

#[test]
fn a_run_whose_state_is_removed_fails_and_says_so() {
    let database_alone = |bench: &Bench| fs::remove_file(state_file(bench)).unwrap();
    let all_of_it = |bench: &Bench| fs::remove_dir_all(bench.room.codespar_home()).unwrap();
    let attacks: [&dyn Fn(&Bench); 2] = [&database_alone, &all_of_it];
    for remove in attacks {
        let wait = "touch running; while [ ! -e go ]; do sleep 0.05; done";
        let bench = Bench::new(Script::of([
            Turn::tool("Bash", &json!({"command": wait})),
            Turn::text("all is well"),
        ]));
        let args = [
            "-p",
            "go",
            "--allowedTools",
            "Bash",
            "--output-format",
            "json",
        ];
        let running = bench.start(&args);
        // Removing a directory takes more than one step: a command that starts between them fails
        // while the database is still there.
        until("the command", || bench.work().join("running").exists());
        remove(&bench);
        bench.file("go", "");
        let finished = running.wait(PATIENCE).unwrap();
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        let result = parsed(&finished.stdout);
        assert_eq!(result["is_error"], true, "{result}");
        let said = result.to_string();
        assert!(said.contains("codespar.db was removed"), "{said}");
        assert_eq!(bench.server.request_count(), 1);
    }
}

#[test]
fn an_empty_database_is_not_replaced_by_a_new_one() {
    let bench = Bench::new(Script::of([Turn::text("hello")]));
    fs::write(state_file(&bench), "").unwrap();
    let finished = bench.run(&["-p", "hi"]);
    assert_eq!(finished.status.code(), Some(1));
    assert!(
        finished.stderr.contains("codespar.db is an empty file")
            && finished.stderr.contains("restore"),
        "{}",
        finished.stderr
    );
    assert_eq!(fs::read(state_file(&bench)).unwrap(), b"");
    assert_eq!(bench.server.request_count(), 0);
}

/// Runs the program under limits, as a user whom they bind.
fn limited(bench: &Bench, limit: &str) -> codespar_testkit::process::Finished {
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    let work = bench.work();
    open(work.parent().unwrap());
    open(&work);
    open(&bench.room.codespar_home());
    open(&bench.room.home());
    let program = work.parent().unwrap().join("codespar");
    fs::copy(PROGRAM, &program).unwrap();
    let is_root = fs::metadata("/proc/self")
        .is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0);
    let mut command = bench.room.command("setpriv");
    if is_root {
        // No other process has this user, so that the limit counts ours alone.
        command.args(["--reuid", "54321", "--clear-groups"]);
    }
    command
        .args(["prlimit", limit])
        .arg(program)
        .args(["-p", "hi"])
        .stdin(Stdio::null());
    codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap()
}

#[test]
fn too_few_threads_end_the_program_with_the_reason() {
    for count in [1, 2, 3, 4, 6, 8] {
        let bench = Bench::new(Script::new());
        let finished = limited(&bench, &format!("--nproc={count}"));
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        assert!(
            finished.stderr.contains("cannot start a thread")
                && finished.stderr.contains("ulimit -u")
                && !finished.stderr.contains("panicked"),
            "{}",
            finished.stderr
        );
    }
}

/// How much of the address space the program takes once it is loaded: the end of its last segment,
/// by the headers of an ELF file of 64 bits.
fn loaded_size() -> u64 {
    let program = fs::read(PROGRAM).unwrap();
    let number = |at: usize, length: usize| {
        let bytes = program[at..at + length].iter().rev();
        bytes.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (first, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let ends = (0..count).filter_map(|place| {
        let at = usize::try_from(first + place * size).unwrap();
        let is_loaded = number(at, 4) == 1;
        is_loaded.then(|| number(at + 0x10, 8) + number(at + 0x28, 8))
    });
    ends.max().unwrap()
}

#[test]
fn too_little_memory_ends_the_program_with_the_reason() {
    let bench = Bench::new(Script::new());
    // Enough for the program to be loaded, and too little to run.
    let limit = loaded_size() + 22 * 1024 * 1024;
    let finished = limited(&bench, &format!("--as={limit}"));
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("not enough memory") && finished.stderr.contains("ulimit -v"),
        "{}",
        finished.stderr
    );
}

/// A group of processes that may have so many threads in all; `None` where this user can make
/// none.
struct PidsGroup(PathBuf);

impl PidsGroup {
    fn new(max: u32) -> Option<Self> {
        // Of version 1, or of version 2 where the controller is on for children.
        let roots = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
        // The program removes empty groups that have names of its own.
        let name = format!("test-of-codespar-{}-{max}", std::process::id());
        roots.iter().find_map(|root| {
            let dir = Path::new(root).join(&name);
            fs::create_dir(&dir).ok()?;
            let group = Self(dir);
            let limit = group.0.join("pids.max");
            // A directory that is no group has no such file.
            (limit.exists() && fs::write(limit, max.to_string()).is_ok()).then_some(group)
        })
    }

    /// The program in this group from its start.
    fn command(&self, bench: &Bench, args: &[&str]) -> Command {
        let mut command = bench.room.command("sh");
        command
            .args(["-c", "echo $$ > \"$1\"; shift; exec \"$@\"", "sh"])
            .arg(self.0.join("cgroup.procs"))
            .arg(PROGRAM)
            .args(args)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for PidsGroup {
    fn drop(&mut self) {
        let began = Instant::now();
        // The kernel refuses while the last process is on its way out.
        while self.0.exists() && fs::remove_dir(&self.0).is_err() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
#[ignore = "needs a control group with `pids.max`; cargo xtask test runs it where one can be made"]
fn a_group_that_allows_too_few_processes_ends_the_program_with_the_reason() {
    for max in [2, 4, 8] {
        let group = PidsGroup::new(max).expect("a control group with `pids.max`");
        let bench = Bench::new(Script::new());
        let mut command = group.command(&bench, &["-p", "hi"]);
        let running = codespar_testkit::process::spawn(&mut command).unwrap();
        let finished = running.wait(PATIENCE).unwrap();
        assert_eq!(finished.status.code(), Some(1), "{max}: {finished:?}");
        let said = &finished.stderr;
        assert!(said.contains("cannot start a thread"), "{max}: {said}");
        assert!(said.contains("`pids.max`"), "{max}: {said}");
        assert!(!said.contains("panicked"), "{max}: {said}");
    }
}
