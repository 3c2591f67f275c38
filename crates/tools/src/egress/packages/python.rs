//! pip and uv: their package indexes.
//!
//! Read from variables of both and from pip's files; uv's own files are not read. Neither program
//! tells the index it uses when none is configured.

use std::path::{Path, PathBuf};

use super::{PackageConfig, PackageHosts, ini_lines};

/// Variables with one or more addresses. In the order in which their hosts are added.
const VARIABLES: [&str; 7] = [
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
    "UV_INDEX_URL",
];

/// Of pip's files, in any section; an underscore counts as a hyphen.
const KEYS: [&str; 3] = ["index-url", "extra-index-url", "find-links"];

/// Only the first main index is told to commands, in `PIP_INDEX_URL`; of the others only the hosts
/// are allowed.
pub(super) fn find(config: &PackageConfig, found: &mut PackageHosts) {
    let mut any = false;
    let mut add_all = |key: &str, value: &str, found: &mut PackageHosts| {
        if matches!(key, "PIP_INDEX_URL" | "index-url") {
            found.add_registry("PIP_INDEX_URL", value);
        }
        for word in value.split_whitespace() {
            // uv names an index in front of its address.
            let address = word
                .split_once("=http")
                .map_or(word, |(name, _)| &word[name.len() + 1..]);
            any |= found.add(address);
        }
    };
    for name in VARIABLES {
        if let Some(value) = config.var(name) {
            add_all(name, value, found);
        }
    }
    for file in files(config) {
        for (key, value) in ini_lines(&config.read(&file).unwrap_or_default()) {
            let key = key.replace('_', "-");
            if KEYS.contains(&key.as_str()) {
                add_all(&key, &value, found);
            }
        }
    }
    let is_installed = ["pip", "pip3", "uv"]
        .iter()
        .any(|name| config.program(name).is_some());
    if !any && is_installed {
        found.untold(
            "pip",
            "no index is configured, and it does not tell its own",
        );
    }
}

/// The one that a variable names, the user's own, those of the system. All of them are read.
fn files(config: &PackageConfig) -> Vec<PathBuf> {
    let named = config.var("PIP_CONFIG_FILE").map(PathBuf::from);
    let person = [
        config.in_config("pip/pip.conf"),
        config.in_home(".pip/pip.conf"),
    ];
    let system =
        ["/etc/pip.conf", "/etc/xdg/pip/pip.conf"].map(|path| Some(Path::new(path).to_owned()));
    std::iter::once(named)
        .chain(person)
        .chain(system)
        .flatten()
        .collect()
}
