//! Protected paths, remembered before a command and put back after it.
//!
//! Landlock cannot make a hole in a writable tree, and no mount can cover a file that does not
//! exist yet. What a command plants there does harm only after its end, outside of the sandbox, so
//! putting it back at the end closes the gap.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

/// More than this in hooks and settings is not remembered.
const LIMIT: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Directory,
    Other,
}

/// What stood below some paths. A path that is not in it did not exist.
pub(super) struct Kept {
    /// Reached through no symlink of their own directory.
    roots: Vec<PathBuf>,
    before: BTreeMap<PathBuf, Content>,
}

impl Kept {
    pub(super) fn take(paths: &[PathBuf]) -> io::Result<Self> {
        let mut roots: Vec<PathBuf> = paths.iter().map(|path| anchor(path)).collect();
        roots.sort();
        roots.dedup();
        let before = look(&roots)?;
        Ok(Self { roots, before })
    }

    pub(super) fn is_untouched(&self) -> io::Result<bool> {
        Ok(self.planted_links().next().is_none() && look(&self.roots)? == self.before)
    }

    /// Puts everything back; what had been changed is returned, its changed version is in `aside`.
    pub(super) fn put_back(&self, aside: &Path) -> io::Result<Vec<PathBuf>> {
        let mut changed: BTreeSet<PathBuf> = self.planted_links().collect();
        for link in &changed {
            fs::remove_file(link)?;
        }
        let now = look(&self.roots)?;
        // Deepest first, so that a directory is empty when its turn comes.
        for (path, content) in now.iter().rev() {
            if self.before.get(path) != Some(content) {
                lay_aside(path, content, aside)?;
                changed.insert(path.clone());
            }
        }
        for (path, content) in &self.before {
            if now.get(path) != Some(content) {
                restore(path, content)?;
                changed.insert(path.clone());
            }
        }
        Ok(changed.into_iter().collect())
    }

    /// Directories that a symlink has taken the place of: what is seen through it is not ours.
    fn planted_links(&self) -> impl Iterator<Item = PathBuf> {
        let parents = self.roots.iter().filter_map(|root| root.parent());
        parents
            .filter(|parent| is_link(parent))
            .map(Path::to_path_buf)
    }
}

/// Where a protected path hangs: if its directory is a symlink, what counts is that this stays.
fn anchor(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if is_link(parent) => parent.to_path_buf(),
        _ => path.to_path_buf(),
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|kind| kind.is_symlink())
}

fn look(roots: &[PathBuf]) -> io::Result<BTreeMap<PathBuf, Content>> {
    let mut found = BTreeMap::new();
    let mut budget = LIMIT;
    let mut open: Vec<PathBuf> = roots.to_vec();
    while let Some(path) = open.pop() {
        let kind = match fs::symlink_metadata(&path) {
            Ok(kind) => kind,
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(error),
        };
        let content = if kind.is_file() {
            budget = budget
                .checked_sub(kind.len())
                .ok_or_else(|| too_large(&path))?;
            Content::File {
                bytes: fs::read(&path)?,
                mode: kind.permissions().mode() & 0o7777,
            }
        } else if kind.is_symlink() {
            Content::Link(fs::read_link(&path)?)
        } else if kind.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
            Content::Directory
        } else {
            Content::Other
        };
        found.insert(path, content);
    }
    Ok(found)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn too_large(path: &Path) -> io::Error {
    io::Error::other(format!(
        "{} is too large to be protected; move it out of the hooks and settings",
        path.display()
    ))
}

fn lay_aside(path: &Path, content: &Content, aside: &Path) -> io::Result<()> {
    match content {
        Content::Directory => match fs::remove_dir(path) {
            // Something unchanged is still in it.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => other,
        },
        Content::File { bytes, .. } => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let copy = tempfile::Builder::new()
                .prefix(&format!("put-back-{name}-"))
                .tempfile_in(aside)
                .and_then(|file| file.keep().map_err(|error| error.error));
            if let Ok((_, copy)) = copy {
                fs::write(copy, bytes)?;
            }
            fs::remove_file(path)
        }
        Content::Link(_) | Content::Other => fs::remove_file(path),
    }
}

