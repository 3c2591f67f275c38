//! cargo: registries and what replaces them.
//!
//! Read from `CARGO_REGISTRIES_*_INDEX` and from `config.toml` (or `config`) in `CARGO_HOME`. Cargo
//! sees these files in the sandbox too, so it needs no variable. It cannot be asked for its own
//! registry.

use super::{PackageConfig, PackageHosts};

pub(super) fn find(config: &PackageConfig, found: &mut PackageHosts) {
    let mut any = false;
    for (name, value) in &config.vars {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX") {
            any |= found.add(&value.to_string_lossy());
        }
    }
    let dir = config.var("CARGO_HOME").map(Into::into);
    if let Some(dir) = dir.or_else(|| config.in_home(".cargo")) {
        for name in ["config.toml", "config"] {
            let text = config.read(&dir.join(name)).unwrap_or_default();
            for address in addresses(&text) {
                any |= found.add(&address);
            }
        }
    }
    if !any && config.program("cargo").is_some() {
        found.untold(
            "cargo",
            "no registry is configured, and it does not tell its own",
        );
    }
}

/// `registries.*.index` and `source.*.registry`. A file that is no TOML has none.
fn addresses(text: &str) -> Vec<String> {
    let Ok(file) = text.parse::<toml::Table>() else {
        return Vec::new();
    };
    let tables = [("registries", "index"), ("source", "registry")];
    tables
        .iter()
        .filter_map(|(table, key)| Some((file.get(*table)?.as_table()?, key)))
        .flat_map(|(table, key)| table.values().filter_map(|entry| entry.get(*key)?.as_str()))
        .map(str::to_owned)
        .collect()
}
