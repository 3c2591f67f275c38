//! Collections of agents and skills as people install them: cloned into a directory of their own,
//! with folders, documentation and every kind of head that such files have. The texts are ours; what
//! is odd about each was found in collections of others.

use std::{fs, path::Path};

use codespar_testkit::Script;
use serde_json::{Value, json};

use crate::common::{Bench, parsed};

/// A file of a collection, the agent that it must become, and how its description begins.
struct Odd {
    path: &'static str,
    head: &'static str,
    name: &'static str,
    description: &'static str,
    /// Fields and tools that must be named as left out.
    told: &'static [&'static str],
}

const fn plain(
    path: &'static str,
    head: &'static str,
    name: &'static str,
    description: &'static str,
) -> Odd {
    Odd {
        path,
        head,
        name,
        description,
        told: &[],
    }
}

/// Five ways to lay out a collection, one below the other.
const COLLECTIONS: &[Odd] = &[
    // Flat, with descriptions that are conversations.
    plain(
        "flat/reviewer.md",
        "name: reviewer\ndescription: Use this agent after a change. Examples:\\n\\n<example>\\nContext: a change is done.\\nuser: \"Is it right?\"\\nassistant: \"I ask the reviewer.\"\\n</example>\nmodel: inherit\ncolor: green",
        "reviewer",
        "Use this agent after a change. Examples:",
    ),
    plain(
        "flat/talker.md",
        "name: talker\ndescription: Use it for talks: <example>\nContext: a talk\nuser: \"Hello\"\nassistant: \"I ask the talker\"\n</example>\n\n<example>\nuser: 'Again: hello'\nassistant: \"Again\"\n</example>\ntools: Read, Grep",
        "talker",
        "Use it for talks:",
    ),
    plain(
        "flat/folded.md",
        "name: folded\ndescription: >\n  Writes tests.\n  Use it: always.\ntools: [\"Read\", \"Edit\"]",
        "folded",
        "Writes tests.",
    ),
    plain(
        "flat/literal.md",
        "name: literal\ndescription: |\n  Writes docs.\n\n  - first: one\ntools:\n  - Read\n  - Write",
        "literal",
        "Writes docs.",
    ),
    // In categories.
    Odd {
        path: "categories/01-core/api-designer.md",
        head: "name: api-designer\ndescription: \"Designs APIs\"\ntools: Read, Write, magic, mcp__docs__get, postgresql",
        name: "api-designer",
        description: "Designs APIs",
        told: &["there is no tool `magic`", "there is no tool `postgresql`"],
    },
    plain(
        "categories/02-languages/rust/borrow.md",
        "name: borrow\ndescription: 'Knows what''s borrowed'\ntools: \"*\"",
        "borrow",
        "Knows what's borrowed",
    ),
    plain(
        "categories/02-languages/c.md",
        "name: c-expert\ndescription: \"Writes C\" for small machines\ntools: All\n",
        "c-expert",
        "\"Writes C\" for small machines",
    ),
    // Several plugins, which have agents of one name.
    plain(
        "plugins/backend/agents/architect.md",
        "name: architect\ndescription: [Backend] plans services, PROACTIVELY\nmodel: opus",
        "architect",
        "[Backend] plans services, PROACTIVELY",
    ),
    Odd {
        path: "plugins/frontend/agents/architect.md",
        head: "name: architect\ndescription: Plans pages\nmodel: opus",
        name: "architect",
        description: "[Backend]",
        told: &["an agent named `architect` is already defined in"],
    },
    plain(
        "plugins/frontend/agents/painter.md",
        "name: painter\ndescription: Paints pages @ speed\nmodel: sonnet\n-----------",
        "painter",
        "Paints pages @ speed",
    ),
    // With titles for names, and fields of other programs.
    Odd {
        path: "titles/Design/ux.md",
        head: "name: UX Researcher\ndescription: Asks users — 100% of them\ncolor: \"#FF00AA\"\nemoji: 🎨\nvibe: Calm: always\nmetadata:\n  author: us\n  tags: [a, b]",
        name: "ux-researcher",
        description: "Asks users — 100% of them",
        told: &[
            "the agent is called `ux-researcher`",
            "`emoji` is not known",
            "`vibe` is not known",
            "`metadata` is not known",
        ],
    },
    Odd {
        path: "titles/Product/no-name.md",
        head: "description: Has the name of its file\nversion: 1.0\ncategory: product",
        name: "no-name",
        description: "Has the name of its file",
        told: &["`version` is not known", "`category` is not known"],
    },
    // Written for later versions of the other tool.
    Odd {
        path: "later/deep/er/planner.md",
        head: "name: planner\ndescription: Plans\nmodel: claude-opus-5-5\neffort: high\nmcpServers:\n  - docs\nmemory: project\npermissionMode: auto\nmaxTurns: \"30\"\nbackground: \"true\"\nskills:\n",
        name: "planner",
        description: "Plans",
        told: &[
            "`effort` is left out: an agent has the effort of its session",
            "`mcpServers` is left out",
            "`memory` is not known",
            "`permissionMode` is left out",
        ],
    },
    plain(
        "later/windows.md",
        "name: windows\r\ndescription: Has the line ends of another system\r\ntools: Read\r",
        "windows",
        "Has the line ends of another system",
    ),
    plain(
        "later/marked.md",
        "name: marked   # as it is called\ndescription: Begins with a mark",
        "marked",
        "Begins with a mark",
    ),
];

