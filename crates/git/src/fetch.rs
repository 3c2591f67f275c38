//! Fetching from one remote.
//!
//! Apart from the LFS filter of a trusted repository, this is the only call of git that reaches the
//! network. It reads the user's own configuration, for example for a proxy or certificates, but
//! still not that of a repository.

use std::{
    env,
    ffi::{OsStr, OsString},
    time::Duration,
};

use crate::{Git, GitCall, GitError, GitLimits, Output, environment::PERSON};

/// How the network is reached; the user's own.
const NETWORK: &[&str] = &[
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
];

/// More packs than this are joined.
const MANY_PACKS: usize = 50;

/// A fetch. No protocol is allowed but that of the address, also not after a redirection.
pub struct Fetch<'a> {
    /// An address with a scheme, or a path on this machine. The short form for SSH (`host:path`) is
    /// refused, because without a scheme only local files are allowed.
    pub url: &'a str,
    /// What goes where. References on our side that match and are gone at the remote are removed.
    pub refspec: &'a str,
    /// A header for HTTP requests. It is in the environment of this one git, not among its
    /// arguments, where other processes could see it.
    pub header: Option<&'a str>,
}

impl Git {
    /// Fetches and removes what the remote has no more. An hour is the limit: a first fetch of a
    /// large repository is slow. A failure of git is in the output's code, not an error.
    pub fn fetch(&self, fetch: &Fetch) -> Result<Output, GitError> {
        let scheme = match fetch.url.split_once("://") {
            Some((scheme, _)) => scheme,
            None => "file",
        };
        let limits = GitLimits {
            time: Duration::from_secs(3600),
            ..GitLimits::default()
        };
        let args = [
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--end-of-options",
            fetch.url,
            fetch.refspec,
        ];
        let mut call = self
            .call(args)
            .env("GIT_ALLOW_PROTOCOL", scheme)
            .limits(limits);
        call = PERSON
            .iter()
            .fold(call, |call, name| call.without_env(name));
        for name in PERSON.iter().chain(NETWORK) {
            if let Some(value) = env::var_os(name) {
                call = call.env(*name, value);
            }
        }
        if let Some(header) = fetch.header {
            call = with_config(call, "http.extraHeader", header);
        }
        call.run()
    }

    /// Joins packs where fetches left many. Automatic collection is off for every call, so a store
    /// that is fetched into for long would slow down.
    pub fn tidy(&self) -> Result<(), GitError> {
        let entries = std::fs::read_dir(self.objects.join("pack"));
        let is_pack = |name: OsString| name.as_encoded_bytes().ends_with(b".pack");
        let packs = entries
            .map_err(GitError::file(&self.objects))?
            .filter(|entry| entry.as_ref().is_ok_and(|entry| is_pack(entry.file_name())));
        if packs.count() > MANY_PACKS {
            self.run(["repack", "-d", "--quiet", "--geometric=2"])?;
        }
        Ok(())
    }
}

fn with_config(call: GitCall, key: &str, value: impl AsRef<OsStr>) -> GitCall {
    call.env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", key)
        .env("GIT_CONFIG_VALUE_0", value.as_ref())
}
