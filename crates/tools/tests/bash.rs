//! The Bash tool with real processes, in every kind of sandbox there is here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::{fs, sync::Arc};

use codespar_policy::Access;
use codespar_tools::{
    Bash, Intent, Tool, ToolError, ToolOutput, child_environment,
    sandbox::{Sandbox, SandboxChoice},
};
use parking_lot::Mutex;
use rstest::rstest;
use serde_json::{json, value::to_raw_value};
use support::{Bench, alive, marker, wait_until};
use tokio_util::sync::CancellationToken;

/// Every way a command can be run.
fn bench(kind: &str) -> Bench {
    match kind {
        "namespaces" => Bench::sandboxed(SandboxChoice::Namespaces),
        "bubblewrap" => Bench::sandboxed(SandboxChoice::Bubblewrap),
        "landlock" => Bench::sandboxed(SandboxChoice::Landlock),
        "guard" => Bench::new(SandboxChoice::Off),
        _ => Bench::unsandboxed(),
    }
}

#[rstest]
#[tokio::test]
async fn output_exit_codes_and_signals_are_told(
    #[values("namespaces", "bubblewrap", "landlock", "guard", "none")] kind: &str,
) {
    let bench = bench(kind);
    assert_eq!(
        bench.bash("echo out; echo err >&2; echo out again").await,
        ToolOutput::text("out\nerr\nout again")
    );
    assert_eq!(bench.bash("true").await, ToolOutput::text("(no output)"));
    assert_eq!(
        bench.bash("echo no; exit 3").await,
        ToolOutput::error("no\nexit code 3")
    );
    assert_eq!(
        bench.bash("exit 143").await,
        ToolOutput::error("(no output)\nexit code 143 (terminated, SIGTERM)")
    );
    assert_eq!(
        bench.bash("kill -9 $$").await,
        // Bubblewrap tells of a signal like a shell does.
        ToolOutput::error(match kind {
            "bubblewrap" => "(no output)\nexit code 137 (killed, SIGKILL)",
            _ => "(no output)\nkilled by signal 9",
        })
    );
    assert_eq!(
        bench
            .bash("echo visible > /dev/stderr; read line || echo no input")
            .await,
        ToolOutput::text("visible\nno input")
    );
}

#[rstest]
#[tokio::test]
async fn the_working_directory_carries_over_but_not_out_of_the_workspace(
    #[values("namespaces", "bubblewrap", "landlock", "guard", "none")] kind: &str,
) {
    let bench = bench(kind);
    let root = bench.root.display();
    bench.ok("mkdir -p 'a b/c' && cd 'a b' && x=1").await;
    assert_eq!(
        bench.ok("pwd; echo ${x-unset}").await,
        format!("{root}/a b\nunset")
    );
    assert_eq!(
        bench.fails("cd c; exit 1").await,
        "(no output)\nexit code 1"
    );
    assert_eq!(bench.ok("pwd").await, format!("{root}/a b/c"));
    assert_eq!(
        bench.ok("cd /usr").await,
        format!(
            "(no output)\n/usr is outside of the workspace; the working directory is {root}/a b/c \
             again"
        )
    );
    fs::remove_dir(bench.root.join("a b/c")).unwrap();
    assert_eq!(
        bench.ok("pwd").await,
        format!("{root}\n{root}/a b/c is gone; the command ran in {root}")
    );
    assert_eq!(
        bench
            .ok("pwd; ls -A $TMPDIR | wc -l")
            .await
            .lines()
            .next()
            .unwrap(),
        root.to_string()
    );
    // The one file in which the shell notes where it ended, for all of them.
    assert_eq!(fs::read_dir(&bench.temp).unwrap().count(), 1);
    bench.ok("rm -rf $TMPDIR/.cwd-*; cd 'a b'").await;
    assert_eq!(bench.ok("cd 'a b'; pwd").await, format!("{root}/a b"));
    assert_eq!(bench.ok("pwd").await, format!("{root}/a b"));
}

/// Two in the group, one in a session of its own, one that does not listen to TERM.
fn family(marker: &str) -> String {
    format!(
        "sleep {marker} & setsid sleep {marker} & (trap '' TERM; sleep {marker}; sleep {marker}) & \
         sleep {marker}"
    )
}

#[rstest]
#[tokio::test]
async fn a_command_that_takes_too_long_ends_with_all_it_started(
    #[values("namespaces", "bubblewrap", "landlock", "guard")] kind: &str,
) {
    let bench = bench(kind);
    let marker = marker();
    let command = format!("echo started; {}", family(&marker));
    let output = bench
        .call(&Bash::new(), json!({"command": command, "timeout": 400}))
        .await;
    assert_eq!(
        output,
        ToolOutput::error(
            "started\nstopped: still running after 400 ms. Run it again with a longer `timeout` \
             (up to 600000)."
        )
    );
    assert_eq!(alive(&marker), 0);
}

