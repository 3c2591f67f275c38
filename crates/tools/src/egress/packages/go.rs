//! go: the proxies of its modules, and the database of their checksums.
//!
//! `go env` is asked in any case: it alone knows how its file, its variables and its defaults
//! combine.

use super::{PackageConfig, PackageHosts, without_credentials};

/// Without `go` on the search path nothing is added.
pub(super) async fn find(config: &PackageConfig, found: &mut PackageHosts) {
    if config.program("go").is_none() {
        return;
    }
    // It knows its files and its variables, and what it does without them.
    let said = config.ask("go", &["env", "GOPROXY", "GOSUMDB"]).await;
    if !said.is_some_and(|said| add(&said, found)) {
        found.untold("go", "it has no module proxy");
    }
}

/// The first line is a list of proxies, the second a database: a name, or a key and an address.
/// `direct` and `off` are no addresses and add nothing. The list goes to commands in `GOPROXY`,
/// without user names and passwords. Returns whether there is a proxy.
fn add(said: &str, found: &mut PackageHosts) -> bool {
    let mut lines = said.lines();
    let proxies = lines.next().unwrap_or_default();
    let mut any = false;
    let mut told = String::new();
    // The sign after a proxy says when the next one is tried.
    for part in proxies.split_inclusive([',', '|']) {
        let proxy = part.trim_end_matches([',', '|']);
        any |= found.add(proxy);
        told.push_str(&without_credentials(proxy).unwrap_or_else(|| proxy.to_owned()));
        told.push_str(&part[proxy.len()..]);
    }
    found.variables.push(("GOPROXY", told));
    let mut fields = lines.next().unwrap_or_default().split_whitespace();
    match (fields.next(), fields.next()) {
        (_, Some(address)) => {
            found.add(address);
        }
        (Some(name), None) if name != "off" => {
            let host = name.split('+').next().unwrap_or_default();
            found.add(&format!("https://{host}"));
        }
        _ => {}
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_of_proxies_without_passwords() {
        let mut found = PackageHosts::default();
        let said = "https://ann:s3cret@a.example/go|https://b.example,direct\nsum.example\n";
        assert!(add(said, &mut found));
        let told = "https://a.example/go|https://b.example/,direct".to_owned();
        assert_eq!(found.variables, [("GOPROXY", told)]);
    }

    #[test]
    fn proxies_and_the_checksum_database_are_read() {
        for (said, expected) in [
            (
                "https://a.example|https://b.example:8443,direct\nsum.example\n",
                vec!["a.example", "b.example:8443", "sum.example"],
            ),
            (
                "https://a.example\nsum.example+12+x https://db.example\n",
                vec!["a.example", "db.example"],
            ),
            ("direct\noff\n", vec![]),
        ] {
            let mut found = PackageHosts::default();
            assert_eq!(add(said, &mut found), !expected.is_empty());
            let hosts: Vec<String> = found.hosts.iter().map(ToString::to_string).collect();
            assert_eq!(hosts, expected);
        }
    }
}
