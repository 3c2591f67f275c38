//! The files of `deploy/`: what they start exists, and the programs that read them understand them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use codespar_testkit::Script;
use serde_json::Value;

use crate::common::Bench;

const COMPOSE: [&str; 2] = ["compose.yaml", "fleet/compose.yaml"];
const KUBERNETES: &str = "fleet/kubernetes.yaml";
const UNIT: &str = "codespar.service";

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(deploy(name)).unwrap()
}

/// All documents of a file, merged as their reader merges them.
fn documents(name: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}

fn list(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// The services of a compose file.
fn services(name: &str) -> Vec<(String, Value)> {
    let [file] = &documents(name)[..] else {
        panic!("{name} has one document");
    };
    let services = file["services"].as_object().unwrap();
    services
        .iter()
        .map(|(name, service)| (name.clone(), service.clone()))
        .collect()
}

/// The containers of all that makes pods.
fn containers() -> Vec<Value> {
    let pods = documents(KUBERNETES);
    let pods = pods
        .iter()
        .map(|object| &object["spec"]["template"]["spec"]);
    pods.flat_map(|pod| pod["containers"].as_array().cloned().unwrap_or_default())
        .collect()
}

/// What the files run as `codespar`, and what their comments tell people to run. Each without the
/// program, and with something in place of variables.
fn command_lines() -> Vec<(&'static str, Vec<String>)> {
    let mut lines = Vec::new();
    for name in COMPOSE {
        for (_, service) in services(name) {
            let command = service["command"].as_str().unwrap_or_default();
            if let Some((_, ours)) = command.split_once("exec codespar ") {
                let ours = ours.trim_end_matches('"');
                lines.push((
                    name,
                    words(&ours.replace("${CODESPAR_HOST:-localhost}", "x")),
                ));
            }
        }
    }
    for name in COMPOSE.into_iter().chain([KUBERNETES]) {
        let text = text(name);
        let told = text
            .lines()
            .filter_map(|line| line.split_once("docker compose exec "));
        for (_, told) in told {
            // The service, then the program.
            let (_, ours) = told.split_once(" codespar ").unwrap();
            lines.push((name, words(ours)));
        }
    }
    for container in containers() {
        lines.push((KUBERNETES, list(&container["args"])));
        for probe in ["readinessProbe", "livenessProbe", "startupProbe"] {
            let command = list(&container[probe]["exec"]["command"]);
            if command.first().is_some_and(|program| program == "codespar") {
                lines.push((KUBERNETES, command[1..].to_vec()));
            }
        }
    }
    let unit = text(UNIT).replace("\\\n", " ");
    for line in unit.lines() {
        if let Some((_, ours)) = line.split_once("ExecStart=") {
            lines.push((UNIT, words(ours)[1..].to_vec()));
        }
    }
    lines
}

#[test]
fn every_command_line_of_the_files_is_one_that_the_program_takes() {
    let bench = Bench::new(Script::new());
    // Help comes after whatever is before it was understood.
    let taken = |line: &[String]| {
        let mut args: Vec<&str> = line.iter().map(String::as_str).collect();
        args.push("--help");
        bench.run(&args)
    };
    let wrong = taken(&words("serve --no-such-option"));
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stdout);
    let wrong = taken(&words("serve --listen nowhere"));
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stdout);
    let lines = command_lines();
    for (file, line) in &lines {
        let help = taken(line);
        assert_eq!(
            help.status.code(),
            Some(0),
            "{file}: {line:?}: {}",
            help.stderr
        );
    }
    let found: BTreeSet<(&str, &str)> = lines
        .iter()
        .map(|(file, line)| (*file, line[0].as_str()))
        .collect();
    let expected = [
        (UNIT, "serve"),
        (COMPOSE[0], "serve"),
        (COMPOSE[0], "token"),
        (COMPOSE[1], "fleet"),
        (COMPOSE[1], "serve"),
        (COMPOSE[1], "token"),
        (COMPOSE[1], "worker"),
        (KUBERNETES, "serve"),
        (KUBERNETES, "worker"),
    ];
    assert_eq!(found, BTreeSet::from(expected), "none was overlooked");
}

