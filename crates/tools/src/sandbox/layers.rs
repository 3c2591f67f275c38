//! Directories from elsewhere that commands see in a throw-away tree: the dependencies that are
//! installed in the user's checkout, or that an earlier installation left.
//!
//! They are not part of the tree on disk. Which ones there are is written beside it, where no
//! command can reach, and read for each command that runs in the tree:
//!
//! ```text
//! DIR/NAME                      the tree
//! DIR/NAME.layers/layers.json   this record
//! DIR/NAME.layers/0/upper       what commands changed in the first of them
//! ```
//!
//! Only a sandbox with mounts of its own can show them. A source is never written to: a command
//! gets an overlay whose changes go to a directory of the tree's own, or a read-only mount where
//! the kernel does not allow that.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Sandbox, SandboxKind};
use crate::Context;

/// The name of the record.
const RECORD: &str = "layers.json";

/// What commands see in a tree besides its own files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// In the order in which they are mounted.
    pub layers: Vec<Layer>,
    /// Where the tree, with everything in it, is seen once more: absolute paths in a virtual
    /// environment or in build output lead there.
    #[serde(default)]
    pub alias: Option<PathBuf>,
    /// Stays visible where the alias covers it: the objects that the tree's own `.git` borrows.
    #[serde(default)]
    pub objects: Option<PathBuf>,
    /// Directories that come first in `PATH`.
    #[serde(default)]
    pub programs: Vec<PathBuf>,
    /// Variables that lead programs to them.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
    /// Files in them that no command may read. Computed for each command.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
    /// The tree. Set when the record is read.
    #[serde(default)]
    pub tree: PathBuf,
}

/// One directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Where it is: absolute, without symlinks.
    pub source: PathBuf,
    /// Where commands see it.
    pub at: PathBuf,
    pub writes: LayerWrites,
}

/// Where it goes what a command writes to a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LayerWrites {
    /// To a directory of the tree's own; later commands in the tree see it.
    Aside {
        /// The directory, with `upper` and `work` in it.
        private: PathBuf,
        /// What is seen where the kernel refuses an overlay.
        otherwise: WithoutOverlay,
    },
    /// To the source, which is the tree's own.
    Through,
}

/// What takes the place of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WithoutOverlay {
    /// The source, read-only.
    ReadOnly,
    /// Nothing: builds write there, and make it anew in the tree itself.
    Nothing,
}

impl Layers {
    /// Writes the record of a tree, with the directories that overlays need.
    pub fn write(&self, tree: &Path) -> io::Result<()> {
        let dir = Self::dir(tree);
        fs::create_dir_all(&dir)?;
        for layer in &self.layers {
            if let LayerWrites::Aside { private, .. } = &layer.writes {
                fs::create_dir_all(private.join("upper"))?;
                fs::create_dir_all(private.join("work"))?;
                // The root of an overlay has the mode of the upper directory.
                let mode = fs::metadata(&layer.source)?.permissions();
                fs::set_permissions(private.join("upper"), mode)?;
            }
        }
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        let half = dir.join("half");
        fs::write(&half, text)?;
        fs::rename(half, dir.join(RECORD))
    }

    /// Where a tree's record and what its commands changed are.
    pub fn dir(tree: &Path) -> PathBuf {
        let mut name = OsString::from(tree.file_name().unwrap_or_default());
        name.push(".layers");
        tree.with_file_name(name)
    }

    /// Removes both.
    pub fn remove(tree: &Path) {
        let dir = Self::dir(tree);
        // The kernel leaves a directory that nobody may enter.
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let inner = entry.path().join("work/work");
            let _ = fs::set_permissions(inner, fs::Permissions::from_mode(0o700));
        }
        let _ = fs::remove_dir_all(dir);
    }

    /// The record of a tree in our own directory. A record anywhere else would be somebody else's.
    pub(super) fn of(tree: &Path, state: &Path) -> Option<Self> {
        let tree = tree.canonicalize().ok()?;
        if !tree.starts_with(state.canonicalize().ok()?) {
            return None;
        }
        let text = fs::read(Self::dir(&tree).join(RECORD)).ok()?;
        let mut layers: Self = serde_json::from_slice(&text).ok()?;
        layers.tree = tree;
        Some(layers)
    }

    /// Whether a path in a layer is a directory.
    #[cfg(target_os = "linux")]
    pub(super) fn is_dir(&self, path: &Path) -> bool {
        let layer = self.layers.iter().find_map(|layer| {
            let inner = path.strip_prefix(&layer.at).ok()?;
            Some(layer.source.join(inner))
        });
        layer.is_some_and(|path| path.is_dir())
    }

    /// Leads the programs of a command to them.
    pub(crate) fn add_variables(&self, env: &mut Vec<(OsString, OsString)>) {
        for (name, value) in &self.variables {
            env.retain(|(known, _)| known != OsStr::new(name));
            env.push((name.into(), value.into()));
        }
        if self.programs.is_empty() {
            return;
        }
        let path = env.iter_mut().find(|(name, _)| name == "PATH");
        let usual = path.as_ref().map(|(_, value)| value.clone());
        let dirs = self.programs.iter().map(|dir| dir.as_os_str().to_owned());
        let all: Vec<OsString> = dirs.chain(usual).collect();
        let joined = all.join(OsStr::new(":"));
        match path {
            Some((_, value)) => *value = joined,
            None => env.push(("PATH".into(), joined)),
        }
    }

    /// Makes the directories in the tree that layers are mounted on. Nothing is made through a
    /// symlink, as commands can put one there. A layer that has no place is left out.
    #[cfg(target_os = "linux")]
    pub(super) fn make_places(&mut self) {
        use rustix::{
            fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2, statat},
            io::Errno,
        };
        let tree = &self.tree;
        self.layers.retain(|layer| {
            if !layer.at.starts_with(tree) {
                return true;
            }
            let (Some(parent), Some(name)) = (layer.at.parent(), layer.at.file_name()) else {
                return false;
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let links = ResolveFlags::NO_SYMLINKS;
            let Ok(parent) = openat2(CWD, parent, flags, Mode::empty(), links) else {
                return false;
            };
            match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => true,
                Err(Errno::EXIST) => {
                    let found = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW);
                    found.is_ok_and(|found| {
                        rustix::fs::FileType::from_raw_mode(found.st_mode)
                            == rustix::fs::FileType::Directory
                    })
                }
                Err(_) => false,
            }
        });
    }
}

