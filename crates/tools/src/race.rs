//! Paths that change between the decision and the act.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use codespar_policy::Access;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Tool, ToolOutput, edit::Edit, glob::Glob, grep::Grep, ls::Ls, read::Read, testing::Bench,
    write::Write,
};

/// Puts a link to `outside` in the place of the directory.
fn exchange(dir: &Path, outside: &Path) {
    fs::rename(dir, dir.with_extension("away")).unwrap();
    symlink(outside, dir).unwrap();
}

/// Inspects, lets the path change, and runs.
async fn call_around(
    bench: &Bench,
    tool: &dyn Tool,
    input: Value,
    between: impl FnOnce(),
) -> ToolOutput {
    let intent = bench.inspect(tool, &input).unwrap();
    between();
    let cancel = CancellationToken::new();
    bench.run_inspected(tool, input, intent, cancel).await
}

#[tokio::test]
async fn a_directory_that_became_a_link_after_the_decision_is_not_entered() {
    let outside = Bench::new();
    outside.write("secret.txt", "token");
    let cases: [(&dyn Tool, Value); 6] = [
        (&Write, json!({"file_path": "d/new.txt", "content": "x"})),
        (
            &Write,
            json!({"file_path": "d/deep/new.txt", "content": "x"}),
        ),
        (
            &Edit,
            json!({"file_path": "d/new.txt", "old_string": "", "new_string": "x"}),
        ),
        (&Read, json!({"file_path": "d/secret.txt"})),
        (&Grep, json!({"pattern": "token", "path": "d/secret.txt"})),
        (&Ls, json!({"path": "d"})),
    ];
    for (tool, input) in cases {
        let bench = Bench::new();
        bench.write("d/a.txt", "");
        let dir = bench.path("d");
        let output = call_around(&bench, tool, input, || exchange(&dir, outside.root())).await;
        assert!(output.is_error, "{}: {output:?}", tool.name());
        assert_eq!(outside.names("."), ["secret.txt"], "{}", tool.name());
    }
    let bench = Bench::new();
    bench.write("d/a.txt", "");
    let dir = bench.path("d");
    let input = json!({"pattern": "*.txt", "path": "d"});
    let found = call_around(&bench, &Glob, input, || exchange(&dir, outside.root())).await;
    assert!(!found.content.text().contains("secret"), "{found:?}");
}

#[tokio::test]
async fn a_file_that_became_a_link_after_the_decision_is_not_followed() {
    let outside = Bench::new();
    let target = outside.write("target.txt", "outside");
    for tool in [&Read as &dyn Tool, &Write, &Edit] {
        let bench = Bench::new();
        let file = bench.write("a.txt", "inside");
        bench.run(&Read, json!({"file_path": "a.txt"})).await;
        let input = match tool.name() {
            "Read" => json!({"file_path": "a.txt"}),
            "Write" => json!({"file_path": "a.txt", "content": "x"}),
            _ => json!({"file_path": "a.txt", "old_string": "outside", "new_string": "x"}),
        };
        let output = call_around(&bench, tool, input, || {
            fs::remove_file(&file).unwrap();
            symlink(&target, &file).unwrap();
        })
        .await;
        assert!(output.is_error, "{}: {output:?}", tool.name());
        assert_eq!(outside.text("target.txt"), "outside", "{}", tool.name());
    }
}

#[tokio::test]
async fn a_pipe_or_device_in_the_place_of_a_file_is_not_waited_for() {
    let bench = Bench::new();
    let file = bench.write("a.txt", "x");
    let input = json!({"file_path": "a.txt"});
    let output = call_around(&bench, &Read, input, || {
        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, 0o600.into()).unwrap();
    })
    .await;
    assert_eq!(output, ToolOutput::error("a.txt is not a regular file"));
    symlink("/dev/zero", bench.path("zero")).unwrap();
    for name in ["zero", "/dev/zero"] {
        let error = bench.fail(&Read, json!({"file_path": name})).await;
        assert!(error.ends_with("is not a regular file"), "{error}");
    }
    let error = bench
        .fail(&Read, json!({"file_path": "/proc/self/environ"}))
        .await;
    assert!(
        error.ends_with("it is a file of /proc, which is not read"),
        "{error}"
    );
}

/// Exchanges `dir` for a link to `outside` and back until told to stop.
#[cfg(target_os = "linux")]
fn exchange_without_end(dir: &Path, outside: &Path, stop: &AtomicBool) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let link = dir.with_extension("link");
    symlink(outside, &link).unwrap();
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn of_hundreds_of_raced_writes_and_edits_none_lands_outside() {
    let bench = Bench::new();
    let outside = Bench::new();
    bench.write("d/a.txt", "inside");
    outside.write("a.txt", "outside");
    let stop = Arc::new(AtomicBool::new(false));
    let racer = {
        let (dir, outside, stop) = (bench.path("d"), outside.path(""), stop.clone());
        thread::spawn(move || exchange_without_end(&dir, &outside, &stop))
    };
    let mut decided = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    for turn in 0_u64.. {
        if decided == 600 || Instant::now() > deadline {
            break;
        }
        let name = format!("d/new-{turn}.txt");
        let (tool, input): (&dyn Tool, Value) = match turn % 3 {
            0 => (&Write, json!({"file_path": name, "content": "x"})),
            1 => (
                &Edit,
                json!({"file_path": name, "old_string": "", "new_string": "x"}),
            ),
            _ => (
                &Edit,
                json!({"file_path": "d/a.txt", "old_string": "outside", "new_string": "raced"}),
            ),
        };
        let intent = bench.inspect(tool, &input).unwrap();
        // What the rules would permit: the workspace, by the real path.
        let [Access::Write(path)] = intent.access.as_slice() else {
            panic!("{intent:?}");
        };
        if path.starts_with(bench.root()) {
            decided += 1;
            let cancel = CancellationToken::new();
            bench.run_inspected(tool, input, intent, cancel).await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    racer.join().unwrap();
    assert_eq!(decided, 600);
    assert_eq!(outside.names("."), ["a.txt"]);
    assert_eq!(outside.text("a.txt"), "outside");
}
