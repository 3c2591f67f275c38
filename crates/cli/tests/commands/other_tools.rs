//! Files that were written for another tool, through the real binary: instructions, rules, skills,
//! output styles, settings and plugins.

use std::fs;

use codespar_testkit::{Script, SdkClient, Turn};
use serde_json::{Value, json};

use crate::{
    common::{Bench, one_command, parsed, session, tool_results},
    mcp::entry,
};

fn system(bench: &Bench) -> String {
    bench.server.requests()[0].system_text()
}

fn read(name: &str) -> Turn {
    Turn::tool("Read", &json!({ "file_path": name }))
}

#[test]
fn instructions_of_a_part_come_with_the_first_file_of_it() {
    let script = Script::new()
        .turn(read("web/a.ts"))
        .turn(read("web/b.ts"))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    bench.file("CLAUDE.local.md", "LOCAL-NOTE");
    bench.file(".claude/rules/all.md", "RULE-FOR-ALL");
    bench.file(
        ".claude/rules/ts.md",
        "---\npaths:\n  - \"**/*.ts\"\n---\nRULE-FOR-TS",
    );
    bench.file("web/CLAUDE.md", "ABOUT-WEB");
    bench.file("web/a.ts", "let a;");
    bench.file("web/b.ts", "let b;");
    bench.run(&["-p", "go"]);
    let system = system(&bench);
    assert!(
        system.contains("LOCAL-NOTE") && system.contains("RULE-FOR-ALL"),
        "{system}"
    );
    assert!(
        !system.contains("ABOUT-WEB") && !system.contains("RULE-FOR-TS"),
        "{system}"
    );
    let last = bench.server.last_request().unwrap();
    let results: Vec<String> = last.tool_results().into_iter().map(|it| it.text).collect();
    assert!(
        results[0].contains("ABOUT-WEB") && results[0].contains("RULE-FOR-TS"),
        "{results:?}"
    );
    assert!(!results[1].contains("ABOUT-WEB"), "{results:?}");
}

#[test]
fn an_output_style_replaces_or_adds_and_a_repository_cannot_take_the_place_of_the_users() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    let home = bench.room.home();
    let styles = home.join(".claude/output-styles");
    fs::create_dir_all(&styles).unwrap();
    fs::write(styles.join("terse.md"), "---\nname: Terse\n---\nUSER-STYLE").unwrap();
    bench.file(
        ".claude/output-styles/terse.md",
        "---\nname: Terse\n---\nREPO-STYLE",
    );
    let settings = bench.room.codespar_home();
    fs::create_dir_all(&settings).unwrap();
    fs::write(
        settings.join("settings.json"),
        r#"{"outputStyle": "terse"}"#,
    )
    .unwrap();
    bench.run(&["-p", "go"]);
    let text = system(&bench);
    assert!(text.contains("USER-STYLE"), "{text}");
    assert!(
        !text.contains("REPO-STYLE") && !text.contains("You are CodeSpar"),
        "{text}"
    );
    let adding = "---\nname: Terse\nkeep-coding-instructions: true\n---\nUSER-STYLE";
    fs::write(styles.join("terse.md"), adding).unwrap();
    bench.run(&["-p", "go"]);
    let text = bench.server.last_request().unwrap().system_text();
    assert!(
        text.contains("USER-STYLE") && text.contains("You are CodeSpar"),
        "{text}"
    );
}

#[test]
fn settings_of_another_tool_give_variables_and_a_model_when_they_are_trusted() {
    let bench = Bench::new(one_command("echo got-$FROM_CLAUDE"));
    let text = r#"{"env": {"FROM_CLAUDE": "yes", "LD_PRELOAD": "x.so"}, "model": "haiku", "cleanupPeriodDays": 3}"#;
    bench.file(".claude/settings.json", text);
    let result = |args: &[&str]| {
        let finished = bench.run(&[&["-p", "go", "--allowedTools", "Bash"], args].concat());
        let last = bench.server.last_request().unwrap();
        let model = last.model().to_owned();
        (last.tool_results()[0].text.clone(), model, finished.stderr)
    };
    let (said, model, _) = result(&[]);
    assert_eq!(said, "got-");
    assert!(!model.contains("haiku"), "{model}");
    let (said, model, told) = result(&["--trust"]);
    assert_eq!(said, "got-yes");
    assert!(model.contains("haiku"), "{model}");
    assert!(told.contains("env.LD_PRELOAD is ignored"), "{told}");
}

