//! Plans, merges of the base, the agent of a thread, schedules: through the binary, with a scripted
//! model.

use codespar_store::{ChannelStore, ChannelTimer, SqliteStore, TimerKind};
use codespar_testkit::{Conversation, Matcher, Turn, process::spawn_with_stdin};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    common::{
        Bench, PATIENCE,
        git::{commit_all, git},
        type_into,
    },
    room::{
        FIX, GREET, Record, answer, chat_command, decisions, greeting, pulls, say, script,
        settings, with_store, writer,
    },
};

const COMMENT: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hi\n>>>REPLACE\ngreeting=hi # short\n===END===\n";

fn planner(turns: impl IntoIterator<Item = Turn>) -> Conversation {
    let matcher = Matcher::system_contains("answers questions about software")
        .and(Matcher::first_user_contains("Plan a feature"));
    Conversation::new("planner", matcher).turns(turns)
}

/// After an answer that was no plan.
fn repaired_planner() -> Conversation {
    let matcher = Matcher::first_user_contains("This answer cannot be used");
    Conversation::new("repaired planner", matcher).turn(two_steps())
}

fn two_steps() -> Turn {
    let steps = json!([
        {"title": "Say hi", "instruction": "make it say hi", "after": null},
        {"title": "Say why", "instruction": "explain the greeting", "after": 1},
    ]);
    Turn::text(json!({ "steps": steps }).to_string())
}

#[test]
fn an_approved_plan_becomes_pull_requests_that_build_on_each_other() {
    let bench = greeting(script([
        repaired_planner(),
        planner([Turn::text("I would begin with the greeting.")]),
        writer("make it say hi", [answer("Say hi", FIX)]),
        writer("explain the greeting", [answer("Say why", COMMENT)]),
    ]));
    let early = say(&bench, "ann", &["@codespar approve"]);
    assert!(
        early.stdout.contains("there is no plan in this thread"),
        "{}",
        early.stdout
    );
    let planned = say(&bench, "ann", &["@codespar plan a friendlier greeting"]);
    for line in [
        "1. Say hi",
        "2. Say why (after step 1)",
        "approve` starts all of it",
    ] {
        assert!(planned.stdout.contains(line), "{line}: {}", planned.stdout);
    }
    let refused = say(&bench, "bob", &["@codespar approve"]);
    assert!(
        refused.stdout.contains("this needs the role write"),
        "{}",
        refused.stdout
    );
    let gap = say(&bench, "ann", &["@codespar approve 2"]);
    assert!(
        gap.stdout.contains("step 2 builds on step 1"),
        "{}",
        gap.stdout
    );
    let approved = say(&bench, "ann", &["@codespar approve"]);
    assert!(
        approved.stdout.contains("PR #2: Say why is ready"),
        "{}",
        approved.stdout
    );
    let pulls = pulls(&bench);
    let of = |number: u64| {
        let is_it = |pull: &&Value| pull["number"] == number;
        pulls.iter().find(is_it).unwrap().clone()
    };
    assert_eq!(pulls.len(), 2);
    assert_eq!(of(1)["base"], "main");
    assert_eq!(of(2)["base"], of(1)["head"]);
    let head = of(2)["head"].as_str().unwrap().to_owned();
    let text = git(&bench.work(), &["show", &format!("{head}:greet.sh")]);
    assert_eq!(text, GREET.replace("=hello", "=hi # short"));
    let record = Record::of(&bench);
    assert_eq!(record.tasks.len(), 2);
    assert_eq!(record.texts("progress").len(), 2);
    let again = say(&bench, "ann", &["@codespar approve"]);
    assert!(
        again.stdout.contains("these steps were approved before"),
        "{}",
        again.stdout
    );
    assert_eq!(Record::of(&bench).tasks.len(), 2);
}

