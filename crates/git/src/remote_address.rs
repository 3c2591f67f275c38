//! Where a repository can be cloned from, and what it is called on every host.

/// The address of a repository, without a login, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAddress {
    url: String,
    name: String,
}

impl RemoteAddress {
    /// From an address as git has it. A login in it is left out. One for SSH becomes one for HTTPS:
    /// whoever fetches has a token of their own, and not the keys of somebody else. `None` for what
    /// another host cannot clone, and for what does not look like a repository.
    pub fn parse(text: &str) -> Option<Self> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return None;
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text.strip_prefix('/') {
                Some(path) => Self::of_path(path),
                None => Self::of_short_ssh(text),
            };
        };
        match scheme {
            "https" | "http" => {
                let (authority, path) = rest.split_once('/')?;
                Self::at_server(scheme, without_login(authority), path)
            }
            "ssh" => {
                let (authority, path) = rest.split_once('/')?;
                let host = without_login(authority).split(':').next()?;
                Self::at_server("https", host, path)
            }
            "file" => Self::of_path(rest.strip_prefix('/')?),
            _ => None,
        }
    }

    /// For git.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Host and path: `github.com/acme/api`; `file/srv/git/api` for one on a file system that
    /// hosts share.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same as the path of a directory: no part of it leads elsewhere, and `+` is in the first
    /// at most.
    pub fn directory(&self) -> String {
        self.name.replace(':', "+")
    }

    /// `git@host:path`
    fn of_short_ssh(text: &str) -> Option<Self> {
        let (authority, path) = text.split_once(':')?;
        (!authority.contains('/'))
            .then(|| Self::at_server("https", without_login(authority), path))?
    }

    fn at_server(scheme: &str, authority: &str, path: &str) -> Option<Self> {
        let authority = authority.to_ascii_lowercase();
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (&*authority, None),
        };
        let is_port = port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_plain(host) || !is_port {
            return None;
        }
        let path = plain_path(path)?;
        Some(Self {
            url: format!("{scheme}://{authority}/{path}"),
            name: format!("{authority}/{}", without_ending(&path)),
        })
    }

    fn of_path(path: &str) -> Option<Self> {
        let path = plain_path(path)?;
        Some(Self {
            url: format!("/{path}"),
            name: format!("file/{}", without_ending(&path)),
        })
    }
}

fn without_login(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

fn without_ending(path: &str) -> &str {
    path.strip_suffix(".git").unwrap_or(path)
}

/// Its parts become names of directories.
fn plain_path(path: &str) -> Option<String> {
    let path = path.trim_matches('/');
    path.split('/').all(is_plain).then(|| path.to_owned())
}

fn is_plain(part: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    let is_other = matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
    !is_other && !part.starts_with('-') && part.chars().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_login_and_one_name_in_all_its_forms() {
        for text in [
            "https://github.com/acme/api.git",
            "https://github.com/acme/api",
            "https://GitHub.com/acme/api/",
            "https://user:secret@github.com/acme/api.git",
            "https://ghp_secret@github.com/acme/api.git",
            "git@github.com:acme/api.git",
            "ssh://git@github.com/acme/api.git",
            "ssh://git:secret@github.com:2222/acme/api.git",
        ] {
            let address = RemoteAddress::parse(text).unwrap();
            assert_eq!(address.name(), "github.com/acme/api", "{text}");
            assert!(!address.url().contains("secret"), "{address:?}");
            assert!(address.url().starts_with("https://github.com/acme/api"));
        }
        let local = RemoteAddress::parse("http://127.0.0.1:8080/acme/shop.git").unwrap();
        assert_eq!(local.name(), "127.0.0.1:8080/acme/shop");
        assert_eq!(local.directory(), "127.0.0.1+8080/acme/shop");
        for text in ["/srv/git/api.git", "file:///srv/git/api.git"] {
            let shared = RemoteAddress::parse(text).unwrap();
            assert_eq!(
                (shared.url(), shared.name()),
                ("/srv/git/api.git", "file/srv/git/api")
            );
        }
    }

    #[test]
    fn what_is_no_repository_or_leads_elsewhere_has_no_address() {
        for text in [
            "",
            "api",
            "../api",
            "C:",
            "ext::sh -c touch% /tmp/x",
            "ext::sh",
            "git://github.com/acme/api",
            "https://github.com",
            "https://github.com/",
            "https://github.com/acme/../../etc",
            "https://github.com/acme/.git",
            "https://github.com/-u/api",
            "https://--upload-pack=x/acme/api",
            "https://github.com/acme/api?x=1",
            "https://github.com:x/acme/api",
            "https://github.com/acme/a\npi",
            "file://host/srv/api",
            "/srv/../etc",
        ] {
            assert_eq!(RemoteAddress::parse(text), None, "{text}");
        }
    }
}
