//! Repositories, tests and installation scripts that try to get at more than they are given.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use crate::{
    common::Bench,
    dependencies::{FIX_JS, GREET_JS, TEST_JS, assert_verified, fingerprint, with_node_modules},
    registry::{self, Registry},
    repository::{answer, commit_all, dev, repository, script},
};

/// The test passes if the attack comes to nothing; it says what it found otherwise.
fn node(attack: &str) -> String {
    format!(
        "const fs = require('fs');\nconst check = (what) => {{ {attack} }};\ncheck();\n{TEST_JS}"
    )
}

fn file_with_secret(bench: &Bench) -> std::path::PathBuf {
    let path = bench.room.home().join("secret.txt");
    fs::write(&path, "the secret").unwrap();
    path
}

#[test]
fn a_directory_that_is_a_link_to_the_home_or_the_root_is_not_shown() {
    for target in ["home", "/"] {
        let bench = with_node_modules(
            "const fs = require('fs');\n\
             for (const name of ['node_modules', '.venv']) {\n\
               if (fs.existsSync(name)) { console.log('1 failed'); process.exit(1); }\n\
             }\n\
             console.log('1 passed');\n",
        );
        fs::remove_dir_all(bench.work().join("node_modules")).unwrap();
        let home = bench.room.home();
        let target = if target == "home" {
            home.as_path()
        } else {
            "/".as_ref()
        };
        fs::write(home.join("pyvenv.cfg"), "").unwrap();
        for name in ["node_modules", ".venv"] {
            symlink(target, bench.work().join(name)).unwrap();
        }
        bench.file(".gitignore", "node_modules\n.venv\n");
        commit_all(&bench, "Ignore");
        let (report, code) = dev(&bench, &["make it say hi"]);
        assert_verified(&report, code);
    }
}

#[test]
fn a_link_within_the_dependencies_opens_nothing() {
    let test = node(
        "for (const name of ['home/secret.txt', 'file', 'home/.codespar/settings.json']) {\n\
           let found; try { found = fs.readFileSync('node_modules/' + name, 'utf8'); } catch {}\n\
           if (found && found !== 'x') throw new Error('read ' + found);\n\
           try { fs.writeFileSync('node_modules/' + name, 'x'); } catch {}\n\
         }\n\
         try { fs.writeFileSync('node_modules/home/planted', 'x'); } catch {}",
    );
    let bench = with_node_modules(&test);
    let secret = file_with_secret(&bench);
    symlink(bench.room.home(), bench.work().join("node_modules/home")).unwrap();
    symlink(&secret, bench.work().join("node_modules/file")).unwrap();
    let before = fingerprint(&bench.work().join("node_modules"));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    assert_eq!(fingerprint(&bench.work().join("node_modules")), before);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the secret");
    assert!(!bench.room.home().join("planted").exists());
}

#[test]
fn nothing_else_of_the_checkout_is_seen_or_changed_at_its_own_path() {
    let bench = with_node_modules("");
    let work = bench.work().canonicalize().unwrap();
    bench.file("notes.txt", "not committed");
    bench.file(".env", "KEY=not committed");
    let test = node(&format!(
        "const at = {};\n\
         for (const name of ['notes.txt', '.env']) {{\n\
           if (fs.existsSync(at + '/' + name)) throw new Error('seen ' + name);\n\
         }}\n\
         fs.writeFileSync(at + '/greet.js.new', 'x');\n\
         fs.writeFileSync(at + '/node_modules/planted', 'x');\n\
         if (!fs.existsSync('node_modules/planted')) throw new Error('two trees');\n\
         try {{ fs.writeFileSync(at + '/.git/config', 'x'); }} catch {{}}\n\
         try {{ fs.writeFileSync(at + '/.git/hooks/post-checkout', 'x'); }} catch {{}}",
        json!(work)
    ));
    bench.file("test.js", &test);
    crate::repository::git(&work, &["add", "test.js"]);
    let args = ["commit", "--quiet", "--no-gpg-sign", "-m", "Test"];
    crate::repository::git(&work, &args);
    let config = fs::read(work.join(".git/config")).unwrap();
    let before = fingerprint(&work.join("node_modules"));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    assert!(!work.join("greet.js.new").exists());
    assert_eq!(fs::read(work.join(".git/config")).unwrap(), config);
    assert!(!work.join(".git/hooks/post-checkout").exists());
    assert_eq!(fingerprint(&work.join("node_modules")), before);
}

