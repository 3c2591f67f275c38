//! The `sandbox` setting.

use std::path::PathBuf;

use codespar_tools::{
    egress::AllowedDomain,
    sandbox::{ResourceLimits, SandboxChoice},
};
use serde::Deserialize;

/// How commands are confined.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// Which sandbox; the best that works by default.
    pub mode: Option<SandboxMode>,
    /// Let commands use the network.
    pub network: Option<bool>,
    /// Hosts that commands may reach although the network is closed to them.
    pub allowed_domains: Vec<AllowedDomain>,
    /// Let commands reach the hosts that package managers are configured to use.
    pub allow_package_hosts: Option<bool>,
    /// More directories that commands may write to.
    pub allow_write: Vec<PathBuf>,
    /// More of the home directory that commands may read.
    pub allow_read: Vec<PathBuf>,
    /// Variables that reach commands although they look like secrets.
    pub pass_env: Vec<String>,
    /// What commands may use.
    pub limits: LimitSettings,
}

impl SandboxSettings {
    /// What another file says wins; its lists are added. `placed` gives the path that a file means.
    pub(super) fn add(&mut self, other: Self, placed: impl Fn(&PathBuf) -> PathBuf) {
        self.mode = other.mode.or(self.mode);
        self.network = other.network.or(self.network);
        self.allowed_domains.extend(other.allowed_domains);
        self.allow_package_hosts = other.allow_package_hosts.or(self.allow_package_hosts);
        self.allow_write
            .extend(other.allow_write.iter().map(&placed));
        self.allow_read.extend(other.allow_read.iter().map(&placed));
        self.pass_env.extend(other.pass_env);
        self.limits.add(&other.limits);
    }
}

/// Limits on what commands may use; 0 is no limit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Megabytes of memory.
    pub memory_mb: Option<u64>,
    /// Megabytes of one file.
    pub file_mb: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Megabytes of `/tmp` and the like.
    pub scratch_mb: Option<u64>,
}

impl LimitSettings {
    /// What another file says wins.
    pub(super) fn add(&mut self, other: &Self) {
        self.processes = other.processes.or(self.processes);
        self.memory_mb = other.memory_mb.or(self.memory_mb);
        self.file_mb = other.file_mb.or(self.file_mb);
        self.open_files = other.open_files.or(self.open_files);
        self.scratch_mb = other.scratch_mb.or(self.scratch_mb);
    }
}

impl From<&LimitSettings> for ResourceLimits {
    fn from(settings: &LimitSettings) -> Self {
        let chosen = |setting: Option<u64>, unit: u64, usual: Option<u64>| match setting {
            None => usual,
            Some(0) => None,
            Some(value) => Some(value.saturating_mul(unit)),
        };
        let usual = Self::default();
        Self {
            processes: chosen(settings.processes, 1, usual.processes),
            memory: chosen(settings.memory_mb, 1 << 20, usual.memory),
            file_size: chosen(settings.file_mb, 1 << 20, usual.file_size),
            open_files: chosen(settings.open_files, 1, usual.open_files),
            scratch: chosen(settings.scratch_mb, 1 << 20, usual.scratch),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    Auto,
    Namespaces,
    Bubblewrap,
    Landlock,
    Off,
}

impl From<SandboxMode> for SandboxChoice {
    fn from(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::Auto => Self::Auto,
            SandboxMode::Namespaces => Self::Namespaces,
            SandboxMode::Bubblewrap => Self::Bubblewrap,
            SandboxMode::Landlock => Self::Landlock,
            SandboxMode::Off => Self::Off,
        }
    }
}
