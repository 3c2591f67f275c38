//! The tests' network: the proxy, and what it refused.

use serde_json::json;

use crate::{
    registry::{self, Registry},
    repository::{FIX, GREET, TEST, answer, dev, pull, repository, script},
};

#[test]
fn dependencies_are_installed_through_the_proxy_and_a_refused_host_is_in_the_report() {
    let registry = Registry::start();
    let [(_, package), (_, lock)] = registry::project(&registry.url());
    let bench = repository(
        script(&["greet.sh"], [answer("Say hi instead of hello", FIX)]),
        &[
            ("greet.sh", GREET),
            ("test.sh", TEST),
            ("package.json", &package),
            ("package-lock.json", &lock),
            (".gitignore", "node_modules\n"),
        ],
    );
    let install = "npm ci --no-audit --no-fund --fetch-retries=0 --cache $TMPDIR/npm";
    let elsewhere = "npm view x --registry http://evil.example --fetch-retries=0 \
                     --cache $TMPDIR/npm >/dev/null 2>&1";
    let command = format!(
        "{install} && node -e 'require(\"tiny\")' && sh test.sh; code=$?; {elsewhere}; exit $code"
    );
    let settings = json!({
        "sandbox": {"allowedDomains": [registry.name()]},
        "verify": {"command": command},
    });
    std::fs::create_dir_all(bench.room.codespar_home()).unwrap();
    std::fs::write(
        bench.room.codespar_home().join("settings.json"),
        settings.to_string(),
    )
    .unwrap();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let after = &report["verification"]["after"];
    assert_eq!(
        after["counts"],
        json!({"passed": 1, "failed": 0}),
        "{report}"
    );
    assert_eq!(after["blocked"], json!(["evil.example"]), "{report}");
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(body.contains("- blocked: `evil.example`"), "{body}");
}