#[tokio::test]
async fn without_a_guard_the_group_still_ends() {
    let bench = Bench::unsandboxed();
    let marker = marker();
    let command = format!("sleep {marker} & sleep {marker}");
    let output = bench
        .call(&Bash::new(), json!({"command": command, "timeout": 200}))
        .await;
    assert!(output.is_error);
    assert_eq!(alive(&marker), 0);
}

#[rstest]
#[tokio::test]
async fn a_cancelled_command_ends_with_all_it_started(
    #[values("namespaces", "bubblewrap", "landlock", "guard")] kind: &str,
) {
    let bench = bench(kind);
    let marker = marker();
    let cancel = CancellationToken::new();
    let (input, bash) = (json!({"command": family(&marker)}), Bash::new());
    let call = bench.call_until(&bash, input, cancel.clone());
    let watch = tokio::task::spawn_blocking({
        let marker = marker.clone();
        move || {
            wait_until("four sleepers", || alive(&marker) == 4);
            cancel.cancel();
        }
    });
    let (output, watched) = tokio::join!(call, watch);
    watched.unwrap();
    assert_eq!(output, ToolOutput::error("(no output)\nstopped: cancelled"));
    assert_eq!(alive(&marker), 0);
}

#[rstest]
#[tokio::test]
async fn a_dropped_call_leaves_nothing_running(
    #[values("namespaces", "bubblewrap", "landlock", "guard", "none")] kind: &str,
) {
    let bench = bench(kind);
    let marker = marker();
    let command = format!("sleep {marker} & sleep {marker}");
    let bash = Bash::new();
    tokio::select! {
        _ = bench.call(&bash, json!({"command": command})) => panic!("it ended"),
        () = async {
            while alive(&marker) < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        } => {}
    }
    wait_until("all gone", || alive(&marker) == 0);
}

#[rstest]
#[tokio::test]
async fn what_is_left_in_the_background_is_stopped_and_named(
    #[values("namespaces", "bubblewrap", "landlock", "guard")] kind: &str,
) {
    let bench = bench(kind);
    let marker = marker();
    let command = format!("sleep {marker} & setsid sleep {marker} >/dev/null 2>&1 & echo done");
    assert_eq!(
        bench.ok(&command).await,
        "done\nstill running in the background at the end, and stopped: sleep"
    );
    assert_eq!(alive(&marker), 0);
}

#[tokio::test]
async fn without_a_guard_a_background_process_does_not_hang_the_call() {
    let bench = Bench::unsandboxed();
    let marker = marker();
    assert_eq!(
        bench.ok(&format!("sleep {marker} & echo done")).await,
        "done\nstill running in the background at the end, and stopped: a process that holds on \
         to the output"
    );
    wait_until("all gone", || alive(&marker) == 0);
}

#[rstest]
#[tokio::test]
async fn the_last_words_of_a_process_substitution_arrive(
    #[values("namespaces", "bubblewrap", "landlock", "guard", "none")] kind: &str,
) {
    let bench = bench(kind);
    assert_eq!(bench.ok("echo late > >(sleep 0.05; cat)").await, "late");
}

#[rstest]
#[tokio::test]
async fn endless_output_is_kept_at_both_ends_and_capped_on_disk(
    #[values("namespaces", "bubblewrap", "none")] kind: &str,
) {
    let bench = bench(kind);
    let command = "echo first; yes | head -c 100000000; echo last";
    let text = bench.ok(command).await;
    let files: Vec<_> = fs::read_dir(&bench.outputs).unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    let size = files[0].metadata().unwrap().len();
    assert!((64 << 20..(64 << 20) + 1000).contains(&size), "{size}");
    assert!(text.starts_with("first\ny\ny\n"), "{}", &text[..40]);
    assert!(text.ends_with("y\nlast"));
    assert!(text.chars().count() <= 30_000);
    let place = format!("; {} has more, but not 32891", files[0].path().display());
    assert!(text.contains(&place), "{text}");
    let kept = fs::read_to_string(files[0].path()).unwrap();
    assert!(kept.starts_with("first\ny\n") && kept.ends_with("y\nlast\n"));
    assert!(kept.contains("bytes left out here"));
}

#[tokio::test]
async fn colours_and_progress_bars_are_flattened() {
    let bench = Bench::unsandboxed();
    assert_eq!(
        bench
            .ok(r"printf '\033[31mred\033[0m\n 1%%\r 2%%\r100%%\n\377\n'")
            .await,
        "red\n100%\n\u{fffd}"
    );
}

