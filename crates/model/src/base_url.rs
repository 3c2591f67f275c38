//! Where a provider lives: an address that paths are appended to, shown without credentials.
//!
//! Addresses of proxies and gateways may contain credentials. Both `Display` and `Debug` leave them
//! out, and so do errors about addresses that do not parse.

use std::{fmt, str::FromStr};

use url::Url;

use crate::SetupError;

/// An `http` or `https` address. A path in it is a prefix (`http://host/proxy`), with or without
/// a slash at the end.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// The address of `path` below this one. A query is kept. `path` is appended to the prefix, not
    /// resolved against it as [`Url::join`] would.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let prefix = self.0.path().trim_end_matches('/');
        url.set_path(&format!("{prefix}/{path}"));
        url
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

impl FromStr for BaseUrl {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Self, SetupError> {
        let refuse = |text: String, message: &str| SetupError::BaseUrl {
            text,
            message: message.to_owned(),
        };
        let url = Url::parse(text.trim()).map_err(|error| {
            // What does not parse may still hold credentials: everything before an `@` goes.
            let shown = text.rsplit('@').next().unwrap_or_default();
            refuse(shown.to_owned(), &error.to_string())
        })?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(Self(url)),
            _ => Err(refuse(
                without_credentials(&url),
                "only http and https addresses will do",
            )),
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_credentials(&self.0))
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({self})")
    }
}

/// The address as it may be shown: no user, password, query or fragment.
pub(crate) fn without_credentials(url: &Url) -> String {
    let mut shown = url.clone();
    // Addresses that cannot have a user or a password do not have one.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_prefix_and_a_trailing_slash_are_understood() {
        let joined = |text: &str| base(text).join("v1/messages").to_string();
        assert_eq!(joined("http://host"), "http://host/v1/messages");
        assert_eq!(joined("http://host/"), "http://host/v1/messages");
        assert_eq!(joined("http://host/proxy"), "http://host/proxy/v1/messages");
        assert_eq!(
            joined("http://host:81/proxy//"),
            "http://host:81/proxy/v1/messages"
        );
        assert_eq!(joined("http://h/p?a=b"), "http://h/p/v1/messages?a=b");
    }

    #[test]
    fn credentials_in_an_address_are_never_shown() {
        let secret = base("https://user:hunter2@host/p?key=hunter3");
        assert_eq!(secret.to_string(), "https://host/p");
        assert_eq!(format!("{secret:?}"), "BaseUrl(https://host/p)");
        for bad in ["ftp://u:hunter2@host", "https://u:hunter2@ho st"] {
            let error = bad.parse::<BaseUrl>().unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused_with_an_example() {
        let error = "localhost:8080".parse::<BaseUrl>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`localhost:8080` is not a base URL: only http and https addresses will do \
             (expected something like https://api.example.com)"
        );
    }
}
