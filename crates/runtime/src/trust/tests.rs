//! Decisions about files of a project, on real directories.

use std::{fs, os::unix::fs::symlink};

use super::*;

const GRANT: &str = r#"{"permissions": {"allow": ["Bash"]}}"#;

struct Bench {
    _dir: tempfile::TempDir,
    person: UserDirs,
    root: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let bench = Self {
            person: UserDirs {
                state: base.join("home/.codespar"),
                home: Some(base.join("home")),
            },
            root: base.join("project"),
            _dir: dir,
        };
        fs::create_dir_all(&bench.person.state).unwrap();
        fs::create_dir_all(&bench.root).unwrap();
        bench
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn project(&self) -> ProjectTrust {
        ProjectTrust::read(&self.person, &self.root, &self.root)
    }

    fn ignored(&self) -> Vec<String> {
        let project = self.project();
        let ignored = project.ignored().into_iter();
        ignored.map(|file| file.name.clone()).collect()
    }

    fn trust(&self) {
        self.project().decide(&self.person.state, true).unwrap();
    }
}

#[test]
fn a_project_is_untrusted_until_the_user_says_so_and_after_each_change() {
    let bench = Bench::new();
    assert!(bench.project().notice().is_none());
    bench.file(".codespar/settings.json", GRANT);
    bench.file(
        ".codespar/settings.local.json",
        r#"{"permissions": {"deny": ["Bash"]}}"#,
    );
    bench.file(".codespar/agents/a.md", "---\nname: a\n---\nx\n");
    let both = [".codespar/settings.json", ".codespar/agents/a.md"];
    assert_eq!(bench.ignored(), both);
    bench.trust();
    assert_eq!(bench.ignored(), [""; 0]);
    bench.file(".codespar/agents/a.md", "---\nname: a\n---\n\u{1b}[2Jy\n");
    assert_eq!(bench.ignored(), [".codespar/agents/a.md"]);
    let project = bench.project();
    let changed = project.file(".codespar/agents/a.md").unwrap();
    let diff = changed.difference().unwrap();
    assert!(diff.contains("-x\n+\\u{1b}[2Jy\n"), "{diff}");
    bench.file(".codespar/agents/a.md", "---\nname: a\n---\nx\n");
    assert_eq!(bench.ignored(), [""; 0], "the content that was trusted");
    bench.file(".codespar/workflows/w.toml", "x");
    assert_eq!(bench.ignored(), [".codespar/workflows/w.toml"]);
    assert!(forget(&bench.person.state, &bench.root).unwrap());
    assert_eq!(bench.ignored().len(), 3);
}

#[test]
fn an_agent_in_a_directory_below_needs_trust_like_any_other() {
    let bench = Bench::new();
    let name = ".claude/agents/team/web/page.md";
    bench.file(name, "---\nname: page\n---\nx\n");
    let dir = bench.root.join(".claude/agents");
    let used = |trust| bench.project().agents(&dir, trust).len();
    assert_eq!(bench.ignored(), [name]);
    let counts = |bench: &Bench| (used(TrustFilter::Needed), bench.ignored().len());
    assert_eq!((counts(&bench), used(TrustFilter::Any)), ((0, 1), 1));
    bench.trust();
    assert_eq!(counts(&bench), (1, 0));
    bench.file(name, "---\nname: page\n---\ny\n");
    assert_eq!(counts(&bench), (0, 1));
    let shown = bench.project().details();
    assert!(
        shown.contains("page.md  changed") && shown.contains("+y"),
        "{shown}"
    );
}

#[test]
fn a_link_to_a_directory_of_agents_is_named_and_not_followed() {
    let bench = Bench::new();
    bench.file(".claude/agents/a.md", "---\nname: a\n---\nx\n");
    let outside = bench.person.state.join("elsewhere");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("b.md"), "---\nname: b\n---\nx\n").unwrap();
    symlink(&outside, bench.root.join(".claude/agents/team")).unwrap();
    symlink(outside.join("b.md"), bench.root.join(".claude/agents/c.md")).unwrap();
    bench.trust();
    let dir = bench.root.join(".claude/agents");
    let found = bench.project().agents(&dir, TrustFilter::Needed);
    let found: Vec<(String, bool)> = found
        .iter()
        .map(|file| {
            let name = file.path.strip_prefix(&dir).unwrap();
            (name.display().to_string(), file.text.is_ok())
        })
        .collect();
    let expected = [("a.md", true), ("c.md", false), ("team", false)];
    assert_eq!(
        found,
        expected.map(|(name, is_read)| (name.to_owned(), is_read))
    );
}

