//! A tree that goes from one host to another and back, on a real store and real git.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use codespar_agent::{HandOver, WorkKeeper, WorkKept};
use codespar_git::{Repository, Trust};
use codespar_policy::Redactor;
use codespar_protocol::TaskId;
use codespar_store::{LeaseStore, SqliteStore, TaskStore, TreeContent, TreeStore};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    Control,
    ledger::tests::{claim, claimed_task},
};

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
        .args(args)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {message}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A task, and a directory for each host with a clone of the same repository.
struct Hosts {
    dir: tempfile::TempDir,
    store: Arc<SqliteStore>,
    task: TaskId,
    base: String,
}

impl Hosts {
    async fn new() -> (Self, u64) {
        let dir = tempfile::tempdir().unwrap();
        let (store, task, epoch) = claimed_task(dir.path()).await;
        let up = dir.path().join("up");
        fs::create_dir(&up).unwrap();
        git(&up, &["init", "--quiet", "-b", "main"]);
        fs::write(up.join("f"), "one\n").unwrap();
        git(&up, &["add", "."]);
        git(&up, &["commit", "--quiet", "-m", "One"]);
        let base = git(&up, &["rev-parse", "HEAD"]);
        let hosts = Self {
            dir,
            store,
            task,
            base,
        };
        (hosts, epoch)
    }

    fn path(&self, host: &str) -> PathBuf {
        self.dir.path().join(format!("{host}-tree"))
    }

    /// The tree of a host, made if it is not there.
    fn tree(&self, host: &str) -> OwnTree {
        let (clone, path) = (self.dir.path().join(host), self.path(host));
        if !clone.exists() {
            git(self.dir.path(), &["clone", "--quiet", "up", host]);
            git(&clone, &["branch", "work"]);
            let found = Repository::find(&clone, Trust::Untrusted).unwrap();
            found.add_work_tree(&path, "work", Some("work")).unwrap();
        }
        let found = Repository::find(&clone, Trust::Untrusted).unwrap();
        let tree = found.work_tree_at(&path).unwrap().unwrap();
        OwnTree {
            git: tree.git_with_files().unwrap(),
            path,
            base: self.base.clone(),
            branch: Some("work".to_owned()),
        }
    }

    async fn keeper(&self, host: &str, epoch: u64) -> Result<TreeKeeper, String> {
        let kept = self.store.kept_tree(&self.task).await.unwrap();
        let control = Control {
            record: self.store.task(&self.task).await.unwrap(),
            epoch,
            taken_from: None,
            cancel: CancellationToken::new(),
            hand_over: HandOver::default(),
            stop_reason: Arc::default(),
            mail: Arc::default(),
            output: self.dir.path().join(format!("{host}.txt")),
            redactor: Arc::new(Redactor::new([("TOKEN", "s3cr3t")])),
            store: self.store.clone(),
        };
        TreeKeeper::begin(self.store.clone(), &control, self.tree(host), kept).await
    }

    /// Another host has the task from now on.
    async fn moved(&self, epoch: u64, runner: &str) -> u64 {
        self.store.release_task(&self.task, epoch).await.unwrap();
        claim(&self.store, runner).await
    }

    fn write(&self, host: &str, name: &str, text: &str) {
        fs::write(self.path(host).join(name), text).unwrap();
    }

    fn read(&self, host: &str, name: &str) -> Option<String> {
        fs::read_to_string(self.path(host).join(name)).ok()
    }
}

#[tokio::test]
async fn a_tree_goes_to_another_host_and_comes_back() {
    let (hosts, first) = Hosts::new().await;
    let a = hosts.keeper("a", first).await.unwrap();
    assert_eq!(a.brought(), TreeBrought::WasHere);
    hosts.write("a", "f", "two\n");
    hosts.write("a", "new", "a\n");
    assert_eq!(a.keep().await, WorkKept::GoOn);
    // A step that is broken off.
    hosts.write("a", "half", "half\n");

    let second = hosts.moved(first, "bob").await;
    let b = hosts.keeper("b", second).await.unwrap();
    assert_eq!(b.brought(), TreeBrought::FromElsewhere);
    assert_eq!(hosts.read("b", "f").as_deref(), Some("two\n"));
    assert_eq!(hosts.read("b", "half"), None);
    hosts.write("b", "f", "three\n");
    fs::remove_file(hosts.path("b").join("new")).unwrap();
    assert_eq!(b.keep().await, WorkKept::GoOn);

    // The first host does not know yet that it has lost the task.
    hosts.write("a", "late", "late\n");
    assert_eq!(a.keep().await, WorkKept::HandedOver);

    let third = hosts.moved(second, "ann").await;
    let back = hosts.keeper("a", third).await.unwrap();
    assert_eq!(back.brought(), TreeBrought::FromElsewhere);
    let found = ["f", "new", "half", "late"].map(|name| hosts.read("a", name));
    assert_eq!(found, [Some("three\n".to_owned()), None, None, None]);
}

#[tokio::test]
async fn a_tree_that_stayed_here_keeps_what_a_broken_off_step_did() {
    let (hosts, first) = Hosts::new().await;
    let keeper = hosts.keeper("a", first).await.unwrap();
    hosts.write("a", "f", "two\n");
    keeper.keep().await;
    hosts.write("a", "half", "half\n");
    let second = hosts.moved(first, "bob").await;
    let again = hosts.keeper("a", second).await.unwrap();
    assert_eq!(again.brought(), TreeBrought::WasHere);
    assert_eq!(hosts.read("a", "half").as_deref(), Some("half\n"));
    again.keep().await;
    let third = hosts.moved(second, "cid").await;
    hosts.keeper("b", third).await.unwrap();
    assert_eq!(hosts.read("b", "half").as_deref(), Some("half\n"));
}

#[tokio::test]
async fn a_tree_that_is_too_large_is_missed_elsewhere_and_goes_on_here() {
    let (hosts, first) = Hosts::new().await;
    let keeper = hosts.keeper("a", first).await.unwrap();
    hosts.write("a", "f", "two\n");
    keeper.keep().await;
    let noise = std::iter::successors(Some(1_u32), |x| Some(x.wrapping_mul(1_664_525) + 7));
    let noise: Vec<u8> = noise.map(|x| x.to_be_bytes()[0]).take(40 << 20).collect();
    fs::write(hosts.path("a").join("noise"), noise).unwrap();
    assert_eq!(keeper.keep().await, WorkKept::GoOn);
    let told = fs::read_to_string(hosts.dir.path().join("a.txt")).unwrap();
    assert!(told.contains("not kept for other hosts"), "{told}");
    let kept = hosts.store.kept_tree(&hosts.task).await.unwrap().unwrap();
    assert!(matches!(kept.content, TreeContent::Missing(_)), "{kept:?}");

    let second = hosts.moved(first, "bob").await;
    let Err(refused) = hosts.keeper("b", second).await else {
        panic!("it began anew");
    };
    assert!(refused.contains("more than 32 MiB"), "{refused}");
    let third = hosts.moved(second, "ann").await;
    let again = hosts.keeper("a", third).await.unwrap();
    assert_eq!(again.brought(), TreeBrought::WasHere);
    fs::remove_file(hosts.path("a").join("noise")).unwrap();
    again.keep().await;
    let fourth = hosts.moved(third, "bob").await;
    hosts.keeper("b", fourth).await.unwrap();
    assert_eq!(hosts.read("b", "f").as_deref(), Some("two\n"));
}
