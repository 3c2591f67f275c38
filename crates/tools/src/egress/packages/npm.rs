//! npm and what reads its files (pnpm, yarn): the registry and those of scopes.
//!
//! Variables go before files, and the user's file before global ones, as for npm itself; the first
//! registry found is the one that commands are told of. All are added as hosts.

use std::path::PathBuf;

use super::{PackageConfig, PackageHosts, ini_lines};

/// How npm is told of its registry.
pub(in crate::egress) const REGISTRY: &str = "npm_config_registry";

/// Where a global configuration usually is.
const GLOBAL: [&str; 3] = ["/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"];

/// A registry that npm tells when asked is its own default, for which it needs no variable.
pub(super) async fn find(config: &PackageConfig, found: &mut PackageHosts) {
    let mut has_default = false;
    for (name, value) in &config.vars {
        let name = name.to_string_lossy().to_ascii_lowercase();
        if matches!(
            name.as_str(),
            "npm_config_registry" | "yarn_npm_registry_server"
        ) {
            has_default |= found.add_registry(REGISTRY, &value.to_string_lossy());
        }
    }
    for file in files(config) {
        for (key, value) in ini_lines(&config.read(&file).unwrap_or_default()) {
            if key == "registry" {
                has_default |= found.add_registry(REGISTRY, &value);
            } else if key.starts_with('@') && key.ends_with(":registry") {
                found.add(&value);
            }
        }
    }
    // Only npm knows the registry it uses when nobody says.
    if has_default || config.program("npm").is_none() {
        return;
    }
    let said = config.ask("npm", &["config", "get", "registry"]).await;
    if !said.is_some_and(|said| found.add(&said)) {
        found.untold("npm", "it does not tell its registry");
    }
}

/// A file that a variable names takes the place of the usual one.
fn files(config: &PackageConfig) -> Vec<PathBuf> {
    let named = |name: &str| {
        let upper = name.to_ascii_uppercase();
        config
            .var(name)
            .or_else(|| config.var(&upper))
            .map(PathBuf::from)
    };
    let user = named("npm_config_userconfig").or_else(|| config.in_home(".npmrc"));
    let global = named("npm_config_globalconfig");
    let global = match global {
        Some(file) => vec![file],
        None => GLOBAL.iter().map(PathBuf::from).collect(),
    };
    user.into_iter().chain(global).collect()
}