#[test]
fn a_step_that_fails_takes_those_that_build_on_it_along() {
    let unfit = FIX.replace("greeting=hello", "greeting=bonjour");
    let bench = greeting(script([
        planner([two_steps()]),
        writer("make it say hi", [answer("Say hi", &unfit)]),
    ]));
    let finished = say(
        &bench,
        "ann",
        &[
            "@codespar plan a friendlier greeting",
            "@codespar approve 1-2",
        ],
    );
    let record = Record::of(&bench);
    let results = record.texts("result");
    assert_eq!(results.len(), 2, "{}", finished.stdout);
    assert!(
        results.iter().all(|text| text.contains("failed")),
        "{results:#?}"
    );
    assert!(pulls(&bench).is_empty());
}

#[test]
fn an_approval_that_a_crash_interrupts_starts_each_step_once() {
    for point in ["settled:2", "started", "started:2", "sent:2"] {
        let bench = greeting(script([
            planner([two_steps()]),
            writer(
                "make it say hi",
                [answer("Say hi", FIX), answer("Say hi", FIX)],
            ),
            writer(
                "explain the greeting",
                [answer("Say why", COMMENT), answer("Say why", COMMENT)],
            ),
        ]));
        let mut command = chat_command(&bench, "ann");
        command.env("CODESPAR_TEST_DIE_AT", point);
        let input = "@codespar plan a friendlier greeting\n@codespar approve\n";
        let died = spawn_with_stdin(&mut command, input.into()).unwrap();
        let died = died.wait(PATIENCE).unwrap();
        assert_eq!(died.status.code(), None, "{point}: {}", died.stdout);
        let next = say(&bench, "ann", &[]);
        assert_eq!(next.status.code(), Some(0), "{point}: {}", next.stderr);
        let record = Record::of(&bench);
        assert_eq!(record.tasks.len(), 2, "{point}: {}", next.stdout);
        assert_eq!(record.texts("result").len(), 2, "{point}");
        assert_eq!(pulls(&bench).len(), 2, "{point}");
    }
}

fn branch_of_first(bench: &Bench) -> String {
    pulls(bench)[0]["head"].as_str().unwrap().to_owned()
}

fn parents(bench: &Bench, branch: &str) -> usize {
    let line = git(&bench.work(), &["log", "-1", "--format=%P", branch]);
    line.split_whitespace().count()
}

#[test]
fn a_base_that_does_not_conflict_is_merged_without_a_model() {
    let bench = greeting(script([writer("say hi", [answer("Say hi", FIX)])]));
    say(&bench, "ann", &["@codespar fix it to say hi"]);
    let asked = bench.server.request_count();
    let nothing = say(&bench, "ann", &["@codespar resolve PR #1"]);
    assert!(
        nothing
            .stdout
            .contains("has all commits of its base already"),
        "{}",
        nothing.stdout
    );
    bench.file("NOTES", "new\n");
    commit_all(&bench, "Take notes");
    let merged = say(&bench, "ann", &["@codespar resolve PR #1"]);
    assert!(merged.stdout.contains("PR #1"), "{}", merged.stdout);
    let branch = branch_of_first(&bench);
    assert_eq!(parents(&bench, &branch), 2, "{}", merged.stdout);
    let work = bench.work();
    assert_eq!(git(&work, &["show", &format!("{branch}:NOTES")]), "new\n");
    assert_eq!(
        git(&work, &["show", &format!("{branch}:greet.sh")]),
        GREET.replace("hello", "hi")
    );
    assert_eq!(bench.server.request_count(), asked);
}

/// A pull request that says hi, a base that says hola, and a model that resolves it in this way.
fn conflict(resolution: &str) -> (Bench, String) {
    let text = GREET.replace("hello", resolution);
    let block = format!("===FILE: greet.sh===\n{text}===END===\n");
    let resolver = writer(
        "Resolve the conflicts of a merge",
        [answer("Merge main", &block)],
    );
    let bench = greeting(script([
        resolver,
        writer("say hi", [answer("Say hi", FIX)]),
    ]));
    say(&bench, "ann", &["@codespar fix it to say hi"]);
    bench.file("greet.sh", &GREET.replace("hello", "hola"));
    commit_all(&bench, "Say hola");
    let before = git(&bench.work(), &["rev-parse", &branch_of_first(&bench)]);
    (bench, before)
}

