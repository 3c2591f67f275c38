//! `codespar token`, and what `serve` refuses.

use codespar_testkit::Script;

use crate::{
    client::{Api, client_builder, serve, token},
    common::{Bench, parsed},
};

#[test]
fn a_token_is_shown_once_works_and_is_revoked() {
    let bench = Bench::new(Script::new());
    let made = bench.run(&["token", "create", "--role", "read", "--name", "ci"]);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let secret = made.stdout.trim().to_owned();
    assert!(secret.starts_with("cspr_"), "{}", made.stdout);
    let listed = bench.run(&["token", "list"]);
    assert!(listed.stdout.contains("ci") && listed.stdout.contains("never used"));
    assert!(!listed.stdout.contains(&secret));
    let served = serve(&bench, &[]);
    let api = Api::new(&served.base, &secret);
    assert_eq!(api.get("/api/v1/me").0, 200);
    let revoked = bench.run(&["token", "revoke", "ci"]);
    assert_eq!(revoked.status.code(), Some(0), "{}", revoked.stderr);
    assert_eq!(api.get("/api/v1/me").0, 401);
    let tokens = parsed(&bench.run(&["token", "list", "--json"]).stdout);
    assert!(tokens["tokens"][0]["last_used_at"].is_string());
    assert!(tokens["tokens"][0]["revoked_at"].is_string());
    let again = bench.run(&["token", "revoke", "ci"]);
    assert_eq!(again.status.code(), Some(2), "{}", again.stderr);
    // The database does not have it.
    let database = std::fs::read(bench.room.codespar_home().join("codespar.db")).unwrap();
    let is_in = |needle: &str| {
        database
            .windows(needle.len())
            .any(|part| part == needle.as_bytes())
    };
    assert!(!is_in(&secret) && is_in("access_tokens"));
}

#[test]
fn other_machines_are_not_served_without_tls() {
    let bench = Bench::new(Script::new());
    for args in [
        ["serve", "--listen", "0.0.0.0:0"],
        ["serve", "--listen", "[::]:0"],
        ["serve", "--listen", "nonsense"],
        ["serve", "--host", "https://spar.example"],
        ["serve", "--tls-cert", "only.pem"],
    ] {
        let refused = bench.run(&args);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{args:?}: {}",
            refused.stderr
        );
    }
    let missing = bench.run(&["serve", "--tls-cert", "no.pem", "--tls-key", "no.pem"]);
    assert_eq!(missing.status.code(), Some(1), "{}", missing.stderr);
    assert!(missing.stderr.contains("no.pem"), "{}", missing.stderr);
}

#[test]
fn an_address_that_is_taken_is_said() {
    let bench = Bench::new(Script::new());
    let served = serve(&bench, &[]);
    let address = served.base.strip_prefix("http://").unwrap();
    let second = bench.run(&["serve", "--listen", address]);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        second.stderr.contains("cannot listen on"),
        "{}",
        second.stderr
    );
}

/// Needs `openssl` for a certificate.
#[test]
#[ignore = "needs openssl; run by `cargo xtask test`"]
fn a_server_with_a_certificate_speaks_tls() {
    let bench = Bench::new(Script::new());
    let config = "[req]\ndistinguished_name = name\nx509_extensions = leaf\nprompt = no\n\
                  [name]\nCN = localhost\n[leaf]\nbasicConstraints = critical,CA:FALSE\n\
                  subjectAltName = IP:127.0.0.1\n";
    bench.file("req.cnf", config);
    let done = std::process::Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
        ])
        .args([
            "-keyout", "key.pem", "-out", "cert.pem", "-config", "req.cnf",
        ])
        .current_dir(bench.work())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let files = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let served = serve(&bench, &files);
    assert!(served.base.starts_with("https://"), "{}", served.base);
    let secret = token(&bench, "read");
    let certificate = std::fs::read(bench.work().join("cert.pem")).unwrap();
    let certificate = reqwest::Certificate::from_pem(&certificate).unwrap();
    let builder = client_builder().tls_certs_only([certificate]);
    let api = Api::with(builder, &served.base, &secret);
    assert_eq!(api.get("/api/v1/me").0, 200);
}
