//! go: the proxies of its modules, and the database of their checksums.

use super::{PackageConfig, PackageHosts};

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
fn add(said: &str, found: &mut PackageHosts) -> bool {
    let mut lines = said.lines();
    let proxies = lines.next().unwrap_or_default();
    found.variables.push(("GOPROXY", proxies.to_owned()));
    let mut any = false;
    for proxy in proxies.split([',', '|']) {
        any |= found.add(proxy);
    }
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
