//! `codespar agents list`: built-in agents, custom ones, and files that cannot be used.

use codespar_testkit::Script;
use serde_json::{Value, json};

use crate::common::{Bench, parsed};

const CUSTOM: &str = "---\nname: reviewer\ndescription: Reads changes\n---\nRead.\n";
const REPLACED: &str = "---\nname: general-purpose\ndescription: Works our way\n---\nWork.\n";
const BROKEN: &str = "---\nname: broken\ndescription: x\ntoools: Rede\n---\nDo.\n";

fn bench() -> Bench {
    let bench = Bench::new(Script::new());
    bench.file(".codespar/agents/reviewer.md", CUSTOM);
    bench.file(".codespar/agents/general.md", REPLACED);
    bench.file(".codespar/agents/broken.md", BROKEN);
    bench.trust();
    bench
}

#[test]
fn built_in_agents_are_listed_beside_custom_ones_and_broken_files_with_their_line() {
    let bench = bench();
    let finished = bench.run(&["agents", "list"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    let detail = |name: &str| {
        let start = format!("{name}  ");
        let place = lines.iter().position(|line| line.starts_with(&start));
        lines[place.unwrap_or_else(|| panic!("no {name} in {lines:#?}")) + 1]
    };
    for name in ["Explore", "Plan", "Bash", "worker"] {
        assert!(detail(name).ends_with(" · built-in"), "{}", detail(name));
    }
    for (name, file) in [
        ("general-purpose", "general.md"),
        ("reviewer", "reviewer.md"),
    ] {
        let place = format!(" · .codespar/agents/{file} (project)");
        assert!(detail(name).ends_with(&place), "{}", detail(name));
    }
    let broken = lines.last().unwrap();
    assert!(
        broken.starts_with("cannot be used: .codespar/agents/broken.md:4: "),
        "{broken}"
    );
}

#[test]
fn json_has_the_same_agents_with_the_same_fields() {
    let bench = bench();
    let list = parsed(&bench.run(&["agents", "list", "--json"]).stdout);
    let agents = list["agents"].as_array().unwrap();
    let origins: Vec<(&str, &str)> = agents
        .iter()
        .map(|agent| (text(agent, "name"), text(agent, "origin")))
        .collect();
    assert_eq!(
        origins,
        [
            ("Explore", "built-in"),
            ("Plan", "built-in"),
            ("Bash", "built-in"),
            ("worker", "built-in"),
            ("general-purpose", "project"),
            ("reviewer", "project"),
        ]
    );
    let fields = |agent: &Value| -> Vec<String> {
        let mut names: Vec<String> = agent.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(fields(&agents[0]), fields(&agents[5]));
    assert_eq!(
        agents[0]["tools"],
        json!(["Read", "Glob", "Grep", "LS", "WebFetch"])
    );
    let problems = list["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{list}");
    assert!(text(&problems[0], "path").ends_with(".codespar/agents/broken.md"));
    assert_eq!(problems[0]["line"], 4);
    assert!(text(&problems[0], "message").contains("toools"), "{list}");
}

#[test]
fn agents_of_installed_plugins_are_listed_with_their_plugin() {
    let bench = bench();
    let plugins = bench.room.home().join(".claude/plugins");
    let place = plugins.join("cache/kit");
    std::fs::create_dir_all(place.join("agents")).unwrap();
    let agent = "---\nname: poet\ndescription: Writes poems\n---\nWrite.\n";
    std::fs::write(place.join("agents/poet.md"), agent).unwrap();
    let installed = json!({"kit@m": [{"scope": "user", "installPath": place}]});
    let list = json!({"version": 2, "plugins": installed}).to_string();
    std::fs::write(plugins.join("installed_plugins.json"), list).unwrap();
    let enable = |is_enabled: bool| {
        let settings = json!({"enabledPlugins": {"kit@m": is_enabled, "gone@m": is_enabled}});
        let path = bench.room.home().join(".claude/settings.json");
        std::fs::write(path, settings.to_string()).unwrap();
    };
    let find = |list: &Value| {
        let mut agents = list["agents"].as_array().unwrap().iter();
        agents.find(|one| one["name"] == "kit:poet").cloned()
    };
    enable(false);
    let listed = parsed(&bench.run(&["agents", "list", "--json"]).stdout);
    assert_eq!(find(&listed), None, "{listed}");
    enable(true);
    let finished = bench.run(&["agents", "list", "--json"]);
    let listed = parsed(&finished.stdout);
    assert_eq!(find(&listed).unwrap()["origin"], "plugin", "{listed}");
    assert!(finished.stderr.contains("gone@m"), "{}", finished.stderr);
    let shown = bench.run(&["agents", "list"]).stdout;
    assert!(shown.contains("agents/poet.md (plugin)"), "{shown}");
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}
