//! Where a submodule is fetched from: at the server of the repository it belongs to, or nowhere.
//!
//! `.gitmodules` is data of a repository that may be hostile. Git would take a path on this machine
//! or a program (`ext::`) for an address. Here only the path on the server is taken from it; the
//! protocol and the server are those that the repository itself was fetched from.

/// Why a submodule has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAddress {
    #[error("`.gitmodules` has no address for it")]
    Missing,
    #[error("its address is not at the server of the repository")]
    Elsewhere,
    #[error("its address is not that of a repository")]
    Malformed,
}

/// A repository at a server that is reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// `https` or `http`.
    scheme: String,
    /// The host in lower case, with a port if it is not the usual one.
    authority: String,
    /// Of the path.
    parts: Vec<String>,
}

impl Address {
    /// Of a repository that is not a submodule. `None` if it is not reached over HTTP.
    pub(crate) fn of_repository(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (authority, path) = rest.split_once('/')?;
        let is_http = matches!(scheme, "https" | "http");
        (is_http && !authority.contains('@')).then(|| Self {
            scheme: scheme.to_owned(),
            authority: plain_authority(scheme, authority),
            parts: path.split('/').map(str::to_owned).collect(),
        })
    }

    /// Of a submodule of the repository at this address.
    pub(crate) fn of_submodule(&self, url: &str) -> Result<Self, NoAddress> {
        let parts = if url.starts_with("./") || url.starts_with("../") {
            self.relative(url)?
        } else {
            let path = self.path_here(url).ok_or(NoAddress::Elsewhere)?;
            path.split('/').map(str::to_owned).collect()
        };
        let is_plain = |part: &String| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !matches!(part.as_str(), "" | "." | "..") && part.chars().all(is_known)
        };
        if parts.is_empty() || !parts.iter().all(is_plain) {
            return Err(NoAddress::Malformed);
        }
        Ok(Self {
            parts,
            ..self.clone()
        })
    }

    /// For git.
    pub(crate) fn url(&self) -> String {
        format!(
            "{}://{}/{}",
            self.scheme,
            self.authority,
            self.parts.join("/")
        )
    }

    /// Whether both belong to the same owner: the same directory of the same server.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        let owner = |address: &Self| {
            let parts = address.parts.split_last().map(|(_, owner)| owner.to_vec());
            parts.unwrap_or_default().join("/").to_ascii_lowercase()
        };
        self.scheme == other.scheme
            && self.authority == other.authority
            && owner(self) == owner(other)
    }

    /// `../lib.git` is beside the repository itself.
    fn relative(&self, url: &str) -> Result<Vec<String>, NoAddress> {
        let mut parts = self.parts.clone();
        let mut rest = url;
        loop {
            if let Some(below) = rest.strip_prefix("./") {
                rest = below;
            } else if let Some(above) = rest.strip_prefix("../") {
                parts.pop().ok_or(NoAddress::Malformed)?;
                rest = above;
            } else {
                break;
            }
        }
        parts.extend(trimmed(rest).split('/').map(str::to_owned));
        Ok(parts)
    }

    /// The path of an address at this server. An address for SSH is that of the same repository over
    /// HTTP: forges have one name for both.
    fn path_here<'u>(&self, url: &'u str) -> Option<&'u str> {
        let host = self.authority.split(':').next().unwrap_or_default();
        let without_user = |authority: &'u str| authority.rsplit('@').next().unwrap_or(authority);
        let is_host = |authority: &str| {
            let named = authority.split(':').next().unwrap_or_default();
            named.eq_ignore_ascii_case(host)
        };
        let path = match url.split_once("://") {
            Some((scheme @ ("https" | "http"), rest)) => {
                let (authority, path) = rest.split_once('/')?;
                let authority = plain_authority(scheme, without_user(authority));
                (authority == self.authority).then_some(path)?
            }
            Some(("ssh" | "git" | "git+ssh", rest)) => {
                let (authority, path) = rest.split_once('/')?;
                is_host(without_user(authority)).then_some(path)?
            }
            Some(_) => return None,
            // `git@host:owner/name.git`
            None => {
                let (authority, path) = url.split_once(':')?;
                let is_local = authority.contains('/') || path.starts_with(':');
                (!is_local && is_host(without_user(authority))).then_some(path)?
            }
        };
        Some(trimmed(path))
    }
}

fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

fn plain_authority(scheme: &str, authority: &str) -> String {
    let usual = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.to_ascii_lowercase();
    match authority.strip_suffix(usual) {
        Some(host) => host.to_owned(),
        None => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str) -> Result<String, NoAddress> {
        let shop = Address::of_repository("https://forge.example/acme/shop.git").unwrap();
        shop.of_submodule(url).map(|address| address.url())
    }

    #[test]
    fn an_address_at_the_same_server_is_reached_as_the_repository_is() {
        for url in [
            "../lib.git",
            "./../lib.git/",
            "https://forge.example/acme/lib.git",
            "https://Forge.Example:443/acme/lib.git/",
            "https://user:secret@forge.example/acme/lib.git",
            "http://forge.example/acme/lib.git",
            "git@forge.example:acme/lib.git",
            "forge.example:acme/lib.git",
            "ssh://git@forge.example:22/acme/lib.git",
            "git://forge.example/acme/lib.git",
        ] {
            let expected = Ok("https://forge.example/acme/lib.git".to_owned());
            assert_eq!(resolved(url), expected, "{url}");
        }
        assert_eq!(
            resolved("../../other/lib"),
            Ok("https://forge.example/other/lib".to_owned())
        );
    }

    #[test]
    fn no_other_server_no_local_path_and_no_program_is_an_address() {
        for url in [
            "https://elsewhere.example/acme/lib.git",
            "https://forge.example.elsewhere.example/acme/lib.git",
            "https://forge.example@elsewhere.example/acme/lib.git",
            "https://forge.example:8443/acme/lib.git",
            "https://elsewhere.example/forge.example/lib.git",
            "git@elsewhere.example:acme/lib.git",
            "file:///etc",
            "file://forge.example/acme/lib.git",
            "/etc",
            "~/x",
            "ext::sh -c 'touch x'",
            "ext::forge.example:acme/lib",
            "forge.example::acme/lib",
            "--upload-pack=touch x",
            "-oProxyCommand=x",
            "",
        ] {
            assert_eq!(resolved(url), Err(NoAddress::Elsewhere), "{url}");
        }
    }

    #[test]
    fn nothing_but_names_is_in_a_path() {
        for url in [
            "../../../../lib.git",
            "../a/../lib.git",
            "../a//lib.git",
            "../",
            "../lib.git?x=y",
            "../lib%2e%2e",
            "../lib\n",
            "../..",
            "https://forge.example/acme/../x",
            "git@forge.example:/acme/lib.git",
            "https://forge.example/acme/lib.git#x",
            "https://forge.example/a b/lib.git",
        ] {
            assert_eq!(resolved(url), Err(NoAddress::Malformed), "{url}");
        }
    }

    #[test]
    fn the_owner_is_the_same_in_any_case() {
        let of = |url| Address::of_repository(url).unwrap();
        let shop = of("https://forge.example/acme/shop.git");
        assert!(shop.is_beside(&of("https://forge.example/Acme/lib")));
        assert!(!shop.is_beside(&of("https://forge.example/other/shop.git")));
        assert!(!shop.is_beside(&of("http://forge.example/acme/lib")));
        assert!(!shop.is_beside(&of("https://forge.example/acme/x/lib")));
        assert_eq!(Address::of_repository("/srv/acme/shop.git"), None);
        assert_eq!(Address::of_repository("ssh://forge.example/shop.git"), None);
    }
}