#[rstest]
#[tokio::test]
async fn the_environment_is_what_was_handed_in(
    #[values("namespaces", "bubblewrap", "landlock", "guard", "none")] kind: &str,
) {
    let bench = bench(kind);
    let seen = bench.ok("env | cut -d= -f1 | sort | tr '\\n' ' '").await;
    assert_eq!(
        seen,
        "GIT_PAGER GIT_TERMINAL_PROMPT PAGER PATH PWD SHLVL TERM TMPDIR _ "
    );
    assert_eq!(
        bench.ok("echo $TMPDIR").await,
        bench.temp.display().to_string()
    );
}

#[test]
fn our_own_environment_loses_its_secrets() {
    let vars = [
        ("PATH", "/bin"),
        ("MY_SERVICE_TOKEN", "x"),
        ("ANTHROPIC_API_KEY", "y"),
    ];
    let vars = vars.map(|(name, value)| (name.into(), value.into()));
    assert_eq!(
        child_environment(vars.into_iter(), [], &[]),
        vec![("PATH".into(), "/bin".into())]
    );
}

#[rstest]
#[case(json!({"command": " \n"}), "`command` is empty")]
#[case(json!({"command": "echo \u{0}"}), "`command` contains a NUL byte")]
#[case(
    json!({"command": "ls", "timeout": 600_001}),
    "`timeout` is 600001 ms; it must be between 1 and 600000"
)]
#[case(
    json!({"command": "ls", "timeout": 0}),
    "`timeout` is 0 ms; it must be between 1 and 600000"
)]
#[tokio::test]
async fn senseless_input_is_refused(#[case] input: serde_json::Value, #[case] message: &str) {
    let bench = Bench::unsandboxed();
    assert_eq!(
        Bash::new().inspect(&to_raw_value(&input).unwrap(), &bench.context),
        Err(ToolError(message.to_owned()))
    );
    assert_eq!(
        bench.call(&Bash::new(), input).await,
        ToolOutput::error(message)
    );
}

#[test]
fn a_call_wants_to_run_its_command() {
    let bench = Bench::unsandboxed();
    let input = to_raw_value(&json!({"command": "ls -l", "description": "List"})).unwrap();
    assert_eq!(
        Bash::new().inspect(&input, &bench.context),
        Ok(Intent {
            summary: "ls -l".to_owned(),
            access: vec![Access::Command("ls -l".to_owned())],
        })
    );
}

#[test]
fn what_the_model_is_told_is_short() {
    let bash = Bash::new();
    let length = bash.description().len() + bash.input_schema().get().len();
    assert!(length <= 900, "{length} bytes");
}

#[tokio::test]
async fn a_guard_that_is_not_there_is_named() {
    let bench = Bench::with(Sandbox::probe(
        SandboxChoice::Off,
        "/nonexistent/guard".into(),
    ));
    assert_eq!(
        bench.fails("true").await,
        "the guard process /nonexistent/guard could not be started: No such file or directory (os \
         error 2)"
    );
}

/// Everything that a watch is told of a command, which ends once its last line was seen.
async fn watched(bench: &Bench, command: &str, last: &'static str) -> Vec<Vec<String>> {
    let seen = bench.root.join("seen");
    let wait = format!(
        "for i in $(seq 600); do test -e {} && exit 0; sleep 0.1; done; exit 1",
        seen.display()
    );
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    bench
        .context
        .watch_output(Arc::new(move |_, lines: Vec<String>| {
            if lines.last().is_some_and(|line| line == last) {
                fs::write(&seen, "").unwrap();
            }
            heard.lock().push(lines);
        }));
    bench.ok(&format!("{command}; {wait}")).await;
    told.lock().clone()
}

#[rstest]
#[tokio::test]
async fn output_is_seen_while_a_command_runs_without_escape_sequences_and_secrets(
    #[values("namespaces", "guard", "none")] kind: &str,
) {
    let bench = bench(kind);
    let command = "printf 'a\\033[2Jb\\033]0;owned\\007c\\n'; printf 'ghp_0123456789abcd'; \
                   sleep 0.3; echo efghijABCDEFGHIJ012345";
    let told = watched(&bench, command, "[redacted]").await;
    assert_eq!(told.last().unwrap(), &["abc", "[redacted]"]);
    assert!(!format!("{told:?}").contains("ghp_"), "{told:?}");
}

#[tokio::test]
async fn an_endless_line_is_cut_and_reports_stay_small() {
    let bench = bench("none");
    let command = "head -c 3000000 /dev/zero | tr '\\0' x; sleep 0.3; echo; seq 100";
    let told = watched(&bench, command, "100").await;
    for lines in &told {
        assert!(lines.len() <= 5);
        assert!(lines.iter().all(|line| line.chars().count() <= 400));
    }
    assert_eq!(told.last().unwrap()[0], "96");
}
