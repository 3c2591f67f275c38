//! What the dev agent wants to know waits for an answer from anywhere.

use codespar_testkit::{Fault, Turn};

use crate::{
    common::{Bench, PATIENCE, ended, parsed, question, wait_for},
    repository::{FIX, answer, greeting, pull, script},
};

fn answered(bench: &Bench, id: &str, text: &str) {
    let finished = bench.run(&["task", "answer", id, text]);
    assert!(finished.status.success(), "{}", finished.stderr);
}

#[test]
fn a_run_that_a_worker_goes_on_with_asks_what_is_meant_and_waits() {
    let bench = greeting(script(
        &["greet.sh"],
        [
            // The first process never gets to see it.
            Turn::text("Which greeting do you mean?\nThere are two.")
                .fault(Fault::HangBeforeHeaders),
            answer("Say hi", FIX),
        ],
    ));
    let running = bench.start(&["dev", "make it say hi"]);
    bench.server.wait_for_requests_blocking(2).unwrap();
    running.kill_9().unwrap();
    bench.room.wait_until_empty(PATIENCE).unwrap();
    let worker = bench.start(&["worker"]);
    let asked = question(&bench);
    assert_eq!(asked["kind"], "clarification", "{asked:#}");
    assert_eq!(asked["text"], "Which greeting do you mean?\nThere are two.");
    let shown = bench.run(&["task", "questions"]).stdout;
    assert!(shown.contains("There are two."), "{shown}");
    answered(&bench, asked["id"].as_str().unwrap(), "the one in greet.sh");
    let record = ended(&bench, asked["task_id"].as_str().unwrap());
    assert_eq!(record["status"], "completed", "{record:#}");
    assert_eq!(pull(&bench, 1)["pull_request"]["state"], "open");
    let last = bench.server.requests().pop().unwrap().json().to_string();
    assert!(last.contains("the one in greet.sh"), "{last}");
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();
    wait_for("no question", || {
        let listed = parsed(&bench.run(&["task", "questions", "--json"]).stdout);
        listed["questions"].as_array().unwrap().is_empty()
    });
}
