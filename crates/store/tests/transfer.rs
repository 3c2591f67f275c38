//! Moving records from SQLite to PostgreSQL.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[macro_use]
mod backends;
mod tasks_common;

mod postgres {
    use super::backends::Schema;
    use super::tasks_common::{
        about, after, claimed, ending, made, runner, said, session, task, told,
    };
    use codespar_protocol::{TaskStatus, TaskType};
    use codespar_store::{
        KeptTree, LeaseStore, LimitScope, LimitStore, NewTask, OutputPlace, OutputStore,
        PieceContent, ReportStore, SqliteStore, Store, StoreError, TableCount, TaskFilter,
        TaskLease, TaskStore, TreeContent, TreeStore, copy_to_postgres,
    };

    fn rows(counts: &[TableCount], table: &str) -> u64 {
        counts.iter().find(|one| one.table == table).unwrap().rows
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test --only fleet"]
    async fn all_records_arrive_and_work_goes_on_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let old = SqliteStore::open(dir.path()).await.unwrap();
        let id = session(&old).await;
        let bodies: Vec<_> = (0..250).map(|n| said(&format!("entry {n}"))).collect();
        old.append(id, 0, bodies).await.unwrap();
        let first = made(&old, told(TaskType::LocalAgent, id)).await;
        let second = made(&old, after(TaskType::LocalAgent, &[&first])).await;
        old.send_mail(&first, "me", "hurry").await.unwrap();
        let taken = claimed(&old, "r", 1).await.remove(0);
        old.record_step(&first, taken.epoch, "plan", &"done".into())
            .await
            .unwrap();
        let labelled = NewTask {
            labels: "gpu".parse().unwrap(),
            ..task(TaskType::LocalAgent)
        };
        let labelled = made(&old, labelled).await;
        let lease = TaskLease {
            task: first.clone(),
            epoch: taken.epoch,
        };
        let kept = KeptTree {
            base: "b".to_owned(),
            head: "h".to_owned(),
            tree: "t".to_owned(),
            content: TreeContent::Pack((0..=u8::MAX).collect()),
        };
        old.keep_tree(&lease, &kept).await.unwrap();
        old.beat(&runner("r"), &about(), &[]).await.unwrap();
        old.set_limit(LimitScope::All, "", Some(7)).await.unwrap();
        let lease = TaskLease {
            task: first.clone(),
            epoch: taken.epoch,
        };
        let place = OutputPlace {
            host: "h".to_owned(),
            file: "/f".to_owned(),
        };
        old.begin_output(&lease, &place).await.unwrap();
        let bytes = PieceContent::Bytes(vec![0, 255, b'\n']);
        old.append_output(&lease, 0, bytes).await.unwrap();
        let output = old.output(&first, 0, 9).await.unwrap();
        let fleet = old.fleet().await.unwrap();
        let newest = old.newest_change().await.unwrap();
        let tasks = old.tasks(TaskFilter::default()).await.unwrap();
        let steps = old.step_times(&first).await.unwrap();
        let entries = old.entries(id, 1).await.unwrap();
        old.close().await.unwrap();

        let schema = Schema::make().await;
        let counts = copy_to_postgres(dir.path(), &schema.url()).await.unwrap();

        assert_eq!(rows(&counts, "entries"), 250);
        assert_eq!(rows(&counts, "tasks"), 3);
        assert_eq!(rows(&counts, "task_limits"), 1);
        assert_eq!(rows(&counts, "task_deps"), 1);
        assert_eq!(rows(&counts, "output_pieces"), 1);
        assert_eq!(rows(&counts, "changes"), newest.0);
        let new = schema.open().await;
        assert_eq!(new.entries(id, 1).await.unwrap(), entries);
        assert_eq!(new.tasks(TaskFilter::default()).await.unwrap(), tasks);
        assert_eq!(new.step_times(&first).await.unwrap(), steps);
        assert_eq!(new.newest_change().await.unwrap(), newest);
        assert_eq!(new.fleet().await.unwrap(), fleet);
        assert_eq!(new.output(&first, 0, 9).await.unwrap(), output);
        assert_eq!(new.kept_tree(&first).await.unwrap(), Some(kept));
        // The lease, places that are given next, and the triggers.
        let end = ending(TaskStatus::Completed, None);
        new.finish_task(&first, taken.epoch, end).await.unwrap();
        let third = made(&new, task(TaskType::LocalAgent)).await;
        let ids: Vec<_> = new.tasks(TaskFilter::default()).await.unwrap();
        let ids: Vec<_> = ids.into_iter().map(|task| task.task_id).collect();
        assert_eq!(ids, [first, second, labelled, third]);
        assert_eq!(new.notifications(id).await.unwrap().len(), 1);
        assert!(new.newest_change().await.unwrap() > newest);

        let again = copy_to_postgres(dir.path(), &schema.url()).await;
        let said = again.unwrap_err().to_string();
        assert!(said.contains("has records already"), "{said}");
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test --only fleet"]
    async fn a_source_that_another_process_has_open_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = SqliteStore::open(dir.path()).await.unwrap();
        session(&open).await;
        let schema = Schema::make().await;
        let refused = copy_to_postgres(dir.path(), &schema.url()).await;
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("another process has it open"), "{said}");
        open.close().await.unwrap();
        let counts = copy_to_postgres(dir.path(), &schema.url()).await.unwrap();
        assert_eq!(rows(&counts, "sessions"), 1);
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test --only fleet"]
    async fn a_source_that_is_not_there_is_said_and_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let schema = Schema::make().await;
        let refused = copy_to_postgres(dir.path(), &schema.url()).await;
        assert!(matches!(refused, Err(StoreError::Unusable { .. })));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
