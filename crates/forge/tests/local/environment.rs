//! The forge under another environment and another user. A child is this test program, run again
//! for one of the `child_…` tests below.

use std::{
    env, fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use codespar_forge::Forge;
use codespar_protocol::Permission;

use crate::repository::{Repository, added, forge_of, new_commit};

const ROOT: &str = "FORGE_TEST_ROOT";
const HOME: &str = "FORGE_TEST_HOME";

/// What the child was told; `None` when the test was not started as a child.
fn told(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from)
}

fn child(program: &Path, test: &str, root: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", &format!("environment::{test}"), "--ignored"])
        .env(ROOT, root)
        .env(HOME, home);
    command
}

fn assert_passed(mut command: Command) {
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("1 passed"), "{out}");
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_commits() {
    let (Some(root), Some(home)) = (told(ROOT), told(HOME)) else {
        return;
    };
    let forge = forge_of(&home, &root).await;
    let main = forge.head("main").await.unwrap().unwrap();
    let new = new_commit("one", main, "k", vec![added("c", "c")]);
    forge.commit(&new).await.unwrap();
}

#[tokio::test]
async fn what_our_own_process_was_told_about_git_does_not_leak() {
    let repo = Repository::new().await;
    let before = repo.belongings();
    let program = env::current_exe().unwrap();
    let mut command = child(&program, "child_commits", &repo.root, repo.home.path());
    command
        .env("GIT_DIR", "/nowhere")
        .env("GIT_WORK_TREE", "/nowhere")
        .env("GIT_INDEX_FILE", repo.root.join(".git/index"))
        .env("GIT_OBJECT_DIRECTORY", "/nowhere")
        .env("GIT_COMMITTER_NAME", "Eve")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "user.name")
        .env("GIT_CONFIG_VALUE_0", "Eve");
    assert_passed(command);
    assert_eq!(repo.git(&["show", "-s", "--format=%cn", "one"]), "Ada");
    assert_eq!(repo.belongings(), before);
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_may_only_read() {
    let (Some(root), Some(home)) = (told(ROOT), told(HOME)) else {
        return;
    };
    let forge = forge_of(&home, &root).await;
    assert_eq!(forge.permission("x").await.unwrap(), Permission::Read);
    assert_eq!(forge.default_branch().await.unwrap(), "main");
}

/// Root is bound by no permission bits, so the child runs as somebody else.
#[tokio::test]
async fn who_cannot_write_the_repository_may_read() {
    const NOBODY: u32 = 65_534;

    let repo = Repository::new().await;
    let allow = |path: &Path, bits: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    };
    let home = repo.home.path();
    allow(home, 0o755);
    let others = home.join("others");
    fs::create_dir(&others).unwrap();
    allow(&others, 0o777);
    let settings = home.join("settings");
    fs::write(&settings, "[safe]\n\tdirectory = *\n").unwrap();
    let program = home.join("program");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let git_dir = repo.root.join(".git");
    allow(&git_dir, 0o555);
    let mut command = child(&program, "child_may_only_read", &repo.root, &others);
    command
        .env("GIT_CONFIG_GLOBAL", settings)
        .env("TMPDIR", &others);
    if std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()) == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    assert_passed(command);
    allow(&git_dir, 0o755);
}