#[test]
fn files_that_rules_hide_stay_hidden_in_the_dependencies() {
    let bench = with_node_modules(&node(
        "for (const name of ['tiny/.env', 'private/key']) {\n\
           let found; try { found = fs.readFileSync('node_modules/' + name, 'utf8'); } catch {}\n\
           if (found) throw new Error('read ' + found);\n\
         }",
    ));
    bench.file("node_modules/tiny/.env", "KEY=1");
    bench.file("node_modules/private/key", "KEY=2");
    fs::create_dir_all(bench.room.codespar_home()).unwrap();
    let rules =
        json!({"permissions": {"deny": ["Read(**/.env)", "Read(node_modules/private/**)"]}});
    let settings = bench.room.codespar_home().join("settings.json");
    fs::write(settings, rules.to_string()).unwrap();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
}

#[test]
fn the_layers_of_a_tree_are_out_of_reach_and_a_planted_record_does_nothing() {
    let test = node(
        "const path = require('path');\n\
         const beside = process.cwd() + '.layers';\n\
         if (fs.existsSync(beside + '/layers.json')) throw new Error('seen');\n\
         try { fs.mkdirSync(beside, {recursive: true}); fs.writeFileSync(beside + '/layers.json', '{}'); } catch {}",
    );
    let bench = with_node_modules(&test);
    // A record beside the checkout itself.
    let beside = bench.work().with_file_name("work.layers");
    fs::create_dir_all(&beside).unwrap();
    let record =
        json!({"layers": [{"source": "/", "at": bench.work().join("all"), "writes": "Through"}]});
    fs::write(beside.join("layers.json"), record.to_string()).unwrap();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
}

/// A port of this machine on which somebody listens for as long as the tests run.
fn elsewhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::mem::forget(listener);
    port.to_string()
}

/// A project with an installation script of its own.
fn hostile_setup(registry: &Registry, postinstall: &str, test: &str) -> Bench {
    let [_, (_, lock)] = registry::project(&registry.url());
    let package = json!({
        "name": "p", "version": "1.0.0", "dependencies": {"tiny": "1.0.0"},
        "scripts": {"test": "node test.js", "postinstall": "node postinstall.js"},
        "config": {"port": elsewhere()},
    });
    let bench = repository(
        script(&["greet.js"], [0; 3].map(|_| answer("Say hi", FIX_JS))),
        &[
            ("greet.js", GREET_JS),
            ("test.js", test),
            ("package.json", &package.to_string()),
            ("package-lock.json", &lock),
            ("postinstall.js", postinstall),
            (".gitignore", "node_modules\n"),
        ],
    );
    allow(&bench, registry);
    bench
}

fn allow(bench: &Bench, registry: &Registry) {
    let settings = json!({"sandbox": {"allowedDomains": [registry.name()]}});
    fs::create_dir_all(bench.room.codespar_home()).unwrap();
    let path = bench.room.codespar_home().join("settings.json");
    fs::write(path, settings.to_string()).unwrap();
}

#[test]
fn an_installation_script_reaches_no_other_host_no_secret_and_no_file_outside() {
    let registry = Registry::start();
    let script = "const fs = require('fs'), http = require('http');\n\
        const home = process.env.HOME;\n\
        const note = (text) => fs.appendFileSync('node_modules/said', text + '\\n');\n\
        for (const path of [home + '/secret.txt', home + '/.codespar/settings.json']) {\n\
          try { note('read ' + fs.readFileSync(path)); } catch {}\n\
          try { fs.writeFileSync(path, 'x'); note('wrote ' + path); } catch {}\n\
        }\n\
        try { fs.writeFileSync('../planted', 'x'); } catch {}\n\
        try { fs.writeFileSync('.git/config', 'x'); note('config'); } catch {}\n\
        if (process.env.ANTHROPIC_API_KEY) note('key');\n\
        const direct = http.get('http://127.0.0.1:' + process.env.npm_package_config_port);\n\
        direct.on('socket', (socket) => socket.on('connect', () => { note('direct'); socket.destroy(); }));\n\
        direct.on('error', () => {});\n\
        const proxy = process.env.HTTP_PROXY && new URL(process.env.HTTP_PROXY);\n\
        if (proxy) {\n\
          const request = http.request({host: proxy.hostname, port: proxy.port, path: 'http://evil.example/'});\n\
          request.on('response', (answer) => { if (answer.statusCode === 200) note('evil'); });\n\
          request.on('error', () => {});\n\
          request.end();\n\
        }\n\
        note('ran');\n";
    let test = "const fs = require('fs');\n\
        const said = fs.readFileSync('node_modules/said', 'utf8');\n\
        if (said !== 'ran\\n') throw new Error(said);\n";
    let bench = hostile_setup(&registry, script, &format!("{test}{TEST_JS}"));
    let secret = file_with_secret(&bench);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    assert_eq!(
        report["verification"]["before"]["blocked"],
        json!(["evil.example"]),
        "{report}"
    );
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the secret");
    assert!(!bench.work().join("node_modules").exists());
    let deps = bench.room.codespar_home().join("dev/deps");
    assert!(!deps.join("planted").exists());
}

