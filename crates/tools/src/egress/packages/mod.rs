//! The hosts that package managers are configured to use, read outside of the sandbox.
//!
//! No host is known here by name. A manager's own files and variables count; where they do not
//! say, the manager is asked if it can tell; where it cannot, nothing is added and a note says so.
//! Files of a project do not count: they come with the repository.

mod ask;
mod cargo;
mod go;
mod maven;
pub(super) mod npm;
mod python;

use std::{
    ffi::OsString,
    io::Read,
    path::{Path, PathBuf},
};

use url::Url;

use super::{AllowedDomain, host::HostName};

/// A configuration file larger than this is not read.
const LARGEST_FILE: u64 = 1 << 20;

/// Where configuration is looked for.
#[derive(Debug, Clone)]
pub struct PackageConfig {
    pub home: Option<PathBuf>,
    /// The environment of this process.
    pub vars: Vec<(OsString, OsString)>,
    /// The project: nothing in it counts, and no program in it is run.
    pub project: PathBuf,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageHosts {
    pub hosts: Vec<AllowedDomain>,
    /// How a manager is told of its registry where it cannot see its own files: a variable and an
    /// address without credentials. Go's list of proxies is the exception: it is passed on as go
    /// prints it.
    pub variables: Vec<(&'static str, String)>,
    /// Managers that are installed and whose hosts cannot be told.
    pub notes: Vec<String>,
}

impl PackageConfig {
    /// Looks for all of them. Runs programs (npm, go) and reads files; nothing fails, what cannot
    /// be found is missing or noted.
    pub async fn find(&self) -> PackageHosts {
        let mut found = PackageHosts::default();
        npm::find(self, &mut found).await;
        python::find(self, &mut found);
        cargo::find(self, &mut found);
        go::find(self, &mut found).await;
        maven::find(self, &mut found);
        found
    }

    fn var(&self, wanted: &str) -> Option<&str> {
        let mut vars = self.vars.iter();
        let (_, value) = vars.find(|(name, _)| name == wanted)?;
        value.to_str().filter(|value| !value.is_empty())
    }

    /// A file of the home directory.
    fn in_home(&self, name: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(name))
    }

    /// `$XDG_CONFIG_HOME`, or the usual place.
    fn in_config(&self, name: &str) -> Option<PathBuf> {
        match self.var("XDG_CONFIG_HOME") {
            Some(dir) => Some(Path::new(dir).join(name)),
            None => self.in_home(".config").map(|dir| dir.join(name)),
        }
    }

    /// The text of a configuration file outside of the project, if there is one.
    fn read(&self, path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        let meta = path.metadata().ok()?;
        if !meta.is_file() || meta.len() > LARGEST_FILE || path.starts_with(&self.project) {
            return None;
        }
        let mut text = String::new();
        let file = std::fs::File::open(path).ok()?;
        file.take(LARGEST_FILE).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

impl PackageHosts {
    /// Adds the host of an address; says whether it has one.
    fn add(&mut self, address: &str) -> bool {
        let Some(host) = host_of(address) else {
            return false;
        };
        if !self.hosts.contains(&host) {
            self.hosts.push(host);
        }
        true
    }

    /// Adds the host of a manager's registry, and how the manager is told of it.
    fn add_registry(&mut self, variable: &'static str, address: &str) -> bool {
        let is_known = self.variables.iter().any(|(name, _)| *name == variable);
        if let (false, Some(address)) = (is_known, without_credentials(address)) {
            self.variables.push((variable, address));
        }
        self.add(address)
    }

    /// A manager is there and its hosts are not known.
    fn untold(&mut self, manager: &str, what: &str) {
        self.notes.push(format!(
            "{manager}: {what}; name the hosts it uses in sandbox.allowedDomains"
        ));
    }
}

/// The host and port of an http or https address, credentials or not.
fn host_of(address: &str) -> Option<AllowedDomain> {
    let address = address.trim().trim_matches(['"', '\'']);
    let address = address.strip_prefix("sparse+").unwrap_or(address);
    let url = Url::parse(address).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let host = HostName::parse(url.host_str()?).ok()?;
    Some(AllowedDomain::exact(host, url.port_or_known_default()?))
}

/// An http or https address without user name and password.
fn without_credentials(address: &str) -> Option<String> {
    let mut url = Url::parse(address.trim().trim_matches(['"', '\''])).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https");
    let is_cleared = url.set_username("").is_ok() && url.set_password(None).is_ok();
    (is_http && is_cleared).then(|| url.into())
}

/// `key = value` lines of an ini file; an indented line goes on with the value before.
fn ini_lines(text: &str) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        match (line.split_once('='), lines.last_mut()) {
            (_, Some((_, value))) if is_continued => {
                value.push(' ');
                value.push_str(line);
            }
            (Some((key, value)), _) => {
                lines.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            (None, _) => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests;
