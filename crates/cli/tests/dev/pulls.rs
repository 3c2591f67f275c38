//! Reviews, merges, follow-ups and following.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::{
    common::{PATIENCE, parsed},
    repository::{
        FIX, GREET, answer, branches, dev, git, greeting, pull, repository, script, without_a_key,
    },
};

#[test]
fn a_follow_up_adds_a_commit_to_the_same_pull_request() {
    let more = "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hi\n>>>REPLACE\ngreeting=hi # short\n===END===\n";
    let first = Conversation::new(
        "first",
        Matcher::system_contains("turns an instruction into")
            .and(Matcher::first_user_contains("make it say hi")),
    )
    .turn(answer("Say hi", FIX));
    let second = Conversation::new(
        "second",
        Matcher::system_contains("turns an instruction into")
            .and(Matcher::first_user_contains("also say why")),
    )
    .turn(answer("Say why", more));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(
        Script::new()
            .conversation(picker)
            .conversation(first)
            .conversation(second),
    );
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let (follow, code) = dev(&bench, &["--pr", "1", "also say why"]);
    assert_eq!(code, Some(0), "{follow}");
    assert_eq!(follow["branch"], report["branch"]);
    assert_eq!(follow["pull_request"]["number"], 1);
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(
            &bench.work(),
            &["rev-list", "--count", &format!("main..{branch}")]
        ),
        "2\n"
    );
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(
        body.contains("> make it say hi") && body.contains("> also say why"),
        "{body}"
    );

    let merged = bench.run(&["merge", "1", "--squash"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert_eq!(branches(&bench), Vec::<String>::new());
    assert_eq!(
        std::fs::read_to_string(bench.work().join("greet.sh")).unwrap(),
        GREET.replace("hello", "hi # short")
    );
    let closed = bench.run(&["dev", "--pr", "1", "again"]);
    assert_eq!(closed.status.code(), Some(1));
    assert!(closed.stderr.contains("#1 is merged"), "{}", closed.stderr);
}

#[test]
fn a_review_places_findings_on_the_diff_and_the_others_in_its_text() {
    let said = json!({
        "summary": "Fine but for one thing.",
        "findings": [
            {"path": "greet.sh", "line": 2, "severity": "high", "text": "hi is rude"},
            {"path": "greet.sh", "line": 900, "severity": "low", "text": "far away"},
            {"path": "other.sh", "line": 1, "severity": "low", "text": "calls greet.sh"},
            "a remark without a place",
        ],
    });
    let script = script(&["greet.sh"], [answer("Say hi", FIX)]).conversation(
        Conversation::new(
            "reviewer",
            Matcher::system_contains("You review a pull request"),
        )
        .turn(Turn::text(said.to_string())),
    );
    let bench = greeting(script);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let reviewed = parsed(&bench.run(&["review", "1", "--json"]).stdout);
    assert_eq!(
        reviewed["findings"],
        json!([{"path": "greet.sh", "line": 2, "severity": "high", "text": "hi is rude"}])
    );
    assert_eq!(
        reviewed["unplaced"],
        json!([
            {"path": "greet.sh", "line": 900, "severity": "low", "text": "far away"},
            {"path": "other.sh", "line": 1, "severity": "low", "text": "calls greet.sh"},
            {"path": null, "line": null, "severity": "medium", "text": "a remark without a place"},
        ])
    );
    let body = reviewed["review"]["body"].as_str().unwrap();
    for expected in [
        "4 findings.",
        "- **low** `greet.sh:900`: far away\n- **low** `other.sh:1`: calls greet.sh\n",
        "- **medium**: a remark without a place",
    ] {
        assert!(body.contains(expected), "{body}");
    }
    let asked = bench.server.request_count();
    let again = parsed(&bench.run(&["review", "1", "--json"]).stdout);
    for field in ["findings", "unplaced", "review"] {
        assert_eq!(again[field], reviewed[field]);
    }
    // It is there already, so nobody is asked and paid again.
    assert_eq!(bench.server.request_count(), asked);
    let shown = pull(&bench, 1);
    assert_eq!(shown["reviews"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["reviews"][0]["comments"][0]["line"], 2);
}

#[test]
fn a_reviewer_sees_numbered_lines_in_their_functions_with_purpose_and_checks() {
    const CODE: &str = "import os\n\n\nclass Shop:\n    def open(self):\n        self.a = 1\n        self.b = 2\n        self.c = 3\n        self.d = 4\n        self.e = 5\n        self.f = 6\n        return self.a\n\n    def close(self):\n        return 0\n";
    const EDIT: &str = "===FILE: shop.py===\n<<<SEARCH\n        self.f = 6\n>>>REPLACE\n        self.f = 7\n===END===\n";
    let huge = "x = 1\n".repeat(40_000);
    let blocks = format!("{EDIT}===FILE: package-lock.json===\n{huge}===END===\n");
    let script = script(&["shop.py"], [answer("Count to seven", &blocks)]).conversation(
        Conversation::new(
            "reviewer",
            Matcher::system_contains("You review a pull request"),
        )
        .turn(Turn::text("{\"summary\": \"Fine.\", \"findings\": []}")),
    );
    let files = [("shop.py", CODE), ("Makefile", "test:\n\t@echo 3 passed\n")];
    let bench = repository(script, &files);
    let (report, code) = dev(&bench, &["count to seven", "--allow-protected"]);
    assert_eq!(code, Some(0), "{report}");
    let reviewed = parsed(&bench.run(&["review", "1", "--json"]).stdout);
    let request = bench.server.last_request().unwrap();
    let request = request.json();
    let text = request["messages"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    for expected in [
        "<title>Count to seven</title>",
        "> count to seven",
        "codespar/verify passed: make test",
        "    4\tclass Shop:\n    5\t    def open(self):\n",
        "    5\t|    def open(self):\n    6\t|        self.a = 1\n",
        "     \t-        self.f = 6\n   11\t+        self.f = 7\n   12\t         return self.a\n",
        "package-lock.json +40000\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(text.len() < 120_000, "{}", text.len());
    assert!(text.find("path=\"shop.py\"") < text.find("path=\"package-lock.json\""));
    assert_eq!(reviewed["unseen"], json!(["package-lock.json"]));
    let body = reviewed["review"]["body"].as_str().unwrap();
    let note = "**Reviewed only in part:** `package-lock.json`";
    assert!(body.contains(note), "{body}");
}

#[test]
fn a_merge_is_refused_for_a_conflict_and_a_closed_pull_request() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    bench.file("greet.sh", &GREET.replace("hello", "good day"));
    git(
        &bench.work(),
        &["commit", "--quiet", "--no-gpg-sign", "-am", "Other"],
    );
    let refused = bench.run(&["merge", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused
            .stderr
            .contains("it conflicts with main in greet.sh"),
        "{}",
        refused.stderr
    );
    assert_eq!(bench.run(&["pr", "close", "1"]).status.code(), Some(0));
    let refused = bench.run(&["merge", "1"]);
    assert!(
        refused.stderr.contains("it is closed"),
        "{}",
        refused.stderr
    );
    let missing = bench.run(&["merge", "7"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("#7"), "{}", missing.stderr);
}

#[test]
fn a_coordinator_that_follows_a_pull_request_is_told_of_each_thing_once() {
    let coordinator = Conversation::new(
        "coordinator",
        Matcher::first_user_contains("follow number one"),
    )
    .turn(Turn::tool("subscribe_pr_activity", &json!({"number": 1})))
    .turn(Turn::text("I wait."))
    .turn(Turn::text("A review came."))
    .turn(Turn::text("It is merged."));
    let script = script(&["greet.sh"], [answer("Say hi", FIX)])
        .conversation(coordinator)
        .conversation(
            Conversation::new(
                "reviewer",
                Matcher::system_contains("You review a pull request"),
            )
            .turn(Turn::text("{\"summary\": \"Fine.\", \"findings\": []}")),
        );
    let bench = greeting(script);
    bench.file(".codespar/settings.json", r#"{"dev": {"pollSeconds": 1}}"#);
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let mut session = bench.start(&[
        "-p",
        "follow number one",
        "--coordinator",
        "--output-format",
        "stream-json",
    ]);
    session.wait_for_output("I wait.", PATIENCE).unwrap();
    assert_eq!(bench.run(&["review", "1"]).status.code(), Some(0));
    session.wait_for_output("A review came.", PATIENCE).unwrap();
    assert_eq!(bench.run(&["merge", "1"]).status.code(), Some(0));
    let finished = session.wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let requests = bench.server.requests();
    let last = requests
        .iter()
        .rev()
        .find(|request| request.json().to_string().contains("follow number one"))
        .unwrap();
    let text = last.json()["messages"].to_string();
    assert_eq!(text.matches("<task-notification>").count(), 2, "{text}");
    assert_eq!(text.matches("Fine.").count(), 1, "{text}");
    assert!(text.contains("merged"), "{text}");
    // One task for the whole subscription, whose id is in each notification.
    let listed = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let listed = listed["tasks"].as_array().unwrap();
    let is_subscription = |task: &&Value| task["spec"]["kind"] == "follow_pull_request";
    let subscriptions: Vec<&Value> = listed.iter().filter(is_subscription).collect();
    let [subscription] = &subscriptions[..] else {
        panic!("{listed:?}")
    };
    assert_eq!(
        (&subscription["status"], &subscription["attempt"]),
        (&json!("completed"), &json!(2))
    );
    let id = subscription["task_id"].as_str().unwrap();
    assert_eq!(
        text.matches(&format!("<task-id>{id}</task-id>")).count(),
        2,
        "{text}"
    );
    let heading = format!("Subscription {id}, pull request #1:");
    assert_eq!(text.matches(&heading).count(), 2, "{text}");
}

/// The notifications in a conversation as pairs of task id and result.
fn notifications(text: &str) -> Vec<(String, String)> {
    let between = |text: &str, from: &str, to: &str| {
        let rest = text.split_once(from).map_or("", |(_, rest)| rest);
        rest.split(to).next().unwrap_or_default().to_owned()
    };
    text.split("<task-notification>")
        .skip(1)
        .map(|one| {
            (
                between(one, "<task-id>", "</task-id>"),
                between(one, "<result>", "</result>"),
            )
        })
        .collect()
}

#[test]
fn two_subscriptions_of_a_session_do_not_mix() {
    let follow = |number: u32| json!({ "number": number });
    let coordinator = Conversation::new("coordinator", Matcher::first_user_contains("follow both"))
        .turn(
            Turn::new()
                .and_tool("subscribe_pr_activity", &follow(1))
                .and_tool("subscribe_pr_activity", &follow(2)),
        )
        .turn(Turn::text("I wait."))
        .turn(Turn::text("The second is closed."))
        .turn(Turn::text("The first is closed."));
    let dev_run = |name: &str, prompt: &str| {
        Conversation::new(
            name,
            Matcher::system_contains("turns an instruction into")
                .and(Matcher::first_user_contains(prompt)),
        )
        .turn(answer("Say hi", FIX))
    };
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(
        Script::new()
            .conversation(picker)
            .conversation(dev_run("one", "make it say hi"))
            .conversation(dev_run("two", "let it say hi"))
            .conversation(coordinator),
    );
    bench.file(".codespar/settings.json", r#"{"dev": {"pollSeconds": 1}}"#);
    bench.trust();
    for instruction in ["make it say hi", "let it say hi"] {
        let (report, code) = dev(&bench, &[instruction]);
        assert_eq!(code, Some(0), "{report}");
    }
    let args = [
        "-p",
        "follow both",
        "--coordinator",
        "--output-format",
        "stream-json",
    ];
    let mut session = bench.start(&args);
    session.wait_for_output("I wait.", PATIENCE).unwrap();
    assert_eq!(bench.run(&["pr", "close", "2"]).status.code(), Some(0));
    session
        .wait_for_output("The second is closed.", PATIENCE)
        .unwrap();
    assert_eq!(bench.run(&["pr", "close", "1"]).status.code(), Some(0));
    let finished = session.wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let requests = bench.server.requests();
    let last = requests
        .iter()
        .rev()
        .find(|request| request.json().to_string().contains("follow both"))
        .unwrap();
    let subscribed = last.tool_results();
    let told = notifications(&last.json()["messages"].to_string());
    assert_eq!(told.len(), 2, "{told:?}");
    for (number, (id, result)) in [2, 1].into_iter().zip(&told) {
        let answer = &subscribed[number - 1].text;
        assert!(
            answer.contains(&format!("#{number} ({id})")),
            "{answer} {id}"
        );
        let heading = format!("Subscription {id}, pull request #{number}:");
        assert!(result.starts_with(&heading), "{result}");
    }
}

#[test]
fn a_simulated_review_does_not_stand_in_the_way_of_a_real_one() {
    let script = script(&["greet.sh"], [answer("Say hi", FIX)]).conversation(
        Conversation::new(
            "reviewer",
            Matcher::system_contains("You review a pull request"),
        )
        .turn(Turn::text("{\"summary\": \"Fine.\", \"findings\": []}")),
    );
    let bench = greeting(script);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    for _ in 0..2 {
        let simulated = parsed(&without_a_key(&bench, &["review", "1", "--json"]).stdout);
        assert_eq!(simulated["simulated"], true);
    }
    let real = parsed(&bench.run(&["review", "1", "--json"]).stdout);
    assert_eq!(real["simulated"], false);
    assert!(
        real["review"]["body"]
            .as_str()
            .unwrap()
            .starts_with("Fine.")
    );
    let late = parsed(&without_a_key(&bench, &["review", "1", "--json"]).stdout);
    assert_eq!(late["simulated"], false);
    let shown = pull(&bench, 1);
    assert_eq!(shown["reviews"].as_array().unwrap().len(), 2, "{shown}");
}

#[test]
fn a_simulated_pull_request_is_not_merged_and_an_unchecked_one_is_said_to_be() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let mut command = bench.command(&["dev", "make it say hi"]);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    let simulated = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(simulated.status.code(), Some(0), "{}", simulated.stderr);
    let refused = bench.run(&["merge", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("it changes nothing"),
        "{}",
        refused.stderr
    );
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let merged = bench.run(&["merge", "2"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert!(
        merged.stdout.contains("no check had looked at"),
        "{}",
        merged.stdout
    );
    assert_eq!(
        bench
            .run(&["session", "list", "--json"])
            .stdout
            .matches("\"id\"")
            .count(),
        0
    );
}

#[test]
fn what_a_pull_request_says_is_shown_and_not_obeyed() {
    let bench = greeting(script(
        &["greet.sh"],
        [answer("Say hi \u{1b}]0;gotcha\u{7}", FIX)],
    ));
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    for args in [
        &["pr", "show", "1"][..],
        &["pr", "list"],
        &["pr", "diff", "1"],
    ] {
        let finished = bench.run(args);
        assert!(
            !finished.stdout.contains('\u{1b}'),
            "{args:?}: {}",
            finished.stdout
        );
    }
}
