//! How programs are told of the proxy: by variables, each family in its own way.
//!
//! Nothing depends on them for safety: a program that ignores them finds a network without a way
//! out.

use std::{ffi::OsString, path::Path};

use super::{AllowedDomains, forward::PORT, packages::npm};

/// The address of the proxy, in the spellings that programs look for. `ALL_PROXY` speaks HTTP
/// too: some clients fail at once where it says SOCKS and a module is missing.
const WITH_ADDRESS: [&str; 12] = [
    "ALL_PROXY",
    "CARGO_HTTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "PIP_PROXY",
    "YARN_HTTPS_PROXY",
    "YARN_HTTP_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "npm_config_https_proxy",
    "npm_config_proxy",
];

/// Hosts that are not asked for through the proxy. A command that starts a server and asks it must
/// not be sent to the proxy for that.
const WITHOUT_PROXY: [&str; 3] = ["NO_PROXY", "no_proxy", "npm_config_noproxy"];

/// Node's own client looks at the variables only when told to. npm's look for a newer version of
/// itself is a request that nobody made.
const SWITCHES: [(&str, &str); 2] = [
    ("NODE_USE_ENV_PROXY", "1"),
    ("npm_config_update_notifier", "false"),
];

/// Adds them to a command's environment, in place of what was there. `allowed` decides whether
/// `localhost` means the machine outside or the command's own namespace.
pub(super) fn add(env: &mut Vec<(OsString, OsString)>, allowed: &AllowedDomains) {
    let address = format!("http://127.0.0.1:{PORT}");
    // Servers that a command starts itself are beside it, not behind the proxy. A registry on the
    // machine outside is not.
    let beside = if allowed.names_localhost() {
        "127.0.0.1,::1"
    } else {
        "localhost,127.0.0.1,::1"
    };
    let added: Vec<(OsString, OsString)> = WITH_ADDRESS
        .iter()
        .map(|name| (name.into(), (&address).into()))
        .chain(
            WITHOUT_PROXY
                .iter()
                .map(|name| (name.into(), beside.into())),
        )
        .chain(SWITCHES.map(|(name, value)| (name.into(), value.into())))
        .collect();
    // npm takes its variables in any case.
    let is_replaced = |name: &OsString| {
        let name = name.to_string_lossy();
        let known = added.iter();
        known
            .map(|(added, _)| added.to_string_lossy())
            .any(|added| {
                let is_npm = added.starts_with("npm_config_");
                added == name || (is_npm && added.eq_ignore_ascii_case(&name))
            })
    };
    env.retain(|(name, _)| !is_replaced(name));
    env.extend(added);
}

/// Adds where package managers find their registries, for those whose files the sandbox hides. A
/// project's own `.npmrc` goes before a person's, and a variable would go before both.
pub(super) fn add_registries(
    env: &mut Vec<(OsString, OsString)>,
    registries: &[(&'static str, String)],
    cwd: &Path,
) {
    let has_npmrc = || cwd.ancestors().any(|dir| dir.join(".npmrc").is_file());
    for (name, address) in registries {
        let is_said = env.iter().any(|(known, _)| known == name);
        if is_said || (*name == npm::REGISTRY && has_npmrc()) {
            continue;
        }
        env.push((name.into(), address.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(entries: &[&str], name: &str) -> Option<String> {
        let allowed =
            AllowedDomains::new(entries.iter().map(|entry| entry.parse().unwrap()).collect());
        let mut env: Vec<(OsString, OsString)> = vec![
            ("HTTPS_PROXY".into(), "http://proxy.example:8080".into()),
            (
                "NPM_CONFIG_PROXY".into(),
                "http://proxy.example:8080".into(),
            ),
            ("PATH".into(), "/usr/bin".into()),
        ];
        add(&mut env, &allowed);
        let mut found = env.iter().filter(|(key, _)| key == name);
        let value = found
            .next()
            .map(|(_, value)| value.to_str().unwrap().to_owned());
        assert_eq!(found.next(), None);
        value
    }

    #[test]
    fn the_proxy_replaces_another_one_and_the_rest_stays() {
        let named = |name| value(&["a.example"], name);
        assert_eq!(named("HTTPS_PROXY").unwrap(), "http://127.0.0.1:61080");
        assert_eq!(named("NPM_CONFIG_PROXY"), None);
        assert_eq!(named("npm_config_proxy").unwrap(), "http://127.0.0.1:61080");
        assert_eq!(named("NO_PROXY").unwrap(), "localhost,127.0.0.1,::1");
        assert_eq!(named("PATH").unwrap(), "/usr/bin");
    }

    #[test]
    fn a_registry_on_this_machine_is_asked_through_the_proxy() {
        assert_eq!(
            value(&["localhost:4873"], "no_proxy").unwrap(),
            "127.0.0.1,::1"
        );
    }

    #[test]
    fn a_registry_is_told_unless_the_project_or_the_environment_says_another() {
        let dir = tempfile::tempdir().unwrap();
        let registries = [
            ("npm_config_registry", "https://npm.example/".to_owned()),
            ("PIP_INDEX_URL", "https://pip.example/simple".to_owned()),
        ];
        let told = |env: &[(&str, &str)]| {
            let mut env: Vec<(OsString, OsString)> = env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            add_registries(&mut env, &registries, dir.path());
            env.into_iter()
                .map(|(name, _)| name.into_string().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(told(&[]), ["npm_config_registry", "PIP_INDEX_URL"]);
        assert_eq!(
            told(&[("PIP_INDEX_URL", "https://other.example")]),
            ["PIP_INDEX_URL", "npm_config_registry"]
        );
        std::fs::write(dir.path().join(".npmrc"), "").unwrap();
        assert_eq!(told(&[]), ["PIP_INDEX_URL"]);
    }
}