#[test]
fn a_run_cannot_change_what_the_next_one_gets_from_the_cache() {
    let registry = Registry::start();
    let test = "const fs = require('fs');\n\
        const isFirst = require('./greet') === 'hello';\n\
        if (isFirst && fs.existsSync('node_modules/planted')) process.exit(7);\n\
        fs.writeFileSync('node_modules/planted', 'x');\n\
        fs.writeFileSync('node_modules/tiny/tiny.js', 'module.exports = 42; // poisoned');\n";
    let bench = hostile_setup(&registry, "", &format!("{test}{TEST_JS}"));
    let deps = bench.room.codespar_home().join("dev/deps");
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    let kept = contents(&deps);
    assert!(kept.keys().any(|path| path.ends_with("/tiny.js")));
    assert!(!kept.keys().any(|path| path.ends_with("planted")));
    let (report, code) = dev(&bench, &["make it say hi", "--verify", "node test.js"]);
    assert_verified(&report, code);
    assert_eq!(report["verification"]["before"]["exit_code"], 1, "{report}");
    assert_eq!(contents(&deps), kept);
    // Installed once.
    assert_eq!(registry.requests().len(), 1, "{:?}", registry.requests());
}

/// Without times: using an entry is noted by one.
fn contents(dir: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let all = fingerprint(dir).into_iter();
    all.map(|(path, (.., content))| (path, content)).collect()
}

#[test]
fn another_repository_with_the_same_lock_file_gets_none_of_it() {
    let registry = Registry::start();
    let poison =
        "require('fs').writeFileSync('node_modules/tiny/tiny.js', 'module.exports = 43;');\n";
    let first = hostile_setup(&registry, poison, TEST_JS);
    let (report, _) = dev(&first, &["make it say hi"]);
    assert_eq!(report["verification"]["after"]["exit_code"], 1, "{report}");
    let other = hostile_setup(&registry, "", TEST_JS);
    // In the same state directory.
    let state = other.room.codespar_home();
    let _ = fs::remove_dir_all(state.join("dev/deps"));
    fs::create_dir_all(state.join("dev")).unwrap();
    fs::rename(
        first.room.codespar_home().join("dev/deps"),
        state.join("dev/deps"),
    )
    .unwrap();
    let (report, code) = dev(&other, &["make it say hi"]);
    assert_verified(&report, code);
    assert_eq!(registry.requests().len(), 2);
}

#[test]
fn a_half_made_installation_is_never_used() {
    let registry = Registry::start();
    let bench = hostile_setup(&registry, "", TEST_JS);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    let deps = bench.room.codespar_home().join("dev/deps");
    let entry = fs::read_dir(&deps).unwrap().next().unwrap().unwrap().path();
    // As a kill in the middle leaves it.
    fs::rename(&entry, deps.join("making-killed")).unwrap();
    fs::remove_file(deps.join("making-killed/entry.json")).unwrap();
    let (report, code) = dev(&bench, &["make it say hi", "--verify", "node test.js"]);
    assert_verified(&report, code);
    assert_eq!(registry.requests().len(), 2);
    assert!(entry.join("entry.json").is_file());
}

#[test]
fn without_the_registry_allowed_nothing_is_installed_and_the_reason_is_told() {
    let registry = Registry::start();
    let bench = hostile_setup(&registry, "", TEST_JS);
    fs::remove_file(bench.room.codespar_home().join("settings.json")).unwrap();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let reason = report["not_verified"].as_str().unwrap();
    assert!(
        reason.contains("the module `tiny` is missing (`npm ci` failed"),
        "{reason}"
    );
    assert_eq!(registry.requests(), Vec::<String>::new());
}
