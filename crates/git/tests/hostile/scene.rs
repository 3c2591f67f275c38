//! A repository to plant things in, and a directory that shows what ran.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// Plain git, as a person would run it.
pub(crate) fn plain(dir: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
        .args(args)
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap()
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = plain(dir, args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {message}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Scene {
    /// On `main`; `side` changes the same line of `f.x`, `ahead` is one commit further.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        fs::create_dir(dir.path().join("ran")).unwrap();
        let scene = Self { dir, root };
        git(&scene.root, &["init", "--quiet", "-b", "main"]);
        scene.write(".gitattributes", "*.x filter=evil diff=evil merge=evil\n");
        scene.write("f.x", "one\n");
        scene.commit("one");
        git(&scene.root, &["switch", "-qc", "side"]);
        scene.write("f.x", "side\n");
        scene.commit("side");
        git(&scene.root, &["switch", "-q", "main"]);
        scene.write("f.x", "main\n");
        scene.commit("two");
        git(&scene.root, &["switch", "-qc", "ahead"]);
        scene.write("g.x", "g\n");
        scene.commit("ahead");
        git(&scene.root, &["switch", "-q", "main"]);
        scene
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        git(&self.root, &["add", "-A"]);
        git(&self.root, &["commit", "-qm", message]);
        git(&self.root, &["rev-parse", "HEAD"])
    }

    /// A command that shows it ran, and behaves as a filter.
    pub(crate) fn evil(&self) -> String {
        format!("touch {}/x; cat", self.dir.path().join("ran").display())
    }

    /// An executable that does.
    pub(crate) fn evil_program(&self, path: &Path) {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mark = self.dir.path().join("ran/x");
        fs::write(path, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn config(&self, key: &str, value: &str) {
        git(&self.root, &["config", key, value]);
    }

    /// Whether anything ran since the last question.
    pub(crate) fn ran(&self) -> bool {
        fs::remove_file(self.dir.path().join("ran/x")).is_ok()
    }
}
