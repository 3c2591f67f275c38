//! macOS: a Seatbelt profile for `sandbox-exec`. Compiled there, untested by us.
//!
//! Only writes, secrets and the network are restricted. Directories that the policy hides stay
//! readable, and there is no guard: what a command has left behind is found by its process group
//! alone.

use std::path::Path;

use super::{Network, SandboxPolicy};

/// Apple ships it on every macOS.
#[cfg(target_os = "macos")]
pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Arguments before the command: `-p <profile>`.
#[cfg(target_os = "macos")]
pub(super) fn arguments(policy: &SandboxPolicy) -> Vec<std::ffi::OsString> {
    vec!["-p".into(), profile(policy).into()]
}

/// Later rules win: all writes denied, the workspace allowed, the holes denied again.
fn profile(policy: &SandboxPolicy) -> String {
    let mut profile = String::from(
        "(version 1)\n(allow default)\n(deny file-write*)\n\
         (allow file-write* (subpath \"/dev\"))\n",
    );
    for tree in &policy.writable {
        profile.push_str(&format!("(allow file-write* (subpath {}))\n", quote(tree)));
    }
    for protected in &policy.protected {
        let path = quote(&protected.path);
        profile.push_str(&format!("(deny file-write* (subpath {path}))\n"));
    }
    for secret in &policy.secret {
        profile.push_str(&format!("(deny file-read* (subpath {}))\n", quote(secret)));
    }
    if policy.network != Network::Allowed {
        profile.push_str("(deny network*)\n(allow network* (local unix))\n");
    }
    profile
}

/// A string of the profile's language. Bytes that are no UTF-8 are replaced, and the rule then
/// names a path that does not exist.
fn quote(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Absent, Protected},
        *,
    };

    #[test]
    fn holes_come_after_the_trees_they_are_in() {
        let policy = SandboxPolicy {
            writable: vec!["/w \"x\"".into()],
            protected: vec![Protected {
                path: "/w \"x\"/.git/hooks".into(),
                absent: Absent::Checked,
            }],
            secret: vec!["/home/ann/.ssh".into()],
            ..SandboxPolicy::default()
        };
        assert_eq!(
            profile(&policy),
            "(version 1)\n(allow default)\n(deny file-write*)\n\
             (allow file-write* (subpath \"/dev\"))\n\
             (allow file-write* (subpath \"/w \\\"x\\\"\"))\n\
             (deny file-write* (subpath \"/w \\\"x\\\"/.git/hooks\"))\n\
             (deny file-read* (subpath \"/home/ann/.ssh\"))\n\
             (deny network*)\n(allow network* (local unix))\n"
        );
    }
}