#[test]
fn agents_in_directories_of_the_user_are_not_the_projects_if_the_home_is_the_project() {
    let bench = Bench::new();
    let home = bench.person.home.clone().unwrap();
    let own = home.join(".claude/agents/team");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("a.md"), "---\nname: a\n---\nx\n").unwrap();
    let project = ProjectTrust::read(&bench.person, &home, &home);
    assert!(project.files().is_empty(), "{:?}", project.files());
}

#[test]
fn the_same_content_at_another_path_is_not_trusted() {
    let bench = Bench::new();
    bench.file(".codespar/settings.json", GRANT);
    bench.trust();
    let moved = bench.root.with_file_name("other");
    fs::rename(&bench.root, &moved).unwrap();
    let project = ProjectTrust::read(&bench.person, &moved, &moved);
    assert_eq!(project.ignored().len(), 1);
}

#[test]
fn a_no_is_remembered_for_this_content_only() {
    let bench = Bench::new();
    bench.file(".codespar/settings.json", GRANT);
    assert!(bench.project().is_unasked());
    bench.project().decide(&bench.person.state, false).unwrap();
    assert!(!bench.project().is_unasked());
    assert_eq!(bench.ignored(), [".codespar/settings.json"]);
    bench.file(".codespar/settings.json", &GRANT.replace("Bash", "Read"));
    assert!(bench.project().is_unasked());
    bench.trust();
    bench.file(".mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    bench.project().decide(&bench.person.state, false).unwrap();
    assert_eq!(bench.ignored(), [".mcp.json"], "what was trusted stays so");
}

#[test]
fn the_home_directory_is_not_trusted_by_a_flag_or_a_question() {
    let bench = Bench::new();
    let home = bench.person.home.clone().unwrap();
    fs::write(
        home.join(".mcp.json"),
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    )
    .unwrap();
    fs::write(bench.person.state.join("settings.json"), GRANT).unwrap();
    for root in [home.as_path(), home.parent().unwrap()] {
        let project = ProjectTrust::read(&bench.person, root, &home);
        assert!(project.for_this_run().is_err());
        assert!(!project.is_unasked());
    }
    fs::create_dir_all(home.join(".claude")).unwrap();
    fs::write(home.join(".claude/settings.json"), GRANT).unwrap();
    fs::write(home.join(".claude/settings.local.json"), GRANT).unwrap();
    let project = ProjectTrust::read(&bench.person, &home, &home);
    let names: Vec<&str> = project
        .files()
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(
        names,
        [".claude/settings.local.json", ".mcp.json"],
        "the user's own settings are not the project's"
    );
}

#[test]
fn a_worktree_is_trusted_with_its_repository_only_if_both_say_so() {
    let bench = Bench::new();
    bench.file(".codespar/settings.json", GRANT);
    bench.trust();
    let tree = bench.root.with_file_name("tree");
    let listed = bench.root.join(".git/worktrees/tree");
    fs::create_dir_all(&listed).unwrap();
    fs::create_dir_all(tree.join(".codespar")).unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", listed.display())).unwrap();
    fs::write(tree.join(".codespar/settings.json"), GRANT).unwrap();
    let ignored = || {
        let project = ProjectTrust::read(&bench.person, &tree, &tree);
        project.ignored().len()
    };
    assert_eq!(ignored(), 1, "the repository does not know it");
    fs::write(listed.join("commondir"), "../..\n").unwrap();
    fs::write(
        listed.join("gitdir"),
        format!("{}\n", tree.join(".git").display()),
    )
    .unwrap();
    assert_eq!(ignored(), 0);
    fs::write(
        tree.join(".codespar/settings.json"),
        GRANT.replace("Bash", "Read"),
    )
    .unwrap();
    assert_eq!(ignored(), 1, "other content");
}

#[test]
fn adding_to_a_file_that_came_with_the_repository_does_not_trust_it() {
    let bench = Bench::new();
    let (state, root) = (&bench.person.state, &bench.root);
    let name = ".codespar/settings.local.json";
    let refused = record_own_text(state, root, name, (Some(GRANT), "{}"));
    assert!(refused.unwrap_err().contains("is not trusted"));
    assert!(all(state).is_empty());
    record_own_text(state, root, name, (None, GRANT)).unwrap();
    bench.file(name, GRANT);
    assert_eq!(bench.ignored(), [""; 0]);
    record_own_text(state, root, name, (Some(GRANT), "{}")).unwrap();
}

#[test]
fn a_file_that_leads_out_of_the_project_or_is_no_file_is_not_read() {
    let bench = Bench::new();
    bench.file(".codespar/agents/x", "");
    symlink("/dev/zero", bench.root.join(".mcp.json")).unwrap();
    fs::write(bench.person.state.join("mine.json"), GRANT).unwrap();
    let link = bench.root.join(".codespar/settings.json");
    symlink(bench.person.state.join("mine.json"), link).unwrap();
    let project = bench.project();
    let texts: Vec<_> = project
        .files()
        .iter()
        .map(|file| file.text.clone())
        .collect();
    let out = Err(format!("it leads out of {}", bench.root.display()));
    assert_eq!(texts, [out.clone(), out]);
}

#[test]
fn a_workflow_is_used_as_it_was_trusted() {
    let bench = Bench::new();
    let name = ".codespar/workflows/w.toml";
    bench.file(name, "one");
    let path = bench.root.join(name);
    let refusal = |project: &ProjectTrust, text| project.may_use_workflow(&path, text).unwrap_err();
    let project = bench.project();
    assert!(refusal(&project, "one").contains("is not trusted"));
    let copy = bench.person.state.join("worktrees/a-1").join(name);
    assert!(
        project.may_use_workflow(&copy, "one").is_err(),
        "an agent's copy"
    );
    bench.trust();
    let project = bench.project();
    assert_eq!(project.may_use_workflow(&path, "one"), Ok(()));
    assert!(refusal(&project, "two").contains("has changed since it was trusted"));
    let elsewhere = bench.root.join("w.toml");
    assert!(project.may_use_workflow(&elsewhere, "x").is_err());
    assert_eq!(project.may_use_workflow(&copy, "one"), Ok(()));
    assert!(project.may_use_workflow(&copy, "two").is_err());
    let this_run = project.for_this_run().unwrap();
    assert_eq!(this_run.may_use_workflow(&elsewhere, "x"), Ok(()));
    assert_eq!(
        project.may_use_workflow(Path::new("/elsewhere/w.toml"), "x"),
        Ok(())
    );
}

#[test]
fn trust_for_this_run_covers_the_files_as_they_were_when_it_was_given() {
    let bench = Bench::new();
    bench.file(".codespar/settings.json", GRANT);
    bench.file(
        ".mcp.json",
        r#"{"mcpServers": {"one": {"command": "one"}}}"#,
    );
    let names = |project: &ProjectTrust| -> Vec<String> {
        let ignored = project.ignored().into_iter();
        ignored.map(|file| file.name.clone()).collect()
    };
    let given = bench.project().for_this_run().unwrap();
    let again = given.reread(&bench.person, &bench.root);
    assert_eq!(names(&again), Vec::<String>::new());
    bench.file(
        ".mcp.json",
        r#"{"mcpServers": {"one": {"command": "two"}}}"#,
    );
    bench.file(".claude/settings.json", GRANT);
    let changed = again.reread(&bench.person, &bench.root);
    assert_eq!(names(&changed), [".claude/settings.json", ".mcp.json"]);
    // A text that comes back needs a decision too: only the last reading is compared.
    bench.file(
        ".mcp.json",
        r#"{"mcpServers": {"one": {"command": "one"}}}"#,
    );
    let back = changed.reread(&bench.person, &bench.root);
    assert_eq!(names(&back), [".claude/settings.json", ".mcp.json"]);
    bench.trust();
    let decided = back.reread(&bench.person, &bench.root);
    assert_eq!(names(&decided), Vec::<String>::new());
}
