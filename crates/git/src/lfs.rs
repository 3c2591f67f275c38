//! Files that Git LFS keeps elsewhere: the repository has pointers to them.

use std::{ffi::OsStr, io::Read, os::unix::ffi::OsStrExt, path::PathBuf};

use crate::{Git, GitError, zero_separated};

/// How a pointer begins.
const POINTER: &[u8] = b"version https://git-lfs";
/// Files of attributes that are looked into.
const MOST_ATTRIBUTES: u64 = 1 << 20;

/// The programs of the filter, whatever the configuration names: a trusted repository says that it
/// wants the filter, and not what runs for it. A file that cannot be had stays a pointer.
pub(crate) const FILTER: &[(&str, &str)] = &[
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.required", "false"),
    ("lfs.skipdownloaderrors", "true"),
];

/// Whether a setting says that the filter is wanted.
pub(crate) fn asks_for_filter(key: &str) -> bool {
    key.starts_with("filter.lfs.")
}

/// Whether a setting says where the files are. Others name programs (custom transfers, extensions)
/// or weaken checks.
pub(crate) fn says_where(key: &str) -> bool {
    let is_url = key.starts_with("remote.") && (key.ends_with(".url") || key.ends_with(".lfsurl"));
    is_url || matches!(key, "lfs.url" | "lfs.fetchinclude" | "lfs.fetchexclude")
}

impl Git {
    /// Files of the work tree that are pointers to files kept elsewhere. Git is asked for
    /// attributes only if some `.gitattributes` in the index names the filter; most repositories
    /// cost one `ls-files`.
    pub fn lfs_pointers(&self) -> Result<Vec<String>, GitError> {
        let Some(tree) = self.work_tree.clone() else {
            return Ok(Vec::new());
        };
        let names = self.run(["ls-files", "-z", "--cached"])?.out;
        let path = |name: &[u8]| tree.join(OsStr::from_bytes(name));
        let is_attributes =
            |name: &&[u8]| *name == b".gitattributes" || name.ends_with(b"/.gitattributes");
        let uses_lfs = zero_separated(&names)
            .filter(is_attributes)
            .any(|name| contains(path(name), b"filter=lfs", MOST_ATTRIBUTES));
        if !uses_lfs {
            return Ok(Vec::new());
        }
        let args = ["check-attr", "-z", "--stdin", "filter"];
        let output = self.call(args).input(names).run()?.checked()?;
        let mut fields = zero_separated(&output.out);
        let mut pointers = Vec::new();
        while let (Some(name), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next())
        {
            let length = POINTER.len() as u64;
            if value == b"lfs" && contains(path(name), POINTER, length) {
                pointers.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        Ok(pointers)
    }
}

/// Whether a regular file has these bytes among its first.
fn contains(path: PathBuf, bytes: &[u8], first: u64) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|facts| facts.is_file());
    let mut text = Vec::new();
    is_file
        && std::fs::File::open(path)
            .is_ok_and(|file| file.take(first).read_to_end(&mut text).is_ok())
        && text.windows(bytes.len()).any(|window| window == bytes)
}
