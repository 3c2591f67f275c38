//! Trees made to be too large, and calls that are too much or too long.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use codespar_git::{GitError, GitLimits, Repository, Trust};

use crate::scene::Scene;

/// Ten trees within each other, each ten times: 10^10 files in eleven objects.
fn bomb(scene: &Scene) -> String {
    let make = |args: &[&str], input: String| {
        let mut child = Command::new("git")
            .arg("-C")
            .arg(&scene.root)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let mut object = make(&["hash-object", "-w", "--stdin"], "x".to_owned());
    let mut mode = "100644 blob";
    for _ in 0..10 {
        let rows: Vec<String> = (0..10)
            .map(|n| format!("{mode} {object}\td{n}\n"))
            .collect();
        object = make(&["mktree"], rows.concat());
        mode = "040000 tree";
    }
    make(&["commit-tree", &object, "-m", "bomb"], String::new())
}

#[test]
fn a_tree_of_ten_thousand_million_files_is_refused() {
    let scene = Scene::new();
    let commit = bomb(&scene);
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let error = repository.git().unwrap().check_size(&commit).unwrap_err();
    assert!(matches!(error, GitError::TooManyFiles { .. }), "{error}");
    let path = scene.dir.path().join("copy");
    codespar_git::Checkout::create(&repository, &path, &commit).unwrap_err();
    assert!(!path.exists());
    repository.add_work_tree(&path, &commit, None).unwrap_err();
}

#[test]
fn output_and_time_are_bounded() {
    let scene = Scene::new();
    let commit = bomb(&scene);
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let git = repository.git().unwrap();
    let list = || git.call(["ls-tree", "-r", &commit]);
    let few = GitLimits {
        bytes: 1 << 20,
        ..GitLimits::default()
    };
    let error = list().limits(few).run().unwrap_err();
    assert!(matches!(error, GitError::TooMuchOutput { .. }), "{error}");
    let short = GitLimits {
        time: Duration::from_millis(200),
        bytes: usize::MAX,
        ..GitLimits::default()
    };
    let error = list().limits(short).run().unwrap_err();
    assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
}

#[test]
fn memory_is_bounded() {
    let scene = Scene::new();
    let commit = bomb(&scene);
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let small = GitLimits {
        memory: 64 << 20,
        ..GitLimits::default()
    };
    let args = ["log", "--name-only", "-1", &commit];
    let ended = repository
        .git()
        .unwrap()
        .call(args)
        .limits(small)
        .run()
        .unwrap();
    assert_ne!(ended.code, Some(0));
    assert_eq!(ended.out.len(), 0);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_ends() {
    let scene = Scene::new();
    // It waits for a line that never comes.
    let (pipe, _writer) = std::io::pipe().unwrap();
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let file = fs::File::from(std::os::fd::OwnedFd::from(pipe));
    let git = repository.git().unwrap();
    let call = git.call(["cat-file", "--batch"]).input_file(file);
    let dir = scene.root.join(".git");
    let running = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let is_ours = |pid: &std::path::Path| {
            let env = fs::read(pid.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&env).contains(dir.to_str().unwrap())
        };
        processes.filter(|entry| is_ours(&entry.path())).count()
    };
    let task = tokio::spawn(call.finish());
    let deadline = Instant::now() + Duration::from_secs(30);
    while running() == 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(running(), 1);
    task.abort();
    while running() > 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(running(), 0);
}