#[test]
fn a_conflict_that_is_not_resolved_leaves_the_branch_alone() {
    // The tests fail; a mark is left; the change is given up.
    for resolution in ["salut", "hi\n<<<<<<< HEAD", "hola"] {
        let (bench, before) = conflict(resolution);
        let wrong = say(&bench, "ann", &["@codespar resolve PR #1"]);
        assert!(wrong.stdout.contains(" failed: "), "{}", wrong.stdout);
        let after = git(&bench.work(), &["rev-parse", &branch_of_first(&bench)]);
        assert_eq!(after, before, "{resolution}: {}", wrong.stdout);
    }
}

#[test]
fn a_conflict_is_resolved_by_the_model_with_both_sides() {
    let (bench, before) = conflict("hi");
    let branch = branch_of_first(&bench);
    let right = say(&bench, "ann", &["@codespar resolve PR #1"]);
    assert_eq!(parents(&bench, &branch), 2, "{}", right.stdout);
    let first = git(&bench.work(), &["rev-parse", &format!("{branch}^1")]);
    assert_eq!(first, before, "the branch was added to, not replaced");
    let shown = bench.server.requests().pop().unwrap().json().to_string();
    assert!(
        shown.contains("<<<<<<<") && shown.contains("hola"),
        "{shown}"
    );
    let refused = say(&bench, "bob", &["@codespar resolve PR #1"]);
    assert!(
        refused.stdout.contains("this needs the role write"),
        "{}",
        refused.stdout
    );
}

fn agent(turns: impl IntoIterator<Item = Turn>) -> Conversation {
    let matcher = Matcher::system_contains("takes part in a chat of a team");
    Conversation::new("agent", matcher).turns(turns)
}

fn command(line: &str) -> Turn {
    Turn::tool("command", &json!({ "line": line }))
}

#[test]
fn the_agent_of_a_thread_answers_remembers_and_starts_work() {
    let bench = greeting(script([
        agent([
            Turn::text("It says hello. Shall I change it?"),
            command("fix it to say hi"),
            Turn::text("I have started it."),
        ]),
        writer("say hi", [answer("Say hi", FIX)]),
    ]));
    let first = say(&bench, "ann", &["@codespar what does the greeting say?"]);
    assert!(
        first.stdout.contains("It says hello. Shall I change it?"),
        "{}",
        first.stdout
    );
    let second = say(&bench, "ann", &["@codespar yes please, hi is enough"]);
    for text in ["I have started it.", "PR #1: Say hi is ready"] {
        assert!(second.stdout.contains(text), "{text}: {}", second.stdout);
    }
    let requests = bench.server.requests();
    let told = requests.iter().map(|request| request.json().to_string());
    let remembers = |text: &String| {
        text.contains("what does the greeting say?") && text.contains("hi is enough")
    };
    assert!(told.filter(remembers).count() >= 2, "one conversation");
    assert_eq!(
        decisions(&bench),
        [
            "ann talk done",
            "ann talk done",
            "ann dev allowed",
            "ann dev done"
        ]
    );
}

#[test]
fn the_agent_has_the_rights_of_the_speaker_and_decides_about_no_merge() {
    let bench = greeting(script([agent([
        command("fix the greeting"),
        command("link acme/api"),
        Turn::text("Neither is possible."),
        command("merge PR #1"),
        Turn::text("That is for you to decide."),
    ])]));
    let reader = say(&bench, "bob", &["@codespar please repair the greeting"]);
    assert!(
        reader.stdout.contains("Neither is possible."),
        "{}",
        reader.stdout
    );
    let results = bench.server.requests()[2].json().to_string();
    for text in [
        "this needs the role write; they have read",
        "this needs the role admin; they have read",
    ] {
        assert!(results.contains(text), "{text}: {results}");
    }
    assert!(Record::of(&bench).tasks.is_empty());
    let merger = say(
        &bench,
        "ann",
        &["@codespar everything is fine, bring it in"],
    );
    assert!(
        merger.stdout.contains("→ @codespar merge PR #1"),
        "{}",
        merger.stdout
    );
    assert_eq!(
        decisions(&bench),
        [
            "bob dev refused",
            "bob link refused",
            "bob talk done",
            "ann talk done"
        ]
    );
}

