use std::os::unix::fs::symlink;

use super::*;

struct Bench {
    _dir: tempfile::TempDir,
    root: PathBuf,
    aside: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let [root, aside] = ["root", "aside"].map(|name| base.join(name));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&aside).unwrap();
        Self {
            _dir: dir,
            root,
            aside,
        }
    }

    fn take(&self, names: &[&str]) -> Kept {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.root.join(name)).collect();
        Kept::take(paths, std::slice::from_ref(&self.root)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The changed paths, seen from the root.
    fn put_back(&self, kept: &Kept) -> Vec<String> {
        let changed = kept.put_back(&self.aside).unwrap();
        let name = |restored: Restored| {
            let path = restored.path.strip_prefix(&self.root).unwrap().to_owned();
            path.into_os_string().into_string().unwrap()
        };
        changed.into_iter().map(name).collect()
    }

    fn names(&self, directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn changed_removed_and_added_files_are_put_back_and_laid_aside() {
    let bench = Bench::new();
    bench.write("hooks/pre-commit", "good");
    mode(&bench.root.join("hooks/pre-commit"), 0o755);
    bench.write("hooks/pre-push", "kept");
    let kept = bench.take(&["hooks", "settings.json"]);
    assert_eq!(bench.put_back(&kept), Vec::<String>::new());

    bench.write("hooks/pre-commit", "evil");
    fs::remove_file(bench.root.join("hooks/pre-push")).unwrap();
    bench.write("hooks/more/post-merge", "evil");
    symlink("/etc/passwd", bench.root.join("settings.json")).unwrap();
    assert_eq!(
        bench.put_back(&kept),
        [
            "hooks/more",
            "hooks/pre-commit",
            "hooks/pre-push",
            "settings.json"
        ]
    );
    assert_eq!(bench.names(&bench.root), ["hooks"]);
    assert_eq!(
        bench.names(&bench.root.join("hooks")),
        ["pre-commit", "pre-push"]
    );
    assert_eq!(bench.text("hooks/pre-commit"), "good");
    assert_eq!(bench.text("hooks/pre-push"), "kept");
    let kind = fs::metadata(bench.root.join("hooks/pre-commit")).unwrap();
    assert_eq!(kind.permissions().mode() & 0o777, 0o755);
    assert_eq!(bench.names(&bench.aside).len(), 3);
    assert_eq!(bench.put_back(&kept), Vec::<String>::new());
}

#[test]
fn what_was_made_unremovable_unreadable_or_huge_goes_all_the_same() {
    let bench = Bench::new();
    fs::create_dir(bench.root.join(".claude")).unwrap();
    let kept = bench.take(&[".claude/settings.json", ".husky", "hooks"]);
    bench.write(".claude/settings.json", "evil");
    mode(&bench.root.join(".claude"), 0o555);
    bench.write(".husky/secret/x", "evil");
    mode(&bench.root.join(".husky/secret"), 0o000);
    mode(&bench.root.join(".husky"), 0o555);
    let huge = fs::File::create(bench.root.join("hooks")).unwrap();
    huge.set_len(LIMIT + 1).unwrap();
    assert_eq!(
        bench.put_back(&kept),
        [".claude/settings.json", ".husky", "hooks"]
    );
    assert_eq!(bench.names(&bench.root), [".claude"]);
    mode(&bench.root.join(".claude"), 0o755);
    assert_eq!(
        bench.names(&bench.root.join(".claude")),
        Vec::<String>::new()
    );
}

#[test]
fn a_directory_closed_by_a_command_is_opened_again() {
    let bench = Bench::new();
    bench.write("hooks/pre-commit", "good");
    let kept = bench.take(&["hooks"]);
    bench.write("hooks/post-checkout", "evil");
    mode(&bench.root.join("hooks"), 0o000);
    assert_eq!(bench.put_back(&kept), ["hooks", "hooks/post-checkout"]);
    assert_eq!(bench.names(&bench.root.join("hooks")), ["pre-commit"]);
}

#[test]
fn a_file_too_large_to_be_remembered_is_noticed_when_it_changes() {
    let bench = Bench::new();
    let path = bench.root.join("large");
    fs::File::create(&path).unwrap().set_len(LIMIT + 1).unwrap();
    let kept = bench.take(&["large"]);
    assert_eq!(bench.put_back(&kept), Vec::<String>::new());
    bench.write("large", "evil");
    let error = kept.put_back(&bench.aside).unwrap_err().to_string();
    assert!(error.contains("too large to be put back"), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_directory_swapped_for_another_is_put_back() {
    let bench = Bench::new();
    bench.write("git/hooks/pre-commit", "good");
    let kept = bench.take(&["git/hooks"]);
    fs::rename(bench.root.join("git"), bench.root.join("moved")).unwrap();
    bench.put_back(&kept);
    assert_eq!(bench.text("git/hooks/pre-commit"), "good");
}

#[test]
fn a_symlink_in_place_of_the_directory_is_removed_and_nothing_behind_it_is_touched() {
    let bench = Bench::new();
    bench.write("git/config", "good");
    bench.write("other/config", "theirs");
    let kept = bench.take(&["git/config", "git/absent"]);
    fs::rename(bench.root.join("git"), bench.root.join("moved")).unwrap();
    symlink("other", bench.root.join("git")).unwrap();
    assert_eq!(bench.put_back(&kept), ["git", "git/config"]);
    assert!(bench.root.join("git").symlink_metadata().unwrap().is_dir());
    assert_eq!(bench.text("git/config"), "good");
    assert_eq!(bench.text("other/config"), "theirs");
}

#[test]
fn a_directory_that_always_was_a_symlink_stays_one() {
    let bench = Bench::new();
    let claude = bench.root.join("claude");
    symlink("/somewhere/else", &claude).unwrap();
    let kept = bench.take(&["claude/settings.json"]);
    fs::remove_file(&claude).unwrap();
    bench.write("claude/settings.json", "evil");
    assert_eq!(bench.put_back(&kept), ["claude"]);
    assert_eq!(
        fs::read_link(&claude).unwrap(),
        Path::new("/somewhere/else")
    );
}