fn restore(path: &Path, content: &Content) -> io::Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    fs::create_dir_all(parent)?;
    match content {
        Content::File { bytes, mode } => {
            let file = tempfile::NamedTempFile::new_in(parent)?;
            fs::write(file.path(), bytes)?;
            fs::set_permissions(file.path(), fs::Permissions::from_mode(*mode))?;
            file.persist(path).map_err(|error| error.error)?;
        }
        Content::Link(target) => symlink(target, path)?,
        Content::Directory => fs::create_dir_all(path)?,
        Content::Other => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_removed_and_added_files_are_put_back_and_laid_aside() {
        let root = tempfile::tempdir().unwrap();
        let aside = tempfile::tempdir().unwrap();
        let hooks = root.path().join("hooks");
        let settings = root.path().join("settings.json");
        fs::create_dir(&hooks).unwrap();
        fs::write(hooks.join("pre-commit"), "good").unwrap();
        fs::set_permissions(hooks.join("pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(hooks.join("pre-push"), "kept").unwrap();
        let kept = Kept::take(&[hooks.clone(), settings.clone()]).unwrap();

        fs::write(hooks.join("pre-commit"), "evil").unwrap();
        fs::remove_file(hooks.join("pre-push")).unwrap();
        fs::create_dir(hooks.join("more")).unwrap();
        fs::write(hooks.join("more/post-merge"), "evil").unwrap();
        symlink("/etc/passwd", &settings).unwrap();

        assert_eq!(
            kept.put_back(aside.path()).unwrap(),
            vec![
                hooks.join("more"),
                hooks.join("more/post-merge"),
                hooks.join("pre-commit"),
                hooks.join("pre-push"),
                settings,
            ]
        );
        let after = look(&[root.path().to_path_buf()]).unwrap();
        assert_eq!(
            after.keys().cloned().collect::<Vec<_>>(),
            vec![
                root.path().to_path_buf(),
                hooks.clone(),
                hooks.join("pre-commit"),
                hooks.join("pre-push"),
            ]
        );
        assert_eq!(
            after[&hooks.join("pre-commit")],
            Content::File {
                bytes: b"good".to_vec(),
                mode: 0o755
            }
        );
        assert_eq!(fs::read(hooks.join("pre-push")).unwrap(), b"kept");
        assert_eq!(fs::read_dir(aside.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_directory_swapped_for_another_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        let aside = tempfile::tempdir().unwrap();
        let hooks = root.path().join("git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.join("pre-commit"), "good").unwrap();
        let kept = Kept::take(std::slice::from_ref(&hooks)).unwrap();
        fs::rename(root.path().join("git"), root.path().join("moved")).unwrap();
        kept.put_back(aside.path()).unwrap();
        assert_eq!(fs::read(hooks.join("pre-commit")).unwrap(), b"good");
    }

    #[test]
    fn a_symlink_in_place_of_the_directory_is_removed_and_nothing_behind_it_is_touched() {
        let root = tempfile::tempdir().unwrap();
        let aside = tempfile::tempdir().unwrap();
        let [git, other] = ["git", "other"].map(|name| root.path().join(name));
        for (directory, text) in [(&git, "good"), (&other, "theirs")] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("config"), text).unwrap();
        }
        let kept = Kept::take(&[git.join("config"), git.join("absent")]).unwrap();
        assert!(kept.is_untouched().unwrap());
        fs::rename(&git, root.path().join("moved")).unwrap();
        symlink("moved", &git).unwrap();
        assert!(!kept.is_untouched().unwrap());
        fs::remove_file(&git).unwrap();
        symlink("other", &git).unwrap();
        assert_eq!(
            kept.put_back(aside.path()).unwrap(),
            vec![git.clone(), git.join("config")]
        );
        assert!(!is_link(&git));
        assert_eq!(fs::read(git.join("config")).unwrap(), b"good");
        assert_eq!(fs::read(other.join("config")).unwrap(), b"theirs");
    }

    #[test]
    fn a_directory_that_always_was_a_symlink_stays_one() {
        let root = tempfile::tempdir().unwrap();
        let aside = tempfile::tempdir().unwrap();
        let claude = root.path().join("claude");
        symlink("/somewhere/else", &claude).unwrap();
        let kept = Kept::take(&[claude.join("settings.json")]).unwrap();
        fs::remove_file(&claude).unwrap();
        fs::create_dir(&claude).unwrap();
        fs::write(claude.join("settings.json"), "evil").unwrap();
        assert_eq!(
            kept.put_back(aside.path()).unwrap(),
            vec![claude.clone(), claude.join("settings.json")]
        );
        assert_eq!(
            fs::read_link(&claude).unwrap(),
            Path::new("/somewhere/else")
        );
    }
}