#[test]
fn stop_without_an_id_stops_what_the_thread_is_at_work_on() {
    let gate = codespar_testkit::Gate::closed();
    let bench = greeting(script([writer(
        "say hi",
        [answer("Say hi", FIX).held_by(&gate)],
    )]));
    let nothing = say(&bench, "ann", &["@codespar stop"]);
    assert!(
        nothing
            .stdout
            .contains("nothing is under way in this thread"),
        "{}",
        nothing.stdout
    );
    let shown = type_into(
        &mut chat_command(&bench, "ann"),
        &[
            ("", "@codespar fix it to say hi"),
            ("Writing the change", "@codespar stop"),
            ("was stopped", "/quit"),
        ],
    );
    gate.open();
    let progress = Record::of(&bench).texts("progress");
    assert!(progress[0].contains("⏹ Stopped"), "{progress:#?} {shown}");
    assert!(pulls(&bench).is_empty());
}

fn schedules(bench: &Bench) -> Vec<ChannelTimer> {
    with_store(bench, async |store: &SqliteStore| {
        let listed = store.timers_of("terminal", "terminal", TimerKind::Schedule);
        listed.await.unwrap()
    })
}

#[test]
fn a_schedule_that_is_due_runs_once_whenever_the_process_dies() {
    for point in ["scheduled", "settled"] {
        let bench = greeting(script([]));
        let mut command = chat_command(&bench, "ann");
        command.env("CODESPAR_TEST_DIE_AT", point);
        let input = "@codespar schedule every 2 hours whoami\n";
        let died = spawn_with_stdin(&mut command, input.into()).unwrap();
        assert_eq!(died.wait(PATIENCE).unwrap().status.code(), None, "{point}");
        say(&bench, "ann", &[]);
        assert_eq!(schedules(&bench).len(), 1, "{point}");
    }
    for point in ["due", "settled", "sending", "sent"] {
        let bench = greeting(script([]));
        settings(&bench, &json!({"timeZone": "CET-1CEST,M3.5.0,M10.5.0/3"}));
        let made = say(&bench, "ann", &["@codespar schedule every 2 hours whoami"]);
        assert!(made.stdout.contains("CET"), "{}", made.stdout);
        let mut timer = schedules(&bench).pop().unwrap();
        timer.next_at = Timestamp::now() - SignedDuration::from_mins(1);
        with_store(&bench, async |store: &SqliteStore| {
            store.put_timer(timer.clone()).await.unwrap();
        });
        let mut command = chat_command(&bench, "ann");
        command.env("CODESPAR_TEST_DIE_AT", point);
        let died = spawn_with_stdin(&mut command, Vec::new()).unwrap();
        assert_eq!(died.wait(PATIENCE).unwrap().status.code(), None, "{point}");
        let next = say(&bench, "ann", &[]);
        assert_eq!(next.status.code(), Some(0), "{point}: {}", next.stderr);
        let texts = Record::of(&bench).texts("text");
        let answers = texts.iter().filter(|text| text.contains("role merge"));
        assert_eq!(answers.count(), 1, "{point}: {texts:#?}");
        let told = texts.iter().filter(|text| text.starts_with('⏰'));
        assert_eq!(told.count(), 1, "{point}: {texts:#?}");
        assert_eq!(
            decisions(&bench),
            ["ann schedule done", "ann whoami done"],
            "{point}"
        );
    }
}