#[test]
fn images_have_a_version_and_ours_is_that_of_this_one() {
    let mut images: Vec<String> = containers()
        .iter()
        .map(|container| container["image"].as_str().unwrap().to_owned())
        .collect();
    let ours = format!("ghcr.io/codespar/codespar:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(images, [ours.clone(), ours]);
    for name in COMPOSE {
        let services = services(name);
        images.extend(
            services
                .iter()
                .map(|(_, service)| service["image"].as_str().unwrap().to_owned()),
        );
    }
    for image in images {
        let (_, tag) = image.rsplit_once(':').unwrap();
        assert_ne!(tag, "latest", "{image}");
    }
}

/// Keys, tokens and passwords come from outside of the files.
#[test]
fn the_files_have_secrets_by_reference_only() {
    for object in documents(KUBERNETES) {
        assert_ne!(object["kind"], "Secret");
    }
    for container in containers() {
        assert_eq!(container["envFrom"][0]["secretRef"]["name"], "codespar");
        assert_eq!(container["env"], Value::Null);
    }
    let is_secret = |name: &str| {
        let words = ["KEY", "TOKEN", "PASSWORD", "SECRET", "DATABASE_URL"];
        words.iter().any(|word| name.contains(word))
    };
    for name in COMPOSE {
        let mut secrets = 0;
        for (service, of) in services(name) {
            let environment = of["environment"].as_object().cloned().unwrap_or_default();
            for (variable, value) in environment {
                let value = value.as_str().unwrap();
                if is_secret(&variable) {
                    secrets += 1;
                    assert!(value.contains("${"), "{name}: {service}: {variable}");
                }
            }
        }
        assert!(secrets > 1, "{name}");
    }
}

#[test]
fn a_fleet_has_two_workers_that_have_the_time_to_drain() {
    let [_, fleet] = COMPOSE;
    let services = services(fleet);
    let (_, worker) = services.iter().find(|(name, _)| name == "worker").unwrap();
    assert_eq!(worker["deploy"]["replicas"], 2);
    assert_eq!(worker["stop_grace_period"], "60s");
    let documents = documents(KUBERNETES);
    let of = |kind: &str, name: &str| {
        let found = documents
            .iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        &found.unwrap()["spec"]
    };
    assert_eq!(
        of("HorizontalPodAutoscaler", "codespar-worker")["minReplicas"],
        2
    );
    for part in ["codespar-server", "codespar-worker"] {
        let spec = of("Deployment", part);
        assert_eq!(
            spec["template"]["spec"]["terminationGracePeriodSeconds"],
            60
        );
        assert_eq!(spec["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
        assert_eq!(of("PodDisruptionBudget", part)["maxUnavailable"], 1);
    }
}

/// The unit keeps what the sandbox of commands needs.
#[test]
fn the_unit_leaves_namespaces_and_proc_to_the_sandbox() {
    let unit = std::fs::read_to_string(deploy("codespar.service")).unwrap();
    let is_set = |name: &str| {
        unit.lines()
            .any(|line| line.starts_with(&format!("{name}=")))
    };
    for breaks in [
        "RestrictNamespaces",
        "SystemCallFilter",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectProc",
        "ProcSubset",
        "PrivateUsers",
        "MemoryDenyWriteExecute",
    ] {
        assert!(!is_set(breaks), "{breaks}");
    }
    assert!(is_set("NoNewPrivileges"));
}

#[test]
#[ignore = "needs systemd-analyze"]
fn systemd_understands_the_unit() {
    let dir = tempfile::tempdir().unwrap();
    let unit = std::fs::read_to_string(deploy("codespar.service")).unwrap();
    let program = env!("CARGO_BIN_EXE_codespar");
    let unit = unit.replace("/usr/local/bin/codespar", program);
    let file = dir.path().join("codespar.service");
    std::fs::write(&file, unit).unwrap();
    let checked = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&file)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&checked.stderr);
    // It tells of every unit of the machine; only ours counts.
    let ours: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("codespar.service"))
        .collect();
    assert!(ours.is_empty(), "{told}");
}