impl Sandbox {
    /// What is seen in the tree of a context besides its own files. Files in it that rules forbid
    /// to read stay hidden; where there are too many files to find them, the directory is left out.
    pub(super) fn layers_of(&self, context: &Context) -> Option<Layers> {
        let mut layers = Layers::of(context.root(), self.reads.state.as_deref()?)?;
        if !self.shows_layers() {
            return None;
        }
        let mut hidden = Vec::new();
        layers.layers.retain(
            |layer| match context.hidden().in_layer(&layer.source, &layer.at) {
                Some(found) => {
                    hidden.extend(found);
                    true
                }
                None => false,
            },
        );
        layers.hidden = hidden;
        Some(layers)
    }

    /// Whether commands can see [`Layers`]: only where they have mounts of their own.
    pub fn shows_layers(&self) -> bool {
        matches!(
            self.kind(),
            SandboxKind::Namespaces | SandboxKind::Bubblewrap
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(source: &Path, at: PathBuf, private: PathBuf) -> Layer {
        Layer {
            source: source.to_path_buf(),
            at,
            writes: LayerWrites::Aside {
                private,
                otherwise: WithoutOverlay::ReadOnly,
            },
        }
    }

    #[test]
    fn a_record_counts_in_our_own_directory_only() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let trees = [state.join("runs/tree"), temp.path().join("project")];
        for tree in &trees {
            fs::create_dir_all(tree).unwrap();
            let private = Layers::dir(tree).join("0");
            let layers = Layers {
                layers: vec![layer(temp.path(), tree.join("node_modules"), private)],
                ..Layers::default()
            };
            layers.write(tree).unwrap();
        }
        assert!(Layers::of(&trees[0], &state).is_some());
        assert_eq!(Layers::of(&trees[1], &state), None);
        Layers::remove(&trees[0]);
        assert_eq!(Layers::of(&trees[0], &state), None);
    }

    #[test]
    fn no_place_is_made_through_a_link_or_over_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (tree, outside) = (root.join("tree"), root.join("outside"));
        fs::create_dir_all(tree.join("app")).unwrap();
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("vendor")).unwrap();
        fs::write(tree.join("target"), "").unwrap();
        let wanted = [
            "app/node_modules",
            "link/node_modules",
            "vendor",
            "target",
            "gone/x",
        ];
        let mut layers = Layers {
            layers: wanted
                .iter()
                .map(|at| layer(&outside, tree.join(at), root.clone()))
                .collect(),
            tree: tree.clone(),
            ..Layers::default()
        };
        layers.make_places();
        let left: Vec<&Path> = layers.layers.iter().map(|one| one.at.as_path()).collect();
        assert_eq!(left, [tree.join("app/node_modules")]);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn programs_of_a_layer_come_first() {
        let layers = Layers {
            programs: vec!["/v/bin".into()],
            variables: vec![("VIRTUAL_ENV".to_owned(), "/v".to_owned())],
            ..Layers::default()
        };
        let mut env = vec![
            ("PATH".into(), "/usr/bin".into()),
            ("VIRTUAL_ENV".into(), "/other".into()),
        ];
        layers.add_variables(&mut env);
        let expected: [(OsString, OsString); 2] = [
            ("PATH".into(), "/v/bin:/usr/bin".into()),
            ("VIRTUAL_ENV".into(), "/v".into()),
        ];
        assert_eq!(env, expected);
    }
}
