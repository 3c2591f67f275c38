//! Which crate may depend on which: only those of the layers above it.
//!
//! The table is the one of docs/architecture.md in code. A crate may use what its dependencies may
//! use: the list of each is extended by those of the crates in it. A crate that is not in the table
//! fails the check, so that whoever adds one decides where it belongs.

use crate::metadata::Package;

/// A crate and those it may depend on besides what these depend on themselves, from the top.
const LAYERS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("files", &[]),
    ("outline", &[]),
    ("model", &["protocol"]),
    ("policy", &["protocol"]),
    ("git", &[]),
    ("store", &["protocol"]),
    ("tools", &["protocol", "policy", "files", "git"]),
    ("mcp", &["tools"]),
    ("locate", &["files", "git", "outline"]),
    ("agent", &["model", "policy", "store", "tools"]),
    ("tasks", &["agent", "mcp"]),
    ("fleet", &["tasks"]),
    ("traces", &["protocol"]),
    ("forge", &["protocol", "store", "git"]),
    ("change", &["tasks"]),
    ("pulls", &["change", "forge", "outline"]),
    ("dev", &["pulls", "locate"]),
    ("runtime", &["dev", "fleet"]),
    ("channels", &["runtime"]),
    ("server", &["channels"]),
    ("terminal", &["policy"]),
    ("tui", &["protocol", "terminal"]),
    ("cli", &["server", "traces", "tui"]),
    (TESTKIT, &["protocol", "store"]),
    ("xtask", &["locate", TESTKIT]),
];

/// For tests alone, and for the benchmarks of the xtask.
const TESTKIT: &str = "testkit";

/// The test kit is allowed everywhere as a dev-dependency.
pub(crate) fn problems(package: &Package) -> Vec<String> {
    let Some(layer) = layer_of(&package.name) else {
        return Vec::new();
    };
    let Some(allowed) = allowed(layer) else {
        return vec![format!(
            "the crate `{layer}` is not in the table of xtask/src/layers.rs; add it at its layer"
        )];
    };
    let mut problems = Vec::new();
    for dependency in &package.dependencies {
        let Some(used) = layer_of(&dependency.name) else {
            continue;
        };
        let for_tests = used == TESTKIT && dependency.is_dev();
        if !for_tests && !allowed.contains(&used) {
            problems.push(format!(
                "the crate `{layer}` may not depend on `{used}`: it is not in a layer above"
            ));
        }
    }
    problems
}

/// `None` for packages from outside, which the layers do not concern.
fn layer_of(package: &str) -> Option<&str> {
    match package {
        "codespar" => Some("cli"),
        "xtask" => Some("xtask"),
        _ => package.strip_prefix("codespar-"),
    }
}

/// All crates that a crate may depend on, or `None` if it is not known.
fn allowed(layer: &str) -> Option<Vec<&'static str>> {
    let (_, direct) = LAYERS.iter().find(|(name, _)| *name == layer)?;
    let mut all = direct.to_vec();
    for above in *direct {
        all.extend(allowed(above).unwrap_or_default());
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(name: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).to_owned(),
            rename: None,
            kind: kind.map(str::to_owned),
        };
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            license: None,
            manifest_path: "Cargo.toml".into(),
            dependencies: uses.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn a_crate_may_use_those_above_it_also_at_a_distance() {
        let uses = [
            ("codespar-protocol", None),
            ("codespar-tools", None),
            ("serde", None),
            ("codespar-testkit", Some("dev")),
        ];
        assert_eq!(problems(&package("codespar-agent", &uses)), [""; 0]);
        assert_eq!(problems(&package("codespar", &uses)), [""; 0]);
    }

    #[test]
    fn a_crate_may_not_use_those_below_or_beside_it() {
        let uses = [("codespar-agent", Some("dev")), ("codespar-store", None)];
        assert_eq!(
            problems(&package("codespar-policy", &uses)),
            [
                "the crate `policy` may not depend on `agent`: it is not in a layer above",
                "the crate `policy` may not depend on `store`: it is not in a layer above"
            ]
        );
    }

    #[test]
    fn the_testkit_is_for_tests() {
        let uses = [("codespar-testkit", None)];
        assert_eq!(
            problems(&package("codespar-model", &uses)),
            ["the crate `model` may not depend on `testkit`: it is not in a layer above"]
        );
        assert_eq!(problems(&package("xtask", &uses)), [""; 0]);
    }

    #[test]
    fn a_new_crate_must_be_given_its_layer() {
        assert_eq!(
            problems(&package("codespar-attic", &[])),
            ["the crate `attic` is not in the table of xtask/src/layers.rs; add it at its layer"]
        );
    }
}