#[test]
fn a_skill_for_the_user_alone_is_started_by_its_name() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    bench.file(
        ".claude/skills/deploy/SKILL.md",
        "---\ndescription: Deploys: carefully\ndisable-model-invocation: true\n---\nDEPLOY-STEPS to $ARGUMENTS",
    );
    session(&bench, &[("›", "/deploy staging"), ("done", "/quit")]);
    let request = bench.server.last_request().unwrap();
    let text = request.messages()[0].to_string();
    assert!(text.contains("DEPLOY-STEPS to staging"), "{text}");
    assert!(
        !request.system_text().contains("Deploys"),
        "{}",
        request.system_text()
    );
}

#[test]
fn a_plugin_brings_agents_skills_commands_and_hooks() {
    let bench = Bench::new(one_command("touch made"));
    let plugin = bench.room.home().join("guard");
    let write = |name: &str, text: &str| {
        let path = plugin.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        ".claude-plugin/plugin.json",
        r#"{"name": "guard", "version": "1.0.0"}"#,
    );
    write(
        "agents/scout.md",
        "---\nname: scout\ndescription: Scouts\n---\nScout.\n",
    );
    write(
        "skills/look/SKILL.md",
        "---\ndescription: LOOK-SKILL\n---\nLook.",
    );
    write("commands/hello.md", "Say PLUGIN-HELLO to $1");
    write("deny.sh", "echo the plugin refuses >&2; exit 2\n");
    let hook = json!({"type": "command", "command": "sh \"${CLAUDE_PLUGIN_ROOT}/deny.sh\""});
    let hooks = json!({"description": "x", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    write("hooks/hooks.json", &hooks.to_string());
    let dir = plugin.to_str().unwrap();
    let args = ["-p", "go", "--allowedTools", "Bash", "--plugin-dir", dir];
    let finished = bench.run(&[&args[..], &["--output-format", "stream-json"]].concat());
    let lines = crate::common::json_lines(&finished.stdout);
    assert!(
        lines[0]["agents"].to_string().contains("guard:scout"),
        "{}",
        lines[0]
    );
    let last = bench.server.last_request().unwrap();
    assert_eq!(
        last.tool_results()[0].text,
        "permission denied: a PreToolUse hook refused it: the plugin refuses"
    );
    assert!(
        last.system_text().contains("- guard:look: LOOK-SKILL"),
        "{}",
        last.system_text()
    );
    assert!(!bench.work().join("made").exists());
    let missing = bench.run(&["-p", "go", "--plugin-dir", "/nowhere"]);
    assert_eq!(missing.status.code(), Some(2), "{}", missing.stderr);
    let listed = parsed(&bench.run(&["agents", "list", "--json"]).stdout);
    assert!(
        !listed.to_string().contains("guard:scout"),
        "only where it is named"
    );
}

/// The files of a plugin that the user names, and the place of it.
fn plugin(bench: &Bench, name: &str, files: &[(&str, &str)]) -> String {
    let place = bench.room.home().join(name);
    for (name, text) in files {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place.to_str().unwrap().to_owned()
}

/// A client of a session with this plugin, and what the session says of itself.
fn with_plugin(bench: &Bench, dir: &str) -> (SdkClient, Value) {
    let args = [
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--allowedTools=mcp__kit,mcp__inline",
        "--plugin-dir",
        dir,
    ];
    let mut client = SdkClient::start(&mut bench.command(&args)).unwrap();
    let told = client.request(&json!({"subtype": "initialize"}));
    (client, told.unwrap().unwrap())
}

fn has(list: &Value, name: &str) -> bool {
    list.as_array().unwrap().iter().any(|it| it["name"] == name)
}

#[test]
fn servers_and_commands_of_a_plugin_are_there_and_can_be_used() {
    let call = |server: &str| {
        let text = json!({"text": format!("from {server}")});
        Turn::tool(format!("mcp__{server}__echo"), &text)
    };
    let script = Script::new()
        .turn(call("kit"))
        .turn(call("inline"))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let manifest = json!({
        "name": "pack",
        "mcpServers": {"inline": entry(&[])},
        "commands": ["./extra/tidy.md"],
    });
    let files = [
        (".claude-plugin/plugin.json", manifest.to_string()),
        // Without `mcpServers` around it.
        (".mcp.json", json!({"kit": entry(&[])}).to_string()),
        ("commands/git/hello.md", "Say PLUGIN-HELLO to $1".to_owned()),
        ("extra/tidy.md", "Tidy up".to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let dir = plugin(&bench, "pack", &files);
    let (mut client, told) = with_plugin(&bench, &dir);
    for name in ["pack:git:hello", "pack:tidy"] {
        assert!(has(&told["commands"], name), "{name} in {told}");
    }
    client.prompt("/pack:git:hello Ann").unwrap();
    let lines = client.turn().unwrap();
    assert_eq!(tool_results(&lines), ["from kit", "from inline"]);
    let begun = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    for name in ["kit", "inline"] {
        let servers = &begun["mcp_servers"];
        let is_there = |it: &&Value| it["name"] == name && it["status"] == "connected";
        assert!(
            servers.as_array().unwrap().iter().any(|it| is_there(&it)),
            "{servers}"
        );
    }
    let asked = bench.server.requests()[0].messages()[0].to_string();
    assert!(asked.contains("Say PLUGIN-HELLO to Ann"), "{asked}");
}

#[test]
fn a_plugin_names_its_files_in_its_manifest_and_what_has_no_meaning_is_told() {
    let bench = Bench::new(one_command("touch made"));
    let hook = json!({"type": "command", "command": "echo the manifest refuses >&2; exit 2"});
    let manifest = json!({
        "name": "pack", "version": "1.0.0", "author": {"name": "us"},
        "agents": ["./people/scout.md", "./more"],
        "skills": ["./one", "../outside"],
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]},
        "mcpServers": "./servers.json",
        "lspServers": {"x": {}},
    });
    let scout = "---\nname: scout\ndescription: Scouts\n---\nScout.\n";
    let files = [
        (".claude-plugin/plugin.json", manifest.to_string()),
        ("agents/team/lead.md", scout.replace("scout", "lead")),
        ("people/scout.md", scout.to_owned()),
        ("people/other.md", scout.replace("scout", "other")),
        ("more/cook.md", scout.replace("scout", "cook")),
        ("one/SKILL.md", "Looks around.\n".to_owned()),
        ("servers.json", r#"{"bad": {"command": 5}}"#.to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let dir = plugin(&bench, "pack", &files);
    let args = ["-p", "go", "--allowedTools", "Bash", "--plugin-dir", &dir];
    let finished = bench.run(&args);
    let request = bench.server.last_request().unwrap();
    assert_eq!(
        request.tool_results()[0].text,
        "permission denied: a PreToolUse hook refused it: the manifest refuses"
    );
    let text = request.system_text();
    assert!(text.contains("- pack:one: Looks around."), "{text}");
    for told in [
        "plugin.json: `lspServers` is left out: it has no meaning here",
        "plugin.json: `skills: ../outside` is left out",
        "servers.json:1: mcpServers.bad: invalid type",
    ] {
        assert!(
            finished.stderr.contains(told),
            "{told}: {}",
            finished.stderr
        );
    }
    let (_client, told) = with_plugin(&bench, &dir);
    for name in ["pack:team:lead", "pack:scout", "pack:cook"] {
        assert!(has(&told["agents"], name), "{name} in {told}");
    }
    assert!(!has(&told["agents"], "pack:other"), "it is not named");
}

#[test]
fn fields_without_a_meaning_of_agents_of_a_caller_are_told() {
    let bench = Bench::new(Script::of([Turn::text("done")]));
    let agents = json!({"poet": {
        "description": "d", "prompt": "p", "effort": "high", "memory": "user", "color": "red",
    }});
    let finished = bench.run(&["-p", "go", "--agents", &agents.to_string()]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    for told in [
        "agent poet: `effort` is left out",
        "agent poet: `memory` is not known and left out",
    ] {
        assert!(
            finished.stderr.contains(told),
            "{told}: {}",
            finished.stderr
        );
    }
    assert!(!finished.stderr.contains("color"), "{}", finished.stderr);
}

/// A plugin whose hook refuses commands, where the other tool would have put it.
fn install(bench: &Bench, name: &str, place: &std::path::Path) -> serde_json::Value {
    fs::create_dir_all(place.join("hooks")).unwrap();
    let command = format!("echo {name} refuses >&2; exit 2");
    let hook = json!({"type": "command", "command": command});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    fs::write(place.join("hooks/hooks.json"), hooks.to_string()).unwrap();
    fs::create_dir_all(bench.room.home().join(".claude/plugins")).unwrap();
    json!({"scope": "user", "installPath": place, "version": "1.0.0"})
}

fn list_installed(bench: &Bench, plugins: &serde_json::Value) {
    let list = bench
        .room
        .home()
        .join(".claude/plugins/installed_plugins.json");
    let text = json!({"version": 2, "plugins": plugins}).to_string();
    fs::write(list, text).unwrap();
}

fn of_claude(bench: &Bench, settings: &serde_json::Value) {
    let path = bench.room.home().join(".claude/settings.json");
    fs::write(path, settings.to_string()).unwrap();
}

#[test]
fn plugins_that_the_user_installed_and_enabled_are_used_and_no_others() {
    let bench = Bench::new(one_command("touch made"));
    let cache = bench.room.home().join(".claude/plugins/cache");
    let guard = install(&bench, "guard", &cache.join("guard"));
    let off = install(&bench, "off", &cache.join("off"));
    let inside = install(&bench, "inside", &bench.work().join("inside"));
    let elsewhere = json!({"scope": "project", "projectPath": "/elsewhere", "installPath": cache.join("guard")});
    list_installed(
        &bench,
        &json!({"guard@m": [elsewhere, guard], "off@m": off, "inside@m": [inside]}),
    );
    let enabled = json!({"guard@m": true, "off@m": false, "inside@m": true, "gone@m": true});
    of_claude(&bench, &json!({"enabledPlugins": enabled}));
    // A repository, trusted or not, takes no plugin of the user away.
    bench.file(
        ".claude/settings.json",
        &json!({"enabledPlugins": {"guard@m": false}}).to_string(),
    );
    let args = ["-p", "go", "--allowedTools", "Bash", "--trust"];
    let finished = bench.run(&args);
    let last = bench.server.last_request().unwrap();
    assert_eq!(
        last.tool_results()[0].text,
        "permission denied: a PreToolUse hook refused it: guard refuses"
    );
    assert!(!bench.work().join("made").exists());
    for told in [
        "plugin gone@m is not used: it is not installed",
        "plugin inside@m is not used",
        "is in the project",
    ] {
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }
    let listed = parsed(&bench.run(&["hooks", "list", "--json"]).stdout);
    let hooks = listed["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 1, "{listed}");
}

#[test]
fn a_repository_enables_an_installed_plugin_only_when_it_is_trusted() {
    let bench = Bench::new(one_command("touch made"));
    let place = bench.room.home().join(".claude/plugins/cache/guard");
    let guard = install(&bench, "guard", &place);
    list_installed(&bench, &json!({"guard@m": [guard]}));
    bench.file(
        ".claude/settings.json",
        &json!({"enabledPlugins": {"guard@m": true}}).to_string(),
    );
    let finished = bench.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert!(bench.work().join("made").exists(), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("enabledPlugins"),
        "{}",
        finished.stderr
    );
    fs::remove_file(bench.work().join("made")).unwrap();
    bench.run(&["-p", "go", "--allowedTools", "Bash", "--trust"]);
    assert!(!bench.work().join("made").exists());
}

#[test]
fn a_list_of_plugins_that_cannot_be_read_is_told_and_nothing_else_is_lost() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    let plugins = bench.room.home().join(".claude/plugins");
    fs::create_dir_all(&plugins).unwrap();
    fs::write(plugins.join("installed_plugins.json"), "[[").unwrap();
    of_claude(&bench, &json!({"enabledPlugins": {"guard@m": true}}));
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("installed_plugins.json")
            && finished.stderr.contains("no plugin is used"),
        "{}",
        finished.stderr
    );
}

#[test]
fn servers_that_the_user_added_to_another_tool_are_theirs_here_too() {
    let bench = Bench::new(Script::new());
    let work = bench.work().canonicalize().unwrap();
    let server = json!({"command": "/nowhere/server"});
    let state = json!({
        "numStartups": 7,
        "mcpServers": {"everywhere": server},
        "projects": {
            work.to_str().unwrap(): {"mcpServers": {"here": server}, "history": [{"display": "x"}]},
            "/elsewhere": {"mcpServers": {"there": server}},
        },
    });
    fs::write(bench.room.home().join(".claude.json"), state.to_string()).unwrap();
    let listed = parsed(&bench.run(&["mcp", "list", "--json"]).stdout);
    let names = listed["servers"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["everywhere", "here"]);
}
