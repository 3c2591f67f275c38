//! `--setting-sources`: files of a source that is left out are not used.

use codespar_testkit::{Script, SdkClient, Turn};
use serde_json::{Value, json};

use crate::common::Bench;

/// Every kind of file, of the user and of the project.
fn bench() -> Bench {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    let files = |origin: &str| {
        let agent = format!("---\nname: {origin}-agent\ndescription: x\n---\nWork.\n");
        let skill = format!("---\nname: {origin}-skill\ndescription: x\n---\nDo.\n");
        [
            (format!("agents/{origin}.md"), agent),
            (format!("skills/{origin}-skill/SKILL.md"), skill),
            (format!("commands/{origin}-command.md"), "Go.".to_owned()),
            ("CLAUDE.md".to_owned(), format!("INSTRUCTIONS-OF-{origin}")),
            ("rules/all.md".to_owned(), format!("RULE-OF-{origin}")),
        ]
    };
    for (name, text) in files("project") {
        bench.file(&format!(".claude/{name}"), &text);
    }
    for (name, text) in files("user") {
        let path = bench.room.home().join(".claude").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    bench.file("AGENTS.md", "AGENTS-OF-project");
    bench.file(".codespar/memory/2026-01-01-note.md", "NOTE-OF-project");
    bench.file("CLAUDE.local.md", "INSTRUCTIONS-OF-local");
    bench.trust();
    bench
}

/// What a session with these sources knows: the names it tells its client, and its system prompt.
fn known(sources: &[&str]) -> String {
    let bench = bench();
    let stream = [
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
    ];
    let mut client = SdkClient::start(&mut bench.command(&[&stream, sources].concat())).unwrap();
    let told = client.request(&json!({"subtype": "initialize"}));
    let told: Value = told.unwrap().unwrap();
    client.prompt("go").unwrap();
    client.turn().unwrap();
    let system = bench.server.requests()[0].system_text();
    format!("{} {} {system}", told["commands"], told["agents"])
}

const OF_PROJECT: [&str; 7] = [
    "project-agent",
    "project-skill",
    "project-command",
    "INSTRUCTIONS-OF-project",
    "RULE-OF-project",
    "AGENTS-OF-project",
    "NOTE-OF-project",
];
const OF_USER: [&str; 5] = [
    "user-agent",
    "user-skill",
    "user-command",
    "INSTRUCTIONS-OF-user",
    "RULE-OF-user",
];
const LOCAL: [&str; 1] = ["INSTRUCTIONS-OF-local"];

#[test]
fn files_of_the_sources_that_are_named_are_used_and_no_others() {
    let all: [&[&str]; 3] = [&OF_USER, &OF_PROJECT, &LOCAL];
    for (sources, used) in [
        (&[][..], [true, true, true]),
        (
            &["--setting-sources", "user,project,local"],
            [true, true, true],
        ),
        (&["--setting-sources", "user"], [true, false, false]),
        (&["--setting-sources", "project"], [false, true, false]),
        (&["--setting-sources", "local"], [false, false, true]),
        (&["--setting-sources="], [false, false, false]),
    ] {
        let known = known(sources);
        for (names, is_used) in all.into_iter().zip(used) {
            for name in names {
                assert_eq!(known.contains(name), is_used, "{sources:?} {name}: {known}");
            }
        }
    }
}

#[test]
fn instructions_of_a_part_of_a_project_that_is_left_out_are_not_given() {
    let read = Turn::tool("Read", &json!({"file_path": "web/a.ts"}));
    let bench = Bench::new(Script::new().turn(read).turn(Turn::text("done")));
    bench.file("web/CLAUDE.md", "ABOUT-WEB");
    bench.file(
        ".claude/rules/ts.md",
        "---\npaths: \"**/*.ts\"\n---\nRULE-FOR-TS",
    );
    bench.file("web/a.ts", "let a;");
    for (sources, is_told) in [("project", true), ("user", false)] {
        bench.run(&["-p", "go", "--setting-sources", sources]);
        let results = bench.server.last_request().unwrap().tool_results();
        for part in ["ABOUT-WEB", "RULE-FOR-TS"] {
            assert_eq!(
                results[0].text.contains(part),
                is_told,
                "{}",
                results[0].text
            );
        }
    }
}
