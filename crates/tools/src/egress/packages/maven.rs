//! Maven: mirrors and repositories of the user's settings.
//!
//! Commands cannot read `settings.xml`, which may hold passwords, and are not told of its mirrors
//! otherwise: this only opens the hosts.

use super::{PackageConfig, PackageHosts};

pub(super) fn find(config: &PackageConfig, found: &mut PackageHosts) {
    let text = config.in_home(".m2/settings.xml");
    let text = text.and_then(|file| config.read(&file)).unwrap_or_default();
    let mut any = false;
    for address in urls(&text) {
        any |= found.add(address);
    }
    if !any && config.program("mvn").is_some() {
        found.untold(
            "maven",
            "no repository is configured, and it does not tell its own",
        );
    }
}

/// What stands in `<url>` elements, outside of comments. No parser of XML: an address too many is
/// harmless here, since it is the user's own file.
fn urls(text: &str) -> Vec<&str> {
    text.split("<!--")
        .enumerate()
        .filter_map(|(number, part)| match number {
            0 => Some(part),
            _ => part.split_once("-->").map(|(_, after)| after),
        })
        .flat_map(|part| part.split("<url>").skip(1))
        .filter_map(|part| part.split_once("</url>"))
        .map(|(address, _)| address)
        .collect()
}
