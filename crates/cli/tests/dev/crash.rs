//! Killed, stopped and failed runs go on.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::json;

use crate::{
    common::{PATIENCE, parsed},
    repository::{
        FIX, answer, branches, dev, dev_resume, git, greeting, killed_after, repository, script,
        without_a_key,
    },
};

#[test]
fn killed_after_any_step_the_run_goes_on_and_publishes_once() {
    let steps = [
        "simulated",
        "base",
        "made answer-pick",
        "answer-pick",
        "locate",
        "read",
        "made answer-write-1",
        "answer-write-1",
        "test_command",
        "before",
        "made after-1",
        "after-1",
        "made proven",
        "proven",
        "made commit",
        "commit",
        "made pull_request",
        "pull_request",
        "made report",
        "report",
    ];
    // Most of the time each waits for the lease of the dead process.
    for some in steps.chunks(6) {
        std::thread::scope(|scope| {
            for step in some {
                scope.spawn(|| dies_after(step));
            }
        });
    }
}

fn dies_after(step: &str) {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let mut command = bench.command(&["dev", "make it say hi"]);
    command.env("CODESPAR_TEST_DIE_AFTER", step);
    let died = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(died.status.code(), None, "{step}: {}", died.stderr);
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let id = tasks["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    let (report, code) = dev_resume(&bench, &id);
    assert_eq!(code, Some(0), "{step}: {report}");
    assert_eq!(report["task_id"], id.as_str(), "{step}");
    let names = branches(&bench);
    assert_eq!(names.len(), 1, "{step}: {names:?}");
    assert_eq!(
        git(
            &bench.work(),
            &["rev-list", "--count", &format!("main..{}", names[0])]
        ),
        "1\n",
        "{step}"
    );
    let list = parsed(
        &bench
            .run(&["pr", "list", "--state", "all", "--json"])
            .stdout,
    );
    assert_eq!(list["pull_requests"].as_array().unwrap().len(), 1, "{step}");
    // An answer that is on record is not paid for again.
    let expected = match step {
        "made answer-pick" | "made answer-write-1" => 3,
        _ => 2,
    };
    assert_eq!(bench.server.request_count(), expected, "{step}");
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new(),
        "{step}"
    );
}

#[test]
fn a_run_with_a_model_is_not_finished_as_a_simulation_by_a_process_without_one() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let id = killed_after(&bench, "answer-write-1", &[]);
    let resumed = without_a_key(&bench, &["dev", "--resume", &id]);
    assert_eq!(resumed.status.code(), Some(1), "{}", resumed.stdout);
    assert!(
        resumed.stderr.contains("begun with a model"),
        "{}",
        resumed.stderr
    );
    assert_eq!(branches(&bench), Vec::<String>::new());

    // What is settled needs no model any more.
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let id = killed_after(&bench, "commit", &[]);
    let resumed = without_a_key(&bench, &["dev", "--json", "--resume", &id]);
    assert_eq!(resumed.status.code(), Some(0), "{}", resumed.stderr);
    let report = parsed(&resumed.stdout);
    assert_eq!(report["simulated"], false);
    assert_eq!(report["pull_request"]["title"], "Say hi");
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
}

#[test]
fn killed_while_it_starts_its_agent_the_run_goes_on_with_that_one() {
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool("Read", &json!({"file_path": "crlf.txt"})))
    .turn(Turn::tool(
        "Edit",
        &json!({"file_path": "crlf.txt", "old_string": "two", "new_string": "TWO"}),
    ))
    .turn(Turn::text("Shout two"));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"crlf.txt\"]"));
    let bench = repository(
        Script::new().conversation(picker).conversation(agent),
        &[
            // On disk with other line ends than in git.
            (".gitattributes", "crlf.txt text eol=crlf\n"),
            ("crlf.txt", "one\ntwo\n"),
        ],
    );
    let args = ["--engine", "agent", "--no-verify"];
    let id = killed_after(&bench, "made agent_task", &args);
    let (report, code) = dev_resume(&bench, &id);
    assert_eq!(code, Some(0), "{report}");
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let agents = tasks["tasks"].as_array().unwrap().iter();
    let agents = agents.filter(|task| task["task_type"] == "local_agent");
    assert_eq!(agents.count(), 1, "{tasks}");
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:crlf.txt")]),
        "one\nTWO\n"
    );
}

#[test]
fn a_process_that_is_terminated_leaves_run_and_agent_to_the_next() {
    let slow = std::time::Duration::from_secs(3);
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool("Read", &json!({"file_path": "greet.sh"})).latency(slow))
    // Whoever goes on may be another process, which has not seen the file.
    .turn(
        Turn::tool("Read", &json!({"file_path": "greet.sh"})).and_tool(
            "Edit",
            &json!({"file_path": "greet.sh", "old_string": "hello", "new_string": "hi"}),
        ),
    )
    .turn(Turn::text("Say hi"));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(Script::new().conversation(picker).conversation(agent));
    let mut running = bench.start(&["dev", "make it say hi", "--engine", "agent"]);
    running.wait_for_output("works on it", PATIENCE).unwrap();
    running.terminate().unwrap();
    let ended = running.wait(PATIENCE).unwrap();
    assert!(
        ended
            .stderr
            .contains("not finished. Resume with: codespar dev --resume "),
        "{}",
        ended.stderr
    );
    let (_, id) = ended.stderr.trim_end().rsplit_once(' ').unwrap();
    let (report, code) = dev_resume(&bench, id);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["pull_request"]["title"], "Say hi");
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
}

#[test]
fn a_run_that_failed_goes_on_where_it_failed() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    // The branch cannot be made while something else has its name.
    let heads = bench.work().join(".git/refs/heads/codespar");
    std::fs::write(&heads, "nonsense\n").unwrap();
    let (failed, code) = dev(&bench, &["make", "it", "say", "hi"]);
    assert_eq!(code, Some(1), "{failed}");
    assert_eq!(failed["status"], "failed");
    let asked = bench.server.request_count();
    std::fs::remove_file(&heads).unwrap();
    let id = failed["task_id"].as_str().unwrap();
    let (report, code) = dev_resume(&bench, &id[..6]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        bench.server.request_count(),
        asked,
        "nothing is paid for twice"
    );
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(branches(&bench), [format!("codespar/task-{}", &id[2..])]);
}