/// Documentation and the like, which is no agent.
const BESIDE: &[(&str, &str)] = &[
    ("flat/README.md", "# Agents\n\nHow to install them.\n"),
    ("flat/LICENSE.md", "Do what you like.\n"),
    ("categories/01-core/README.md", "# Core\n"),
    ("categories/CONTRIBUTING.md", "Send changes.\n"),
    (
        "categories/.github/ISSUE_TEMPLATE/bug.md",
        "---\nname: Bug\nabout: Something is wrong\n---\nWhat?\n",
    ),
];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn install(place: &Path) {
    for odd in COLLECTIONS {
        let mark = match odd.name {
            "marked" => "\u{feff}",
            _ => "",
        };
        let end = match odd.head.ends_with("-----------") {
            true => "",
            false => "\n---",
        };
        let text = format!("{mark}---\n{}{end}\n\nYou are {}.\n", odd.head, odd.name);
        write(&place.join(odd.path), &text);
    }
    for (path, text) in BESIDE {
        write(&place.join(path), text);
    }
}

fn assert_all_are_there(agents: &[Value]) {
    for odd in COLLECTIONS {
        let agent = agents.iter().find(|agent| agent["name"] == odd.name);
        let agent = agent.unwrap_or_else(|| panic!("{} is not there", odd.path));
        let description = agent["description"].as_str().unwrap();
        assert!(
            description.starts_with(odd.description),
            "{}: {description}",
            odd.path
        );
    }
}

/// Each field that is not understood is named, with its file.
fn assert_all_is_told(warnings: &Value) {
    let warnings = warnings.as_array().unwrap();
    for odd in COLLECTIONS {
        let of_file = warnings.iter().filter(|warning| {
            let path = warning["path"].as_str().unwrap();
            path.ends_with(odd.path)
        });
        let of_file: Vec<&str> = of_file.map(|it| it["message"].as_str().unwrap()).collect();
        for told in odd.told {
            assert!(
                of_file.iter().any(|message| message.starts_with(told)),
                "{}: {told} in {of_file:#?}",
                odd.path
            );
        }
    }
}

