//! The API as an independent reader of its description finds it.

use std::process::Command;

use codespar_protocol::AccessRole;
use serde_json::json;

use crate::{
    resources::{branch_to_merge, clarification, open_pull},
    stage::Stage,
};

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,ignored_auth,unsupported_method";

/// Needs schemathesis, from PyPI; `CODESPAR_SCHEMATHESIS` names the program if it is not on the
/// path. It makes requests from the description, good and bad ones: none may end in a 5xx, be
/// answered outside of the description, or be served without a token.
#[tokio::test]
#[ignore = "needs schemathesis; run by `cargo xtask test`"]
async fn an_independent_fuzzer_finds_no_fault_in_the_api() {
    let stage = Stage::new().await;
    let _git = branch_to_merge(&stage);
    open_pull(&stage).await;
    let (task, session) = stage.agent("a").await;
    stage.say(session, 0, "hello").await;
    let question = clarification(&stage, "a", Some("which file?")).await;
    let said = json!({"text": "whoami", "thread": "main", "project": stage.key("a")});
    stage
        .post(AccessRole::Read, "/api/v1/commands?wait=10", &said)
        .await;
    let known = format!(
        "[[operations]]\ninclude-path-regex = \"^/api/v1/tasks/\"\n\
         parameters = {{ id = \"{}\" }}\n\
         [[operations]]\ninclude-path-regex = \"^/api/v1/sessions/\"\n\
         parameters = {{ id = \"{session}\" }}\n\
         [[operations]]\ninclude-path-regex = \"^/api/v1/questions/\"\n\
         parameters = {{ id = \"{question}\" }}\n\
         [[operations]]\ninclude-path-regex = \"^/api/v1/projects/\"\n\
         parameters = {{ project = \"{}\", number = 1 }}\n\
         [[operations]]\ninclude-path-regex = \"^/api/v1/commands/\"\n\
         parameters = {{ project = \"{}\", thread = \"main\" }}\n",
        task.task_id,
        stage.key("a"),
        stage.key("a")
    );
    let config = stage.dir.path().join("schemathesis.toml");
    std::fs::write(&config, known).unwrap();
    // Once with ids that exist, once with ids of the fuzzer's own.
    for with_known in [true, false] {
        let program = std::env::var("CODESPAR_SCHEMATHESIS");
        let mut command = Command::new(program.unwrap_or("schemathesis".to_owned()));
        if with_known {
            command.arg("--config-file").arg(&config);
        }
        command
            .args(["run", &stage.url("/api/openapi.json")])
            .args([
                "--header",
                &format!("Authorization: Bearer {}", stage.token(AccessRole::Admin)),
            ])
            .args(["--checks", CHECKS, "--max-examples", "25", "--workers", "2"])
            // A stream does not end by itself; a revoked token would end the run.
            .args(["--exclude-path", "/api/v1/events"])
            .args(["--exclude-path", "/api/v1/tokens/{id}/revoke"])
            .args(["--request-timeout", "30", "--no-color", "--seed", "1"])
            .current_dir(stage.dir.path());
        let done = tokio::task::spawn_blocking(move || command.output()).await;
        let done = done.unwrap().unwrap();
        let shown = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{shown}\n{errors}");
    }
    stage.stop().await;
}
