//! Commands in a sandbox whose only way out is the proxy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use axum::{Router, routing::get};
use codespar_tools::{
    egress::{AllowedDomains, Egress},
    sandbox::{Sandbox, SandboxChoice},
};
use rstest::rstest;
use support::{Bench, guard};
use tempfile::TempDir;

/// Asks the proxy by hand: `ask METHOD target`.
const ASK: &str = r#"
ask() {
    exec 3<>/dev/tcp/127.0.0.1/61080 || return 1
    printf '%s %s HTTP/1.1\r\n\r\n' "$1" "$2" >&3
    cat <&3
}
"#;

struct Site {
    bench: Bench,
    port: u16,
    sockets: TempDir,
}

impl Site {
    /// A server on this machine, and a sandbox that lets commands reach it by name.
    async fn start(choice: SandboxChoice) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let app = Router::new().route("/", get(|| async { "from outside" }));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let sockets = tempfile::tempdir().unwrap();
        let named = vec![format!("localhost:{port}").parse().unwrap()];
        let egress = Egress::new(AllowedDomains::new(named), sockets.path().join("egress"));
        let sandbox = Sandbox::probe(choice, guard()).with_egress(egress);
        assert!(sandbox.egress().is_some(), "{:?}", sandbox.report());
        Self {
            bench: Bench::with(sandbox),
            port,
            sockets,
        }
    }

    fn left_on_disk(&self) -> usize {
        std::fs::read_dir(self.sockets.path().join("egress"))
            .unwrap()
            .count()
    }
}

#[rstest]
#[case(SandboxChoice::Namespaces)]
#[case(SandboxChoice::Bubblewrap)]
#[case(SandboxChoice::Landlock)]
#[tokio::test]
async fn a_command_reaches_the_allowed_host_through_the_proxy_and_nothing_without_it(
    #[case] choice: SandboxChoice,
) {
    let site = Site::start(choice).await;
    let port = site.port;
    let said = site
        .bench
        .ok(&format!(
            "{ASK}\nask GET http://localhost:{port}/\n\
             (exec 4<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo AROUND; true"
        ))
        .await;
    assert!(
        said.contains("from outside") && !said.contains("AROUND"),
        "{said}"
    );
    assert!(!said.contains("blocked"), "{said}");
    assert_eq!(site.left_on_disk(), 0);
}

#[rstest]
#[case(SandboxChoice::Namespaces)]
#[case(SandboxChoice::Bubblewrap)]
#[case(SandboxChoice::Landlock)]
#[tokio::test]
async fn another_host_is_refused_and_named_in_the_result(#[case] choice: SandboxChoice) {
    let site = Site::start(choice).await;
    let said = site
        .bench
        .ok(&format!(
            "{ASK}\nask CONNECT evil.example:443; ask CONNECT 169.254.169.254:80; printf end"
        ))
        .await;
    assert!(said.contains("HTTP/1.1 403 Forbidden"), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let [.., end, first, second] = lines.as_slice() else {
        panic!("{said}");
    };
    assert_eq!((*end, *first), ("end", "blocked: evil.example"));
    assert!(second.starts_with("blocked: 169.254.169.254 ("), "{said}");
    // Each command has its own list.
    let said = site.bench.ok("echo quiet").await;
    assert_eq!(said.trim(), "quiet");
}

#[rstest]
#[case(SandboxChoice::Namespaces)]
#[case(SandboxChoice::Bubblewrap)]
#[case(SandboxChoice::Landlock)]
#[tokio::test]
async fn the_exit_code_and_the_signal_are_the_commands_own_and_nothing_stays(
    #[case] choice: SandboxChoice,
) {
    let site = Site::start(choice).await;
    let said = site.bench.fails("exit 7").await;
    assert!(said.contains("exit code 7"), "{said}");
    let said = site.bench.fails("kill -TERM $$").await;
    assert!(
        said.contains("SIGTERM") || said.contains("signal 15"),
        "{said}"
    );
    // Nothing of ours runs beside the command: `forward <socket> -- …` has become it.
    let sockets = site.sockets.path().display();
    let said = site
        .bench
        .ok(&format!(
            "for f in /proc/[0-9]*/cmdline; do {{ tr '\\0' '\\n' <$f; }} 2>/dev/null | sed -n 3p; \
             done | grep -c '^{sockets}'; true"
        ))
        .await;
    assert_eq!(said.trim(), "0", "{said}");
    assert_eq!(site.left_on_disk(), 0);
}

#[rstest]
#[case(SandboxChoice::Namespaces)]
#[case(SandboxChoice::Bubblewrap)]
#[case(SandboxChoice::Landlock)]
#[tokio::test]
async fn a_command_cannot_hand_over_another_socket(#[case] choice: SandboxChoice) {
    let site = Site::start(choice).await;
    let base = site.sockets.path().join("egress");
    let said = site
        .bench
        .ok(&format!(
            "for s in {}/*/s; do {} connect $s && echo REACHED; done; echo tried",
            base.display(),
            guard().display()
        ))
        .await;
    assert!(
        said.contains("tried") && !said.contains("REACHED"),
        "{said}"
    );
    assert_eq!(site.left_on_disk(), 0);
}

#[rstest]
#[case(SandboxChoice::Namespaces)]
#[case(SandboxChoice::Bubblewrap)]
#[case(SandboxChoice::Landlock)]
#[tokio::test]
async fn programs_are_told_of_the_proxy(#[case] choice: SandboxChoice) {
    let site = Site::start(choice).await;
    let said = site
        .bench
        .ok("echo $HTTPS_PROXY $http_proxy $NO_PROXY")
        .await;
    assert_eq!(
        said.trim(),
        "http://127.0.0.1:61080 http://127.0.0.1:61080 127.0.0.1,::1"
    );
}

#[test]
fn without_a_sandbox_the_list_means_nothing() {
    let sockets = tempfile::tempdir().unwrap();
    let named = vec!["packages.example".parse().unwrap()];
    let egress = Egress::new(AllowedDomains::new(named), sockets.path().join("egress"));
    let sandbox = Sandbox::probe(SandboxChoice::Off, guard()).with_egress(egress);
    assert!(sandbox.egress().is_none());
}