#[test]
fn every_agent_of_collections_in_the_users_directory_loads_with_a_warning_for_each_field() {
    let bench = Bench::new(Script::new());
    install(&bench.room.home().join(".claude/agents"));
    let listed = parsed(&bench.run(&["agents", "list", "--json"]).stdout);
    assert_eq!(listed["problems"], json!([]));
    assert_all_are_there(listed["agents"].as_array().unwrap());
    assert_all_is_told(&listed["warnings"]);
    let planner = listed["agents"].as_array().unwrap().iter();
    let planner: Vec<&Value> = planner.filter(|it| it["name"] == "planner").collect();
    assert_eq!(planner.len(), 1);
    assert_eq!(
        (&planner[0]["maxTurns"], &planner[0]["background"]),
        (&json!(30), &json!(true))
    );
}

#[test]
fn a_check_of_a_collection_finds_what_would_be_loaded_of_it() {
    let bench = Bench::new(Script::new());
    let place = bench.room.home().join("clone");
    install(&place);
    let place = place.to_str().unwrap();
    let finished = bench.run(&["agents", "check", "--json", place]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stdout);
    let checked = parsed(&finished.stdout);
    // One name is there twice.
    assert_eq!(checked["checked"], COLLECTIONS.len() - 1);
    assert_eq!(checked["problems"], json!([]));
    assert_all_is_told(&checked["warnings"]);
    let nowhere = bench.run(&["agents", "check", "/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", nowhere.stderr);
}

#[test]
fn a_collection_in_a_repository_is_used_when_it_is_trusted_and_until_a_file_of_it_changes() {
    let bench = Bench::new(Script::new());
    install(&bench.work().join(".claude/agents"));
    let names = || {
        let listed = parsed(&bench.run(&["agents", "list", "--json"]).stdout);
        let agents = listed["agents"].as_array().unwrap().clone();
        let custom = agents.into_iter().filter(|it| it["origin"] == "project");
        custom
            .map(|agent| agent["name"].as_str().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    assert_eq!(names(), [""; 0]);
    bench.trust();
    assert_eq!(names().len(), COLLECTIONS.len() - 1);
    let changed = "---\nname: planner\ndescription: Plans\ntools: Bash\n---\nYou are another.\n";
    bench.file(".claude/agents/later/deep/er/planner.md", changed);
    assert_eq!(names().len(), COLLECTIONS.len() - 2);
    assert!(!names().contains(&"planner".to_owned()));
}

#[test]
fn skills_of_a_collection_are_checked_however_deep_they_are() {
    let bench = Bench::new(Script::new());
    let place = bench.room.home().join("skills");
    for (name, text) in [
        (
            "pdf",
            "---\nname: pdf\ndescription: Fills in forms\n---\nFill.\n",
        ),
        ("office/sheets", "# Sheets\n\nWrites tables.\n"),
        (
            "office/more/mail",
            "---\ndescription: Use it: for mail\nlicense: MIT\n---\nWrite.\n",
        ),
    ] {
        write(&place.join(name).join("SKILL.md"), text);
    }
    write(&place.join("README.md"), "# Skills\n");
    let dir = place.to_str().unwrap();
    let good = bench.run(&["skills", "check", dir]);
    assert_eq!(
        (good.stdout.as_str(), good.status.code()),
        ("3 usable, 0 not\n", Some(0))
    );
    write(&place.join("open/SKILL.md"), "---\nname: open\n");
    let finished = bench.run(&["skills", "check", "--json", dir]);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let checked = parsed(&finished.stdout);
    assert_eq!(checked["checked"], 3);
    let [problem] = &checked["problems"].as_array().unwrap()[..] else {
        panic!("{checked}");
    };
    assert!(problem["path"].as_str().unwrap().ends_with("open/SKILL.md"));
    assert_eq!(problem["line"], 1);
    bench.file(".claude/skills/tidy/SKILL.md", "Sorts imports.\n");
    let own = bench.run(&["skills", "check"]);
    assert_eq!(own.stdout, "1 usable, 0 not\n", "{}", own.stderr);
}
