//! Fetching from one remote.
//!
//! Apart from the LFS filter of a trusted repository, these are the only calls of git that reach
//! the network. They read the user's own configuration, for example for a proxy or certificates, but
//! still not that of a repository.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use crate::{Git, GitCall, GitError, GitLimits, Output};

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

/// How much is fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FetchExtent {
    /// With the whole history, in an hour at most: a first fetch of a large repository is slow.
    #[default]
    History,
    /// The files of the named commits alone, within limits: the repository is named by another one,
    /// which may be hostile.
    Files {
        /// How long it may take.
        time: Duration,
        /// Bytes of what is sent.
        bytes: u64,
    },
}

/// A fetch. No protocol is allowed but that of the address, also not after a redirection.
pub struct Fetch<'a> {
    /// An address with a scheme, or a path on this machine. The short form for SSH (`host:path`) is
    /// refused, because without a scheme only local files are allowed.
    pub url: &'a str,
    /// What goes where. References on our side that match and are gone at the remote are removed.
    pub refspec: &'a str,
    /// A header for HTTP requests to the address. It is in the environment of this one git, not
    /// among its arguments, where other processes could see it.
    pub header: Option<&'a str>,
    pub extent: FetchExtent,
}

impl Git {
    /// Fetches and removes what the remote has no more. A failure of git is in the output's code, not
    /// an error.
    pub fn fetch(&self, fetch: &Fetch) -> Result<Output, GitError> {
        // What is sent is kept as one file, so that a limit on files is one on all of it.
        let (time, before, depth) = match fetch.extent {
            FetchExtent::History => (Duration::from_secs(3600), &[][..], None),
            FetchExtent::Files { time, .. } => {
                (time, &["-c", "fetch.unpackLimit=1"][..], Some("--depth=1"))
            }
        };
        let limits = GitLimits {
            time,
            ..GitLimits::default()
        };
        let args = ["fetch", "--quiet", "--prune", "--no-tags"];
        let names = ["--end-of-options", fetch.url, fetch.refspec];
        let args = before.iter().copied().chain(args).chain(depth).chain(names);
        let mut call = reaching(self.call(args).limits(limits), fetch.url, fetch.header);
        if let FetchExtent::Files { bytes, .. } = fetch.extent {
            call = call.largest_file(bytes);
            if fetch.header.is_none() {
                call = self.without_netrc(call);
            }
        }
        call.run()
    }

    /// The branch that is checked out at the remote; `None` where no branch is. A failure of git
    /// is an error.
    pub fn default_branch_at(
        &self,
        url: &str,
        header: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let args = ["ls-remote", "--symref", "--end-of-options", url, "HEAD"];
        let limits = GitLimits {
            bytes: 1 << 20,
            time: Duration::from_secs(120),
            ..GitLimits::default()
        };
        let call = reaching(self.call(args).limits(limits), url, header);
        let text = call.run()?.checked()?.text();
        let branch = text.lines().find_map(|line| {
            let (name, what) = line.strip_prefix("ref: ")?.split_once('\t')?;
            (what == "HEAD").then(|| name.strip_prefix("refs/heads/"))?
        });
        Ok(branch.map(str::to_owned))
    }

    /// The transport would look for a login in the home directory. The user's settings are read all
    /// the same.
    fn without_netrc(&self, call: GitCall) -> GitCall {
        let (home, config) = (env::var_os("HOME"), env::var_os("XDG_CONFIG_HOME"));
        let call = call.env("HOME", &self.git_dir);
        if env::var_os("GIT_CONFIG_GLOBAL").is_some() {
            return call;
        }
        let Some(home) = home.map(PathBuf::from) else {
            return call;
        };
        let config = config.map_or_else(|| home.join(".config"), PathBuf::from);
        let files = [home.join(".gitconfig"), config.join("git/config")];
        match files.into_iter().find(|file| file.is_file()) {
            Some(file) => call.env("GIT_CONFIG_GLOBAL", file),
            None => call,
        }
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

/// Lets a call reach one address, by its protocol alone.
fn reaching(call: GitCall, url: &str, header: Option<&str>) -> GitCall {
    let scheme = url.split_once("://").map_or("file", |(scheme, _)| scheme);
    let mut call = call.env("GIT_ALLOW_PROTOCOL", scheme).with_person();
    for name in NETWORK {
        if let Some(value) = env::var_os(name) {
            call = call.env(*name, value);
        }
    }
    match header {
        Some(header) => call.with_config(&for_this_address(url, header)),
        None => call,
    }
}

/// A header holds a token, which is for this address alone. So it is not sent elsewhere, and the
/// address is not rewritten: many users have git use SSH in place of HTTPS (`url.….insteadOf`), which
/// no token is for. The longest rewriting rule counts, and this one is as long as the address.
fn for_this_address(url: &str, header: &str) -> [(String, String); 2] {
    [
        (format!("http.{url}.extraHeader"), header.to_owned()),
        (format!("url.{url}.insteadOf"), url.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::{RepositoryKind, init};

    #[test]
    fn a_fetch_of_files_alone_brings_one_commit_and_ends_at_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let output = Command::new("git")
                .current_dir(dir.path())
                .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
                .args(args)
                .output()
                .unwrap();
            assert!(output.status.success(), "{args:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "--quiet", "-b", "main"]);
        git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
        // Bytes that do not compress.
        let noise = std::iter::successors(Some(0x2545_f491_u32), |last| {
            let one = last ^ (last << 13);
            let two = one ^ (one >> 17);
            Some(two ^ (two << 5))
        });
        let noise: Vec<u8> = noise.take(100_000).flat_map(u32::to_le_bytes).collect();
        fs::write(dir.path().join("noise"), noise).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "-m", "second"]);
        let commit = git(&["rev-parse", "HEAD"]);
        let url = format!("file://{}", dir.path().display());
        let fetched = |bytes| {
            let to = tempfile::tempdir().unwrap();
            let git = init(to.path(), RepositoryKind::Bare)
                .unwrap()
                .git()
                .unwrap();
            let fetch = Fetch {
                url: &url,
                refspec: &format!("+{commit}:refs/heads/wanted"),
                header: None,
                extent: FetchExtent::Files {
                    time: Duration::from_secs(60),
                    bytes,
                },
            };
            let code = git.fetch(&fetch).unwrap().code;
            let commits = git.run(["rev-list", "--count", "--all"]).unwrap().text();
            (code, commits)
        };
        assert_eq!(fetched(10 << 20), (Some(0), "1".to_owned()));
        let (code, commits) = fetched(10_000);
        assert_ne!(code, Some(0));
        assert_eq!(commits, "0");
    }
}
